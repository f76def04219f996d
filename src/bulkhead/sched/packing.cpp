#include "bulkhead/sched/packing.hpp"

#include <algorithm>
#include <limits>
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
constexpr std::size_t most_numbers = std::size_t{1} << 17;  // in a mix's table: a megabyte

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    const std::int64_t quotient = a / b;
    return quotient - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
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
    std::vector<Group> groups;
    for (std::size_t i = 0; i < usual.size(); ++i) {
        if (i == 0 || group_of(usual[i]) != group_of(usual[i - 1])) {
            const auto at = static_cast<std::uint32_t>(i);
            groups.push_back({usual[i].shape.share, usual[i].shape.gpus, usual[i].shape.models, at, at});
        }
        Group& group = groups.back();
        cores_.push_back(usual[i].shape.cpu);
        up_to_.push_back((group.first == group.last ? 0 : up_to_.back()) + usual[i].count);
        ++group.last;
    }
    for (const Group& group : groups)
        if (group.gpus > 0) (group.gpus == 1 ? single_ : several_).push_back(group);
    tabulate();
}

void Mix::tabulate() {
    std::vector<std::int32_t> shares;
    for (const Group& group : single_) {
        if (shares.empty() || shares.back() != group.share) shares.push_back(group.share);
        steps_.insert(steps_.end(), cores_.begin() + group.first, cores_.begin() + group.last);
    }
    std::ranges::sort(steps_);
    const auto [first, last] = std::ranges::unique(steps_);
    steps_.erase(first, last);
    std::vector<std::uint8_t> kinds;  // one model of each
    for (std::size_t number = 0; number < model_kinds_.size(); ++number) {
        const auto model = static_cast<std::uint8_t>(number);
        const auto is_like = [&](std::uint8_t other) {
            return std::ranges::all_of(single_, [&](const Group& group) {
                return (group.models >> model & 1u) == (group.models >> other & 1u);
            });
        };
        const auto like = std::ranges::find_if(kinds, is_like);
        model_kinds_[model] = static_cast<std::uint8_t>(like - kinds.begin());
        if (like == kinds.end()) kinds.push_back(model);
    }
    shares_ = shares.size() + 1;
    if (kinds.size() * (steps_.size() + 1) * shares_ > most_numbers) return;
    for (std::size_t free = 0; free < share_ranks_.size(); ++free)
        share_ranks_[free] = static_cast<std::uint16_t>(
            std::ranges::upper_bound(shares, static_cast<std::int32_t>(free)) - shares.begin());
    table_.reserve(kinds.size() * (steps_.size() + 1) * shares_);
    for (const std::uint8_t model : kinds)
        for (std::size_t row = 0; row <= steps_.size(); ++row) {
            table_.push_back(0);
            for (const std::int32_t share : shares)
                table_.push_back(row == 0 ? 0 : counted(model, steps_[row - 1], share));
        }
}

std::int64_t Mix::served_of(const Group& group, std::int64_t cpu) const {
    const auto first = cores_.begin() + group.first;
    const auto beyond = std::upper_bound(first, cores_.begin() + group.last, cpu);
    return beyond == first ? 0 : up_to_[static_cast<std::size_t>(beyond - cores_.begin()) - 1];
}

std::int64_t Mix::counted(std::uint8_t model, std::int64_t cpu, std::int32_t free) const {
    std::int64_t sum = 0;
    for (const Group& group : single_) {
        if (group.share > free) break;
        if ((group.models >> model & 1u) != 0) sum += served_of(group, cpu);
    }
    return sum;
}

Mix::Served Mix::served(std::uint8_t model, std::int64_t cpu) const {
    Served out;
    out.mix_ = this;
    out.cpu_ = cpu;
    out.model_ = model;
    if (!table_.empty()) {
        const auto row = static_cast<std::size_t>(std::ranges::upper_bound(steps_, cpu) - steps_.begin());
        out.row_ = table_.data() + (model_kinds_[model] * (steps_.size() + 1) + row) * shares_;
    }
    return out;
}

std::int64_t Mix::used_by_several(std::uint8_t model, std::int64_t cpu, std::int32_t whole) const {
    if (whole < 2) return 0;
    std::int64_t sum = 0;
    for (const Group& group : several_)
        if (whole >= group.gpus && (group.models >> model & 1u) != 0) sum += served_of(group, cpu);
    return sum * whole * 1000;
}

// All that is free, times all tasks, less what each can use.
std::int64_t Mix::fragmentation(const NodeRoom& room) const {
    const Served one = served(room.model, room.cpu);
    std::int64_t use = 0;
    std::int32_t whole = 0;
    for (std::size_t i = 0; i < room.gpus; ++i) {
        use += one.use(room.free[i]);
        whole += room.free[i] == 1000 ? 1 : 0;
    }
    return room.gpu_free() * tasks_ - use - used_by_several(room.model, room.cpu, whole);
}

std::int64_t Mix::stranded(std::int64_t free, std::int64_t cpu) const {
    if (cpu_ == 0 || cpu * gpu_ >= free * cpu_) return 0;  // without a division, which takes long
    return std::max<std::int64_t>(0, free - cpu * gpu_ / cpu_);
}

PackedPlace pack(const Mix& mix, const NodeRoom& room, const TaskShape& task, std::uint32_t allowed) {
    const std::int64_t tasks = mix.tasks(), cpu_after = room.cpu - task.cpu;
    const Mix::Served served = mix.served(room.model, room.cpu), served_after = mix.served(room.model, cpu_after);
    // What the mix can use before, and with the cores that are left after, were no GPU taken.
    std::int64_t free = 0, use = 0, use_after = 0;
    std::array<std::int64_t, most_gpus_of_node> uses_after;
    std::int32_t whole = 0;
    for (std::size_t i = 0; i < room.gpus; ++i) {
        const std::int16_t its = room.free[i];
        free += its;
        whole += its == 1000 ? 1 : 0;
        use += served.use(its);
        use_after += uses_after[i] = served_after.use(its);
    }
    const bool breaks_board = room.gpus == board_gpus && whole == board_gpus;
    const bool could_go_elsewhere = task.gpus > 0 && task.models == any_model;
    const std::int32_t taken = task.gpus == 1 ? 1 : std::min(task.gpus, whole);
    const std::int64_t free_after = free - (task.gpus == 1 ? task.share : std::int64_t{1000} * taken);
    // All of the gain but the part that depends on the GPU.
    std::int64_t common = free * tasks - use - mix.used_by_several(room.model, room.cpu, whole);
    common -= free_after * tasks - use_after;
    common += (mix.stranded(free, room.cpu) - mix.stranded(free_after, cpu_after)) * tasks * stranded_tenths / 10;
    if (breaks_board) common -= idle_node * tasks;
    if (could_go_elsewhere) common -= mix.wanted(room.model) * task.demand() * insisted_tenths * tasks / 10'000;
    const std::int64_t unit = step * std::max<std::int64_t>(tasks, 1);
    common += unit / 2;
    if (task.gpus != 1) {
        const std::int64_t gain =
            mix.used_by_several(room.model, cpu_after, whole - taken) - taken * served_after.use(1000);
        return {{floor_div(common + gain, unit), -free}, 0};
    }
    // What those for several GPUs could use, if the GPU was whole before and if it was not; once it is needed.
    std::array<std::int64_t, 2> by_several{-1, -1};
    std::array<std::int64_t, most_gpus_of_node> gains;
    std::array<std::uint8_t, most_gpus_of_node> gpus;
    std::int64_t most = std::numeric_limits<std::int64_t>::min();
    std::array<std::int16_t, most_gpus_of_node> seen;
    std::size_t seen_count = 0;
    for (std::size_t i = 0; i < room.gpus; ++i) {
        const std::int16_t its = room.free[i];
        if (its < task.share || (allowed >> i & 1u) == 0) continue;
        // GPUs in the same state would get the same score.
        const auto last = seen.begin() + static_cast<std::ptrdiff_t>(seen_count);
        if (std::find(seen.begin(), last, its) != last) continue;
        const std::int32_t left = its - task.share;
        const std::int32_t breaks = its == 1000 && task.share > 0 ? 1 : 0;
        std::int64_t& several = by_several[static_cast<std::size_t>(breaks)];
        if (several < 0) several = mix.used_by_several(room.model, cpu_after, whole - breaks);
        std::int64_t gain = served_after.use(left) - uses_after[i] + several;
        if (task.share < 1000) gain -= (mix.holes().value(its) - mix.holes().value(left)) * hole * tasks;
        most = std::max(most, gain);
        gains[seen_count] = gain;
        gpus[seen_count] = static_cast<std::uint8_t>(i);
        seen[seen_count++] = its;
    }
    if (seen_count == 0) return {};
    // The first of those that are as good when rounded.
    const std::int64_t good = floor_div(common + most, unit);
    std::size_t first = 0;
    while (common + gains[first] < good * unit) ++first;
    return {{good, -free}, gpus[first]};
}

}  // namespace bulkhead::sched
