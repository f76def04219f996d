// The library as a client meets it: handles, sizes, life cycle, other processes, faults.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "rig_test.hpp"

namespace bulkhead::nvml_sim {
namespace {

using namespace nvml;
using enum Return;

// Prints as a number: the codes are NVML's.
MATCHER_P(answers, code, "") {
    *result_listener << "return code " << static_cast<unsigned>(arg);
    return arg == code;
}

class Mig : public NvmlSim {
protected:
    void enable() {
        Return activation = unknown;
        ASSERT_EQ(NVML(nvmlDeviceSetMigMode)(device(), MigMode::enabled, &activation), success);
        ASSERT_EQ(activation, success);
    }
    GpuInstance create(std::uint32_t profile, InstancePlacement at) {
        GpuInstance instance = nullptr;
        EXPECT_THAT(NVML(nvmlDeviceCreateGpuInstanceWithPlacement)(device(), profile, &at, &instance),
                    answers(success));
        return instance;
    }
    ComputeInstance compute(GpuInstance instance, std::uint32_t profile) {
        ComputeInstance made = nullptr;
        EXPECT_THAT(NVML(nvmlGpuInstanceCreateComputeInstance)(instance, profile, &made), answers(success));
        return made;
    }
    std::string uuid(Device of) {
        char text[uuid_v2_size];
        EXPECT_EQ(NVML(nvmlDeviceGetUUID)(of, text, sizeof text), success);
        return text;
    }
};

TEST_F(NvmlSim, without_a_node_the_driver_is_not_loaded) {
    ASSERT_EQ(NVML(nvmlShutdown)(), success);
    ::unsetenv("BULKHEAD_SIM_NODE");
    EXPECT_THAT(NVML(nvmlInit_v2)(), answers(driver_not_loaded));
    ::setenv("BULKHEAD_SIM_NODE", "/nowhere", 1);
    EXPECT_THAT(NVML(nvmlInit_v2)(), answers(driver_not_loaded));
    std::uint32_t count = 0;
    EXPECT_THAT(NVML(nvmlDeviceGetCount_v2)(&count), answers(uninitialized));
}

TEST_F(NvmlSim, each_init_needs_its_shutdown) {
    ASSERT_EQ(NVML(nvmlInit_v2)(), success);
    std::uint32_t count = 0;
    ASSERT_EQ(NVML(nvmlShutdown)(), success);
    EXPECT_THAT(NVML(nvmlDeviceGetCount_v2)(&count), answers(success));
    ASSERT_EQ(NVML(nvmlShutdown)(), success);
    EXPECT_THAT(NVML(nvmlDeviceGetCount_v2)(&count), answers(uninitialized));
    EXPECT_THAT(NVML(nvmlShutdown)(), answers(uninitialized));
}

TEST_F(NvmlSim, bad_arguments_are_answered_and_not_followed) {
    char name[name_v2_size];
    Device nobody = reinterpret_cast<Device>(0x1234);
    EXPECT_THAT(NVML(nvmlDeviceGetName)(nullptr, name, sizeof name), answers(invalid_argument));
    EXPECT_THAT(NVML(nvmlDeviceGetName)(nobody, name, sizeof name), answers(invalid_argument));
    EXPECT_THAT(NVML(nvmlDeviceGetName)(device(), nullptr, 96), answers(invalid_argument));
    EXPECT_THAT(NVML(nvmlDeviceGetName)(device(), name, 4), answers(insufficient_size));
    EXPECT_THAT(NVML(nvmlDeviceGetMemoryInfo)(device(), nullptr), answers(invalid_argument));
    EXPECT_THAT(NVML(nvmlDeviceGetHandleByIndex_v2)(2, &nobody), answers(invalid_argument));
    EXPECT_THAT(NVML(nvmlDeviceGetHandleByUUID)("GPU-none", &nobody), answers(not_found));
    EXPECT_THAT(NVML(nvmlDeviceGetHandleByPciBusId_v2)("no address", &nobody), answers(invalid_argument));
    EXPECT_THAT(NVML(nvmlEventSetFree)(reinterpret_cast<EventSet>(&name)), answers(invalid_argument));
    MemoryV2 memory{.version = 1};
    EXPECT_THAT(NVML(nvmlDeviceGetMemoryInfo_v2)(device(), &memory), answers(argument_version_mismatch));
}

TEST_F(NvmlSim, a_device_is_found_by_all_its_names) {
    PciInfo pci{};
    char serial[serial_size], uuid[uuid_size];
    ASSERT_EQ(NVML(nvmlDeviceGetPciInfo_v3)(device(1), &pci), success);
    ASSERT_EQ(NVML(nvmlDeviceGetSerial)(device(1), serial, sizeof serial), success);
    ASSERT_EQ(NVML(nvmlDeviceGetUUID)(device(1), uuid, sizeof uuid), success);
    Device found = nullptr;
    EXPECT_EQ(NVML(nvmlDeviceGetHandleByPciBusId_v2)(pci.bus_id.data(), &found), success);
    EXPECT_EQ(found, device(1));
    EXPECT_EQ(NVML(nvmlDeviceGetHandleByPciBusId_v2)(pci.bus_id_legacy.data(), &found), success);
    EXPECT_EQ(found, device(1));
    EXPECT_EQ(NVML(nvmlDeviceGetHandleBySerial)(serial, &found), success);
    EXPECT_EQ(found, device(1));
    EXPECT_EQ(NVML(nvmlDeviceGetHandleByUUID)(uuid, &found), success);
    EXPECT_EQ(found, device(1));
}

TEST_F(Mig, an_instance_lives_and_dies_by_the_guide) {
    GpuInstance none = nullptr;
    EXPECT_THAT(NVML(nvmlDeviceCreateGpuInstance)(device(), 9, &none), answers(not_supported)) << "MIG mode is off";
    enable();
    const GpuInstance left = create(9, {0, 4});
    InstancePlacement taken{0, 4}, odd{2, 4};
    EXPECT_THAT(NVML(nvmlDeviceCreateGpuInstanceWithPlacement)(device(), 9, &taken, &none),
                answers(insufficient_resources));
    EXPECT_THAT(NVML(nvmlDeviceCreateGpuInstanceWithPlacement)(device(), 9, &odd, &none), answers(invalid_argument));
    EXPECT_THAT(NVML(nvmlDeviceCreateGpuInstance)(device(), 99, &none), answers(not_supported));
    std::uint32_t room = 0;
    ASSERT_EQ(NVML(nvmlDeviceGetGpuInstanceRemainingCapacity)(device(), 19, &room), success);
    EXPECT_EQ(room, 3u);

    Device mig = nullptr;
    EXPECT_THAT(NVML(nvmlDeviceGetMigDeviceHandleByIndex)(device(), 0, &mig), answers(not_found))
        << "no compute instance, no device";
    const ComputeInstance all = compute(left, 2);
    ASSERT_EQ(NVML(nvmlDeviceGetMigDeviceHandleByIndex)(device(), 0, &mig), success);
    DeviceAttributes attributes{};
    ASSERT_EQ(NVML(nvmlDeviceGetAttributes_v2)(mig, &attributes), success);
    EXPECT_EQ(attributes.multiprocessor_count, 60u);
    EXPECT_EQ(attributes.memory_mib, 71424u);
    GpuInstanceInfo info{};
    ASSERT_EQ(NVML(nvmlGpuInstanceGetInfo)(left, &info), success);
    EXPECT_EQ(info.placement, (InstancePlacement{0, 4}));

    EXPECT_THAT(NVML(nvmlGpuInstanceDestroy)(left), answers(in_use));
    ASSERT_EQ(gpusim("start", "--pid 77 --mig " + uuid(mig)), 0);
    EXPECT_THAT(NVML(nvmlComputeInstanceDestroy)(all), answers(in_use));
    ASSERT_EQ(gpusim("end", "--pid 77"), 0);
    EXPECT_THAT(NVML(nvmlComputeInstanceDestroy)(all), answers(success));
    EXPECT_THAT(NVML(nvmlGpuInstanceDestroy)(left), answers(success));
    EXPECT_THAT(NVML(nvmlGpuInstanceDestroy)(left), answers(invalid_argument)) << "the handle died with it";
    Memory memory{};
    EXPECT_THAT(NVML(nvmlDeviceGetMemoryInfo)(mig, &memory), answers(invalid_argument));
}

TEST_F(Mig, a_handle_of_a_destroyed_instance_does_not_reach_the_next_one_with_its_id) {
    enable();
    const GpuInstance first = create(19, {0, 1});
    ASSERT_EQ(NVML(nvmlGpuInstanceDestroy)(first), success);
    const GpuInstance second = create(19, {0, 1});
    EXPECT_NE(first, second);
    EXPECT_THAT(NVML(nvmlGpuInstanceDestroy)(first), answers(invalid_argument));
    EXPECT_THAT(NVML(nvmlGpuInstanceDestroy)(second), answers(success));
}

TEST_F(Mig, lists_that_do_not_fit_say_how_many_there_are) {
    enable();
    InstancePlacement places[2];
    std::uint32_t count = 2;
    EXPECT_THAT(NVML(nvmlDeviceGetGpuInstancePossiblePlacements_v2)(device(), 19, places, &count),
                answers(insufficient_size));
    EXPECT_EQ(count, 7u);
    ASSERT_EQ(gpusim("start", "--gpu 1 --pid 5"), 0);
    count = 0;
    EXPECT_THAT(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device(1), &count, nullptr), answers(insufficient_size));
    EXPECT_EQ(count, 1u);
}

TEST_F(Mig, what_one_process_makes_another_sees_and_what_died_is_gone) {
    enable();
    const pid_t child = ::fork();
    if (child == 0) {
        // A forked process has no lock of its parent's: the library opens it anew for every call.
        GpuInstance made = nullptr;
        const Return result = NVML(nvmlDeviceCreateGpuInstance)(device(), 19, &made);
        ::_exit(result == success ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    GpuInstance instances[7];
    std::uint32_t count = 0;
    ASSERT_EQ(NVML(nvmlDeviceGetGpuInstances)(device(), 19, instances, &count), success);
    EXPECT_EQ(count, 1u);
    ASSERT_EQ(gpusim("reboot"), 0);
    ASSERT_EQ(NVML(nvmlDeviceGetGpuInstances)(device(), 19, instances, &count), success);
    EXPECT_EQ(count, 0u) << "instances do not survive a reboot";
}

TEST_F(Mig, what_changes_something_is_for_root_alone_and_looking_is_for_everybody) {
    if (::geteuid() != 0) GTEST_SKIP() << "takes somebody who can become somebody else";
    enable();
    const GpuInstance there = create(9, {0, 4});
    const ComputeInstance all = compute(there, 2);
    std::filesystem::permissions(node_, std::filesystem::perms{0755});
    const pid_t child = ::fork();
    if (child == 0) {
        if (::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
        Return activation{};
        GpuInstance made = nullptr;
        ComputeInstance made_in = nullptr;
        const InstancePlacement at{4, 4};
        std::uint32_t count = 0;
        EXPECT_THAT(NVML(nvmlDeviceGetCount_v2)(&count), answers(success));
        EXPECT_EQ(count, 2u);
        EXPECT_THAT(NVML(nvmlDeviceSetMigMode)(device(1), MigMode::enabled, &activation), answers(no_permission));
        EXPECT_THAT(NVML(nvmlDeviceCreateGpuInstance)(device(), 9, &made), answers(no_permission));
        EXPECT_THAT(NVML(nvmlDeviceCreateGpuInstanceWithPlacement)(device(), 9, &at, &made), answers(no_permission));
        EXPECT_THAT(NVML(nvmlGpuInstanceCreateComputeInstance)(there, 0, &made_in), answers(no_permission));
        EXPECT_THAT(NVML(nvmlComputeInstanceDestroy)(all), answers(no_permission));
        EXPECT_THAT(NVML(nvmlGpuInstanceDestroy)(there), answers(no_permission));
        EXPECT_THAT(NVML(nvmlDeviceSetComputeMode)(device(), ComputeMode::prohibited), answers(no_permission));
        EXPECT_THAT(NVML(nvmlDeviceSetPersistenceMode)(device(), Feature::disabled), answers(no_permission));
        EXPECT_THAT(NVML(nvmlDeviceSetPowerManagementLimit)(device(), 300'000), answers(no_permission));
        EXPECT_THAT(NVML(nvmlDeviceClearEccErrorCounts)(device(), EccCounter::since_reset), answers(no_permission));
        ::_exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_THAT(NVML(nvmlComputeInstanceDestroy)(all), answers(success)) << "nothing has changed";
}

TEST_F(Mig, processes_that_create_at_once_never_get_the_same_place) {
    enable();
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
        children.push_back(::fork());
        if (children.back() == 0) {
            GpuInstance made = nullptr;
            ::_exit(static_cast<int>(NVML(nvmlDeviceCreateGpuInstance)(device(), 19, &made)));
        }
    }
    int made = 0, refused = 0;
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        made += WEXITSTATUS(status) == 0 ? 1 : 0;
        refused += WEXITSTATUS(status) == static_cast<int>(insufficient_resources) ? 1 : 0;
    }
    EXPECT_EQ(made, 7);
    EXPECT_EQ(refused, 1);
}

TEST_F(NvmlSim, threads_may_call_at_once) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 50; ++i) {
                Memory memory{};
                Device handle = nullptr;
                if (NVML(nvmlDeviceGetHandleByIndex_v2)(1, &handle) != success ||
                    NVML(nvmlDeviceGetMemoryInfo)(handle, &memory) != success)
                    ++wrong;
                if (NVML(nvmlDeviceSetPersistenceMode)(handle, i % 2 == 0 ? Feature::enabled : Feature::disabled) !=
                    success)
                    ++wrong;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(NvmlSim, ordered_faults_are_met_once_and_by_the_call_they_name) {
    std::uint32_t watts = 0;
    ASSERT_EQ(gpusim("fault", "--call nvmlDeviceGetPowerUsage --kind fail --value 999"), 0);
    EXPECT_THAT(NVML(nvmlDeviceGetPowerUsage)(device(), &watts), answers(unknown));
    EXPECT_THAT(NVML(nvmlDeviceGetPowerUsage)(device(), &watts), answers(success));
    ASSERT_EQ(gpusim("fault", "--call nvmlDeviceGetPowerUsage --kind lie --value 5"), 0);
    EXPECT_THAT(NVML(nvmlDeviceGetPowerUsage)(device(), &watts), answers(success));
    EXPECT_EQ(watts, 5u);
    ASSERT_EQ(gpusim("fault", "--call nvmlDeviceSetComputeMode --kind lie"), 0);
    EXPECT_THAT(NVML(nvmlDeviceSetComputeMode)(device(), ComputeMode::prohibited), answers(success));
    ComputeMode mode{};
    EXPECT_THAT(NVML(nvmlDeviceGetComputeMode)(device(), &mode), answers(success));
    EXPECT_EQ(mode, ComputeMode::normal) << "it said so and did not";
    ASSERT_EQ(gpusim("fault", "--call nvmlDeviceGetPowerUsage --kind slow --value 120"), 0);
    const auto before = std::chrono::steady_clock::now();
    EXPECT_THAT(NVML(nvmlDeviceGetPowerUsage)(device(), &watts), answers(success));
    EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds{120});
}

TEST_F(NvmlSim, a_gpu_that_fell_off_the_bus_is_lost_and_its_neighbour_is_not) {
    const Device lost = device(0), well = device(1);
    ASSERT_EQ(gpusim("lose", "--gpu 0"), 0);
    std::uint32_t watts = 0, count = 0;
    EXPECT_THAT(NVML(nvmlDeviceGetPowerUsage)(lost, &watts), answers(gpu_is_lost));
    EXPECT_THAT(NVML(nvmlDeviceGetPowerUsage)(well, &watts), answers(success));
    EXPECT_THAT(NVML(nvmlDeviceGetCount_v2)(&count), answers(success));
    EXPECT_EQ(count, 2u);
}

TEST_F(NvmlSim, an_xid_reaches_who_waits_for_it) {
    EventSet set = nullptr;
    ASSERT_EQ(gpusim("xid", "--number 13"), 0);  // before anybody listened
    ASSERT_EQ(NVML(nvmlEventSetCreate)(&set), success);
    ASSERT_EQ(NVML(nvmlDeviceRegisterEvents)(device(1), event_xid, set), success);
    EventData data{};
    EXPECT_THAT(NVML(nvmlEventSetWait_v2)(set, &data, 1), answers(timeout));
    std::thread breaking{[&] { EXPECT_EQ(gpusim("xid", "--gpu 1 --number 79"), 0); }};
    EXPECT_THAT(NVML(nvmlEventSetWait_v2)(set, &data, 10'000), answers(success));
    breaking.join();
    EXPECT_EQ(data.device, device(1));
    EXPECT_EQ(data.data, 79u);
    EXPECT_THAT(NVML(nvmlEventSetWait_v2)(set, &data, 1), answers(timeout)) << "each event comes once";
    EXPECT_THAT(NVML(nvmlEventSetFree)(set), answers(success));
}

TEST_F(NvmlSim, a_gpu_without_mig_says_not_supported) {
    use("gpus: 1 x l40s\n");
    MigMode current{}, pending{};
    EXPECT_THAT(NVML(nvmlDeviceGetMigMode)(device(), &current, &pending), answers(not_supported));
    GpuInstanceProfileInfo info{};
    EXPECT_THAT(NVML(nvmlDeviceGetGpuInstanceProfileInfo)(device(), 0, &info), answers(not_supported));
}

}  // namespace
}  // namespace bulkhead::nvml_sim
