#include "bulkhead/node/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/node/executor.hpp"

namespace bulkhead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OperationResult carry(NodeModel& model, decltype(Operation::what) what) {
    const auto result = model.carry_out({7, std::move(what)});
    EXPECT_TRUE(result) << "it hangs";
    if (result) {
        EXPECT_EQ(result->number, 7);
    }
    return result.value_or(OperationResult{});
}

StartTenant container(Key lease, GpuPart part) { return {.lease = lease, .tier = Tier::container, .gpus = {part}}; }
const GpuPart half{.gpu = 0, .start = 4, .size = 4, .profile = "3g.40gb"};

TEST(NodeModel, begins_dirty_everywhere) {
    const NodeModel model{{.gpus = 1, .drives = 1, .functions = 1}};
    EXPECT_EQ(model.units().size(), 8u + 1 + 1 + 1);
    for (const UnitId unit : model.units()) EXPECT_EQ(model.read(unit), NodeModel::old_dirt);
}

TEST(NodeModel, instances_follow_the_rules_of_the_board) {
    struct Row {
        std::string_view says;
        std::vector<CreateInstance> there;
        CreateInstance next;
        bool ok;
    };
    const Row rows[] = {
        {"an empty GPU takes a half", {}, {0, "3g.40gb", 0}, true},
        {"again is the same", {{0, "3g.40gb", 0}}, {0, "3g.40gb", 0}, true},
        {"3g has no place at 2", {}, {0, "3g.40gb", 2}, false},
        {"slices are taken once", {{0, "3g.40gb", 0}}, {0, "4g.40gb", 0}, false},
        {"neighbours touch", {{0, "3g.40gb", 4}}, {0, "4g.40gb", 0}, true},
        {"one 1g with media engines", {{0, "1g.10gb+me", 0}}, {0, "1g.10gb+me", 1}, false},
        {"no such profile", {}, {0, "9g.90gb", 0}, false},
        {"no such GPU", {}, {1, "3g.40gb", 0}, false},
    };
    for (const Row& row : rows) {
        NodeModel model{{.gpus = 1}};
        for (const CreateInstance& create : row.there) ASSERT_TRUE(carry(model, create).ok) << row.says;
        EXPECT_EQ(carry(model, row.next).ok, row.ok) << row.says;
    }
    NodeModel whole_only{{.gpu_model = "l40s", .gpus = 1}};
    EXPECT_EQ(whole_only.slices_per_gpu(), 1u);
    EXPECT_THAT(carry(whole_only, CreateInstance{0, "1g.10gb", 0}).why, HasSubstr("cannot be cut"));
}

TEST(NodeModel, a_tenant_writes_wherever_it_was_let) {
    NodeModel model{{.gpus = 1, .drives = 1, .functions = 1}};
    StartTenant start = container(42, half);
    start.drives = {0};
    start.functions = {0};
    EXPECT_THAT(carry(model, start).why, HasSubstr("no 3g.40gb"));
    ASSERT_TRUE(carry(model, CreateInstance{0, "3g.40gb", 4}).ok);
    EXPECT_THAT(carry(model, start).why, HasSubstr("drive0 is not attached"));
    ASSERT_TRUE(carry(model, AttachDrive{0, 42}).ok);
    ASSERT_TRUE(carry(model, AttachFunction{0, 42, "acme"}).ok);
    ASSERT_TRUE(carry(model, start).ok);
    EXPECT_THAT(model.running(), ElementsAre(42));
    EXPECT_EQ(model.read({UnitKind::memory, 0, 3}), NodeModel::old_dirt) << "not its slice";
    for (const UnitId unit : {UnitId{UnitKind::memory, 0, 4}, UnitId{UnitKind::drive, 0, 0}, UnitId{UnitKind::vf, 0, 0},
                              UnitId{UnitKind::host, 0, 0}})
        EXPECT_EQ(model.read(unit), 42u);
}

TEST(NodeModel, a_vm_leaves_nothing_on_the_host) {
    NodeModel model{{.gpus = 1}};
    StartTenant start{.lease = 42, .tier = Tier::vm, .gpus = {{.gpu = 0, .start = 0, .size = 8}}};
    ASSERT_TRUE(carry(model, start).ok);
    EXPECT_EQ(model.read({UnitKind::host, 0, 0}), NodeModel::old_dirt);
    start.lease = 43;
    start.gpus[0].size = 4;
    EXPECT_THAT(carry(model, start).why, HasSubstr("has 8 slices")) << "a whole GPU is all of its memory";
}

TEST(NodeModel, nothing_in_use_is_destroyed_detached_or_wiped) {
    NodeModel model{{.gpus = 1, .drives = 1, .functions = 1}};
    StartTenant start = container(42, half);
    start.drives = {0};
    start.functions = {0};
    carry(model, CreateInstance{0, "3g.40gb", 4});
    carry(model, AttachDrive{0, 42});
    carry(model, AttachFunction{0, 42, "acme"});
    ASSERT_TRUE(carry(model, start).ok);
    EXPECT_FALSE(carry(model, DestroyInstance{0, 4}).ok);
    EXPECT_FALSE(carry(model, DetachDrive{0}).ok);
    EXPECT_FALSE(carry(model, DetachFunction{0}).ok);
    EXPECT_FALSE(carry(model, AttachDrive{0, 43}).ok);
    EXPECT_FALSE(carry(model, Wipe{UnitKind::memory, 0, 0, 8}).ok);
    EXPECT_FALSE(carry(model, Wipe{UnitKind::drive, 0, 0, 1}).ok);
    EXPECT_FALSE(carry(model, Wipe{UnitKind::vf, 0, 0, 1}).ok);
    EXPECT_TRUE(carry(model, Wipe{UnitKind::memory, 0, 0, 4}).ok) << "beside it is not in use";
    ASSERT_TRUE(carry(model, StopTenant{42}).ok);
    EXPECT_TRUE(carry(model, StopTenant{42}).ok) << "gone is gone";
    EXPECT_TRUE(carry(model, DestroyInstance{0, 4}).ok);
    EXPECT_TRUE(carry(model, DestroyInstance{0, 4}).ok);
    EXPECT_EQ(model.read({UnitKind::memory, 0, 4}), 42u) << "destroying an instance wipes nothing";
}

TEST(NodeModel, only_a_wipe_removes_contents_and_verify_sees_them) {
    NodeModel model{{.gpus = 1, .drives = 1, .functions = 1}};
    for (const auto& [kind, size] : {std::pair{UnitKind::memory, std::uint8_t{8}},
                                     {UnitKind::drive, std::uint8_t{1}},
                                     {UnitKind::vf, std::uint8_t{1}},
                                     {UnitKind::host, std::uint8_t{1}}}) {
        EXPECT_GT(carry(model, Verify{kind, 0, 0, size, 1}).bytes_residue, 0) << word(kind);
        const OperationResult wiped = carry(model, Wipe{kind, 0, 0, size});
        EXPECT_TRUE(wiped.ok);
        EXPECT_FALSE(wiped.device_identity.empty());
        EXPECT_FALSE(wiped.method.empty());
        const OperationResult verified = carry(model, Verify{kind, 0, 0, size, 1});
        EXPECT_TRUE(verified.ok);
        EXPECT_EQ(verified.bytes_residue, 0) << word(kind);
        EXPECT_EQ(model.read({kind, 0, 0}), 0u);
    }
    EXPECT_FALSE(carry(model, Wipe{UnitKind::memory, 0, 4, 8}).ok) << "past the end";
    EXPECT_FALSE(carry(model, Verify{UnitKind::drive, 1, 0, 1, 1}).ok);
}

TEST(NodeModel, a_wipe_takes_apart_what_nobody_runs_in) {
    NodeModel model{{.gpus = 1}};
    carry(model, CreateInstance{0, "3g.40gb", 4});
    carry(model, CreateInstance{0, "1g.10gb", 0});
    ASSERT_TRUE(carry(model, Wipe{UnitKind::memory, 0, 4, 4}).ok);
    EXPECT_THAT(model.instances(0), ElementsAre(NodeModel::Instance{"1g.10gb", 0, 1}));
}

TEST(NodeModel, a_reboot_ends_tenants_and_instances_and_leaves_memory_as_it_is) {
    NodeModel model{{.gpus = 1}};
    const std::string boot = model.boot_id();
    carry(model, CreateInstance{0, "3g.40gb", 4});
    carry(model, container(42, half));
    model.crash_host();
    EXPECT_NE(model.boot_id(), boot);
    EXPECT_TRUE(model.running().empty());
    EXPECT_TRUE(model.instances(0).empty());
    EXPECT_EQ(model.read({UnitKind::memory, 0, 4}), 42u);
    EXPECT_EQ(model.read({UnitKind::host, 0, 0}), 42u) << "that boot was not measured";
    ASSERT_TRUE(carry(model, Wipe{UnitKind::host, 0, 0, 1}).ok);
    EXPECT_EQ(model.read({UnitKind::host, 0, 0}), 0u);
    EXPECT_EQ(model.read({UnitKind::memory, 0, 4}), 42u);
    model.set_image_good(false);
    EXPECT_FALSE(carry(model, Verify{UnitKind::host, 0, 0, 1, 1}).ok);
}

TEST(NodeModel, faults_do_what_they_say_as_often_as_they_say) {
    NodeModel model{{.gpus = 2}};
    const Wipe wipe{UnitKind::memory, 0, 0, 8};
    model.faults({UnitKind::memory, 0}) = {.fail = 1, .lie = 1, .hang = 1};
    EXPECT_FALSE(model.carry_out({1, wipe})) << "hangs";
    EXPECT_FALSE(carry(model, wipe).ok) << "fails";
    EXPECT_TRUE(carry(model, wipe).ok) << "lies";
    EXPECT_EQ(model.read({UnitKind::memory, 0, 0}), NodeModel::old_dirt);
    EXPECT_TRUE(carry(model, wipe).ok);
    EXPECT_EQ(model.read({UnitKind::memory, 0, 0}), 0u);

    model.set_lost(1, true);
    EXPECT_THAT(carry(model, CreateInstance{1, "3g.40gb", 0}).why, HasSubstr("fallen off the bus"));
    EXPECT_FALSE(carry(model, Verify{UnitKind::memory, 1, 0, 8, 1}).ok);
    EXPECT_EQ(model.read({UnitKind::memory, 1, 0}), NodeModel::old_dirt) << "what it holds stays there";
    EXPECT_TRUE(carry(model, CreateInstance{0, "3g.40gb", 4}).ok);

    model.fail_starts(1);
    EXPECT_FALSE(carry(model, container(42, half)).ok);
    EXPECT_TRUE(carry(model, container(42, half)).ok);
    model.fail_stops(1);
    EXPECT_FALSE(carry(model, StopTenant{42}).ok);
    EXPECT_THAT(model.running(), ElementsAre(42));
    model.hang_stops(1);
    EXPECT_FALSE(model.carry_out({1, StopTenant{42}}));
    EXPECT_TRUE(carry(model, StopTenant{42}).ok);

    const Duration before = model.duration({1, wipe});
    model.set_slowness(3000);
    EXPECT_EQ(model.duration({1, wipe}).ms, 3 * before.ms);
    model.clear_faults();
    EXPECT_EQ(model.duration({1, wipe}), before);
}

TEST(NodeModel, the_inventory_says_what_is_there_and_how_it_is_known) {
    NodeModel model{{.gpus = 3,
                     .drives = 2,
                     .functions = 1,
                     .capabilities = {Capability::mig, Capability::rdma},
                     .versions = {{Component::driver, "580.159.04"}},
                     .cpu = 192,
                     .nvlink = NvLink::fabric}};
    ASSERT_EQ(model.inventory().gpus.size(), 1u);
    EXPECT_EQ(model.inventory().gpus[0].count, 3);
    carry(model, CreateInstance{1, "3g.40gb", 4});
    const GpuNodeStatus status = model.inventory();
    ASSERT_EQ(status.gpus.size(), 3u) << "a GPU that is cut stands alone, and the order is that of the indexes";
    EXPECT_TRUE(status.gpus[0].slices.empty());
    ASSERT_EQ(status.gpus[1].slices.size(), 1u);
    EXPECT_EQ(status.gpus[1].slices[0].profile, "3g.40gb");
    ASSERT_EQ(status.capabilities.size(), 2u);
    EXPECT_EQ(status.capabilities[0].grade, Grade::simulated);
    EXPECT_FALSE(status.capabilities[0].verifiedAt) << "the node's word alone";
    EXPECT_EQ(status.drives.size(), 2u);
    EXPECT_NE(status.drives[0].serial, status.drives[1].serial);
    EXPECT_EQ(status.functions.size(), 1u);
    EXPECT_EQ(status.nvlink, NvLink::fabric);
    EXPECT_EQ(status.versions.size(), 1u);
}

TEST(NodeModel, survives_as_bytes_and_damage_is_noticed) {
    NodeModel model{{.gpus = 2, .drives = 1, .functions = 1, .capabilities = {Capability::mig}}};
    carry(model, CreateInstance{0, "3g.40gb", 4});
    carry(model, container(42, half));
    carry(model, Wipe{UnitKind::memory, 1, 0, 8});
    model.faults({UnitKind::drive, 0}).lie = 3;
    model.set_slowness(500);
    const std::string bytes = model.to_bytes();
    const auto read = NodeModel::from_bytes(bytes);
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(*read, model);
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_FALSE(NodeModel::from_bytes(bytes.substr(0, cut)));
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        std::string bad = bytes;
        bad[at] = static_cast<char>(bad[at] ^ 1);
        EXPECT_FALSE(NodeModel::from_bytes(bad)) << at;
    }
}

}  // namespace
}  // namespace bulkhead
