// What a scheduler decided about a scene, as people and programs read it.
#pragma once

#include <iosfwd>
#include <string>

#include "bulkhead/sched/blocking_text.hpp"
#include "bulkhead/sched/play.hpp"

namespace bulkhead::cli {

struct ScheduleAnswer {
    sched::Scene scene;
    sched::Played played;
};

// What runs where, what was disturbed for whom, what waits and why, and what each tenant holds of what it is due.
void print_schedule(std::ostream& out, const ScheduleAnswer& answer);

std::string schedule_json(const ScheduleAnswer& answer);

// What is in the way of a job that waits.
sched::InTheWay in_the_way(const ScheduleAnswer& answer, const sched::Blocking& blocking);

// The words of a reason.
std::string says(const Reason& reason);

}  // namespace bulkhead::cli
