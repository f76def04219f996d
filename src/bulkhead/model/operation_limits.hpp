// How long an operation on a node may take before it counts as failed: the one place for these numbers. Nodes hold
// their operations to them, and the bound that a contract states is their sum.
#pragma once

#include "bulkhead/base/quantity.hpp"

namespace bulkhead {

// One that has timed out still blocks what it works on until it answers, the agent is started anew or the host is
// rebooted, because its effect is unknown until then.
struct OperationLimits {
    Duration attach{120'000};  // a test of the fences may have the function first: agent/functions.hpp
    Duration instance{60'000};
    Duration start{300'000};
    Duration stop{300'000};
    Duration wipe_memory{600'000};
    Duration reset{300'000};
    Duration wipe_drive = Duration::hours(6);
    Duration wipe_function{120'000};
    Duration reboot{3'600'000};
    Duration verify{3'600'000};
};

}  // namespace bulkhead
