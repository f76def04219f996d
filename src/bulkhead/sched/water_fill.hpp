// One amount among several claims: in proportion to their weights, none beyond its bound, and what a bounded claim
// cannot take divided again among the others, as water rises in vessels of different widths. The exact answer is a
// fraction; whole units come of it by largest remainder: everyone its floor, then one unit each to the largest
// fractions, ties to the older claim, then by name. No order of the claims changes the answer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace bulkhead::sched {

struct Claim {
    std::int64_t weight = 0;     // 0: takes nothing
    std::int64_t most = 0;       // its bound
    std::int64_t seniority = 0;  // smaller: older
    std::string_view name = {};  // no two claims share seniority and name
};

// What each gets, in the order of the claims. All of the amount is handed out unless every claim with a weight is full.
std::vector<std::int64_t> water_fill(std::int64_t amount, std::span<const Claim> claims);

}  // namespace bulkhead::sched
