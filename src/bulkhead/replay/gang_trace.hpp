// Traces of jobs that arrive, ask for GPUs all at once, run and leave. Two CSV layouts are read, told apart by the
// column `ddl`:
//   Muri's:        num_gpu, submit_time and duration in milliseconds, priority (may be missing);
//   ElasticFlow's: num_gpu, submit_time, duration and ddl (the deadline, a moment) in seconds.
// Other columns are passed over. Philly's arrivals, gang sizes and durations come in both.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"

namespace bulkhead::replay {

struct TraceJob {
    std::int32_t gpus = 1;
    Instant submitted;  // the first job of a trace comes at 0
    Duration duration;  // alone, on the GPUs asked for
    std::int64_t priority = 0;
    std::optional<Instant> deadline;

    friend bool operator==(const TraceJob&, const TraceJob&) = default;
};

// In the order of arrival; of equals, in the order of the file.
using GangTrace = std::vector<TraceJob>;

Result<GangTrace> read_gang_trace(std::string_view name, std::string_view text);

}  // namespace bulkhead::replay
