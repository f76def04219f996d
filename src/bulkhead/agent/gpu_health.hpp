// What a GPU's complaints mean for whoever is on it and whoever would come next.
#pragma once

#include <cstdint>

namespace bulkhead::agent {

enum class Concern : std::uint8_t {
    note,        // what the tenant's own program did wrong ends that program; nobody else has to care
    drain,       // it works on; it should be reset before anybody else gets it
    quarantine,  // nobody can rely on it any more
};

// By NVIDIA's list of Xids. A number that is not known here is taken for the worst.
Concern concern_of(std::uint64_t xid);

}  // namespace bulkhead::agent
