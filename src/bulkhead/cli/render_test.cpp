// `bulkhead render` against a fleet that is up, as a person uses it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "bulkhead/cli/first_steps.hpp"
#include "bulkhead/cli/live_fleet_test.hpp"
#include "bulkhead/hw/program/program.hpp"
#include "bulkhead/render/simulated_subnet_test.hpp"

namespace bulkhead::cli {
namespace {

using testing::HasSubstr;

TEST(Render, a_lease_of_tier_vm_is_a_domain_that_libvirt_accepts_and_nobody_elses) {
    Fleet fleet;
    ASSERT_NO_FATAL_FAILURE(fleet.start());
    ASSERT_TRUE(within(20s, [&] { return fleet.say({"fleet"}).out.find("32 available") != std::string::npos; }));
    ASSERT_EQ(fleet.say({"apply", "-f", (fleet.data() / "first-steps.yaml").string()}).status, 0);
    const std::string own_kernel = fleet.folder() / "own-kernel.yaml";
    std::ofstream{own_kernel} << "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: vault}\n"
                                 "spec: {tenant: harbor-bank, gpu: {count: 1}, isolation: {tier: vm}}\n";
    ASSERT_EQ(fleet.say({"delete", "workload", "fraud-scoring"}).status, 0);  // for room
    const auto applied = fleet.say({"apply", "-f", own_kernel});
    ASSERT_EQ(applied.status, 0) << applied.out;
    const auto lease_of = [&](const std::string& work) {
        std::string lease;
        within(120s, [&] {  // a cycle that finds nothing to do comes back after a minute
            lease = word_after(fleet.say({"get", "workload", work, "-o", "yaml"}).out, "lease:");
            return !lease.empty();
        });
        return lease;
    };
    const std::string lease = lease_of("vault"), other = lease_of("pretrain");
    ASSERT_FALSE(lease.empty() || other.empty()) << fleet.say({"queue"}).out;
    const std::string node = word_after(fleet.say({"get", "lease", lease, "-o", "yaml"}).out, "node: node-");
    const auto domain = fleet.say({"render", "libvirt", lease, "--node", "node-" + node});
    ASSERT_EQ(domain.status, 0) << domain.out;
    EXPECT_THAT(domain.out, HasSubstr("<name>bulkhead-" + lease + "</name>"));
    EXPECT_THAT(domain.out, HasSubstr("<hostdev mode='subsystem' type='pci' managed='no'>"));
    EXPECT_THAT(domain.out, HasSubstr("<numatune>"));
    EXPECT_THAT(domain.out, HasSubstr("vault of harbor-bank, image default"));
    if (::access("/usr/bin/virt-xml-validate", X_OK) == 0 && ::access("/usr/bin/xmllint", X_OK) == 0) {
        const std::string file = fleet.folder() / "domain.xml";
        std::ofstream{file} << domain.out;
        const auto valid =
            program::run({"/usr/bin/virt-xml-validate", file, "domain"}, {{"PATH", "/usr/bin:/bin"}}, "", 30s);
        ASSERT_TRUE(valid) << valid.error().what;
        EXPECT_EQ(valid->status, 0) << valid->output;
    }

    const auto shared = fleet.say({"render", "libvirt", other});
    EXPECT_EQ(shared.status, 3) << shared.out;
    EXPECT_THAT(shared.out, HasSubstr("no domain of libvirt's"));
    EXPECT_EQ(fleet.say({"render", "libvirt", lease, "--node", "node-99"}).status, 1);
    for (const char* file : {"nccl", "nccl-env"}) {
        const auto nccl = fleet.say({"render", file, lease});
        EXPECT_NE(nccl.status, 0) << nccl.out;
        EXPECT_THAT(nccl.out, HasSubstr("the guest's kernel decides"))
            << "no bus id of the host's is one of the guest's";
    }

    // Whose lease it is not learns nothing; whose it is may not read nodes.
    const auto as = [&](const std::string& tenant, const std::string& which) {
        const auto made =
            fleet.say({"token", "create", "--role", "tenant-admin", "--tenant", tenant, "--subject", "test"});
        EXPECT_EQ(made.status, 0) << made.out;
        const std::string file = fleet.folder() / (tenant + ".token");
        std::ofstream{file} << made.out.substr(0, made.out.find('\n') + 1);
        ::chmod(file.c_str(), 0600);
        return fleet.say({"render", "libvirt", which, "--node", "node-" + node, "--token-file", file});
    };
    const auto foreign = as("lab", lease), ghost = fleet.say({"render", "libvirt", "lease-0123456789ab"});
    EXPECT_EQ(foreign.status, 1) << foreign.out;
    EXPECT_EQ(ghost.status, 1) << ghost.out;
    EXPECT_EQ(as("harbor-bank", lease).status, 3);
}

TEST(Render, partitions_lie_in_the_folder_itself_and_nothing_of_those_that_are_no_more) {
    Fleet fleet;
    ASSERT_NO_FATAL_FAILURE(fleet.start());
    const std::filesystem::path folder = fleet.folder() / "opensm";
    std::filesystem::create_directories(folder);
    for (const char* name : {"0x0123.guids", "opensm.conf"}) std::ofstream{folder / name} << "before\n";
    const auto rendered = fleet.say({"render", "partitions", "-o", folder.string()});
    ASSERT_EQ(rendered.status, 0) << rendered.out;
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{folder}) names.insert(entry.path().filename());
    EXPECT_THAT(names, testing::ElementsAre("opensm.conf", "partitions.conf"));
}

// From manifests to the tables of adapters: the fleet draws keys, the file is written, and the real OpenSM reads it.
TEST(Render, the_subnet_manager_keeps_tenants_apart_by_what_the_fleet_drew) {
    if (const std::string missing = render::SimulatedSubnet::missing(); !missing.empty()) GTEST_SKIP() << missing;
    Fleet fleet;
    ASSERT_NO_FATAL_FAILURE(fleet.start());
    // The demo's own policy, on another fabric.
    std::string policy = first_policy({.nodes = 2, .gpus = 2, .model = "h100-80gb-sxm5"});
    policy = policy.substr(0, policy.find("  fabric:")) +
             "  fabric: {kind: infiniband, pool: 10.128.0.0/9, tenantPrefix: 20, partitionKeys: {first: 256, last: "
             "32000}}\n";
    const std::string policy_file = fleet.folder() / "policy.yaml";
    std::ofstream{policy_file} << policy;
    const auto declared = fleet.say({"apply", "-f", policy_file});
    ASSERT_EQ(declared.status, 0) << declared.out;
    const std::string work = fleet.folder() / "work.yaml";
    std::ofstream file{work};
    for (const char* tenant : {"aurora", "borealis"})
        file << fmt::format(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {0}}}\n"
            "spec: {{class: frontier-training, quota: {{guarantee: 2}}}}\n---\n"
            "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {{name: train-{0}}}\n"
            "spec: {{tenant: {0}, tasks: 2, gpu: {{count: 1}}, network: {{rdma: true}}}}\n---\n",
            tenant);
    file.close();
    const auto applied = fleet.say({"apply", "-f", work});
    ASSERT_EQ(applied.status, 0) << applied.out;

    const std::filesystem::path folder = fleet.folder() / "opensm";
    const std::regex member{"(0x[0-9a-f]{16})=full"}, list{"0x[0-9a-f]{4}\\.guids"};
    std::string conf;
    std::vector<std::uint64_t> guids;
    ASSERT_TRUE(within(40s,
                       [&] {
                           if (fleet.say({"render", "partitions", "-o", folder.string()}).status != 0) return false;
                           conf = slurp(folder / "partitions.conf");
                           guids.clear();
                           for (std::sregex_iterator it{conf.begin(), conf.end(), member}, end; it != end; ++it)
                               guids.push_back(std::stoull((*it)[1], nullptr, 16));
                           return guids.size() == 4;
                       }))
        << conf << fleet.say({"queue"}).out;
    guids.push_back(0x248a0703009c0001);  // a machine's own port, which is no tenant's
    const render::SimulatedSubnet subnet{guids};
    EXPECT_THAT(subnet.sweep(conf), testing::Not(HasSubstr("PARSE")));
    std::map<std::uint64_t, std::uint16_t> given;
    for (std::size_t port = 0; port < 4; ++port) {
        const auto keys = subnet.keys(port);
        ASSERT_THAT(keys, testing::ElementsAre(testing::Gt(0x8000), 0x7FFF)) << conf;
        given[subnet.guid(port)] = keys[0];
    }
    EXPECT_THAT(subnet.keys(4), testing::ElementsAre(0x7FFF));

    // The lists beside the file say the same: one for each key, of two ports each, and no port on both.
    std::map<std::uint16_t, std::set<std::uint64_t>> listed;
    for (const auto& entry : std::filesystem::directory_iterator{folder}) {
        const std::string name = entry.path().filename();
        if (!std::regex_match(name, list)) continue;
        std::ifstream lines{entry.path()};
        for (std::string line; std::getline(lines, line);)
            listed[static_cast<std::uint16_t>(0x8000 | std::stoul(name, nullptr, 16))].insert(
                std::stoull(line, nullptr, 16));
    }
    EXPECT_EQ(listed.size(), 2u);
    for (const auto& [key, ports] : listed) {
        EXPECT_EQ(ports.size(), 2u);
        for (const std::uint64_t port : ports) EXPECT_EQ(given[port], key) << port;
    }
}

}  // namespace
}  // namespace bulkhead::cli
