// Writes the terms of an accepted request: what is isolated, what stays open, how it is given back.
#pragma once

#include <span>
#include <string>

#include "bulkhead/policy/contract.hpp"
#include "bulkhead/policy/verdict.hpp"

namespace bulkhead {

struct Writing {
    Audience reader{};
    Written written{};
    std::span<const std::string> placed;  // nodes it is on; none: it may come to any that can serve it
};
// The verdict must be an acceptance.
Contract write_contract(const GpuWorkload& workload, const Asker& asker, const FleetView& fleet, const Verdict& verdict,
                        const Writing& writing);

}  // namespace bulkhead
