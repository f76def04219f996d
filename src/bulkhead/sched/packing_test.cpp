#include "bulkhead/sched/packing.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace bulkhead::sched {
namespace {

NodeRoom node_of(std::int64_t cpu, std::vector<std::int16_t> free, std::uint8_t model = 0) {
    NodeRoom room{.cpu = cpu, .memory = 1 << 20, .model = model, .gpus = static_cast<std::uint8_t>(free.size())};
    std::ranges::copy(free, room.free.begin());
    return room;
}
TaskShape task_of(std::int32_t gpus, std::int32_t share, std::int64_t cpu = 1000) {
    return {.cpu = cpu, .memory = 1, .gpus = gpus, .share = share};
}

// What fragmentation means, said again without the shortcuts.
std::int64_t fragmentation_of(const std::vector<Mix::Part>& mix, const NodeRoom& room) {
    std::int64_t sum = 0;
    for (const auto& [shape, count] : mix) {
        TaskShape light = shape;
        light.memory = 0;
        std::int64_t unusable = 0;
        for (std::size_t i = 0; i < room.gpus; ++i)
            if (shape.gpus == 0 || !room.takes(light) || room.free[i] < shape.share) unusable += room.free[i];
        sum += unusable * count;
    }
    return sum;
}

TEST(Packing, free_capacity_that_the_mix_cannot_use_is_fragmented) {
    const std::vector<Mix::Part> parts{{task_of(1, 500), 3}, {task_of(2, 1000), 1}};
    const Mix mix{parts, {}};
    EXPECT_EQ(mix.fragmentation(node_of(8000, {1000, 1000})), 0);
    EXPECT_EQ(mix.fragmentation(node_of(8000, {1000, 400})), 3 * 400 + 1400)
        << "400 serves nobody; a pair fits nowhere";
    EXPECT_EQ(mix.fragmentation(node_of(500, {1000, 1000})), 4 * 2000) << "without cores all of it is lost";
}

// Few shapes are looked up in a table; so many that it would be large are counted.
TEST(Packing, fragmentation_is_the_same_for_few_shapes_and_for_very_many) {
    for (const int count : {30, 600}) {
        std::vector<Mix::Part> parts;
        for (int i = 0; i < count; ++i)
            parts.push_back({task_of(1, 1 + i * 7 % 999, 10 * (i * 13 % count)), count > 100 ? 1 : 1'000'000});
        for (Mix::Part& part : parts) part.shape.memory = 0;
        const Mix mix{parts, {}};
        // The last of them may be too rare to count; of equal counts those are the largest shapes.
        std::ranges::sort(parts, {}, &Mix::Part::shape);
        parts.resize(static_cast<std::size_t>(mix.tasks() / parts.front().count));
        for (const std::int64_t cpu : {-5, 0, 10, 155, 2990, 100'000}) {
            const NodeRoom room = node_of(cpu, {0, 1, 7, 350, 499, 500, 999, 1000});
            EXPECT_EQ(mix.fragmentation(room), fragmentation_of(parts, room)) << count << " shapes, " << cpu;
        }
    }
}

RC_GTEST_PROP(Packing, fragmentation_is_what_it_is_said_to_be, ()) {
    std::vector<Mix::Part> parts;
    const int count = *rc::gen::inRange(1, 6);
    for (int i = 0; i < count; ++i) {
        TaskShape shape = task_of(*rc::gen::inRange(0, 4), 0, *rc::gen::inRange(0, 5) * 1000);
        if (shape.gpus > 0) shape.share = shape.gpus > 1 ? 1000 : *rc::gen::inRange(1, 11) * 100;
        shape.models = *rc::gen::element(~0u, 1u, 2u, 3u);
        shape.memory = 0;
        if (std::ranges::find(parts, shape, &Mix::Part::shape) == parts.end()) parts.push_back({shape, 1'000});
    }
    // All weigh the same and so many that each is among the 95 %; but the last may still be left out: say so by weight.
    const Mix mix{parts, {}};
    RC_PRE(mix.tasks() == static_cast<std::int64_t>(parts.size()) * 1'000);
    std::vector<std::int16_t> free(*rc::gen::inRange<std::size_t>(1, 9));
    for (auto& gpu : free) gpu = static_cast<std::int16_t>(*rc::gen::inRange(0, 11) * 100);
    const NodeRoom room = node_of(*rc::gen::inRange(0, 6) * 1000, free, *rc::gen::element<std::uint8_t>(0, 1));
    RC_ASSERT(mix.fragmentation(room) == fragmentation_of(parts, room));
}

TEST(Packing, a_fraction_goes_where_it_leaves_whole_gpus_whole) {
    const Mix mix{{{task_of(1, 500), 50}, {task_of(1, 1000), 50}}, {}};
    const TaskShape half = task_of(1, 500);
    const PackedPlace begun = pack(mix, node_of(64'000, {1000, 500}), half);
    EXPECT_EQ(begun.gpu, 1) << "the GPU that is broken into already";
    EXPECT_GT(begun.score, pack(mix, node_of(64'000, {1000, 1000}), half).score);
}

TEST(Packing, among_equals_the_fuller_node) {
    const Mix mix{{{task_of(1, 1000), 10}}, {}};
    EXPECT_GT(pack(mix, node_of(64'000, {1000, 0}), task_of(1, 1000)).score,
              pack(mix, node_of(64'000, {1000, 1000}), task_of(1, 1000)).score);
}

TEST(Packing, work_that_takes_many_cores_goes_where_there_are_many) {
    const Mix mix{{{task_of(1, 1000, 8000), 90}, {task_of(1, 1000, 40'000), 10}}, {}};
    const TaskShape heavy = task_of(1, 1000, 40'000);
    EXPECT_GT(pack(mix, node_of(400'000, {1000, 1000, 1000, 1000}), heavy).score,
              pack(mix, node_of(50'000, {1000, 1000, 1000, 1000}), heavy).score)
        << "on the second node three GPUs would be left without cores";
}

TEST(Packing, a_model_that_others_insist_on_is_left_to_them) {
    const NodeRoom common = node_of(64'000, {1000, 1000}, 0), scarce = node_of(64'000, {1000, 1000}, 1);
    const std::vector<NodeRoom> fleet{common, common, common, scarce};
    TaskShape picky = task_of(1, 1000);
    picky.models = 2;
    const Mix mix{{{task_of(1, 1000), 4}, {picky, 2}}, fleet};
    EXPECT_EQ(mix.wanted(1), 1000);
    EXPECT_GT(pack(mix, common, task_of(1, 1000)).score, pack(mix, scarce, task_of(1, 1000)).score);
}

RC_GTEST_PROP(Packing, what_is_proposed_fits, ()) {
    const Mix mix{{{task_of(1, 300), 5}, {task_of(1, 1000, 4000), 3}, {task_of(4, 1000, 16'000), 1}}, {}};
    std::vector<std::int16_t> free(*rc::gen::inRange<std::size_t>(1, 9));
    for (auto& gpu : free) gpu = static_cast<std::int16_t>(*rc::gen::inRange(0, 11) * 100);
    NodeRoom room = node_of(20'000, free);
    const TaskShape task = *rc::gen::element(task_of(1, 300), task_of(1, 1000), task_of(2, 1000), task_of(0, 0));
    RC_PRE(room.takes(task));
    const std::int64_t before = room.gpu_free();
    room.take(task, pack(mix, room, task).gpu);
    RC_ASSERT(room.gpu_free() == before - task.demand());
    RC_ASSERT(std::all_of(room.free.begin(), room.free.end(), [](std::int16_t left) { return left >= 0; }));
}

}  // namespace
}  // namespace bulkhead::sched
