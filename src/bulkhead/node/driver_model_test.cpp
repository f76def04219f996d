// What a driver does with MIG, processes and memory: the rules of the guide, one claim each.
#include "bulkhead/node/driver_model.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace bulkhead;
using namespace bulkhead::driver;

Model driver_of(const std::string& product, std::uint32_t count = 1) {
    return Model{*spec_of("node", {{product, count}})};
}

Model cut_driver(const std::string& product) {
    Model model = driver_of(product);
    EXPECT_TRUE(model.set_mig_mode(0, true).value());
    return model;
}

// Profile ids of the boards with seven slices.
constexpr std::uint32_t g1 = 19, g1_me = 20, g1_double = 15, g2 = 14, g3 = 9, g4 = 5, g7 = 0;

// Creates in order without places; the number of those that fit.
std::size_t created(Model& model, const std::vector<std::uint32_t>& ids) {
    std::size_t count = 0;
    for (const std::uint32_t id : ids) {
        const auto made = model.create_instance(0, id);
        if (!made) {
            EXPECT_EQ(made.error(), Refusal::no_room);
            break;
        }
        ++count;
    }
    return count;
}

TEST(DriverModes, mig_mode_follows_the_architecture) {
    struct Row {
        std::string_view says, product;
        bool passed_through, process, on_now, after_reboot;
    };
    const Row rows[] = {
        {"Hopper switches at once and forgets at reboot", "h200-141gb", false, false, true, false},
        {"Ampere is reset for it and remembers", "a100-80gb", false, false, true, true},
        {"Ampere in a virtual machine waits for somebody outside", "a100-80gb", true, false, false, true},
        {"a process in the way leaves the change pending on Ampere", "a100-80gb", false, true, false, true},
        {"and on Hopper, where the reboot forgets it", "h100-80gb-sxm5", false, true, false, false},
    };
    for (const Row& row : rows) {
        Spec spec = *spec_of("node", {{std::string{row.product}, 1}});
        spec.passed_through = row.passed_through;
        Model model{spec};
        if (row.process) {
            ASSERT_TRUE(model.attach({.pid = 7}));
        }
        const auto asked = model.set_mig_mode(0, true);
        ASSERT_TRUE(asked) << row.says;
        EXPECT_EQ(asked->has_value(), row.on_now) << row.says;
        EXPECT_EQ(model.gpu(0).mig, row.on_now) << row.says;
        EXPECT_TRUE(model.gpu(0).mig_pending) << row.says;
        model.reboot();
        EXPECT_EQ(model.gpu(0).mig, row.after_reboot) << row.says;
    }
}

TEST(DriverModes, a_gpu_that_cannot_be_cut_says_so) {
    Model model = driver_of("l40s");
    EXPECT_EQ(model.set_mig_mode(0, true).error(), Refusal::not_supported);
    EXPECT_EQ(model.create_instance(0, g1).error(), Refusal::not_supported);
}

TEST(DriverInstances, the_orders_that_the_guide_prints_end_as_it_says) {
    struct Row {
        std::string_view says;
        std::vector<std::uint32_t> ids;
        std::size_t fit;
    };
    const Row rows[] = {
        {"small ones first leave no place for a 3g", {g1, g1, g2, g3}, 3},
        {"the large one first, and all fit", {g3, g1, g2, g1}, 4},
        {"seven small ones and no eighth", {g1, g1, g1, g1, g1, g1, g1, g1}, 7},
        {"a whole GPU is alone", {g7, g1}, 1},
        {"one set of media engines", {g1_me, g1_me}, 1},
        {"two halves", {g3, g3, g1}, 2},
        {"a 4g and a 3g", {g4, g3, g1}, 2},
        {"four double ones", {g1_double, g1_double, g1_double, g1_double, g1}, 4},
    };
    for (const Row& row : rows) {
        Model model = cut_driver("a100-80gb");
        EXPECT_EQ(created(model, row.ids), row.fit) << row.says;
    }
}

TEST(DriverInstances, a_place_must_be_one_of_the_profile_and_free) {
    Model model = cut_driver("h200-141gb");
    EXPECT_EQ(model.create_instance(0, g3, gpu::Placement{2, 4}).error(), Refusal::invalid);
    EXPECT_EQ(model.create_instance(0, g3, gpu::Placement{0, 3}).error(), Refusal::invalid);
    EXPECT_EQ(model.create_instance(0, 77).error(), Refusal::not_supported);
    ASSERT_TRUE(model.create_instance(0, g1, gpu::Placement{3, 1}));
    EXPECT_EQ(model.create_instance(0, g3, gpu::Placement{0, 4}).error(), Refusal::no_room);
    EXPECT_EQ(model.create_instance(0, g3, gpu::Placement{4, 4}), 1u) << "the id follows from the place";
    EXPECT_EQ(model.room(0, g1), 3u);
}

TEST(DriverInstances, what_is_in_use_is_not_destroyed) {
    Model model = cut_driver("h200-141gb");
    const auto instance = *model.create_instance(0, g3);
    const auto compute = *model.create_compute(0, instance, 2);
    ASSERT_TRUE(model.attach({.pid = 7, .where = {0, instance, compute}}));
    EXPECT_EQ(model.destroy_instance(0, instance).error(), Refusal::in_use);
    EXPECT_EQ(model.destroy_compute(0, instance, compute).error(), Refusal::in_use);
    EXPECT_EQ(model.set_mig_mode(0, false)->error(), Refusal::in_use);
    model.end(7);
    EXPECT_TRUE(model.destroy_compute(0, instance, compute));
    EXPECT_TRUE(model.destroy_instance(0, instance));
    EXPECT_EQ(model.destroy_instance(0, instance).error(), Refusal::not_found);
}

TEST(DriverInstances, a_device_made_again_at_the_same_place_is_another) {
    Model model = cut_driver("h200-141gb");
    const auto make = [&] {
        const auto instance = *model.create_instance(0, g1, gpu::Placement{0, 1});
        EXPECT_TRUE(model.create_compute(0, instance, 0));
        return std::pair{instance, model.mig_device(0, 0)->compute->uuid};
    };
    const auto [first, uuid] = make();
    ASSERT_TRUE(model.destroy_compute(0, first, 0));
    ASSERT_TRUE(model.destroy_instance(0, first));
    const auto [second, again] = make();
    EXPECT_EQ(first, second);
    EXPECT_NE(uuid, again);
    EXPECT_FALSE(model.mig_device_by_uuid(uuid));
}

TEST(DriverInstances, every_profile_of_every_board_can_be_made_and_worked_on) {
    for (const Product& product : products()) {
        if (product.board() == nullptr) continue;
        Model model = cut_driver(std::string{product.id});
        for (const GpuProfile& profile : std::vector{model.profiles(0)}) {
            const auto instance = model.create_instance(0, profile.id);
            ASSERT_TRUE(instance) << product.id << " " << profile.name;
            const auto ways = model.compute_profiles_of(0, *instance);
            ASSERT_FALSE(ways.empty()) << product.id << " " << profile.name;
            EXPECT_GT(model.memory({0, *instance, {}}).total, 0u);
            for (const ComputeProfile& way : ways) {
                const auto compute = model.create_compute(0, *instance, way.id);
                if (!compute) continue;
                EXPECT_TRUE(model.destroy_compute(0, *instance, *compute));
            }
            EXPECT_TRUE(model.destroy_instance(0, *instance));
        }
    }
}

TEST(DriverInstances, memory_of_instances_never_overlaps) {
    Model model = cut_driver("h200-141gb");
    std::vector<Range> all;
    for (const std::uint32_t id : {g3, g1, g2, g1})
        all.push_back(model.memory_of({0, *model.create_instance(0, id), {}}));
    for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(all[i].overlaps(all[j])) << i << " and " << j;
}

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

TEST(DriverWork, a_process_takes_everything_with_it_when_it_ends) {
    Model model = driver_of("h200-141gb");
    ASSERT_TRUE(model.attach({.pid = 7, .context_bytes = gib / 2}));
    ASSERT_TRUE(model.allocate(7, {}, 10 * gib));
    EXPECT_EQ(model.memory({}).used, 10 * gib + gib / 2);
    model.end(7);
    EXPECT_EQ(model.memory({}).used, 0u);
    EXPECT_EQ(model.allocate(7, {}, gib).error(), Refusal::not_found) << "nobody is there any more";
}

// The one question that matters: does the next tenant find what the last one left?
TEST(DriverWork, residue_is_found_only_where_a_driver_keeps_it) {
    for (const bool keeps : {true, false}) {
        Model model = driver_of("h200-141gb");
        model.set_keeps_residue(0, keeps);
        ASSERT_TRUE(model.attach({.pid = 1}));
        const std::uint64_t base = *model.allocate(1, {}, gib);
        ASSERT_TRUE(model.fill(1, 0, {base, gib}, Pattern::of_word(0x5EC2E7)));
        EXPECT_EQ(model.read(2, 0, {base, 4}).error(), Refusal::invalid) << "memory of another process cannot be read";
        model.end(1);
        ASSERT_TRUE(model.attach({.pid = 2}));
        ASSERT_EQ(model.allocate(2, {}, gib), base);
        EXPECT_EQ(model.compare(2, 0, {base, gib}, {})->others, keeps ? gib / 4 : 0);
    }
}

TEST(DriverWork, residue_of_a_whole_gpu_lies_in_the_instances_cut_from_it) {
    Model model = driver_of("h200-141gb");
    model.set_keeps_residue(0, true);
    ASSERT_TRUE(model.attach({.pid = 1}));
    const std::uint64_t all = model.memory({}).free() - 4 * gib;
    ASSERT_TRUE(model.fill(1, 0, {*model.allocate(1, {}, all), all}, Pattern::of_word(1)));
    model.end(1);
    ASSERT_TRUE(model.set_mig_mode(0, true).value());
    const auto instance = *model.create_instance(0, g1, gpu::Placement{4, 1});
    const Place where{0, instance, *model.create_compute(0, instance, 0)};
    ASSERT_TRUE(model.attach({.pid = 2, .where = where}));
    const std::uint64_t base = *model.allocate(2, where, gib);
    EXPECT_EQ(model.compare(2, 0, {base, gib}, {})->others, gib / 4);
}

TEST(DriverWork, nobody_gets_more_memory_than_the_place_has) {
    Model model = cut_driver("h200-141gb");
    const auto instance = *model.create_instance(0, g1);
    const Place where{0, instance, *model.create_compute(0, instance, 0)};
    ASSERT_TRUE(model.attach({.pid = 2, .where = where}));
    EXPECT_EQ(model.memory(where).total, std::uint64_t{16384} << 20);
    EXPECT_EQ(model.allocate(2, where, 17 * gib).error(), Refusal::no_memory);
    EXPECT_TRUE(model.allocate(2, where, 15 * gib));
    EXPECT_EQ(model.allocate(2, where, 2 * gib).error(), Refusal::no_memory);
}

TEST(DriverWork, compute_mode_decides_who_may_come) {
    Model model = driver_of("l40s");
    ASSERT_TRUE(model.set_compute_mode(0, ComputeMode::exclusive_process));
    EXPECT_TRUE(model.attach({.pid = 1}));
    EXPECT_TRUE(model.attach({.pid = 1})) << "one process may come twice";
    EXPECT_EQ(model.attach({.pid = 2}).error(), Refusal::prohibited);
    ASSERT_TRUE(model.set_compute_mode(0, ComputeMode::prohibited));
    model.end(1);
    EXPECT_EQ(model.attach({.pid = 3}).error(), Refusal::prohibited);
}

TEST(DriverWork, load_moves_power_heat_and_clocks_and_energy_adds_up) {
    Model model = driver_of("h200-141gb");
    model.advance({1'000'000});
    ASSERT_TRUE(model.attach({.pid = 1}));
    ASSERT_TRUE(model.set_load(1, {}, 100, 50));
    EXPECT_GT(model.load(0).power_mw, 690'000u);
    EXPECT_EQ(model.load(0).clocks.sm_mhz, 1980u);
    EXPECT_NEAR(static_cast<double>(model.energy_mj(0, {1'010'000})), 7'000'000, 100'000);
    model.advance({1'010'000});
    model.end(1);
    EXPECT_NEAR(static_cast<double>(model.energy_mj(0, {1'020'000})), 7'804'470, 100'000);
}

TEST(DriverFaults, a_lost_gpu_answers_nothing_until_it_is_reset) {
    Model model = driver_of("h200-141gb", 2);
    model.set_lost(0, true);
    EXPECT_EQ(model.set_mig_mode(0, true).error(), Refusal::lost);
    EXPECT_EQ(model.attach({.pid = 1}).error(), Refusal::lost);
    EXPECT_TRUE(model.attach({.pid = 1, .where = {.gpu = 1}})) << "its neighbour is well";
    ASSERT_TRUE(model.reset(0));
    EXPECT_TRUE(model.attach({.pid = 2}));
}

TEST(DriverFaults, each_ordered_fault_is_met_as_often_as_ordered) {
    Model model = driver_of("h200-141gb");
    model.add_fault({.call = "a", .kind = FaultKind::fail, .value = 4, .times = 2});
    EXPECT_TRUE(model.meet("b").empty());
    EXPECT_EQ(model.meet("a").size(), 1u);
    EXPECT_EQ(model.meet("a").size(), 1u);
    EXPECT_TRUE(model.meet("a").empty());
}

TEST(DriverBytes, a_model_is_read_as_it_was_written_and_damage_is_refused) {
    Model model = cut_driver("h200-141gb");
    model.set_keeps_residue(0, true);
    const auto instance = *model.create_instance(0, g3);
    const Place where{0, instance, *model.create_compute(0, instance, 2)};
    ASSERT_TRUE(model.attach({.pid = 9, .where = where}));
    const std::uint64_t base = *model.allocate(9, where, gib);
    ASSERT_TRUE(model.write(9, 0, base, "some bytes"));
    ASSERT_TRUE(model.fill(9, 0, {base + 4096, 4096}, {{1, 2, 3, 4}, {5, 6, 7, 8}}));
    model.raise(EventKind::xid, where, 79);
    const std::string bytes = model.to_bytes();
    const auto again = Model::from_bytes(bytes);
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, model);
    EXPECT_EQ(again->read(9, 0, {base, 10}), "some bytes");
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_FALSE(Model::from_bytes(bytes.substr(0, cut))) << cut;
}

}  // namespace
