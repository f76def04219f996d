// What container runtimes are told, read back as they read it.
#include "bulkhead/hw/container/oci.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>

#include "bulkhead/hw/container/hierarchies.hpp"

namespace bulkhead::container {

namespace {

namespace json = boost::json;

TenantSpec container_spec() {
    TenantSpec spec;
    spec.lease = 7;
    spec.tenant = "acme";
    spec.tier = Tier::container;
    spec.command = {"/bin/true"};
    spec.environment = {{"A", "1"}};
    spec.ids = {300'000, 65'536};
    spec.devices = {{"/dev/nvidia0", 'c', 195, 0}, {"/dev/nvidiactl", 'c', 195, 255}};
    spec.mounts = {{"/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1"}};
    spec.limits = {.memory_bytes = 1 << 30, .cpu_thousandths = 1'500, .pids = 100, .log_bytes = 1 << 20};
    return spec;
}

json::value config_of(const TenantSpec& spec) {
    const std::string bare =
        oci_config(spec, {.root = "/images/a", .cgroup = "/bulkhead/lease-7/tenant", .shared = {}});
    return json::parse(with_cdi(bare, cdi_text(leased_device(spec))).value());
}

TEST(Cdi, one_device_per_lease_in_the_words_of_the_specification) {
    const LeasedDevice device{7, {{"/dev/nvidia0", 'c', 195, 0}}, {{"/a", "/b"}}, {{"X", "y"}}};
    EXPECT_EQ(
        cdi_text(device),
        R"({"cdiVersion":"0.6.0","kind":"bulkhead.dev/gpu","devices":[{"name":"lease-7","containerEdits":{)"
        R"("deviceNodes":[{"path":"/dev/nvidia0","type":"c","major":195,"minor":0,"fileMode":438,"permissions":"rw"}],)"
        R"("mounts":[{"hostPath":"/a","containerPath":"/b","options":["ro","nosuid","nodev","rbind"]}],)"
        R"("env":["X=y"]}}]})");
    EXPECT_EQ(cdi_file_name(7), "bulkhead.dev-gpu_lease-7.json");
    EXPECT_EQ(cdi_device_name(7), "bulkhead.dev/gpu=lease-7");
    EXPECT_TRUE(LeasedDevice{.lease = 7}.empty());
}

TEST(Cdi, parts_a_lease_does_not_have_are_not_mentioned) {
    const std::string text = cdi_text({7, {{"/dev/nvidia0", 'c', 195, 0}}, {}, {}});
    EXPECT_FALSE(text.contains("mounts"));
    EXPECT_FALSE(text.contains("env"));
}

TEST(Cdi, text_that_is_none_is_refused) {
    const std::string config = oci_config(container_spec(), {});
    for (const char* bad :
         {"", "{}", "[]", R"({"devices":[{}]})", R"({"devices":[{"containerEdits":{"deviceNodes":[{}]}}]})"})
        EXPECT_FALSE(with_cdi(config, bad)) << bad;
}

TEST(OciConfig, devices_are_those_of_the_lease_and_all_others_are_denied) {
    const json::value config = config_of(container_spec());
    const json::array& rules = config.at("linux").at("resources").at("devices").as_array();
    ASSERT_EQ(rules.size(), 3u);
    EXPECT_FALSE(rules[0].at("allow").as_bool()) << "everything is denied first";
    EXPECT_EQ(rules[1].at("major").to_number<int>(), 195);
    EXPECT_EQ(rules[2].at("minor").to_number<int>(), 255);
    EXPECT_EQ(rules[2].at("access").as_string(), "rw");
    const json::array& nodes = config.at("linux").at("devices").as_array();
    ASSERT_EQ(nodes.size(), 2u);
    EXPECT_EQ(nodes[0].at("path").as_string(), "/dev/nvidia0");
    EXPECT_EQ(config.at("mounts").as_array().back().at("destination").as_string(), "/usr/lib/libcuda.so.1");
}

TEST(OciConfig, nothing_is_granted) {
    const json::value config = config_of(container_spec());
    for (const auto& [name, capabilities] : config.at("process").at("capabilities").as_object())
        EXPECT_TRUE(capabilities.as_array().empty()) << name;
    EXPECT_TRUE(config.at("process").at("noNewPrivileges").as_bool());
    EXPECT_FALSE(config.at("process").at("terminal").as_bool());
    EXPECT_TRUE(config.at("root").at("readonly").as_bool());
    EXPECT_EQ(config.at("linux").at("uidMappings").at(0).at("hostID").to_number<std::uint32_t>(), 300'000u);
    EXPECT_EQ(config.at("linux").at("seccomp").at("defaultAction").as_string(), "SCMP_ACT_ERRNO");
    std::vector<std::string> spaces;
    for (const json::value& space : config.at("linux").at("namespaces").as_array())
        spaces.emplace_back(space.at("type").as_string());
    std::ranges::sort(spaces);
    EXPECT_EQ(spaces, (std::vector<std::string>{"cgroup", "ipc", "mount", "network", "pid", "user", "uts"}));
}

TEST(OciConfig, the_hosts_network_is_an_exception_that_must_be_asked_for) {
    TenantSpec spec = container_spec();
    spec.network = Network::host;
    const json::value config = config_of(spec);
    for (const json::value& space : config.at("linux").at("namespaces").as_array())
        EXPECT_NE(space.at("type").as_string(), "network");
}

TEST(OciConfig, a_prepared_network_is_joined_and_its_own_sysfs_shown) {
    TenantSpec spec = container_spec();
    spec.network = Network::prepared;
    spec.network_space = "/run/bulkhead/net/lease-7";
    const json::value config = config_of(spec);
    std::vector<std::string> joined, shown;
    for (const json::value& space : config.at("linux").at("namespaces").as_array())
        if (space.at("type").as_string() == "network") joined.emplace_back(space.at("path").as_string());
    for (const json::value& mount : config.at("mounts").as_array())
        if (mount.at("destination").as_string() == "/sys") shown.emplace_back(mount.at("source").as_string());
    EXPECT_EQ(joined, std::vector<std::string>{"/run/bulkhead/net/lease-7"});
    EXPECT_EQ(shown, std::vector<std::string>{"/run/bulkhead/net/lease-7.sys"});
}

TEST(OciConfig, lists_of_rdma_files_that_are_everybodys_are_hidden) {
    const json::value config = config_of(container_spec());
    std::vector<std::string> hidden;
    for (const json::value& path : config.at("linux").at("maskedPaths").as_array())
        hidden.emplace_back(path.as_string());
    for (const char* list : {"/sys/class/infiniband_verbs", "/sys/devices/virtual/infiniband_verbs",
                             "/sys/class/infiniband_mad", "/sys/devices/virtual/infiniband_mad"})
        EXPECT_NE(std::ranges::find(hidden, list), hidden.end()) << list;
}

TEST(OciConfig, limits_are_those_of_the_lease) {
    const json::value config = config_of(container_spec());
    const json::value& resources = config.at("linux").at("resources");
    EXPECT_EQ(resources.at("memory").at("limit").to_number<std::int64_t>(), 1 << 30);
    EXPECT_EQ(resources.at("pids").at("limit").to_number<std::int64_t>(), 100);
    EXPECT_EQ(resources.at("cpu").at("quota").to_number<std::int64_t>(), 150'000);
}

TEST(HierarchiesOfMountinfo, every_layout_is_understood) {
    const Hierarchies v1 = hierarchies_of(
        "30 20 0:25 / /sys/fs/cgroup ro - tmpfs tmpfs rw\n"
        "31 30 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
        "32 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "33 30 0:28 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n"
        "34 30 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
        "35 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n");
    EXPECT_EQ(v1.of("cpu"), "/sys/fs/cgroup/cpu,cpuacct");
    EXPECT_EQ(v1.of("devices"), "/sys/fs/cgroup/devices");
    EXPECT_EQ(v1.v2, "/sys/fs/cgroup/unified");
    EXPECT_EQ(v1.of("pids"), "") << "in neither";
    EXPECT_EQ(v1.ours().size(), 4u);
    EXPECT_EQ(v1.all().size(), 5u);
    const Hierarchies v2 = hierarchies_of("29 23 0:25 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
    EXPECT_EQ(v2.v2, "/sys/fs/cgroup");
    EXPECT_TRUE(v2.v1.empty());
    for (const char* odd : {"", "\n\n", "1 2 3", "- - -", "1 2 3 4 5 6 - cgroup"})
        EXPECT_TRUE(hierarchies_of(odd).all().empty()) << odd;
}

}  // namespace

}  // namespace bulkhead::container
