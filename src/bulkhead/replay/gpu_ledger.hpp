// Who is on which GPU, counted apart from the engine whose seats it is shown: a GPU or slice that is given out twice,
// or before it is clean, stops the replay.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/sched/statement.hpp"

namespace bulkhead::replay {

class GpuLedger {
public:
    explicit GpuLedger(std::span<const sched::Node> nodes);

    void take(const sched::TaskSeat& task);
    // Dirty until then; not: free at once.
    void leave(const sched::TaskSeat& task, std::optional<Instant> dirty_until);
    // Which slices of it are clean now, and were not before.
    std::uint8_t wiped(std::uint32_t node, std::uint16_t gpu, Instant now);
    std::int64_t wiping() const { return wiping_; }  // Gpus::units

private:
    struct Gpu {
        std::uint8_t slices = 1;
        std::uint8_t dirty = 0;              // one bit each
        std::array<std::int32_t, 8> used{};  // thousandths of each slice
        std::array<Instant, 8> dirty_until{};
    };
    Gpu& at(std::uint32_t node, std::uint16_t gpu) { return gpus_[first_[node] + gpu]; }

    std::vector<Gpu> gpus_;
    std::vector<std::size_t> first_;  // by node
    std::int64_t wiping_ = 0;
};

}  // namespace bulkhead::replay
