// Within how long guaranteed capacity that was lent comes back to its tenant, part by part. The contract states it for
// any moment, an answer for the work that is in the way now. A part that takes longer than this has failed: a failed
// wipe, a lost node and a legal hold begin the bound anew, and the log says so.
#pragma once

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/operation_limits.hpp"
#include "bulkhead/model/policy.hpp"

namespace bulkhead {

struct ReturnBound {
    Duration run;                            // until the minimum run time of the work in the way is over
    Duration save;                           // its checkpoint
    Duration stop = OperationLimits{}.stop;  // from the order to stop until nothing of it runs
    // Instances are destroyed, and GPU memory is wiped, which is verified.
    Duration wipe{OperationLimits{}.instance.ms + OperationLimits{}.wipe_memory.ms};
    // Of the host to a known image, and its verification, where trust demands one; else 0.
    Duration reboot{OperationLimits{}.reboot.ms + OperationLimits{}.verify.ms};

    constexpr Duration sum() const { return {run.ms + save.ms + stop.ms + wipe.ms + reboot.ms}; }
    friend constexpr bool operator==(const ReturnBound&, const ReturnBound&) = default;
};

// `run`: what is left of minimum run times; the longest there is, where no victim is known.
constexpr ReturnBound return_bound(const FleetPolicySpec& policy, Duration run, bool reboots) {
    ReturnBound bound{.run = run, .save = policy.checkpointAtMost};
    if (!reboots) bound.reboot = {};
    return bound;
}

}  // namespace bulkhead
