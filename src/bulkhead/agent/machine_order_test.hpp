// The order of a tenant's machine, as tests on both sides of the hands give it: one whole GPU, one CPU, 256 MiB.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bulkhead/node/operation.hpp"

namespace bulkhead::agent {

inline StartTenant machine_order(Key lease, std::vector<std::string> words) {
    return {.lease = lease,
            .tier = Tier::vm,
            .gpus = {{.gpu = 0, .start = 0, .size = 8}},
            .tenant = "acme",
            .mechanism = Mechanism::whole,
            .program = {.words = std::move(words),
                        .environment = {"WHO=acme"},
                        .cpu_thousandths = 1000,
                        .memory_bytes = 256 << 20}};
}

}  // namespace bulkhead::agent
