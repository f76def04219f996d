#include "bulkhead/sched/water_fill.hpp"

#include <algorithm>
#include <tuple>

#include "bulkhead/base/result.hpp"

namespace bulkhead::sched {

namespace {

__extension__ using Signed128 = __int128;  // an amount times a weight

// What is still to be handed out, and the weights of those it is for.
struct Level {
    Signed128 amount = 0;
    Signed128 weights = 0;

    bool fills(const Claim& claim) const { return Signed128{claim.most} * weights <= amount * claim.weight; }
};

// Floors, then the units left over: fewer than there are claims, because each lost less than one.
void divide_rest(const Level& level, std::span<const Claim> claims, std::span<const std::size_t> open,
                 std::vector<std::int64_t>& out) {
    struct Remainder {
        Signed128 part;
        std::size_t claim;
    };
    std::vector<Remainder> remainders;
    Signed128 left = level.amount;
    for (const std::size_t i : open) {
        const Signed128 product = level.amount * claims[i].weight;
        out[i] = static_cast<std::int64_t>(product / level.weights);
        left -= out[i];
        remainders.push_back({product % level.weights, i});
    }
    std::ranges::sort(remainders, [&](const Remainder& a, const Remainder& b) {
        const Claim &x = claims[a.claim], &y = claims[b.claim];
        return std::tuple{b.part, x.seniority, x.name} < std::tuple{a.part, y.seniority, y.name};
    });
    for (std::size_t next = 0; left > 0; ++next, --left) ++out[remainders[next].claim];
}

}  // namespace

std::vector<std::int64_t> water_fill(std::int64_t amount, std::span<const Claim> claims) {
    invariant(amount >= 0, "an amount to divide is not negative");
    std::vector<std::int64_t> out(claims.size());
    Level level{.amount = amount};
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < claims.size(); ++i) {
        invariant(claims[i].weight >= 0 && claims[i].most >= 0, "weights and bounds are not negative");
        if (claims[i].weight == 0 || claims[i].most == 0) continue;
        open.push_back(i);
        level.weights += claims[i].weight;
    }
    // Those that are full soonest first: by bound for each unit of weight.
    std::ranges::sort(open, [&](std::size_t a, std::size_t b) {
        return Signed128{claims[a].most} * claims[b].weight < Signed128{claims[b].most} * claims[a].weight;
    });
    std::size_t full = 0;
    for (; full < open.size() && level.fills(claims[open[full]]); ++full) {
        const Claim& claim = claims[open[full]];
        out[open[full]] = claim.most;
        level.amount -= claim.most;
        level.weights -= claim.weight;
    }
    // Nobody of the rest reaches its bound, so a floor and one unit more stay within it.
    if (full < open.size()) divide_rest(level, claims, std::span{open}.subspan(full), out);
    return out;
}

}  // namespace bulkhead::sched
