#include "bulkhead/replay/mig_acceptance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/gpu/profile_name.hpp"
#include "bulkhead/sched/engine.hpp"

namespace bulkhead::replay {

namespace {

constexpr std::int64_t most_mig_gpus = 10'000, most_requests = 10'000'000;

struct Taken {
    std::size_t gpu = 0, profile = 0;
    unsigned start = 0;
};

// The first GPU on which it fits, at its lowest start.
class FirstFit {
public:
    FirstFit(const gpu::Geometry& geometry, std::int64_t gpus)
        : geometry_{&geometry}, gpus_(static_cast<std::size_t>(gpus)) {}

    std::optional<Taken> serve(std::size_t profile) {
        for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
            const gpu::Starts starts = geometry_->fit(occupancy(gpu), profile);
            if (starts.empty()) continue;
            const Taken taken{gpu, profile, *starts.begin()};
            gpus_[gpu].push_back(taken);
            return taken;
        }
        return {};
    }
    void leave(const Taken& taken) {
        std::erase_if(gpus_[taken.gpu], [&](const Taken& each) { return each.start == taken.start; });
    }

private:
    gpu::Occupancy occupancy(std::size_t gpu) const {
        gpu::Occupancy now;
        for (const Taken& each : gpus_[gpu]) now = now.with(geometry_->board().profiles[each.profile], each.start);
        return now;
    }

    const gpu::Geometry* geometry_;
    std::vector<std::vector<Taken>> gpus_;
};

// Who is there, however they are placed: the largest first, each where it leaves most.
class PackedAnew {
public:
    PackedAnew(const gpu::Geometry& geometry, std::int64_t gpus)
        : geometry_{&geometry}, gpus_(static_cast<std::size_t>(gpus)), held_(geometry.board().profiles.size(), 0) {
        for (std::size_t profile = 0; profile < held_.size(); ++profile) largest_first_.push_back(profile);
        std::ranges::sort(largest_first_, std::greater<>{}, [&](std::size_t profile) { return rank(profile); });
    }

    bool serve(std::size_t profile) {
        ++held_[profile];
        if (fits()) return true;
        --held_[profile];
        return false;
    }
    void leave(std::size_t profile) { --held_[profile]; }

private:
    // Of those of equal size, the one that may start at fewer places.
    std::tuple<unsigned, int, std::size_t> rank(std::size_t profile) const {
        const gpu::Profile& its = geometry_->board().profiles[profile];
        return {its.memory_slices, -static_cast<int>(its.starts.count()), profile};
    }
    bool fits() const {
        // GPUs by what is taken of them; there are few different ones.
        std::map<gpu::Occupancy, std::int64_t> alike{{gpu::Occupancy{}, std::ssize(gpus_)}};
        for (const std::size_t profile : largest_first_)
            for (std::int64_t remaining = held_[profile]; remaining > 0;) {
                // Where what is left afterwards is worth least less than before.
                std::optional<gpu::Occupancy> best;
                std::uint64_t least = 0;
                gpu::Occupancy after;
                for (const auto& [now, count] : alike) {
                    const auto start = geometry_->place(now, profile);
                    if (!start) continue;
                    const gpu::Occupancy then = now.with(geometry_->board().profiles[profile], *start);
                    const std::uint64_t lost = geometry_->value(now).ticks - geometry_->value(then).ticks;
                    if (!best || lost < least) best = now, least = lost, after = then;
                }
                if (!best) return false;
                const std::int64_t many = std::min(remaining, alike[*best]);
                if ((alike[*best] -= many) == 0) alike.erase(*best);
                alike[after] += many;
                remaining -= many;
            }
        return true;
    }

    const gpu::Geometry* geometry_;
    std::vector<gpu::Occupancy> gpus_;
    std::vector<std::int64_t> held_;
    std::vector<std::size_t> largest_first_;
};

// The scheduler, on nodes of such GPUs, of one tenant.
class Ours {
public:
    Ours(const gpu::Geometry& geometry, const MigFleet& fleet) {
        const gpu::Board& board = geometry.board();
        engine_.set_tenants({{.name = "everybody", .guarantee = Gpus::whole(fleet.gpus)}});
        sched::Gpu gpu{.model = std::string{board.id}, .board = &board};
        gpu.slices = static_cast<std::uint8_t>(board.memory_slices);
        gpu.available = gpu.all();
        for (std::int64_t remaining = fleet.gpus; remaining > 0; remaining -= fleet.node_gpus) {
            sched::Node node{.name = fmt::format("n{:06}", remaining), .open = true};
            node.gpus.assign(static_cast<std::size_t>(std::min(remaining, fleet.node_gpus)), gpu);
            engine_.add_node(node);
        }
        for (std::size_t profile = 0; profile < board.profiles.size(); ++profile) {
            const gpu::Profile& its = board.profiles[profile];
            sched::Want want{.form = sched::Want::Form::instance, .model = gpu.model, .geometry = &geometry};
            want.profile = profile;
            want.size = static_cast<std::uint8_t>(its.memory_slices);
            want.profile_name = gpu::print(board, {profile, its.slices});
            shapes_.push_back(engine_.shape({.wants = {want}, .mechanism = Mechanism::mig}));
            sizes_.push_back({gpu_unit * want.size / board.memory_slices});
        }
    }

    std::optional<sched::JobNo> serve(std::size_t profile) {
        const sched::JobNo job = engine_.submit({.key = next_++, .shape = shapes_[profile], .gpus = sizes_[profile]});
        if (engine_.allocate(job, Instant{})) return job;
        engine_.finish(job);
        return {};
    }
    void leave(sched::JobNo job) { engine_.finish(job); }

private:
    sched::Engine engine_;
    std::vector<sched::ShapeNo> shapes_;
    std::vector<Gpus> sizes_;
    std::int64_t next_ = 0;
};

struct Stay {
    std::optional<Taken> first_fit;
    std::optional<sched::JobNo> ours;
    std::optional<std::size_t> anew;
};

Result<> sensible(const MigFleet& fleet) {
    if (fleet.gpus < 1 || fleet.gpus > most_mig_gpus || fleet.node_gpus < 1 || fleet.node_gpus > 64)
        return fail(Code::invalid, fmt::format("{} GPUs, {} to a node, are no fleet", fleet.gpus, fleet.node_gpus),
                    fmt::format("1 to {} GPUs, 1 to 64 to a node", most_mig_gpus));
    if (fleet.load < 1 || fleet.load > 1000)
        return fail(Code::invalid, fmt::format("a load of {} % is none", fleet.load), "1 to 1000");
    if (fleet.requests < 1 || fleet.requests > most_requests)
        return fail(Code::invalid, fmt::format("{} requests are too few or too many", fleet.requests),
                    fmt::format("1 to {}", most_requests));
    return {};
}

}  // namespace

Result<MigFigures> run_mig_acceptance(const MigFleet& fleet, std::uint64_t seed) {
    if (const Result<> good = sensible(fleet); !good) return std::unexpected(good.error());
    const gpu::Board& board = *fleet.board;
    const gpu::Geometry geometry{board, fleet.weights};
    FirstFit first_fit{geometry, fleet.gpus};
    PackedAnew anew{geometry, fleet.gpus};
    const gpu::Geometry even{board};
    Ours ours{even, fleet};
    std::int64_t weights = 0, sizes = 0;
    for (std::size_t profile = 0; profile < fleet.weights.size(); ++profile) {
        weights += fleet.weights[profile];
        sizes += std::int64_t{fleet.weights[profile]} * board.profiles[profile].memory_slices;
    }
    // One request a step; each stays for 1 step to twice the mean, so that the load is as asked.
    const std::int64_t mean =
        std::max<std::int64_t>(fleet.load * fleet.gpus * board.memory_slices * weights / (100 * sizes), 1);
    const std::int64_t filling = 3 * mean;
    std::multimap<std::int64_t, Stay> there;  // by when they leave
    Rng rng{seed};
    MigFigures out;
    for (std::int64_t now = 0; now < filling + fleet.requests; ++now) {
        for (auto leaves = there.begin(); leaves != there.end() && leaves->first <= now; leaves = there.erase(leaves)) {
            if (leaves->second.first_fit) first_fit.leave(*leaves->second.first_fit);
            if (leaves->second.ours) ours.leave(*leaves->second.ours);
            if (leaves->second.anew) anew.leave(*leaves->second.anew);
        }
        auto drawn = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(weights)));
        std::size_t profile = 0;
        while (drawn >= fleet.weights[profile]) drawn -= fleet.weights[profile++];
        Stay stay{.first_fit = first_fit.serve(profile), .ours = ours.serve(profile), .anew = {}};
        if (anew.serve(profile)) stay.anew = profile;
        if (now >= filling) {
            const auto count = [&](MigCount& of, std::int64_t size) {
                of.asked += size;
                if (stay.first_fit) of.first_fit += size;
                if (stay.ours) of.bulkhead += size;
                if (stay.anew) of.packed_anew += size;
            };
            count(out.requests, 1);
            count(out.slices, board.profiles[profile].memory_slices);
        }
        there.emplace(now + rng.between(1, 2 * mean - 1), stay);
    }
    return out;
}

}  // namespace bulkhead::replay
