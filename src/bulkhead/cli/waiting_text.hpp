// Work that waits, as people read it: what is in its way, and what changed between two looks.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/codec/document.hpp"
#include "bulkhead/sched/blocking_text.hpp"

namespace bulkhead::cli {

// One line for each piece of work that would have to end, one for the other nodes, one for the estimate.
std::vector<std::string> lines_of(const sched::InTheWay& way);

// The same of an answer of the server that has the member `inTheWay`; nothing without it.
std::vector<std::string> lines_in_the_way(const Node& answer);

// What a person who watches wants to know of one workload that waits.
struct WaitSeen {
    std::string phase;
    std::vector<std::string> reasons;
    std::string expected_start;           // empty: none
    std::vector<std::string> in_the_way;  // without the sentence about the start, which tells the time
    friend bool operator==(const WaitSeen&, const WaitSeen&) = default;
};

// Lines that tell the change: "+ " for what is new, "- " for what is no more, and the estimate before and after.
std::vector<std::string> changes_between(const WaitSeen& before, const WaitSeen& after);

using QueueSeen = std::map<std::string, WaitSeen>;  // by "tenant/workload"
QueueSeen queue_seen(const Node& answer);
// One block of lines for each workload that came, changed or left.
std::vector<std::string> changes_between(const QueueSeen& before, const QueueSeen& after);

}  // namespace bulkhead::cli
