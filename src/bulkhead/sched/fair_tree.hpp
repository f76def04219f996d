// Fair Tree, as Slurm's users know it. Among siblings, whoever used least of its share comes first:
//
//     level value = (own shares / siblings' shares) / (own usage / siblings' usage)
//
// infinite for those who used nothing, zero for those without shares ("siblings" with oneself). A walk that visits
// siblings from the highest value down, and everything below one before the next, meets the users (the leaves) in the
// order in which they are ranked; the first has as many points as there are users, and a user's factor is its rank over
// that number. So an account's users all come before, or all after, those of a sibling account.
//
// Ties share the higher rank, and the next rank is lower by all who share it:
//   - users with one value have one rank;
//   - accounts with one value are walked as one, their children side by side under the values they have;
//   - users with the value of an account have the rank of the best user below it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bulkhead/sched/forest.hpp"
#include "bulkhead/sched/fraction.hpp"

namespace bulkhead::sched {

// Bounds under which all sums and products are exact, for up to nine hundred thousand associations.
inline constexpr std::int64_t most_shares = 1'000'000'000, most_usage = 10'000'000'000'000;

struct Association {
    Parent parent;  // into the same list; who has children is an account, who has none a user
    std::int64_t shares = 1;
    std::int64_t usage = 0;  // its own; an account's counts for it, and for nobody below
};

struct Standing {
    std::int64_t usage = 0;    // its own, and that of everyone below
    Fraction norm_shares;      // of its siblings' shares
    Fraction effective_usage;  // of its siblings' usage
    Fraction level;
    std::optional<std::int64_t> rank;  // of a user; the best has as much as there are users
};

struct FairTree {
    std::vector<Standing> standings;  // in the order given
    std::int64_t users = 0;
    std::int64_t usage = 0;  // of all

    // Of a user: 1 for the best.
    Fraction factor(std::size_t user) const {
        return {static_cast<Wide>(standings[user].rank.value_or(0)), static_cast<Wide>(users)};
    }
};

FairTree fair_tree(std::span<const Association> associations);

}  // namespace bulkhead::sched
