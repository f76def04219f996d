#include "bulkhead/hw/container/spec.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>

#include "bulkhead/hw/container/record.hpp"

namespace bulkhead::container {

namespace {

TenantSpec good_spec() {
    TenantSpec spec;
    spec.lease = 7;
    spec.tenant = "acme";
    spec.command = {"/usr/bin/python3", "train.py"};
    spec.environment = {{"CUDA_VISIBLE_DEVICES", "MIG-1"}};
    spec.ids = {200'000'000, 65'536};
    spec.devices = {{"/dev/nvidia0", 'c', 195, 0}};
    spec.mounts = {{"/opt/driver", "/usr/local/nvidia"}};
    spec.limits = {.memory_bytes = 1 << 30, .cpu_thousandths = 4'000, .pids = 1'024, .log_bytes = 1 << 20};
    return spec;
}

TEST(TenantSpec, each_rule_refuses_by_the_lease_the_number_and_the_next_step) {
    struct Row {
        std::string_view says;
        std::function<void(TenantSpec&)> spoil;
        std::string_view word;
    };
    const Row rows[] = {
        {"no lease", [](auto& s) { s.lease = 0; }, "above 0"},
        {"no tenant", [](auto& s) { s.tenant.clear(); }, "0 characters"},
        {"a VM is no process", [](auto& s) { s.tier = Tier::vm; }, "vm"},
        {"nor is a confidential one", [](auto& s) { s.tier = Tier::confidential_vm; }, "confidential-vm"},
        {"root", [](auto& s) { s.ids = {0, 1}; }, "65536"},
        {"an account of the host", [](auto& s) { s.ids = {1'000, 1}; }, "1000"},
        {"an empty range", [](auto& s) { s.ids.count = 0; }, "0 more"},
        {"a range past the end", [](auto& s) { s.ids = {2'147'483'000, 65'536}; }, "2147483647"},
        {"no command", [](auto& s) { s.command.clear(); }, "no command"},
        {"a command that is empty", [](auto& s) { s.command = {""}; }, "neither"},
        {"a command from somewhere", [](auto& s) { s.command = {"bin/sh"}; }, "absolute"},
        {"a command that climbs", [](auto& s) { s.command = {"/usr/../bin/sh"}; }, "absolute"},
        {"a NUL in an argument", [](auto& s) { s.command.emplace_back("a\0b", 3); }, "NUL"},
        {"a variable without a name", [](auto& s) { s.environment = {{"", "x"}}; }, "''"},
        {"a name with '='", [](auto& s) { s.environment = {{"A=B", "x"}}; }, "'A=B'"},
        {"too many bytes", [](auto& s) { s.command.emplace_back(200'000, 'x'); }, "131072"},
        {"a device elsewhere", [](auto& s) { s.devices[0].path = "/etc/passwd"; }, "below /dev"},
        {"a device that climbs", [](auto& s) { s.devices[0].path = "/dev/../etc"; }, "below /dev"},
        {"all of /dev", [](auto& s) { s.devices[0].path = "/dev"; }, "below /dev"},
        {"a place in /dev", [](auto& s) { s.devices[0].path = "/dev/shm/x"; }, "place of its own"},
        {"a pipe", [](auto& s) { s.devices[0].type = 'p'; }, "'p'"},
        {"a major past the end", [](auto& s) { s.devices[0].major = 4'096; }, "4096:0"},
        {"one device twice", [](auto& s) { s.devices.push_back(s.devices[0]); }, "twice"},
        {"null, which is always there", [](auto& s) { s.devices = {{"/dev/null", 'c', 1, 3}}; }, "twice"},
        {"a mount over /proc", [](auto& s) { s.mounts[0].target = "/proc/driver"; }, "/proc"},
        {"a mount over /dev", [](auto& s) { s.mounts[0].target = "/dev"; }, "/dev"},
        {"a mount over the root", [](auto& s) { s.mounts[0].target = "/"; }, "'/'"},
        {"a relative mount", [](auto& s) { s.mounts[0].source = "driver"; }, "'driver'"},
        {"a namespace without a prepared network", [](auto& s) { s.network_space = "/run/x"; }, "'none'"},
        {"a prepared network without a namespace", [](auto& s) { s.network = Network::prepared; }, "'prepared'"},
        {"a namespace that climbs",
         [](auto& s) {
             s.network = Network::prepared;
             s.network_space = "/run/../x";
         },
         "/run/../x"},
        {"an RDMA device that is two lines", [](auto& s) { s.limits.rdma = {{"mlx5_2\nmlx5_3", 1, 1}}; },
         "RDMA device"},
        {"an RDMA device of no use", [](auto& s) { s.limits.rdma = {{"mlx5_2", 0, 1}}; }, "0 handles"},
        {"something to hide that climbs", [](auto& s) { s.hidden = {"/usr/../etc/shadow"}; }, "hide"},
        {"two mounts in one place", [](auto& s) { s.mounts.push_back(s.mounts[0]); }, "share the target"},
        {"a relative work directory", [](auto& s) { s.work_dir = "work"; }, "'work'"},
        {"an image for a process", [](auto& s) { s.rootfs = "/images/a"; }, "container tier alone"},
        {"no memory", [](auto& s) { s.limits.memory_bytes = 0; }, "0 bytes"},
        {"no CPU", [](auto& s) { s.limits.cpu_thousandths = 0; }, "0 thousandths"},
        {"no processes", [](auto& s) { s.limits.pids = 1; }, "1 processes"},
        {"no log", [](auto& s) { s.limits.log_bytes = 0; }, "0 bytes"},
    };
    EXPECT_TRUE(check(good_spec()));
    for (const Row& row : rows) {
        TenantSpec spec = good_spec();
        row.spoil(spec);
        const Result<> held = check(spec);
        ASSERT_FALSE(held) << row.says;
        EXPECT_TRUE(held.error().what.starts_with("lease ")) << held.error().what;
        EXPECT_TRUE(held.error().what.contains(row.word)) << row.says << ": " << held.error().what;
        EXPECT_FALSE(held.error().remedy.empty()) << row.says;
    }
}

RC_GTEST_PROP(Record, a_spec_is_read_as_it_was_written, ()) {
    TenantSpec spec = good_spec();
    spec.lease = *rc::gen::inRange<std::int64_t>(1, INT64_MAX);
    spec.command = *rc::gen::arbitrary<std::vector<std::string>>();
    spec.environment = *rc::gen::arbitrary<Environment>();
    spec.work_dir = *rc::gen::arbitrary<std::string>();
    spec.tier = *rc::gen::element(Tier::process, Tier::container);
    spec.network = *rc::gen::element(Network::none, Network::host, Network::prepared);
    spec.network_space = *rc::gen::arbitrary<std::string>();
    spec.limits.rdma.push_back({*rc::gen::arbitrary<std::string>(), *rc::gen::arbitrary<std::uint32_t>(), 7});
    spec.devices.push_back({"/dev/x", 'b', *rc::gen::inRange(0U, 4'096U), *rc::gen::arbitrary<std::uint32_t>()});
    RC_ASSERT(spec_of(record_of(spec)).value() == spec);
}

TEST(Record, an_outcome_is_read_as_it_was_written) {
    const Outcome rows[] = {
        {},
        {Outcome::State::failed, {}, {Code::denied, "no", "ask \"nicely\""}},
        {Outcome::State::exited, {3, 0, 0, {1'800'000'000'000}}, {}},
        {Outcome::State::exited, {0, 9, 2, {1}}, {}},
    };
    for (const Outcome& row : rows) EXPECT_EQ(outcome_of(record_of(row)).value(), row);
}

TEST(Record, what_does_not_read_is_damage) {
    for (const char* text : {"", "{}", "[]", "{\"version\":2,\"state\":\"launched\"}", "{\"version\":1}",
                             "{\"version\":1,\"state\":\"exited\"}"}) {
        EXPECT_EQ(outcome_of(text).error().code, Code::corrupt) << text;
        EXPECT_EQ(spec_of(text).error().code, Code::corrupt) << text;
    }
}

}  // namespace

}  // namespace bulkhead::container
