#include "bulkhead/hw/vm/vfio.hpp"

#include <gtest/gtest.h>

#include "bulkhead/hw/vm/sysfs_tree_test.hpp"

namespace bulkhead::vm {

namespace {

const std::string gpu = "0000:3b:00.0", sound = "0000:3b:00.1", bridge = "0000:3a:00.0", other_gpu = "0000:5e:00.0";

}  // namespace

TEST(Vfio, a_gpu_goes_to_a_machine_and_comes_back_reset_to_its_own_driver) {
    SysfsTree tree;
    tree.add(gpu, 7);
    const Vfio vfio{tree.settings()};
    EXPECT_TRUE(vfio.has_groups());
    ASSERT_TRUE(vfio.may_be_given({gpu}));
    const auto given = vfio.give(gpu);
    ASSERT_TRUE(given) << given.error().what;
    EXPECT_EQ(*vfio.driver_of(gpu), "vfio-pci");
    EXPECT_TRUE(vfio.give(gpu)) << "it has it already";
    const auto back = vfio.take_back(gpu, "nvidia");
    ASSERT_TRUE(back) << back.error().what;
    ASSERT_TRUE(*back);
    EXPECT_EQ(**back, "flr, rebind nvidia");
    EXPECT_EQ(*vfio.driver_of(gpu), "nvidia");
    EXPECT_TRUE(tree.saw_reset_of(gpu));
}

TEST(Vfio, a_group_that_holds_a_device_of_somebody_else_is_not_given) {
    SysfsTree tree;
    tree.add(bridge, 7, "0x060400");
    tree.add(gpu, 7);
    tree.add(other_gpu, 8);
    const Vfio vfio{tree.settings()};
    EXPECT_TRUE(vfio.may_be_given({gpu})) << "a bridge has no DMA of its own";
    tree.add(sound, 7, "0x040300");
    const auto refused = vfio.may_be_given({gpu, other_gpu});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::conflict);
    EXPECT_NE(refused.error().what.find(gpu + " shares an IOMMU group with " + sound), std::string::npos)
        << refused.error().what;
    EXPECT_TRUE(vfio.may_be_given({gpu, sound})) << "all of the group goes to one machine";
    EXPECT_EQ(*vfio.not_alone({gpu, other_gpu}), std::vector<std::string>{gpu});
}

TEST(Vfio, a_device_outside_every_group_is_not_given) {
    SysfsTree tree;
    tree.add(gpu, -1);
    EXPECT_EQ(Vfio{tree.settings()}.may_be_given({gpu}).error().code, Code::unavailable);
    EXPECT_EQ(Vfio{tree.settings()}.may_be_given({other_gpu}).error().code, Code::not_found);
}

TEST(Vfio, the_widest_reset_is_taken_only_where_there_is_no_narrower_and_none_is_invented) {
    SysfsTree tree;
    tree.add(gpu, 7);
    const Vfio vfio{tree.settings()};
    ASSERT_TRUE(vfio.give(gpu));
    tree.offer_resets(gpu, "pm");
    const auto refused = vfio.take_back(gpu, "nvidia");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("offers pm"), std::string::npos) << refused.error().what;
    EXPECT_EQ(*vfio.driver_of(gpu), "vfio-pci") << "what was not reset is not handed to the host either";
    tree.offer_resets(gpu, "pm bus");
    EXPECT_EQ(vfio.take_back(gpu, "nvidia").value(), "bus, rebind nvidia");
}

TEST(Vfio, a_device_that_never_left_its_driver_is_not_reset_under_it) {
    SysfsTree tree;
    tree.add(gpu, 7);
    tree.add(other_gpu, 8);
    const Vfio vfio{tree.settings()};
    const auto stayed = vfio.take_back(gpu, "nvidia");
    ASSERT_TRUE(stayed) << stayed.error().what;
    EXPECT_FALSE(*stayed);
    EXPECT_EQ(*vfio.driver_of(gpu), "nvidia");
    ASSERT_TRUE(vfio.give(other_gpu));
    ASSERT_TRUE(vfio.take_back(other_gpu, "nvidia"));
    EXPECT_TRUE(tree.saw_reset_of(other_gpu)) << "by now whoever plays the kernel has read everything";
    EXPECT_FALSE(tree.was_reset(gpu));
}

TEST(Vfio, a_virtual_function_comes_back_reset_and_without_a_driver) {
    SysfsTree tree;
    tree.add(gpu, 7);
    tree.make_function(gpu);
    const Vfio vfio{tree.settings()};
    const auto given = vfio.give(gpu);
    ASSERT_TRUE(given) << given.error().what;
    const auto back = vfio.take_back(gpu, "nvidia");
    ASSERT_TRUE(back) << back.error().what;
    EXPECT_EQ(back->value(), "flr, left without a driver");
    EXPECT_EQ(*vfio.driver_of(gpu), "");
    EXPECT_TRUE(tree.saw_reset_of(gpu));
    EXPECT_TRUE(vfio.take_back(gpu, "nvidia")) << "again is fine";
}

TEST(Vfio, a_driver_that_does_not_let_go_is_told_and_not_waited_for_forever) {
    SysfsTree tree;
    tree.add(gpu, 7);
    tree.stubborn = true;
    VfioSettings settings = tree.settings();
    settings.patience = std::chrono::milliseconds{50};
    const auto refused = Vfio{settings}.give(gpu);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::timeout);
    EXPECT_NE(refused.error().what.find("bound to nvidia"), std::string::npos) << refused.error().what;
}

}  // namespace bulkhead::vm
