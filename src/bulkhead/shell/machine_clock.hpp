// What time it is, by this machine. Whoever can be given a clock is given one; this is for the rest, and for what they
// are given.
#pragma once

#include <chrono>

#include "bulkhead/base/quantity.hpp"

namespace bulkhead::shell {

inline Instant machine_clock() {
    using namespace std::chrono;
    return {duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

}  // namespace bulkhead::shell
