// A node to start tenants on: this machine, with a directory and a control group of the test's own. Whatever a test
// leaves behind, and however it ends, is stopped and removed after it.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "bulkhead/hw/container/tenants.hpp"

namespace bulkhead::container {

inline std::string words_of(const Error& error) { return error.what + " / " + error.remedy; }

class Node : public testing::Test {
protected:
    void SetUp() override {
        // In memory where that can be: what is synced to a disk hundreds of times here is the same either way.
        const bool memory = ::access("/dev/shm", W_OK) == 0;
        std::string name = (memory ? std::filesystem::path{"/dev/shm"} : std::filesystem::temp_directory_path()) /
                           "bulkhead-tenants-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        places.directory = name;
        ASSERT_EQ(::chmod(name.c_str(), 0711), 0);
        places.program = BULKHEAD_TENANT_PROGRAM;
        places.cgroup_parent = "bulkhead-test-" + name.substr(name.size() - 6);
        places.cdi = name + "/cdi";
        if (const char* runtime = std::getenv("BULKHEAD_TEST_RUNTIME")) places.runtime = runtime;  // /usr/sbin/runc
        if (::geteuid() != 0) GTEST_SKIP() << "starting tenants takes root";
        const auto trees = find_hierarchies();
        if (!trees) GTEST_SKIP() << words_of(trees.error());
        const Result<> made = LeaseCgroup{*trees, places.cgroup_parent, 999}.create(spec(999, {}).limits, {});
        if (!made) GTEST_SKIP() << "this machine refuses control groups: " << words_of(made.error());
        if (::access("/proc/self/ns/pid", F_OK) != 0) GTEST_SKIP() << "this kernel has no pid namespaces";
        usable = true;
    }

    void TearDown() override {
        if (usable) {
            Tenants tenants = opened();
            for (LeaseKey lease = 1; lease <= 20; ++lease) {
                (void)tenants.begin_stop(lease, Duration{0});
                EXPECT_TRUE(eventually([&] { return tenants.stopped(lease).value_or(false); })) << "lease " << lease;
                EXPECT_TRUE(tenants.remove(lease)) << "lease " << lease;
            }
            const auto trees = find_hierarchies();
            EXPECT_TRUE((LeaseCgroup{*trees, places.cgroup_parent, 999}.remove()));
            for (const std::string& tree : trees->all()) ::rmdir((tree + "/" + places.cgroup_parent).c_str());
        }
        if (!device.empty()) ::unlink(device.c_str());
        std::error_code wrong;
        std::filesystem::remove_all(places.directory, wrong);
    }

    Tenants opened() const { return std::move(Tenants::open(places)).value(); }

    static TenantSpec spec(LeaseKey lease, std::string script) {
        TenantSpec spec;
        spec.lease = lease;
        spec.tenant = "acme";
        spec.command = {"/bin/sh", "-c", std::move(script)};
        spec.environment = {{"PATH", "/usr/bin:/bin"}};
        spec.ids = {first_id(lease), 65'536};
        spec.limits = {.memory_bytes = 256 << 20, .cpu_thousandths = 2'000, .pids = 64, .log_bytes = 1 << 20};
        return spec;
    }

    // The kernel counts a user's processes on the whole machine: two runs of these tests must not share their users.
    static std::uint32_t first_id(LeaseKey lease) {
        constexpr std::uint32_t leases = 32, runs = 900;
        const std::uint32_t run = static_cast<std::uint32_t>(::getpid()) % runs;
        return 200'000'000 + (run * leases + static_cast<std::uint32_t>(lease % leases)) * 65'536;
    }

    // Nothing here waits for a time to pass, only for something to become so; the minute is for machines that are busy.
    static bool eventually(const std::function<bool()>& holds) {
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes{1};
        while (!holds()) {
            if (std::chrono::steady_clock::now() > give_up) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
        return true;
    }

    static Look end_of(const Tenants& tenants, LeaseKey lease) {
        Look seen;
        EXPECT_TRUE(eventually([&] {
            seen = tenants.look(lease).value_or(Look{});
            return seen.state != Look::State::starting && seen.state != Look::State::running;
        }));
        return seen;
    }

    static std::string said(const Tenants& tenants, LeaseKey lease, Stream stream = Stream::out) {
        return tenants.log(lease, stream, 0, 1 << 20).value_or(LogPiece{}).bytes;
    }

    // Runs it to its end and gives what it printed.
    static std::string output_of(Tenants& tenants, const TenantSpec& spec) {
        const Result<> started = tenants.start(spec);
        if (!started) return "refused: " + words_of(started.error());
        end_of(tenants, spec.lease);
        return said(tenants, spec.lease) + said(tenants, spec.lease, Stream::err);
    }

    // A node to lease that is nobody's: the number of /dev/fuse, which opens without doing anything.
    DeviceNode leased() {
        device = "/dev/" + places.cgroup_parent;
        EXPECT_TRUE(::mknod(device.c_str(), S_IFCHR | 0666, makedev(10, 229)) == 0 || errno == EEXIST);
        EXPECT_EQ(::chmod(device.c_str(), 0666), 0);
        return {device, 'c', 10, 229};
    }

    Places places;
    std::string device;
    bool usable = false;
};

}  // namespace bulkhead::container
