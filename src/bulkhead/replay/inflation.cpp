#include "bulkhead/replay/inflation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "bulkhead/base/rng.hpp"

namespace bulkhead::replay {

namespace {

using sched::NodeRoom;
using sched::PackedPlace;
using sched::TaskShape;

// Past this, in percent of the fleet's GPUs, nothing arrives.
constexpr std::int64_t inflated_to = 130;
constexpr std::size_t most_arrivals = 10'000'000, most_scores = 20'000'000;

Result<std::vector<std::uint32_t>> arrivals(const OpenbFleet& fleet, const OpenbTasks& trace, Rng rng) {
    std::vector<std::uint32_t> out = trace.tasks;
    for (std::size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[rng.below(i)]);
    const std::int64_t most = fleet.capacity() * inflated_to / 100;
    const auto demand = [&](std::uint32_t shape) { return trace.shapes[shape].demand(); };
    std::int64_t asked = 0;
    for (const std::uint32_t shape : out) asked += demand(shape);
    for (; asked > most; out.pop_back()) asked -= demand(out.back());
    for (;;) {
        const std::uint32_t drawn = trace.tasks[rng.below(trace.tasks.size())];
        if (asked + demand(drawn) > most) return out;
        if (out.size() == most_arrivals)
            return fail(Code::exhausted,
                        fmt::format("{} tasks of this list do not ask for {} % of the fleet's GPUs", most_arrivals,
                                    inflated_to),
                        "a smaller fleet, or a list with more GPU tasks");
        asked += demand(drawn);
        out.push_back(drawn);
    }
}

// Of the GPUs that can take it, the one with the least room.
std::uint8_t tightest(const NodeRoom& room, const TaskShape& task) {
    std::optional<std::size_t> best;
    if (task.gpus != 1) return 0;
    for (std::size_t i = 0; i < room.gpus; ++i)
        if (room.free[i] >= task.share && (!best || room.free[i] < room.free[*best])) best = i;
    return static_cast<std::uint8_t>(*best);
}

// Scores of whole numbers from 0 to 100, as the published runs had them: how coarse they are decides many ties.
PackedPlace scored(double score, std::uint8_t gpu) { return {{static_cast<std::int64_t>(std::floor(score)), 0}, gpu}; }

constexpr double most_cpu = 128'000, most_gpu = 8'000;

// The least of what is left, cores and GPUs weighed alike.
PackedPlace bestfit(const NodeRoom& room, const TaskShape& task) {
    const double cpu = static_cast<double>(room.cpu - task.cpu) / most_cpu;
    const double gpu = static_cast<double>(room.gpu_free() - task.demand()) / most_gpu;
    return scored(100 * (1 - (cpu + gpu) / 2), tightest(room, task));
}

// The smallest product of what is free and what is asked.
PackedPlace dotprod(const NodeRoom& room, const TaskShape& task) {
    const double cpu = static_cast<double>(room.cpu) / most_cpu * static_cast<double>(task.cpu) / most_cpu;
    const double gpu = static_cast<double>(room.gpu_free()) / most_gpu * static_cast<double>(task.demand()) / most_gpu;
    return scored(100 * (1 - (cpu + gpu)), tightest(room, task));
}

// First GPUs that are shared already, then nodes in use, then small idle nodes.
PackedPlace packing(const NodeRoom& room, const TaskShape& task) {
    const std::uint8_t gpu = tightest(room, task);
    const auto idle = std::count(room.free.begin(), room.free.begin() + room.gpus, std::int16_t{1000});
    if (task.gpus == 0) return scored(idle == room.gpus ? 0 : 50, gpu);
    if (task.share < 1000 && room.free[gpu] < 1000) return scored(100 - 33.0 * room.free[gpu] / 1000, gpu);
    if (idle < room.gpus) return scored(66 - 33.0 * static_cast<double>(idle) / room.gpus, gpu);
    return scored(33 - room.gpus, gpu);
}

// The steepest descent of fragmentation: of the node's GPUs exactly, of the nodes by the published score.
PackedPlace fgd(const sched::Mix& mix, const NodeRoom& room, const TaskShape& task) {
    const std::int64_t before = mix.fragmentation(room);
    std::optional<std::int64_t> best;
    std::uint8_t gpu = 0;
    const std::size_t tries = task.gpus == 1 ? room.gpus : 1;
    for (std::size_t i = 0; i < tries; ++i) {
        if (task.gpus == 1 && room.free[i] < task.share) continue;
        NodeRoom after = room;
        after.take(task, i);
        const std::int64_t gain = before - mix.fragmentation(after);
        if (best && gain <= *best) continue;
        best = gain;
        gpu = static_cast<std::uint8_t>(i);
    }
    const double gain = static_cast<double>(*best) / static_cast<double>(mix.tasks());
    return scored(100 / (1 + std::exp(-gain / 1000)), gpu);
}

PackedPlace place(PackingPolicy policy, const sched::Mix& mix, const NodeRoom& room, const TaskShape& task) {
    switch (policy) {
        case PackingPolicy::bestfit:
            return bestfit(room, task);
        case PackingPolicy::dotprod:
            return dotprod(room, task);
        case PackingPolicy::packing:
            return packing(room, task);
        case PackingPolicy::fgd:
            return fgd(mix, room, task);
        case PackingPolicy::random:
        case PackingPolicy::bulkhead:
            break;
    }
    return sched::pack(mix, room, task);
}

// The fleet while it fills. A node's score for a shape is kept until the node changes.
class Filling {
public:
    Filling(const OpenbFleet& fleet, const OpenbTasks& trace, PackingPolicy policy, Rng rng)
        : nodes_{fleet.nodes},
          shapes_{trace.shapes},
          mix_{parts(trace), fleet.nodes},
          policy_{policy},
          rng_{rng},
          known_(fleet.nodes.size() * trace.shapes.size()),
          versions_(fleet.nodes.size(), 1) {}

    bool place_one(std::uint32_t shape) {
        const TaskShape& task = shapes_[shape];
        const auto found = policy_ == PackingPolicy::random ? anywhere(task) : best(shape);
        if (!found) return false;
        nodes_[found->first].take(task, found->second);
        ++versions_[found->first];
        return true;
    }

private:
    struct Known {
        std::uint32_t version = 0;
        bool fits = false;
        PackedPlace place;
    };
    using Found = std::optional<std::pair<std::size_t, std::size_t>>;  // node and GPU

    static std::vector<sched::Mix::Part> parts(const OpenbTasks& trace) {
        std::vector<sched::Mix::Part> out;
        out.reserve(trace.shapes.size());
        for (const TaskShape& shape : trace.shapes) out.push_back({shape, 0});
        for (const std::uint32_t shape : trace.tasks) ++out[shape].count;
        return out;
    }

    Found best(std::uint32_t shape) {
        Found found;
        const Known* leader = nullptr;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            Known& known = known_[shape * nodes_.size() + i];
            if (known.version != versions_[i]) {
                known.version = versions_[i];
                known.fits = nodes_[i].takes(shapes_[shape]);
                if (known.fits) known.place = place(policy_, mix_, nodes_[i], shapes_[shape]);
            }
            if (!known.fits || (leader != nullptr && known.place.score <= leader->place.score)) continue;
            leader = &known;
            found = {i, known.place.gpu};
        }
        return found;
    }

    Found anywhere(const TaskShape& task) {
        Found found;
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            if (nodes_[i].takes(task) && rng_.below(++seen) == 0) found = {i, 0};
        if (!found || task.gpus != 1) return found;
        seen = 0;
        const NodeRoom& room = nodes_[found->first];
        for (std::size_t gpu = 0; gpu < room.gpus; ++gpu)
            if (room.free[gpu] >= task.share && rng_.below(++seen) == 0) found->second = gpu;
        return found;
    }

    std::vector<NodeRoom> nodes_;
    const std::vector<TaskShape>& shapes_;
    sched::Mix mix_;
    PackingPolicy policy_;
    Rng rng_;
    std::vector<Known> known_;  // by shape, then node
    std::vector<std::uint32_t> versions_;
};

}  // namespace

Result<InflationRun> run_inflation(const OpenbFleet& fleet, const OpenbTasks& trace, PackingPolicy policy,
                                   std::uint64_t seed) {
    if (fleet.nodes.size() * trace.shapes.size() > most_scores)
        return fail(Code::exhausted,
                    fmt::format("{} nodes and {} different tasks are too many to keep a score for each pair",
                                fleet.nodes.size(), trace.shapes.size()),
                    "a smaller fleet, or a shorter list");
    Rng rng{seed};
    const auto drawn = arrivals(fleet, trace, rng.split());
    if (!drawn) return std::unexpected(drawn.error());
    const std::vector<std::uint32_t>& coming = *drawn;
    if (coming.empty())
        return fail(Code::invalid, "the first task asks for more than 130 % of the fleet", "a larger fleet");
    Filling filling{fleet, trace, policy, rng.split()};
    const std::int64_t capacity = fleet.capacity();
    InflationRun run{.tasks = static_cast<std::int64_t>(coming.size())};
    std::int64_t arrived = 0, allocated = 0;
    std::size_t mark = 0;
    const auto note = [&] {
        run.allocated_percent[mark++] = 100.0 * static_cast<double>(allocated) / static_cast<double>(capacity);
    };
    for (const std::uint32_t shape : coming) {
        const std::int64_t demand = trace.shapes[shape].demand();
        arrived += demand;
        if (filling.place_one(shape))
            allocated += demand;
        else
            ++run.dropped;
        while (mark < arrived_percent.size() && arrived * 100 >= arrived_percent[mark] * capacity) note();
    }
    while (mark < arrived_percent.size()) note();  // the last stretch is shorter than one task
    return run;
}

}  // namespace bulkhead::replay
