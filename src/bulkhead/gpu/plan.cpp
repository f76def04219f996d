#include "bulkhead/gpu/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "bulkhead/gpu/layout.hpp"
#include "bulkhead/gpu/reshape.hpp"

namespace bulkhead::gpu {

namespace {

// One GPU instance to be had, with the wanted compute instances that share it.
struct Bundle {
    Demand demand;
    Cut cut;
    std::vector<std::size_t> wanted;  // indices into the request
};

struct Request {
    std::vector<Bundle> bundles;  // sorted for arranging
    std::vector<Demand> demands;  // the same, as the search wants them
    std::vector<Grant> grants;    // per wanted; those that exist already are filled in
};

// A compute instance that nobody uses satisfies its own name, even inside a GPU instance that somebody else uses.
bool take_idle(std::span<Instance> instances, const Wanted& wanted, bool only_beside_users, Grant& grant) {
    for (Instance& instance : instances) {
        if (instance.profile != wanted.what.index || (only_beside_users && !instance.in_use)) continue;
        if (wanted.start && *wanted.start != instance.start) continue;
        if (instance.compute_idle.count[wanted.what.compute] == 0) continue;
        --instance.compute_idle.count[wanted.what.compute];
        grant = {wanted.what, instance.start, true};
        return true;
    }
    return false;
}

// Divided instances share a GPU instance while there is room in one; a whole one has its own.
void add_to_bundles(const Board& board, const Wanted& wanted, std::size_t index, std::vector<Bundle>& bundles) {
    const Profile& profile = board.profiles[wanted.what.index];
    const Demand demand{static_cast<std::uint8_t>(wanted.what.index),
                        wanted.start ? Starts::at(*wanted.start) : profile.starts};
    for (Bundle& bundle : bundles) {
        const Cut cut = bundle.cut.plus(wanted.what.compute);
        if (!(bundle.demand == demand) || !arrange_cut(profile.slices, cut)) continue;
        bundle.cut = cut;
        bundle.wanted.push_back(index);
        return;
    }
    bundles.push_back({demand, Cut::whole(wanted.what.compute), {index}});
}

// Those that insist on a place before those that do not care, and the large before the small that fill up beside them.
std::vector<std::size_t> choosiest_first(std::span<const Wanted> wanted) {
    std::vector<std::size_t> order(wanted.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) {
        return std::tuple{!wanted[i].start.has_value(), -static_cast<int>(wanted[i].what.compute), i};
    });
    return order;
}

Request bundle(const Board& board, std::span<const Instance> existing, std::span<const Wanted> wanted) {
    Request request;
    request.grants.resize(wanted.size());
    const std::vector<std::size_t> order = choosiest_first(wanted);
    std::vector<Instance> left(existing.begin(), existing.end());
    std::size_t already = 0;
    for (const std::size_t i : order) already += take_idle(left, wanted[i], false, request.grants[i]) ? 1u : 0u;
    if (already == wanted.size()) return request;  // all of it exists: nothing to do at all

    left.assign(existing.begin(), existing.end());
    for (const std::size_t i : order) {
        request.grants[i] = {wanted[i].what, 0, false};
        if (!take_idle(left, wanted[i], true, request.grants[i])) add_to_bundles(board, wanted[i], i, request.bundles);
    }
    std::ranges::sort(request.bundles, {}, [&](const Bundle& b) {
        return std::tuple{-static_cast<int>(board.profiles[b.demand.profile].memory_slices), b.demand.starts.count(),
                          b.demand.profile, b.demand.starts.bits(), b.wanted.front()};
    });
    for (const Bundle& b : request.bundles) request.demands.push_back(b.demand);
    return request;
}

// What stands on the GPU before anything is done.
struct Present {
    Occupancy fixed;                  // by instances in use
    std::vector<Idle> idle;           // by start
    std::vector<const Instance*> of;  // the instance behind each
};

Present present(const Board& board, std::span<const Instance> existing) {
    Present s;
    for (const Instance& instance : existing) {
        if (instance.in_use)
            s.fixed = s.fixed.with(board.profiles[instance.profile], instance.start);
        else
            s.of.push_back(&instance);
    }
    std::ranges::sort(s.of, {}, &Instance::start);
    for (const Instance* instance : s.of)
        s.idle.push_back({static_cast<std::uint8_t>(instance->profile), static_cast<std::uint8_t>(instance->start)});
    return s;
}

// Any kept idle instance of the profile will do; one already cut as wanted saves work, so trade places for it.
void prefer_fitting_cuts(const Present& s, const Request& request, Reshape& reshape) {
    const auto suits = [&](std::size_t b, std::size_t i) {
        return s.idle[i].profile == request.demands[b].profile && request.demands[b].starts.contains(s.idle[i].start);
    };
    const auto misfit = [&](std::size_t b, std::size_t i) {
        return s.of[i]->compute.covers(request.bundles[b].cut) ? 0 : 1;
    };
    const auto hand_over = [&](std::size_t b, std::size_t i) {
        reshape.reuses[b] = static_cast<std::uint8_t>(i);
        reshape.starts[b] = s.idle[i].start;
    };
    for (std::size_t b = 0; b < request.bundles.size(); ++b) {
        if (reshape.reuses[b] == Reshape::created_anew) continue;
        for (std::size_t i = 0; i < s.idle.size(); ++i) {
            const std::size_t mine = reshape.reuses[b];
            if ((unsigned{reshape.destroyed} >> i & 1u) != 0 || i == mine || misfit(b, mine) == 0 || !suits(b, i))
                continue;
            const auto users = std::span{reshape.reuses}.first(request.bundles.size());
            const auto other = static_cast<std::size_t>(std::ranges::find(users, i) - users.begin());
            if (other == users.size()) {
                if (misfit(b, i) == 0) hand_over(b, i);
            } else if (suits(other, mine) && misfit(b, i) + misfit(other, mine) < misfit(b, mine) + misfit(other, i)) {
                hand_over(b, i);
                hand_over(other, mine);
            }
        }
    }
}

void create_compute(const Board& board, const Bundle& bundle, unsigned start, std::vector<Step>& steps) {
    const auto places = arrange_cut(board.profiles[bundle.demand.profile].slices, bundle.cut);
    if (!places)
        stop_for_bug("a bundle holds only what its GPU instance can be cut into", std::source_location::current());
    for (const Placement place : *places)
        steps.push_back({Action::create_compute_instance, bundle.demand.profile, start, place});
}

Plan carry_out(const Geometry& geometry, const Present& s, Request request, Reshape reshape) {
    const Board& board = geometry.board();
    prefer_fitting_cuts(s, request, reshape);
    Plan plan{.grants = std::move(request.grants),
              .slices_destroyed = reshape.slices_destroyed,
              .created = reshape.created,
              .after = reshape.after,
              .value = reshape.value};
    plan.steps.reserve(2 * s.of.size() + 4 * request.bundles.size());
    for (const unsigned i : Starts{reshape.destroyed}) {
        const Instance& instance = *s.of[i];
        ++plan.destroyed;
        if (instance.compute != Cut{})
            plan.steps.push_back({Action::destroy_compute_instances, instance.profile, instance.start, {}});
        plan.steps.push_back({Action::destroy_gpu_instance, instance.profile, instance.start, {}});
    }
    std::vector<std::size_t> by_start(request.bundles.size());
    for (std::size_t b = 0; b < by_start.size(); ++b) by_start[b] = b;
    std::ranges::sort(by_start, {}, [&](std::size_t b) { return reshape.starts[b]; });
    for (const std::size_t b : by_start) {
        const Bundle& bundle = request.bundles[b];
        const bool anew = reshape.reuses[b] == Reshape::created_anew;
        const bool as_it_is = !anew && s.of[reshape.reuses[b]]->compute.covers(bundle.cut);
        const unsigned start = reshape.starts[b];
        if (anew) plan.steps.push_back({Action::create_gpu_instance, bundle.demand.profile, start, {}});
        if (!anew && !as_it_is && s.of[reshape.reuses[b]]->compute != Cut{})
            plan.steps.push_back({Action::destroy_compute_instances, bundle.demand.profile, start, {}});
        if (!as_it_is) create_compute(board, bundle, start, plan.steps);
        for (const std::size_t w : bundle.wanted) {
            plan.grants[w].start = start;
            plan.grants[w].existed = as_it_is;
        }
    }
    return plan;
}

// The move that disturbs least: no stop, the smallest instance, the fewest destroys, the highest value left.
void find_move(const Geometry& geometry, std::span<const Instance> existing, const Present& s, const Request& request,
               Refusal& refusal) {
    using Cost = std::tuple<bool, unsigned, int, unsigned, std::uint64_t>;
    const Board& board = geometry.board();
    std::optional<Cost> least;
    std::optional<Reshape> chosen;
    for (const Instance& moved : existing) {
        if (!moved.in_use) continue;
        const Profile& profile = board.profiles[moved.profile];
        Occupancy others;
        for (const Instance& instance : existing)
            if (instance.in_use && &instance != &moved)
                others = others.with(board.profiles[instance.profile], instance.start);
        for (const unsigned to : profile.starts) {
            if (to == moved.start || !others.free(profile.at(to))) continue;
            const auto reshape = cheapest_reshape(geometry, others.with(profile, to), s.idle, request.demands);
            if (!reshape) continue;
            const bool stop_first = profile.media == Media::extended || profile.media == Media::all;
            const Cost cost{stop_first, profile.memory_slices, std::popcount(reshape->destroyed),
                            reshape->slices_destroyed, ~reshape->value.ticks};
            if (least && *least <= cost) continue;
            least = cost;
            chosen = reshape;
            refusal.move = Move{moved.profile, moved.start, to, stop_first};
        }
    }
    if (chosen) refusal.with_move = carry_out(geometry, s, request, *chosen);
}

std::vector<std::string> who_sits_at(const Board& board, std::span<const Instance> existing, Placement place) {
    std::vector<std::string> names;
    for (const Instance& instance : existing)
        if (instance.in_use && board.profiles[instance.profile].at(instance.start).overlaps(place))
            names.push_back(fmt::format("{}@{}", board.profiles[instance.profile].name, instance.start));
    return names;
}

// What stays and what is wanted, as counts.
Multiset everything(const Board& board, std::span<const Instance> existing, const Request& request) {
    Multiset set(board.profiles.size());
    for (const Instance& instance : existing)
        if (instance.in_use) ++set[instance.profile];
    for (const Demand& demand : request.demands)
        set[demand.profile] = static_cast<std::uint8_t>(std::min(set[demand.profile] + 1, 99));
    return set;
}

std::vector<Reason> objections(const Geometry& geometry, std::span<const Instance> existing, const Present& s,
                               const Request& request) {
    const Board& board = geometry.board();
    std::vector<Reason> reasons;
    for (const Demand& demand : request.demands) {
        if (&demand != request.demands.data() && demand == *(&demand - 1)) continue;
        const Profile& profile = board.profiles[demand.profile];
        if ((geometry.fit(s.fixed, demand.profile).bits() & demand.starts.bits()) != 0) continue;
        for (const unsigned start : demand.starts)
            reasons.push_back(
                {"mig.taken",
                 {{"profile", std::string{profile.name}},
                  {"start", std::int64_t{start}},
                  {"by", fmt::format("{}", fmt::join(who_sits_at(board, existing, profile.at(start)), ", "))}}});
    }
    if (!reasons.empty()) return reasons;
    std::int64_t needed = 0;
    for (const Demand& demand : request.demands) needed += board.profiles[demand.profile].memory_slices;
    const std::int64_t free = board.memory_slices - static_cast<unsigned>(std::popcount(s.fixed.slices()));
    const std::string wanted = print(board, everything(board, {}, request));
    return {{"mig.no-places", {{"what", wanted}, {"needed", needed}, {"free", free}}}};
}

// A divided instance might be expected inside a GPU instance that has compute slices to spare; say why it is not.
std::vector<Reason> not_divided(const Board& board, std::span<const Instance> existing,
                                std::span<const Wanted> wanted) {
    std::vector<Reason> reasons;
    for (const Instance& instance : existing) {
        const Profile& profile = board.profiles[instance.profile];
        const auto would_share = [&](const Wanted& w) {
            return w.what.index == instance.profile && w.what.compute < profile.slices &&
                   (!w.start || *w.start == instance.start) &&
                   arrange_cut(profile.slices, instance.compute.plus(w.what.compute));
        };
        const auto first = std::ranges::find_if(wanted, would_share);
        if (!instance.in_use || first == wanted.end()) continue;
        reasons.push_back({"mig.in-use",
                           {{"profile", std::string{profile.name}},
                            {"start", std::int64_t{instance.start}},
                            {"wanted", print(board, first->what)}}});
    }
    return reasons;
}

}  // namespace

std::expected<Plan, Refusal> plan(const Geometry& geometry, std::span<const Instance> existing,
                                  std::span<const Wanted> wanted) {
    Request request = bundle(geometry.board(), existing, wanted);
    const Present s = present(geometry.board(), existing);
    if (const auto reshape = cheapest_reshape(geometry, s.fixed, s.idle, request.demands))
        return carry_out(geometry, s, std::move(request), *reshape);

    Refusal refusal;
    // If no arrangement of everything exists, where things stand now is beside the point.
    refusal.reasons = objections_to_set(geometry, everything(geometry.board(), existing, request));
    if (refusal.reasons.empty()) {
        refusal.reasons = objections(geometry, existing, s, request);
        find_move(geometry, existing, s, request, refusal);
    }
    const std::vector<Reason> first = not_divided(geometry.board(), existing, wanted);
    refusal.reasons.insert(refusal.reasons.begin(), first.begin(), first.end());
    return std::unexpected(std::move(refusal));
}

Occupancy occupied(const Board& board, std::span<const Instance> instances) {
    Occupancy now;
    for (const Instance& instance : instances) now = now.with(board.profiles[instance.profile], instance.start);
    return now;
}

Result<> check_existing(const Board& board, std::span<const Instance> existing) {
    const auto name = [&](const Instance& i) { return fmt::format("{}@{}", board.profiles[i.profile].name, i.start); };
    for (const Instance& a : existing) {
        const Profile& profile = board.profiles[a.profile];
        if (!profile.starts.contains(a.start))
            return fail(Code::invalid,
                        fmt::format("{} cannot exist on {}: {} starts only at {}", name(a), board.id, profile.name,
                                    fmt::join(profile.starts.begin(), profile.starts.end(), ", ")),
                        "read the placements with nvidia-smi mig -lgi");
        for (const Instance& b : existing.first(static_cast<std::size_t>(&a - existing.data()))) {
            if (profile.at(a.start).overlaps(board.profiles[b.profile].at(b.start)))
                return fail(Code::invalid,
                            fmt::format("{} and {} overlap: no {} can be in that state", name(b), name(a), board.id),
                            "read the placements with nvidia-smi mig -lgi");
            if (!Occupancy{}.with(board.profiles[b.profile], 0).admits(profile))
                return fail(Code::invalid,
                            fmt::format("{} and {} cannot coexist: they need the same media engines of the {}", name(b),
                                        name(a), board.id),
                            "read the instances with nvidia-smi mig -lgi");
        }
    }
    return {};
}

}  // namespace bulkhead::gpu
