// Fair Tree in worked examples, then what holds of every tree.
#include "bulkhead/sched/fair_tree.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <numeric>

namespace bulkhead::sched {
namespace {

struct Says {
    std::string name;
    std::string parent = {};
    std::int64_t shares = 1;
    std::int64_t usage = 0;
};

std::vector<Association> associations(const std::vector<Says>& list) {
    std::map<std::string, std::size_t> by_name;
    for (std::size_t i = 0; i < list.size(); ++i) by_name[list[i].name] = i;
    std::vector<Association> out;
    for (const Says& each : list)
        out.push_back({each.parent.empty() ? Parent{} : by_name.at(each.parent), each.shares, each.usage});
    return out;
}

// The users' ranks, in the order of the list: "a1=3 a2=2 b1=1".
std::string ranks(const std::vector<Says>& list) {
    const FairTree tree = fair_tree(associations(list));
    std::string out;
    for (std::size_t i = 0; i < list.size(); ++i)
        if (const auto rank = tree.standings[i].rank)
            out += (out.empty() ? "" : " ") + list[i].name + "=" + std::to_string(*rank);
    return out;
}

struct Row {
    std::string_view says;
    std::vector<Says> list;
    std::string_view ranks;
};

TEST(FairTree, ranks_whoever_used_least_of_its_share_first) {
    const Row rows[] = {
        {"nobody", {}, ""},
        {"one user", {{"a", "", 1, 5}}, "a=1"},
        {"equal shares: by usage", {{"a", "", 1, 30}, {"b", "", 1, 10}, {"c", "", 1, 20}}, "a=1 b=3 c=2"},
        {"usage counts against shares", {{"a", "", 3, 20}, {"b", "", 1, 10}}, "a=2 b=1"},
        {"who used nothing comes first, whatever its shares", {{"a", "", 99, 1}, {"b", "", 1, 0}}, "a=1 b=2"},
        {"who has no shares comes last, used or not", {{"a", "", 0, 0}, {"b", "", 1, 99}}, "a=1 b=2"},
        {"an account's users all come before those of a sibling that used more of its share",
         {{"a", "", 40}, {"b", "", 60}, {"a1", "a", 1, 5}, {"a2", "a", 1, 15}, {"b1", "b", 1, 40}},
         "a1=3 a2=2 b1=1"},
        {"an account's usage is its users' together",
         {{"a"}, {"a1", "a", 1, 10}, {"a2", "a", 1, 10}, {"b", "", 1, 15}},
         "a1=2 a2=2 b=3"},
        {"a level counts only its own siblings: hungry in a greedy account is still behind",
         {{"a"}, {"a1", "a", 1, 0}, {"a2", "a", 1, 90}, {"b"}, {"b1", "b", 1, 80}},
         "a1=2 a2=1 b1=3"},
    };
    for (const Row& row : rows) EXPECT_EQ(ranks(row.list), row.ranks) << row.says;
}

TEST(FairTree, ties_share_the_higher_rank) {
    const Row rows[] = {
        {"users with one value have one rank, and the next is lower by both",
         {{"a", "", 1, 0}, {"b", "", 1, 10}, {"c", "", 1, 0}, {"d", "", 1, 20}},
         "a=4 b=2 c=4 d=1"},
        {"equal by value, not by looks: 2 of 20 is 1 of 10",
         {{"a", "", 2, 20}, {"b", "", 1, 10}, {"c", "", 1, 30}},
         "a=3 b=3 c=1"},
        {"tied accounts are walked as one",
         {{"a"}, {"a1", "a", 1, 10}, {"a2", "a", 1, 0}, {"b"}, {"b1", "b", 1, 2}, {"b2", "b", 1, 8}},
         "a1=1 a2=4 b1=3 b2=2"},
        {"and their users may tie, by the values they have among their own siblings",
         {{"a", "", 1}, {"a1", "a", 1, 3}, {"a2", "a", 1, 7}, {"b", "", 2}, {"b1", "b", 1, 6}, {"b2", "b", 1, 14}},
         "a1=4 a2=2 b1=4 b2=2"},
        {"a user with the value of an account has the rank of the best user in it",
         {{"u", "", 1, 10}, {"a"}, {"a1", "a", 1, 1}, {"a2", "a", 1, 9}, {"v", "", 1, 40}},
         "u=4 a1=4 a2=2 v=1"},
        {"two users and two accounts with one value",
         {{"u", "", 1, 10}, {"v", "", 1, 10}, {"a"}, {"a1", "a", 1, 10}, {"b"}, {"b1", "b", 1, 4}, {"b2", "b", 1, 6}},
         // b1: 0.5/0.4 = 1.25, a1: 1, b2: 0.83
         "u=5 v=5 a1=2 b1=5 b2=1"},
        {"however deep the best user is",
         {{"u"}, {"a"}, {"x", "a"}, {"y", "x"}, {"y1", "y"}, {"y2", "y", 0}},
         "u=3 y1=3 y2=1"},
        {"nobody used anything: all are first",
         {{"a"}, {"a1", "a"}, {"a2", "a", 7}, {"b"}, {"b1", "b"}, {"c", "", 9}},
         "a1=4 a2=4 b1=4 c=4"},
        {"without shares all are last together", {{"a", "", 0, 5}, {"b", "", 0, 0}}, "a=2 b=2"},
    };
    for (const Row& row : rows) EXPECT_EQ(ranks(row.list), row.ranks) << row.says;
}

TEST(FairTree, shows_the_numbers_behind_a_rank) {
    const FairTree tree = fair_tree(
        associations({{"a", "", 40}, {"b", "", 60}, {"a1", "a", 1, 5}, {"a2", "a", 2, 15}, {"b1", "b", 1, 40}}));
    const auto row = [&](std::size_t i) {
        const Standing& s = tree.standings[i];
        return std::to_string(s.usage) + " " + print(s.norm_shares) + " " + print(s.effective_usage) + " " +
               print(s.level) + (s.rank ? " " + print(tree.factor(i)) : "");
    };
    EXPECT_EQ(row(0), "20 0.400000 0.333333 1.200000");
    EXPECT_EQ(row(1), "40 0.600000 0.666667 0.900000");
    EXPECT_EQ(row(2), "5 0.333333 0.250000 1.333333 1.000000");
    EXPECT_EQ(row(3), "15 0.666667 0.750000 0.888889 0.666667");
    EXPECT_EQ(row(4), "40 1.000000 1.000000 1.000000 0.333333");
    EXPECT_EQ(tree.users, 3);
    EXPECT_EQ(tree.usage, 60);
}

TEST(FairTree, is_exact_where_floating_point_is_not) {
    // 10^13 and one less are one number to a float, and so are their ratios to shares.
    EXPECT_EQ(ranks({{"a", "", most_shares, most_usage}, {"b", "", most_shares, most_usage - 1}}), "a=1 b=2");
    EXPECT_EQ(ranks({{"a"}, {"a1", "a", most_shares, most_usage}, {"b"}, {"b1", "b", most_shares, most_usage - 1}}),
              "a1=1 b1=2");
}

TEST(FairTree, walks_a_chain_of_ten_thousand) {
    std::vector<Association> chain(10'000);
    for (std::size_t i = 1; i < chain.size(); ++i) chain[i].parent = i - 1;
    chain.back().usage = 5;
    const FairTree tree = fair_tree(chain);
    EXPECT_EQ(tree.standings.back().rank, 1);
    EXPECT_EQ(tree.standings.front().usage, 5);
}

// --- What holds of every tree ---

std::vector<Association> any_tree() {
    const auto below = [](std::int64_t end) { return *rc::gen::inRange<std::int64_t>(0, end); };
    std::vector<Association> out(static_cast<std::size_t>(below(14)));
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (i > 0 && below(4) > 0) out[i].parent = static_cast<std::size_t>(below(static_cast<std::int64_t>(i)));
        out[i].shares = below(4);
        out[i].usage = below(4);
    }
    return out;
}

RC_GTEST_PROP(FairTree, a_rank_is_how_many_are_not_ahead, ()) {
    const FairTree tree = fair_tree(any_tree());
    for (const Standing& one : tree.standings) {
        if (!one.rank) continue;
        std::int64_t ahead = 0;
        for (const Standing& other : tree.standings) ahead += other.rank && *other.rank > *one.rank ? 1 : 0;
        RC_ASSERT(*one.rank == tree.users - ahead);
    }
}

// Of two siblings, by the definition in integers: shares and usage alone, since both divide by the same sums.
int by_definition(const Association& a, std::int64_t a_usage, const Association& b, std::int64_t b_usage) {
    const auto kind = [](std::int64_t shares, std::int64_t usage) { return shares == 0 ? 0 : usage == 0 ? 2 : 1; };
    if (const int x = kind(a.shares, a_usage), y = kind(b.shares, b_usage); x != y || x != 1) return x - y;
    const std::int64_t left = a.shares * b_usage, right = b.shares * a_usage;
    return left < right ? -1 : left > right ? 1 : 0;
}

RC_GTEST_PROP(FairTree, whoever_is_ahead_among_siblings_is_ahead_with_all_below, ()) {
    const std::vector<Association> tree = any_tree();
    const FairTree ranked = fair_tree(tree);
    const auto is_below = [&](std::size_t at, std::size_t above) {
        for (Parent up = at; up; up = tree[*up].parent)
            if (*up == above) return true;
        return false;
    };
    for (std::size_t a = 0; a < tree.size(); ++a)
        for (std::size_t b = 0; b < tree.size(); ++b) {
            if (a == b || tree[a].parent != tree[b].parent) continue;
            const int order = by_definition(tree[a], ranked.standings[a].usage, tree[b], ranked.standings[b].usage);
            RC_ASSERT((order <=> 0) == compare(ranked.standings[a].level, ranked.standings[b].level));
            if (order <= 0) continue;
            for (std::size_t x = 0; x < tree.size(); ++x)
                for (std::size_t y = 0; y < tree.size(); ++y) {
                    const auto &one = ranked.standings[x].rank, &other = ranked.standings[y].rank;
                    if (one && other && is_below(x, a) && is_below(y, b)) RC_ASSERT(*one > *other);
                }
        }
}

RC_GTEST_PROP(FairTree, does_not_ask_in_which_order_it_is_told, ()) {
    const std::vector<Association> tree = any_tree();
    std::vector<std::size_t> order(tree.size()), now_at(tree.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
    std::vector<Association> shuffled;
    for (const std::size_t i : order) {
        now_at[i] = shuffled.size();
        shuffled.push_back(tree[i]);
    }
    for (Association& each : shuffled)
        if (each.parent) each.parent = now_at[*each.parent];
    const FairTree one = fair_tree(tree), other = fair_tree(shuffled);
    for (std::size_t i = 0; i < tree.size(); ++i) RC_ASSERT(one.standings[i].rank == other.standings[now_at[i]].rank);
}

}  // namespace
}  // namespace bulkhead::sched
