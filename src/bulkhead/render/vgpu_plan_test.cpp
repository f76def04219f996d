#include "bulkhead/render/vgpu_plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace bulkhead::render {

namespace {

constexpr std::string_view listed =
    "ID    : vGPU Name\n1054  : NVIDIA H100-1-10C\n1055  : NVIDIA H100-1-10CME\n1056  : NVIDIA H100-3-40C\n";

GpuNode host_with_manager() {
    GpuNode node;
    node.metadata.name = "node-1";
    node.status.capabilities = {
        {.name = Capability::virtual_machines}, {.name = Capability::iommu_groups}, {.name = Capability::mig_vgpu}};
    node.status.versions = {{Component::driver, "580.159.04"}, {Component::vgpu_manager, "580.159.04"}};
    return node;
}

VgpuHost newer_host(const GpuNode& node) {
    return {.node = node,
            .kernel = "6.8.0-60-generic",
            .gpu_model = "h100-80gb-sxm5",
            .mig_is_on = true,
            .instances = {"3g.40gb", "1g.10gb+me"},
            .functions = {{.address = {0, 0x3b, 0, 4}, .creatable = std::vector<VgpuType>{}, .current = 1056},
                          {.address = {0, 0x3b, 0, 5}, .creatable = *parse_creatable_types(listed)}}};
}

Result<VgpuPlan> planned(const VgpuHost& host, const std::string& profile = "3g.40gb") {
    return plan_vgpu(host, {.profile = profile, .machine = "bh-1"}, {}, Instant{1'790'000'000'000});
}

void expect_refused(const VgpuHost& host, std::string_view why, const std::string& profile = "3g.40gb") {
    const auto refused = planned(host, profile);
    ASSERT_FALSE(refused) << why;
    EXPECT_EQ(refused.error().code, Code::conflict);
    EXPECT_NE(refused.error().what.find(why), std::string::npos) << refused.error().what;
}

}  // namespace

TEST(VgpuPlan, on_a_newer_host_sets_the_type_of_a_free_function_and_clears_it_in_the_end) {
    const GpuNode node = host_with_manager();
    const auto plan = planned(newer_host(node));
    ASSERT_TRUE(plan) << plan.error().what;
    const std::string file = "/sys/bus/pci/devices/0000:3b:00.5/nvidia/current_vgpu_type";
    EXPECT_EQ(plan->make, (std::vector<SysfsWrite>{{file, "1056"}}));
    EXPECT_EQ(plan->take_apart, (std::vector<SysfsWrite>{{file, "0"}}));
    DomainSpec spec;
    add_vgpu(spec, *plan);
    EXPECT_EQ(spec.devices, (std::vector<PciAddress>{{0, 0x3b, 0, 5}}));
    EXPECT_EQ(planned(newer_host(node), "1g.10gb+me")->type.id, "1055");
}

TEST(VgpuPlan, on_an_older_host_makes_a_mediated_device_whose_uuid_can_be_computed_again) {
    const GpuNode node = host_with_manager();
    VgpuHost host = newer_host(node);
    host.functions = {
        {.address = {0, 0x3b, 0, 4}, .mediated = std::vector<VgpuType>{{"nvidia-468", "GRID H100-3-40C"}}}};
    const auto plan = planned(host);
    ASSERT_TRUE(plan) << plan.error().what;
    EXPECT_EQ(plan->framework, VgpuFramework::mediated);
    EXPECT_EQ(plan->make.front().path, "/sys/class/mdev_bus/0000:3b:00.4/mdev_supported_types/nvidia-468/create");
    EXPECT_EQ(plan->make.front().text, planned(host)->mediated);
    EXPECT_EQ(plan->take_apart.front().path, "/sys/bus/mdev/devices/" + plan->mediated + "/remove");
    DomainSpec spec;
    add_vgpu(spec, *plan);
    EXPECT_EQ(spec.mediated, std::vector<std::string>{plan->mediated});
}

TEST(VgpuPlan, is_refused_where_host_or_version_cannot_run_it) {
    const GpuNode good = host_with_manager();
    {
        GpuNode node = good;
        node.status.versions.pop_back();
        expect_refused(newer_host(node), "no vGPU manager");
    }
    {
        GpuNode node = good;
        node.status.versions.back().version = "535.104.05";
        expect_refused(newer_host(node), "is open in vgpu-manager 535.104.05");
    }
    {
        GpuNode node = good;
        node.status.capabilities.erase(node.status.capabilities.begin() + 1);
        expect_refused(newer_host(node), "IOMMU groups");
    }
    const auto changed = [&](auto change) {
        VgpuHost host = newer_host(good);
        change(host);
        return host;
    };
    expect_refused(changed([](VgpuHost& host) { host.mig_is_on = false; }), "MIG mode is off");
    expect_refused(changed([](VgpuHost& host) { host.functions.clear(); }), "no virtual functions");
    expect_refused(changed([](VgpuHost& host) { host.functions = {{.address = {0, 0x3b, 0, 4}}}; }),
                   "kernel 6.8.0-60-generic with driver 580.159.04 shows neither");
    expect_refused(changed([](VgpuHost& host) { host.functions.back().current = 1054; }),
                   "no virtual function is free");
    expect_refused(changed([](VgpuHost& host) { host.gpu_model = "nvidia-l4"; }), "nvidia-l4 is no board");
    expect_refused(newer_host(good), "no instance 2g.20gb is cut", "2g.20gb");
    expect_refused(newer_host(good), "offers a type for 2g.20gb; they offer NVIDIA H100-1-10C", "2g.20gb");
    expect_refused(newer_host(good), "no vGPU stands on a profile like 1c.3g.40gb", "1c.3g.40gb");
}

TEST(VgpuPlan, a_refusal_names_every_reason_at_once) {
    GpuNode node;
    node.metadata.name = "bare";
    const auto refused = planned({.node = node, .kernel = "6.1.0", .gpu_model = "h100-80gb-sxm5"});
    ASSERT_FALSE(refused);
    for (const std::string_view why :
         {"vGPU manager", "virtual machines", "IOMMU", "MIG mode", "virtual functions", "no instance"})
        EXPECT_NE(refused.error().what.find(why), std::string::npos) << why << ": " << refused.error().what;
}

TEST(VgpuTypes, a_name_says_on_which_instance_it_stands) {
    EXPECT_EQ(shape_of("NVIDIA H100-3-40C"), (VgpuShape{3, 40, false}));
    EXPECT_EQ(shape_of("GRID A100-1-5CME"), (VgpuShape{1, 5, true}));
    EXPECT_EQ(shape_of("GRID A100X-3-20C"), (VgpuShape{3, 20, false}));
    for (const std::string_view other :
         {"NVIDIA A100-20C", "NVIDIA L40S-48Q", "NVIDIA L40S-1B", "", "-", "--C", "A-0-5C", "A-9-5C", "A-1-C"})
        EXPECT_FALSE(shape_of(other)) << other;
}

TEST(VgpuTypes, a_list_that_is_none_is_refused_and_one_that_is_printed_is_read_back) {
    EXPECT_FALSE(parse_creatable_types("x : y\n"));
    EXPECT_FALSE(parse_creatable_types("12\n"));
    EXPECT_TRUE(parse_creatable_types("")->empty());
    EXPECT_TRUE(rc::check([] {
        const auto ids = *rc::gen::container<std::vector<unsigned>>(rc::gen::inRange(0U, 100'000U));
        std::string text = "ID : vGPU Name\n";
        for (const unsigned id : ids) text += fmt::format("{}  : NVIDIA H100-{}-40C\n", id, id % 8);
        const auto types = parse_creatable_types(text);
        RC_ASSERT(types && types->size() == ids.size());
        for (std::size_t i = 0; i < ids.size(); ++i) RC_ASSERT((*types)[i].id == std::to_string(ids[i]));
    }));
}

}  // namespace bulkhead::render
