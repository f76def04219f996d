#include "bulkhead/sched/packing.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace bulkhead::sched {

namespace {

// One set of weights for every fleet and every trace; found by trying, and checked on all seventeen lists of the openb
// trace (docs/promises.md).
constexpr std::int64_t step = 20;            // thousandths of a GPU: finer differences are noise
constexpr std::int64_t hole = 8;             // times what the hole loses in worth
constexpr std::int64_t stranded_tenths = 3;  // of what becomes stranded
constexpr std::int64_t idle_node = 20;       // thousandths, for breaking into a node of eight idle GPUs
constexpr std::int64_t insisted_tenths = 2;  // of what somebody insists on and this task would take
constexpr std::int64_t board_gpus = 8;
constexpr std::uint32_t any_model = ~0u;

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    const std::int64_t quotient = a / b;
    return quotient - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

bool idle(const NodeRoom& room) {
    return std::all_of(room.free.begin(), room.free.begin() + room.gpus,
                       [](std::int16_t free) { return free == 1000; });
}

}  // namespace

std::int64_t NodeRoom::gpu_free() const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < gpus; ++i) sum += free[i];
    return sum;
}

bool NodeRoom::takes(const TaskShape& task) const {
    if (task.cpu > cpu || task.memory > memory) return false;
    if (task.gpus == 0) return true;
    if ((task.models >> model & 1u) == 0) return false;
    std::int32_t able = 0;
    for (std::size_t i = 0; i < gpus; ++i) able += free[i] >= task.share ? 1 : 0;
    return able >= task.gpus;
}

void NodeRoom::take(const TaskShape& task, std::size_t gpu) {
    cpu -= task.cpu;
    memory -= task.memory;
    if (task.gpus == 1) {
        free[gpu] = static_cast<std::int16_t>(free[gpu] - task.share);
        return;
    }
    std::int32_t left = task.gpus;
    for (std::size_t i = 0; i < gpus && left > 0; ++i)
        if (free[i] == 1000) {
            free[i] = 0;
            --left;
        }
}

Mix::Mix(std::vector<Part> parts, std::span<const NodeRoom> fleet) {
    std::array<std::int64_t, 32> capacity{};
    for (const NodeRoom& node : fleet) capacity[node.model] += std::int64_t{node.gpus} * 1000;
    std::int64_t all = 0;
    for (Part& part : parts) {
        all += part.count;
        part.shape.memory = 0;
        if (part.shape.gpus == 0) continue;
        cpu_ += part.count * part.shape.cpu;
        gpu_ += part.count * part.shape.demand();
        if (part.shape.models == any_model) continue;
        // Who accepts several models is counted with each as far as it could be served there.
        std::int64_t of_these = 0;
        for (std::size_t m = 0; m < capacity.size(); ++m)
            if ((part.shape.models >> m & 1u) != 0) of_these += capacity[m];
        for (std::size_t m = 0; m < capacity.size(); ++m)
            if ((part.shape.models >> m & 1u) != 0 && of_these > 0)
                wanted_[m] += part.count * part.shape.demand() * 1000 / of_these;
    }
    std::vector<HolePrices::Size> fractions;
    for (const Part& part : parts) {
        if (part.shape.gpus != 1 || part.shape.share >= 1000) continue;
        const auto known = std::ranges::find(fractions, part.shape.share, &HolePrices::Size::share);
        if (known != fractions.end())
            known->count += part.count;
        else
            fractions.push_back({part.shape.share, part.count});
    }
    holes_ = HolePrices{std::move(fractions)};
    // Shapes that differ in memory alone are one.
    std::ranges::sort(parts, {}, &Part::shape);
    std::vector<Part> merged;
    for (const Part& part : parts)
        if (!merged.empty() && merged.back().shape == part.shape)
            merged.back().count += part.count;
        else
            merged.push_back(part);
    std::ranges::sort(merged, [](const Part& a, const Part& b) {
        return std::pair{-a.count, a.shape} < std::pair{-b.count, b.shape};
    });
    std::vector<Part> usual;
    for (const Part& part : merged) {
        if (tasks_ * 100 >= all * 95) break;
        tasks_ += part.count;
        usual.push_back(part);
    }
    const auto group_of = [](const Part& part) {
        return std::tuple{part.shape.share, part.shape.gpus, part.shape.models};
    };
    std::ranges::sort(usual, {},
                      [&](const Part& part) { return std::tuple_cat(group_of(part), std::tuple{part.shape.cpu}); });
    for (std::size_t i = 0; i < usual.size(); ++i) {
        if (i == 0 || group_of(usual[i]) != group_of(usual[i - 1])) {
            const auto at = static_cast<std::uint32_t>(i);
            groups_.push_back({usual[i].shape.share, usual[i].shape.gpus, usual[i].shape.models, at, at, 0});
        }
        Group& group = groups_.back();
        group.count += usual[i].count;
        ++group.last;
        cores_.push_back(usual[i].shape.cpu);
        up_to_.push_back(group.count);
    }
}

std::int64_t Mix::fragmentation(const NodeRoom& room) const {
    std::array<std::int16_t, most_gpus_of_node> sorted = room.free;
    std::sort(sorted.begin(), sorted.begin() + room.gpus);
    const std::int64_t all = room.gpu_free();
    std::int64_t sum = 0, too_small = 0;
    std::size_t passed = 0;  // GPUs with less than the share looked at; shares only grow
    for (const Group& group : groups_) {
        while (passed < room.gpus && sorted[passed] < group.share) too_small += sorted[passed++];
        std::int64_t served = 0;
        if (group.gpus > 0 && (group.models >> room.model & 1u) != 0 &&
            static_cast<std::int32_t>(room.gpus - passed) >= group.gpus) {
            const auto first = cores_.begin() + group.first;
            const auto beyond = std::upper_bound(first, cores_.begin() + group.last, room.cpu);
            if (beyond != first) served = up_to_[static_cast<std::size_t>(beyond - cores_.begin()) - 1];
        }
        sum += served * too_small + (group.count - served) * all;
    }
    return sum;
}

std::int64_t Mix::stranded(const NodeRoom& room) const {
    if (cpu_ == 0) return 0;
    return std::max<std::int64_t>(0, room.gpu_free() - room.cpu * gpu_ / cpu_);
}

PackedPlace pack(const Mix& mix, const NodeRoom& room, const TaskShape& task, std::uint32_t allowed,
                 std::optional<std::int64_t> known) {
    const std::int64_t before = known ? *known : mix.fragmentation(room), stranded_before = mix.stranded(room),
                       tasks = mix.tasks();
    const bool breaks_board = room.gpus == board_gpus && idle(room);
    const bool could_go_elsewhere = task.gpus > 0 && task.models == any_model;
    const auto score = [&](std::size_t gpu) {
        NodeRoom after = room;
        after.take(task, gpu);
        std::int64_t gain = before - mix.fragmentation(after);
        gain += (stranded_before - mix.stranded(after)) * tasks * stranded_tenths / 10;
        if (task.gpus == 1 && task.share < 1000)
            gain -= (mix.holes().value(room.free[gpu]) - mix.holes().value(after.free[gpu])) * hole * tasks;
        if (breaks_board) gain -= idle_node * tasks;
        if (could_go_elsewhere) gain -= mix.wanted(room.model) * task.demand() * insisted_tenths * tasks / 10'000;
        const std::int64_t unit = step * std::max<std::int64_t>(tasks, 1);
        return PackingScore{floor_div(gain + unit / 2, unit), -room.gpu_free()};
    };
    if (task.gpus != 1) return {score(0), 0};
    PackedPlace best;
    bool any = false;
    for (std::size_t i = 0; i < room.gpus; ++i) {
        if (room.free[i] < task.share || (allowed >> i & 1u) == 0) continue;
        // GPUs in the same state would get the same score.
        bool seen = false;
        for (std::size_t k = 0; k < i; ++k) seen = seen || (room.free[k] == room.free[i] && (allowed >> k & 1u) != 0);
        if (seen) continue;
        const PackingScore found = score(i);
        if (!any || found > best.score) best = {found, static_cast<std::uint8_t>(i)};
        any = true;
    }
    return best;
}

}  // namespace bulkhead::sched
