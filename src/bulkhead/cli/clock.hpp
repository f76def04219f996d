// Now, by this machine's clock.
#pragma once

#include <chrono>

#include "bulkhead/base/quantity.hpp"

namespace bulkhead::cli {

inline Instant clock_now() {
    using namespace std::chrono;
    return {duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

}  // namespace bulkhead::cli
