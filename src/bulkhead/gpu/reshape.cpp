#include "bulkhead/gpu/reshape.hpp"

#include <bit>

namespace bulkhead::gpu {

namespace {

struct Reshaper {
    const Geometry& geometry;
    Occupancy fixed;
    std::span<const Idle> idle;
    std::span<const Demand> demands;
    std::array<std::uint8_t, instances_max> satisfied_by{};  // per demand: the idle instances that would do
    std::array<std::uint8_t, instances_max> idle_size{}, demand_size{};
    unsigned fixed_slices = 0, idle_slices = 0;

    Reshaper(const Geometry& g, Occupancy f, std::span<const Idle> i, std::span<const Demand> d)
        : geometry{g}, fixed{f}, idle{i}, demands{d} {
        const auto profiles = g.board().profiles;
        fixed_slices = static_cast<unsigned>(std::popcount(f.slices()));
        for (std::size_t n = 0; n < d.size(); ++n)
            demand_size[n] = static_cast<std::uint8_t>(profiles[d[n].profile].memory_slices);
        for (std::size_t k = 0; k < i.size(); ++k) {
            idle_size[k] = static_cast<std::uint8_t>(profiles[i[k].profile].memory_slices);
            idle_slices += idle_size[k];
            for (std::size_t n = 0; n < d.size(); ++n)
                if (d[n].profile == i[k].profile && d[n].starts.contains(i[k].start))
                    satisfied_by[n] = static_cast<std::uint8_t>(satisfied_by[n] | 1u << k);
        }
    }

    std::optional<Occupancy> keep(unsigned kept) const {
        Occupancy now = fixed;
        for (const unsigned k : Starts{static_cast<std::uint8_t>(kept)}) {
            const Profile& profile = geometry.board().profiles[idle[k].profile];
            if (!now.free(profile.at(idle[k].start))) return std::nullopt;
            now = now.with(profile, idle[k].start);
        }
        return now;
    }

    // Takes `best` over when giving up these instances is better, by value and then by the number created.
    void consider(unsigned destroyed, unsigned slices_destroyed, std::optional<Reshape>& best) const {
        const unsigned kept = ~destroyed & ((1u << idle.size()) - 1u);
        std::array<Demand, instances_max> open;
        std::array<std::uint8_t, instances_max> reuses;
        std::size_t opened = 0;
        unsigned spare = kept, needed = fixed_slices + idle_slices - slices_destroyed;
        for (std::size_t n = 0; n < demands.size(); ++n) {
            const unsigned fits = satisfied_by[n] & spare;
            reuses[n] = fits != 0 ? static_cast<std::uint8_t>(std::countr_zero(fits)) : Reshape::created_anew;
            spare &= ~(fits & (~fits + 1u));
            if (fits != 0) continue;
            open[opened++] = demands[n];
            needed += demand_size[n];
        }
        if (needed > geometry.board().memory_slices) return;  // most of the subsets end here
        const auto now = keep(kept);
        if (!now) return;
        const auto found = arrange(geometry, *now, std::span{open}.first(opened));
        if (!found) return;
        const bool better = !best || slices_destroyed < best->slices_destroyed || found->value > best->value ||
                            (found->value == best->value && opened < best->created);
        if (!better) return;

        best = Reshape{static_cast<std::uint8_t>(destroyed),
                       slices_destroyed,
                       static_cast<unsigned>(opened),
                       reuses,
                       {},
                       found->after,
                       found->value};
        for (std::size_t n = 0, anew = 0; n < demands.size(); ++n)
            best->starts[n] = reuses[n] == Reshape::created_anew ? found->starts[anew++] : idle[reuses[n]].start;
    }
};

}  // namespace

std::optional<Reshape> cheapest_reshape(const Geometry& geometry, Occupancy fixed, std::span<const Idle> idle,
                                        std::span<const Demand> demands) {
    if (demands.size() > instances_max || idle.size() > instances_max) return std::nullopt;
    const Reshaper reshaper{geometry, fixed, idle, demands};
    const unsigned subsets = 1u << idle.size();
    for (unsigned count = 0; count <= idle.size(); ++count) {
        std::optional<Reshape> best;
        // All subsets of one size, in rising order (Gosper's step to the next number with as many bits).
        for (unsigned destroyed = (1u << count) - 1u; destroyed < subsets;) {
            unsigned slices = 0;
            for (const unsigned k : Starts{static_cast<std::uint8_t>(destroyed)}) slices += reshaper.idle_size[k];
            if (!best || slices <= best->slices_destroyed) reshaper.consider(destroyed, slices, best);
            if (destroyed == 0) break;
            const unsigned low = destroyed & (~destroyed + 1u), ripple = destroyed + low;
            destroyed = ripple | ((destroyed ^ ripple) >> (std::countr_zero(low) + 2));
        }
        if (best) return best;  // one destroy more is never better
    }
    return std::nullopt;
}

}  // namespace bulkhead::gpu
