#include "bulkhead/replay/gpu_ledger.hpp"

#include <algorithm>
#include <bit>

namespace bulkhead::replay {

namespace {

// An instance has its slices to itself; who shares a GPU has a part of all of them.
std::int32_t part_of(const sched::Seat& seat) {
    return seat.profile.empty() ? static_cast<std::int32_t>(seat.share) : 1000;
}

std::int64_t units_of(std::uint8_t slices, std::uint8_t of) {
    return gpu_unit * std::popcount(static_cast<unsigned>(slices)) / of;
}

}  // namespace

GpuLedger::GpuLedger(std::span<const sched::Node> nodes) {
    for (const sched::Node& node : nodes) {
        first_.push_back(gpus_.size());
        for (const sched::Gpu& gpu : node.gpus) {
            Gpu mine{.slices = gpu.slices};
            for (std::uint8_t s = 0; s < gpu.slices; ++s)
                if ((gpu.available >> s & 1) == 0) mine.used[s] = 1000;  // somebody's who does not take part
            gpus_.push_back(mine);
        }
    }
}

void GpuLedger::take(const sched::TaskSeat& task) {
    for (std::size_t i = 0; i < task.gpus.size(); ++i) {
        Gpu& gpu = at(task.node, task.gpus[i]);
        const sched::Seat& seat = task.seats[i];
        for (std::uint8_t s = seat.start; s < seat.start + seat.size; ++s) {
            gpu.used[s] += part_of(seat);
            invariant(gpu.used[s] <= 1000, "a task was put on a GPU that is in use");
            invariant((gpu.dirty >> s & 1) == 0, "a task was put on a GPU that is not clean");
        }
    }
}

void GpuLedger::leave(const sched::TaskSeat& task, std::optional<Instant> dirty_until) {
    for (std::size_t i = 0; i < task.gpus.size(); ++i) {
        Gpu& gpu = at(task.node, task.gpus[i]);
        const sched::Seat& seat = task.seats[i];
        const std::int64_t before = units_of(gpu.dirty, gpu.slices);
        for (std::uint8_t s = seat.start; s < seat.start + seat.size; ++s) {
            gpu.used[s] -= part_of(seat);
            if (dirty_until) gpu.dirty_until[s] = std::max(gpu.dirty_until[s], *dirty_until);
            // While others are still there it is theirs.
            if (dirty_until && gpu.used[s] == 0) gpu.dirty |= static_cast<std::uint8_t>(1u << s);
        }
        wiping_ += units_of(gpu.dirty, gpu.slices) - before;
    }
}

std::uint8_t GpuLedger::wiped(std::uint32_t node, std::uint16_t number, Instant now) {
    Gpu& gpu = at(node, number);
    const std::int64_t before = units_of(gpu.dirty, gpu.slices);
    std::uint8_t clean = 0;
    for (std::uint8_t s = 0; s < gpu.slices; ++s)
        if ((gpu.dirty >> s & 1) != 0 && gpu.dirty_until[s] <= now) clean |= static_cast<std::uint8_t>(1u << s);
    gpu.dirty &= static_cast<std::uint8_t>(~clean);
    wiping_ += units_of(gpu.dirty, gpu.slices) - before;
    return clean;
}

}  // namespace bulkhead::replay
