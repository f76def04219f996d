#include "bulkhead/gpu/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bulkhead/gpu/arrangement.hpp"

namespace bulkhead::gpu {

namespace {

// Counts come from files and may be any number; past this many the exact one no longer matters.
constexpr std::uint64_t clearly_too_many = 99;

std::vector<Demand> demands_of(const Board& board, std::span<const std::uint8_t> set) {
    std::vector<Demand> demands;
    for (std::size_t p = 0; p < set.size(); ++p)
        demands.insert(demands.end(), set[p], Demand{static_cast<std::uint8_t>(p), board.profiles[p].starts});
    sort_for_arranging(board, demands);
    return demands;
}

unsigned slices_of(const Board& board, std::span<const std::uint8_t> set) {
    unsigned sum = 0;
    for (std::size_t p = 0; p < set.size(); ++p) sum += set[p] * board.profiles[p].memory_slices;
    return sum;
}

bool fits(const Geometry& geometry, const Multiset& set) {
    return arrange(geometry, {}, demands_of(geometry.board(), set)).has_value();
}

std::string starts_of(const Board& board, const Multiset& set) {
    std::vector<std::string> parts;
    for (std::size_t p = 0; p < set.size(); ++p) {
        if (set[p] == 0) continue;
        const Profile& profile = board.profiles[p];
        parts.push_back(fmt::format("{} is {} wide and starts at {}", profile.name, profile.memory_slices,
                                    fmt::join(profile.starts.begin(), profile.starts.end(), ",")));
    }
    return fmt::format("{}", fmt::join(parts, "; "));
}

void object_to_engines(const Board& board, const Multiset& set, std::vector<Reason>& reasons) {
    const auto is = [&](std::size_t p, Media media) { return set[p] > 0 && board.profiles[p].media == media; };
    const auto name = [&](std::size_t p) { return std::string{board.profiles[p].name}; };
    for (std::size_t p = 0; p < set.size(); ++p) {
        for (std::size_t q = p + 1; q < set.size(); ++q)
            if (is(p, Media::extended) && is(q, Media::extended))
                reasons.push_back({"mig.one-extended", {{"first", name(p)}, {"second", name(q)}}});
        if (!is(p, Media::all)) continue;
        for (std::size_t q = 0; q < set.size(); ++q)
            if (q != p && set[q] > 0 && board.profiles[q].media != Media::none && !(q < p && is(q, Media::all)))
                reasons.push_back({"mig.all-engines", {{"profile", name(p)}, {"other", name(q)}}});
    }
}

}  // namespace

std::vector<Reason> objections_to_set(const Geometry& geometry, const Multiset& set) {
    const Board& board = geometry.board();
    std::vector<Reason> reasons;
    for (std::size_t p = 0; p < set.size(); ++p)
        if (set[p] > board.profiles[p].max_instances)
            reasons.push_back({"mig.maximum",
                               {{"profile", std::string{board.profiles[p].name}},
                                {"max", std::int64_t{board.profiles[p].max_instances}},
                                {"count", fmt::format("{}{}", set[p], set[p] < clearly_too_many ? "" : " or more")}}});
    object_to_engines(board, set, reasons);
    const std::int64_t needed = slices_of(board, set), total = board.memory_slices;
    const bool counted = std::ranges::none_of(set, [](unsigned count) { return count >= clearly_too_many; });
    if (needed > total && counted)
        reasons.push_back({"mig.slices", {{"what", print(board, set)}, {"needed", needed}, {"total", total}}});
    if (!reasons.empty() || fits(geometry, set)) return reasons;

    reasons.push_back(
        {"mig.starts",
         {{"what", print(board, set)}, {"needed", needed}, {"total", total}, {"starts", starts_of(board, set)}}});
    return reasons;
}

namespace {

std::vector<Reason> driver_notes(const Board& board, const Multiset& set) {
    std::vector<Reason> notes;
    const Profile *three = nullptr, *four = nullptr;
    for (std::size_t p = 0; p < set.size(); ++p) {
        if (set[p] == 0) continue;
        const Profile& profile = board.profiles[p];
        if (!profile.min_driver.empty())
            notes.push_back(
                {"mig.driver", {{"profile", std::string{profile.name}}, {"driver", std::string{profile.min_driver}}}});
        if (profile.nvml == GiEnum::slice_3) three = &profile;
        if (profile.nvml == GiEnum::slice_4) four = &profile;
    }
    if (three != nullptr && four != nullptr)
        notes.push_back({"mig.together", {{"first", std::string{four->name}}, {"second", std::string{three->name}}}});
    return notes;
}

// Packs compute instances into GPU instances, the largest first and each into the first with room.
std::vector<Cut> pack(unsigned gpu_slices, Cut wanted, std::size_t at_most) {
    std::vector<Cut> cuts;
    for (std::size_t size = wanted.count.size() - 1; size > 0; --size)
        for (; wanted.count[size] > 0 && cuts.size() <= at_most; --wanted.count[size]) {
            const auto slices = static_cast<unsigned>(size);
            const auto room = std::ranges::find_if(
                cuts, [&](const Cut& cut) { return arrange_cut(gpu_slices, cut.plus(slices)).has_value(); });
            if (room == cuts.end())
                cuts.push_back(Cut::whole(slices));
            else
                *room = room->plus(slices);
        }
    return cuts;
}

std::vector<Cut> gpu_instances(const Board& board, std::size_t profile, std::span<const Count> counts) {
    const unsigned slices = board.profiles[profile].slices;
    std::vector<Cut> cuts;
    Cut divided;
    for (const Count& entry : counts) {
        if (entry.what.index != profile) continue;
        for (std::uint64_t i = 0; i < std::min(entry.count, clearly_too_many); ++i) {
            if (entry.what.compute == slices && cuts.size() < clearly_too_many)
                cuts.push_back(Cut::whole(slices));
            else if (entry.what.compute != slices && divided.count[entry.what.compute] < clearly_too_many)
                divided = divided.plus(entry.what.compute);
        }
    }
    std::ranges::copy(pack(slices, divided, instances_max), std::back_inserter(cuts));
    return cuts;
}

}  // namespace

LayoutVerdict check_layout(const Geometry& geometry, std::span<const Count> counts) {
    const Board& board = geometry.board();
    std::vector<std::vector<Cut>> cuts;
    Multiset set;
    for (std::size_t p = 0; p < board.profiles.size(); ++p) {
        cuts.push_back(gpu_instances(board, p, counts));
        set.push_back(static_cast<std::uint8_t>(cuts[p].size()));
    }
    LayoutVerdict verdict;
    verdict.reasons = objections_to_set(geometry, set);
    verdict.notes = driver_notes(board, set);
    if (!verdict.reasons.empty()) return verdict;

    const std::vector<Demand> demands = demands_of(board, set);
    const auto arrangement = arrange(geometry, {}, demands);
    if (!arrangement) stop_for_bug("a set without objection has an arrangement", std::source_location::current());
    verdict.valid = true;
    std::vector<std::size_t> given(cuts.size());
    for (std::size_t i = 0; i < demands.size(); ++i) {
        const std::size_t p = demands[i].profile;
        verdict.seats.push_back({p, arrangement->starts[i], cuts[p][given[p]++]});
    }
    std::ranges::sort(verdict.seats, {}, &Seat::start);
    return verdict;
}

namespace {

// Four bits a profile: a set is one number, and adding an instance is adding one digit.
struct Collector {
    const Board& board;
    Include include;
    std::set<std::uint64_t> reached;

    void grow(std::uint64_t key, Occupancy now, std::size_t first) {
        reached.insert(key);
        for (std::size_t p = first; p < board.profiles.size(); ++p) {
            const Profile& profile = board.profiles[p];
            if (!included(profile) || !now.admits(profile)) continue;
            for (const unsigned start : profile.starts)
                if (now.free(profile.at(start))) grow(key + digit(p), now.with(profile, start), p);
        }
    }
    bool included(const Profile& profile) const {
        if (include == Include::all) return true;
        return profile.plain() && (include == Include::double_memory || !profile.double_memory());
    }
    static constexpr std::uint64_t digit(std::size_t p) { return 1ull << (4 * p); }
};

}  // namespace

std::vector<Multiset> maximal_sets(const Board& board, Include include) {
    // Rising profile order reaches every set, since a set's instances may be created in any order once placed.
    Collector collector{board, include, {}};
    collector.grow(0, {}, 0);
    std::vector<Multiset> sets;
    for (const std::uint64_t key : collector.reached) {
        Multiset set;
        bool maximal = true;
        for (std::size_t p = 0; p < board.profiles.size(); ++p) {
            set.push_back(static_cast<std::uint8_t>(key >> (4 * p) & 0xF));
            maximal = maximal && !collector.reached.contains(key + Collector::digit(p));
        }
        if (maximal) sets.push_back(std::move(set));
    }
    std::ranges::sort(sets, [](const Multiset& a, const Multiset& b) {
        return std::ranges::lexicographical_compare(b.rbegin(), b.rend(), a.rbegin(), a.rend());
    });
    return sets;
}

std::string print(const Board& board, std::span<const std::uint8_t> set) {
    std::vector<std::string> parts;
    for (std::size_t p = set.size(); p-- > 0;) {
        if (set[p] == 0) continue;
        parts.push_back(set[p] == 1 ? std::string{board.profiles[p].name}
                                    : fmt::format("{} x {}", set[p], board.profiles[p].name));
    }
    return parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, " + "));
}

}  // namespace bulkhead::gpu
