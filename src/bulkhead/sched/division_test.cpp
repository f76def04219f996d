// The rules of division.hpp, row by row. What holds of every tree is in division_laws_test.cpp.
#include "bulkhead/sched/division.hpp"

#include <gtest/gtest.h>

#include <map>

namespace bulkhead::sched {
namespace {

// As people say it: GPUs and names.
struct Says {
    std::string name;
    std::string parent = {};
    double guarantee = 0;
    std::optional<double> limit = {};
    std::int64_t weight = 1;
    std::int64_t priority = 0;
    double request = 0;
    std::int64_t seniority = 0;
    bool hard = false;
};

Gpus gpus(double count) { return Gpus::of_thousandths(static_cast<std::int64_t>(count * 1000 + 0.5)); }

std::vector<Queue> queues(const std::vector<Says>& list) {
    std::map<std::string, std::size_t> by_name;
    for (std::size_t i = 0; i < list.size(); ++i) by_name[list[i].name] = i;
    std::vector<Queue> out;
    for (const Says& each : list)
        out.push_back({each.name, each.parent.empty() ? Parent{} : by_name.at(each.parent), gpus(each.guarantee),
                       each.limit ? std::optional{gpus(*each.limit)} : std::nullopt, each.weight, each.priority,
                       gpus(each.request), each.seniority, each.hard});
    return out;
}

// "a=3 b=0.5, 1 left"
std::string said(const std::vector<Says>& list, const Division& division) {
    std::string out;
    for (std::size_t i = 0; i < list.size(); ++i)
        out += list[i].name + "=" + print(division.queues[i].share) + (i + 1 < list.size() ? " " : "");
    return out + ", " + print(division.unallocated) + " left";
}

struct Row {
    std::string_view says;
    double total;
    std::vector<Says> list;
    std::string_view due;
    Grain grain = Grain::fine;
};

void expect(std::span<const Row> rows) {
    for (const Row& row : rows)
        EXPECT_EQ(said(row.list, divide(queues(row.list), gpus(row.total), row.grain)), row.due) << row.says;
}

TEST(Division, first_the_guarantees) {
    const Row rows[] = {
        {"nobody is there", 8, {}, ", 8 left"},
        {"nobody asks", 8, {{.name = "a", .guarantee = 4}}, "a=0, 8 left"},
        {"a guarantee is kept whoever else asks",
         8,
         {{.name = "a", .guarantee = 6, .request = 6}, {.name = "b", .weight = 9, .request = 99}},
         "a=6 b=2, 0 left"},
        {"what is guaranteed and not asked for is lent",
         8,
         {{.name = "a", .guarantee = 6, .request = 1}, {.name = "b", .request = 99}},
         "a=1 b=7, 0 left"},
        {"a limit below the guarantee wins",
         8,
         {{.name = "a", .guarantee = 6, .limit = 2, .request = 6}, {.name = "b", .request = 3}},
         "a=2 b=3, 3 left"},
        {"parts of GPUs", 1, {{.name = "a", .guarantee = 0.125, .weight = 0, .request = 1}}, "a=0.125, 0.875 left"},
    };
    expect(rows);
}

TEST(Division, then_the_surplus_by_priority_and_weight) {
    const Row rows[] = {
        {"in proportion to weight, on top of the guarantee",
         12,
         {{.name = "a", .guarantee = 3, .weight = 2, .request = 99}, {.name = "b", .request = 99}},
         "a=9 b=3, 0 left"},
        {"strictly by priority, whatever the weights",
         12,
         {{.name = "a", .weight = 1000, .request = 99}, {.name = "b", .priority = 1, .request = 10}},
         "a=2 b=10, 0 left"},
        {"a guarantee comes before any priority",
         4,
         {{.name = "a", .guarantee = 3, .request = 99}, {.name = "b", .priority = 9, .request = 99}},
         "a=3 b=1, 0 left"},
        {"weight 0 gets no surplus, and what nobody may take stays",
         12,
         {{.name = "a", .guarantee = 2, .weight = 0, .request = 99}, {.name = "b", .limit = 4, .request = 99}},
         "a=2 b=4, 6 left"},
        {"what a bounded queue cannot take is divided again",
         12,
         {{.name = "a", .limit = 2, .request = 99}, {.name = "b", .request = 3}, {.name = "c", .request = 99}},
         "a=2 b=3 c=7, 0 left"},
        {"the next priority gets what the first leaves",
         10,
         {{.name = "a", .limit = 3, .priority = 5, .request = 99},
          {.name = "b", .weight = 3, .request = 99},
          {.name = "c", .request = 1}},
         "a=3 b=6 c=1, 0 left"},
        {"thousandths go by largest remainder: to the older",
         1,
         {{.name = "a", .request = 9, .seniority = 2},
          {.name = "b", .request = 9, .seniority = 1},
          {.name = "c", .request = 9, .seniority = 3}},
         "a=0.333 b=0.334 c=0.333, 0 left"},
        {"of equals, by name",
         0.5,
         {{.name = "b", .request = 9}, {.name = "c", .request = 9}, {.name = "a", .request = 9}},
         "b=0.167 c=0.166 a=0.167, 0 left"},
    };
    expect(rows);
}

TEST(Division, guarantees_beyond_what_is_there_are_honoured_whole_in_order) {
    const Row rows[] = {
        {"of gangs of 5 and 6 on 8 GPUs the older tenant's runs",
         8,
         {{.name = "five", .guarantee = 5, .request = 5, .seniority = 1},
          {.name = "six", .guarantee = 6, .request = 6, .seniority = 0}},
         "five=2 six=6, 0 left"},
        {"equally old: by name",
         8,
         {{.name = "six", .guarantee = 6, .request = 6}, {.name = "five", .guarantee = 5, .request = 5}},
         "six=3 five=5, 0 left"},
        {"a higher over-quota priority before the older",
         8,
         {{.name = "old", .guarantee = 6, .request = 6, .seniority = 1},
          {.name = "urgent", .guarantee = 6, .priority = 1, .request = 6, .seniority = 2}},
         "old=2 urgent=6, 0 left"},
        {"a hard partition before any priority",
         8,
         {{.name = "urgent", .guarantee = 6, .priority = 9, .request = 6},
          {.name = "hard", .guarantee = 5, .request = 5, .seniority = 9, .hard = true}},
         "urgent=3 hard=5, 0 left"},
        {"the first that does not fit gets the rest, those after it nothing",
         8,
         {{.name = "a", .guarantee = 5, .request = 5},
          {.name = "b", .guarantee = 6, .request = 6},
          {.name = "c", .guarantee = 1, .request = 1}},
         "a=5 b=3 c=0, 0 left"},
        {"neither requests nor weights nor the size of a guarantee matter",
         9,
         {{.name = "a", .guarantee = 12, .request = 12}, {.name = "b", .guarantee = 6, .weight = 9, .request = 99}},
         "a=9 b=0, 0 left"},
        {"a tenant that asks for less leaves the rest of its guarantee",
         9,
         {{.name = "a", .guarantee = 12, .request = 1}, {.name = "b", .guarantee = 12, .request = 12}},
         "a=1 b=8, 0 left"},
        {"inside a parent that got less",
         10,
         {{.name = "p", .limit = 6},
          {.name = "a", .parent = "p", .guarantee = 4, .request = 8},
          {.name = "b", .parent = "p", .guarantee = 4, .request = 8},
          {.name = "c", .parent = "p", .priority = 9, .request = 8}},
         "p=6 a=4 b=2 c=0, 4 left"},
        {"a parent's own work is the oldest",
         10,
         {{.name = "p", .guarantee = 9, .limit = 6, .request = 9},
          {.name = "a", .parent = "p", .guarantee = 4, .request = 8}},
         "p=6 a=1, 4 left"},
        {"in whole GPUs a guarantee is honoured up to the next",
         3,
         {{.name = "a", .guarantee = 1.4, .request = 2}, {.name = "b", .guarantee = 1.9, .request = 2}},
         "a=2 b=1, 0 left",
         Grain::whole},
    };
    expect(rows);
}

TEST(Division, sevenths_are_divided_to_the_unit) {
    const Gpus seventh{gpu_unit / 7};
    std::vector<Queue> two{{.name = "a", .guarantee = seventh, .request = Gpus::whole(1)},
                           {.name = "b", .request = Gpus::whole(1)}};
    const Division division = divide(two, Gpus::whole(1));
    EXPECT_EQ(print(division.queues[0].share), "4/7") << "its seventh, and half of the other six";
    EXPECT_EQ(print(division.queues[1].share), "3/7");
    EXPECT_EQ(print(divide(two, Gpus::whole(1), Grain::whole).queues[0].share), "1");
}

TEST(Division, a_parents_share_is_divided_by_the_same_rule) {
    const Row rows[] = {
        {"a parent asks what its children ask, each within its limit",
         20,
         {{.name = "p"},
          {.name = "a", .parent = "p", .limit = 2, .request = 50},
          {.name = "b", .parent = "p", .request = 3},
          {.name = "q", .request = 99}},
         "p=5 a=2 b=3 q=15, 0 left"},
        {"between departments by their own weights, not by how many are inside",
         12,
         {{.name = "p", .weight = 2},
          {.name = "q"},
          {.name = "a", .parent = "p", .request = 99},
          {.name = "b", .parent = "q", .request = 99},
          {.name = "c", .parent = "q", .request = 99},
          {.name = "d", .parent = "q", .weight = 2, .request = 99}},
         "p=8 q=4 a=8 b=1 c=1 d=2, 0 left"},
        {"own work stands among the children, with one part",
         9,
         {{.name = "p", .request = 99},
          {.name = "a", .parent = "p", .request = 99},
          {.name = "b", .parent = "p", .request = 99}},
         "p=9 a=3 b=3, 0 left"},
        {"and with what the parent is guaranteed beyond its children",
         9,
         {{.name = "p", .guarantee = 8, .request = 99},
          {.name = "a", .parent = "p", .guarantee = 3, .request = 3},
          {.name = "b", .parent = "p", .priority = 9, .request = 99}},
         "p=9 a=3 b=1, 0 left"},
        {"what a child of weight 0 asks beyond its guarantee is of no use to its parent",
         20,
         {{.name = "p", .guarantee = 15},
          {.name = "a", .parent = "p", .guarantee = 2, .weight = 0, .request = 10},
          {.name = "q", .request = 99}},
         "p=2 a=2 q=18, 0 left"},
        {"a parent's limit holds for all below it",
         20,
         {{.name = "p", .limit = 4}, {.name = "a", .parent = "p", .request = 9}, {.name = "q", .request = 9}},
         "p=4 a=4 q=9, 7 left"},
    };
    expect(rows);
}

TEST(Division, says_what_each_asks_and_what_is_its_own) {
    const std::vector<Says> list{{.name = "p", .limit = 6, .request = 2},
                                 {.name = "a", .parent = "p", .limit = 4, .request = 9},
                                 {.name = "b", .parent = "p", .request = 1}};
    const Division division = divide(queues(list), gpus(100));
    EXPECT_EQ(division.queues[0], (QueueShare{gpus(7), gpus(6), gpus(2)}));
    EXPECT_EQ(division.queues[1], (QueueShare{gpus(9), gpus(3), gpus(3)}));
    EXPECT_EQ(division.queues[2], (QueueShare{gpus(1), gpus(1), gpus(1)}));
}

TEST(Division, whole_gpus_floors_first_then_largest_remainder) {
    const Grain whole = Grain::whole;
    const Row rows[] = {
        {"7 by 1, 2 and 4: floors 1, 2, 4",
         7,
         {{"a", "", 0, {}, 1, 0, 99}, {"b", "", 0, {}, 2, 0, 99}, {"c", "", 0, {}, 4, 0, 99}},
         "a=1 b=2 c=4, 0 left",
         whole},
        {"10 by 1, 2 and 4: 1.43, 2.86 and 5.71",
         10,
         {{"a", "", 0, {}, 1, 0, 99}, {"b", "", 0, {}, 2, 0, 99}, {"c", "", 0, {}, 4, 0, 99}},
         "a=1 b=3 c=6, 0 left",
         whole},
        {"equal remainders: the older",
         10,
         {{.name = "a", .request = 9, .seniority = 7},
          {.name = "b", .request = 9, .seniority = 8},
          {.name = "c", .request = 9, .seniority = 6}},
         "a=3 b=3 c=4, 0 left",
         whole},
        {"equally old: by name",
         11,
         {{.name = "c", .request = 9}, {.name = "b", .request = 9}, {.name = "a", .request = 9}},
         "c=3 b=4 a=4, 0 left",
         whole},
        {"half a GPU of work needs one",
         4,
         {{.name = "a", .request = 0.5}, {.name = "b", .request = 9}},
         "a=1 b=3, 0 left",
         whole},
        {"half a GPU of limit is none", 4, {{.name = "a", .limit = 1.5, .request = 9}}, "a=1, 3 left", whole},
        {"0.4 of a GPU owed, 0.6 lent: the larger remainder",
         1,
         {{.name = "a", .guarantee = 0.4, .weight = 0, .request = 9}, {.name = "b", .request = 9}},
         "a=0 b=1, 0 left",
         whole},
        {"1.9 owed, 0.1 lent",
         2,
         {{.name = "a", .guarantee = 1.9, .request = 5}, {.name = "b", .priority = 10, .request = 5}},
         "a=2 b=0, 0 left",
         whole},
        {"two halves owed are one GPU",
         3,
         {{.name = "a", .guarantee = 1.5, .weight = 0, .request = 1.5},
          {.name = "b", .guarantee = 1.5, .weight = 0, .request = 1.5}},
         "a=2 b=1, 0 left",
         whole},
        {"the part of a GPU that is left over is nobody's", 2.5, {{.name = "a", .request = 9}}, "a=2, 0.5 left", whole},
        {"level by level",
         5,
         {{.name = "p"},
          {.name = "q"},
          {.name = "a", .parent = "p", .request = 9},
          {.name = "b", .parent = "p", .request = 9},
          {.name = "c", .parent = "q", .request = 9}},
         "p=3 q=2 a=2 b=1 c=2, 0 left",
         whole},
    };
    expect(rows);
}

TEST(Division, a_chain_of_ten_thousand_is_divided_like_any_tree) {
    std::vector<Queue> chain(10'000);
    for (std::size_t i = 0; i < chain.size(); ++i) {
        chain[i].name = std::to_string(i);
        if (i > 0) chain[i].parent = i - 1;
    }
    chain.back().request = Gpus::whole(7);
    const Division division = divide(chain, Gpus::whole(10));
    EXPECT_EQ(division.queues.front().share, Gpus::whole(7));
    EXPECT_EQ(division.queues.back().own, Gpus::whole(7));
    EXPECT_EQ(division.unallocated, Gpus::whole(3));
}

}  // namespace
}  // namespace bulkhead::sched
