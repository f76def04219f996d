// What use of the past still counts: half of it after one half-life, a quarter after two. In fixed point of 62 bits,
// rounded down, so that every machine forgets alike and what is forgotten never comes back.
#pragma once

#include <cstdint>

#include "bulkhead/base/quantity.hpp"

namespace bulkhead::sched {

// usage * 2^(-age / half-life) to within one part in 2^55, rounded down; exact after whole half-lives. Always from what
// was used, never from what was decayed before: each call rounds. An age that is not past is none, and without a
// half-life nothing is forgotten.
std::int64_t decayed(std::int64_t usage, Duration age, Duration half_life);

}  // namespace bulkhead::sched
