// `bulkhead render` against a fleet that is up, as a person uses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "bulkhead/cli/live_fleet_test.hpp"
#include "bulkhead/hw/program/program.hpp"

namespace bulkhead::cli {
namespace {

using testing::HasSubstr;

TEST(Render, a_lease_of_tier_vm_is_a_domain_that_libvirt_accepts_and_nobody_elses) {
    Fleet fleet;
    ASSERT_NO_FATAL_FAILURE(fleet.start());
    ASSERT_TRUE(within(20s, [&] { return fleet.say({"fleet"}).out.find("32 available") != std::string::npos; }));
    ASSERT_EQ(fleet.say({"apply", "-f", (fleet.data() / "first-steps.yaml").string()}).status, 0);
    const auto lease_of = [&](const std::string& work) {
        std::string lease;
        within(20s, [&] {
            lease = word_after(fleet.say({"get", "workload", work, "-o", "yaml"}).out, "lease:");
            return !lease.empty();
        });
        return lease;
    };
    const std::string lease = lease_of("fraud-scoring"), other = lease_of("pretrain");
    ASSERT_FALSE(lease.empty() || other.empty()) << fleet.say({"queue"}).out;
    const std::string node = word_after(fleet.say({"get", "lease", lease, "-o", "yaml"}).out, "node: node-");
    const auto domain = fleet.say({"render", "libvirt", lease, "--node", "node-" + node});
    ASSERT_EQ(domain.status, 0) << domain.out;
    EXPECT_THAT(domain.out, HasSubstr("<name>bulkhead-" + lease + "</name>"));
    EXPECT_THAT(domain.out, HasSubstr("<hostdev mode='subsystem' type='pci' managed='no'>"));
    EXPECT_THAT(domain.out, HasSubstr("<numatune>"));
    EXPECT_THAT(domain.out, HasSubstr("fraud-scoring of harbor-bank, image default"));
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

}  // namespace
}  // namespace bulkhead::cli
