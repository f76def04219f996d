#include "bulkhead/sched/nearness.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>

#include "bulkhead/sched/engine_test.hpp"

namespace bulkhead::sched {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

// Two sockets with two switches each; below each switch two GPUs and a NIC with two functions. Functions are numbered
// from the far end, so that the lowest number is never the near one by accident.
GpuNodeStatus two_sockets() {
    GpuNodeStatus node;
    const auto below = [](unsigned which, unsigned port) {
        return std::vector<std::string>{fmt::format("0000:{:02x}:01.0", 16 * which),
                                        fmt::format("0000:{:02x}:00.0", 16 * which + 1),
                                        fmt::format("0000:{:02x}:{:02x}.0", 16 * which + 2, port)};
    };
    for (unsigned gpu = 0; gpu < 8; ++gpu)
        node.topology.push_back(
            {.gpu = gpu, .bus = "", .numaNode = gpu / 4, .cpus = "", .bridges = below(gpu / 2, gpu % 2)});
    for (unsigned i = 0; i < 8; ++i) {
        const unsigned where = 3 - i / 2;
        NodeFunction function{.address = fmt::format("0000:{:02x}:00.{}", 16 * where + 5, 1 + i % 2)};
        function.numaNode = where / 2;
        function.bridges = below(where, 8);
        node.functions.push_back(std::move(function));
    }
    return node;
}

const std::vector<std::uint16_t> all_eight{0, 1, 2, 3, 4, 5, 6, 7};

TEST(Nearness, below_one_switch_is_nearer_than_on_one_numa_node_and_that_nearer_than_anywhere) {
    const auto closeness = closeness_of(two_sockets(), 8);
    ASSERT_EQ(closeness.size(), 64u);
    const auto row = [&](std::size_t function) {
        return std::vector<int>(closeness.begin() + static_cast<std::ptrdiff_t>(function * 8),
                                closeness.begin() + static_cast<std::ptrdiff_t>(function * 8 + 8));
    };
    EXPECT_THAT(row(0), ElementsAre(0, 0, 0, 0, 1, 1, 3, 3)) << "of the last switch: its root port and the switch";
    EXPECT_THAT(row(7), ElementsAre(3, 3, 1, 1, 0, 0, 0, 0));
    struct Row {
        const char* says;
        std::uint64_t gpus;
        std::vector<std::uint16_t> free;
        std::uint16_t gets;
    };
    const Row rows[] = {
        {"below its switch", 0b1, all_eight, 6},
        {"of two below its switch the lower", 0b10, {4, 6, 7}, 6},
        {"none left there: its NUMA node", 0b1, {0, 1, 2, 4, 5}, 4},
        {"none left there either: the lowest", 0b1, {1, 2, 3}, 1},
        {"below one of its GPUs' switches", 0b100001, {1, 5, 6}, 6},
        {"below the switch of two of its three GPUs", 0b1110, all_eight, 4},
        {"no GPU at all: the lowest", 0, {3, 6}, 3},
    };
    for (const Row& one : rows) EXPECT_EQ(one.free[nearest(one.free, one.gpus, closeness, 8)], one.gets) << one.says;
}

TEST(Nearness, a_switch_below_a_switch_is_nearer_still) {
    GpuNodeStatus node;
    node.topology.push_back({.gpu = 0, .bus = "", .cpus = "", .bridges = {"root", "up", "down", "up2", "down2"}});
    node.functions.resize(2);
    node.functions[0].bridges = {"root", "up", "other"};
    node.functions[1].bridges = {"root", "up", "down", "up2", "nic"};
    EXPECT_EQ(nearest(std::vector<std::uint16_t>{0, 1}, 1, closeness_of(node, 1), 1), 1u);
}

TEST(Nearness, a_node_that_says_nothing_gives_the_lowest_number) {
    GpuNodeStatus node = two_sockets();
    for (NodeFunction& function : node.functions) {
        function.numaNode.reset();
        function.bridges.clear();
    }
    EXPECT_THAT(closeness_of(node, 8), IsEmpty());
    EXPECT_EQ(nearest(all_eight, 0b1000, {}, 8), 0u);
    // GPUs that the inventory names and the board does not have, and functions beyond what was told.
    EXPECT_EQ(closeness_of(two_sockets(), 4).size(), 32u);
    EXPECT_THAT(closeness_of(two_sockets(), 0), IsEmpty());
    EXPECT_EQ(nearest(std::vector<std::uint16_t>{40, 41}, 0b1, closeness_of(two_sockets(), 8), 8), 0u);
}

// As large as an inventory may be: each list against each would be thousands of millions of comparisons.
TEST(Nearness, a_node_that_says_too_much_is_heard_as_far_as_a_machine_goes) {
    GpuNodeStatus node;
    node.functions.resize(2);
    node.functions[0].bridges.assign(100'000, "a");
    node.topology.push_back({.gpu = 0, .bus = "", .cpus = "", .bridges = std::vector<std::string>(100'000, "b")});
    EXPECT_THAT(closeness_of(node, 1), IsEmpty());
    node.functions[0].bridges.back() = node.topology[0].bridges.back() = "c";
    EXPECT_THAT(closeness_of(node, 1), IsEmpty()) << "at a depth that no machine has";
    node.topology[0].bridges.assign(100'000, "a");
    EXPECT_THAT(closeness_of(node, 1), ElementsAre(33, 0));
    node.topology.insert(node.topology.end(), 100'000, {.gpu = 0, .bus = "", .numaNode = 0, .cpus = "", .bridges = {}});
    node.functions[1].numaNode = 0;
    EXPECT_THAT(closeness_of(node, 1), ElementsAre(33, 0)) << "the first word about a GPU counts";
}

TEST(Nearness, is_of_as_many_gpus_as_the_engine_looks_at) {
    GpuNodeStatus node = two_sockets();
    for (unsigned gpu = 8; gpu < 100; ++gpu)
        node.topology.push_back({.gpu = gpu, .bus = "", .numaNode = 1, .cpus = "", .bridges = {}});
    EXPECT_EQ(closeness_of(node, 100), closeness_of(node, 64));
    EXPECT_EQ(closeness_of(node, 100).size(), 8u * 64);
}

RC_GTEST_PROP(Nearness, nobody_who_is_free_is_nearer_than_the_one_that_is_given, ()) {
    const auto gpus = *rc::gen::inRange<std::size_t>(1, 9);
    const auto count = *rc::gen::inRange<std::size_t>(1, 12);
    const auto closeness =
        *rc::gen::container<std::vector<std::uint8_t>>(count * gpus, rc::gen::inRange<std::uint8_t>(0, 4));
    std::vector<std::uint16_t> free;
    for (std::uint16_t i = 0; i < count; ++i)
        if (*rc::gen::arbitrary<bool>()) free.push_back(i);
    RC_PRE(!free.empty());
    const auto task = *rc::gen::inRange<std::uint64_t>(1, std::uint64_t{1} << gpus);
    const auto best_of = [&](std::uint16_t function) {
        int best = 0;
        for (std::size_t gpu = 0; gpu < gpus; ++gpu)
            if ((task >> gpu & 1) != 0) best = std::max<int>(best, closeness[function * gpus + gpu]);
        return best;
    };
    const std::uint16_t given = free[nearest(free, task, closeness, gpus)];
    for (const std::uint16_t other : free) RC_ASSERT(best_of(other) <= best_of(given));
}

// ---- in the engine

struct NearPlay : Play {
    NearPlay() {
        tenants({team("acme")});
        Node node = node_of({.name = "m"});
        node.closeness = closeness_of(two_sockets(), 8);
        nodes.push_back("m");
        engine.add_node(node);
    }
    TaskSeat seat_of(const JobRow& row) {
        submit(row);
        cycle();
        for (const Binding& binding : last.bind)
            if (name(binding.workload) == row.name) return binding.tasks.at(0);
        ADD_FAILURE() << row.name << " did not start";
        return {};
    }
};

TEST(NearFunctions, a_task_gets_one_below_a_switch_of_its_gpus_while_there_is_one) {
    NearPlay play;
    const auto closeness = closeness_of(two_sockets(), 8);
    const auto near = [&](const TaskSeat& seat) {
        return int{closeness[seat.functions.at(0) * std::size_t{8} + seat.gpus.at(0)]};
    };
    std::vector<int> how;
    for (int i = 0; i < 8; ++i) how.push_back(near(play.seat_of({.name = fmt::format("j{}", i), .rdma = true})));
    EXPECT_THAT(how, Each(3)) << "as many functions below each switch as GPUs";
}

TEST(NearFunctions, one_that_comes_back_is_given_to_whoever_is_near_it) {
    NearPlay play;
    const TaskSeat first = play.seat_of({.name = "first", .gpus = 2, .rdma = true});
    const TaskSeat second = play.seat_of({.name = "second", .gpus = 2, .rdma = true});
    EXPECT_NE(first.functions, second.functions);
    play.engine.finish(play.jobs.at("first"));
    const TaskSeat third = play.seat_of({.name = "third", .gpus = 2, .rdma = true});
    EXPECT_EQ(third.gpus, first.gpus);
    EXPECT_EQ(third.functions, first.functions);
}

}  // namespace
}  // namespace bulkhead::sched
