// An answer to the order of a wipe: of these units, under this ticket.
#pragma once

#include <string>
#include <utility>

#include "bulkhead/node/order.hpp"
#include "bulkhead/node/report.hpp"

namespace bulkhead {

inline WipeReport report_of(const WipeTask& task, bool verified, std::string why) {
    return {.kind = task.kind,
            .device = task.device,
            .start = task.start,
            .size = task.size,
            .ticket = task.ticket,
            .verified = verified,
            .why = std::move(why)};
}

bool same_units(const auto& one, const auto& other) {
    return one.kind == other.kind && one.device == other.device && one.start == other.start && one.size == other.size;
}

}  // namespace bulkhead
