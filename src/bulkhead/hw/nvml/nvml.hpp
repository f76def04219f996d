// NVIDIA's management library as values and Results. Loaded by name when it is asked for, so that the same program runs
// with the driver's library, with our simulator (nvml-sim/) or with none.
//
//     auto nvml = nvml::Nvml::open("libnvidia-ml.so.1");
//     const auto gpus = nvml->gpus();                  // of this moment
//     auto made = nvml->create_instance(gpu.uuid, profile.id, {.start = 4, .size = 4});
//
// GPUs are named by UUID: handles and indexes can mean another GPU after one fell off the bus. Calls that only newer
// drivers have are looked up and done without. Thread-safe, as NVML is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/gpu/placement.hpp"
#include "bulkhead/hw/nvml/abi.hpp"
#include "bulkhead/model/telemetry.hpp"

namespace bulkhead::nvml {

struct Library;  // the calls, in library.hpp

struct Versions {
    std::string driver, nvml;
    int cuda = 0;  // 13000: CUDA 13.0
};

struct Gpu {
    unsigned index = 0, minor = 0;
    std::string uuid, serial, name, bus_id, vbios, gsp_firmware;
    std::uint32_t pci_device = 0;             // device id, then vendor id: 0x233510DE, as gpu/board.hpp knows boards
    std::optional<MigMode> mig, mig_pending;  // nothing: this GPU has no MIG
    unsigned nvlinks = 0;                     // that are up
    bool lost = false;                        // fallen off the bus; then nothing else is known but its index
};

struct MemoryUse {
    std::uint64_t total = 0, reserved = 0, used = 0, free = 0;  // reserved: the driver's and the firmware's
};

struct Process {
    std::uint32_t pid = 0;
    std::optional<std::uint64_t> bytes;                      // nothing: the driver may not say
    std::optional<unsigned> gpu_instance, compute_instance;  // of a GPU that is cut
};

struct Profile {  // as the driver has it; its tables are truer than ours
    unsigned id = 0;
    std::string name;  // "3g.71gb"; empty from drivers that do not name profiles
    unsigned slices = 0, instances_max = 0, multiprocessors = 0;
    std::uint64_t memory_mib = 0;
    std::vector<gpu::Placement> places;
};

struct Instance {
    unsigned id = 0, profile = 0;
    gpu::Placement place;
    std::vector<unsigned> compute_instances;
    std::string uuid;  // of the MIG device; empty without a compute instance
};

struct Link {  // an NVLink that is up, and what is at its other end
    NvLinkDevice to = NvLinkDevice::unknown;
    std::string bus_id;  // empty: the driver does not say
};

struct Health {
    std::uint64_t uncorrected_since_reset = 0, corrected_since_reset = 0;
    bool remap_pending = false, remap_failed = false;  // rows of memory to be replaced at the next reset; no spare left
    bool retirement_pending = false;
    std::optional<std::string> unfit() const;     // why it should not be given to anyone, if so
    bool broken() const { return remap_failed; }  // and a reset will not help
};

struct Load {
    unsigned gpu_percent = 0, memory_percent = 0, power_mw = 0, sm_mhz = 0, celsius = 0;
};

struct Xid {
    std::string uuid;
    std::uint64_t number = 0;
};

class Nvml {
public:
    static Result<Nvml> open(const std::string& soname);

    bool is_simulated() const;  // it is nvml-sim: whatever it says is graded so
    Result<Versions> versions() const;
    Result<std::vector<Gpu>> gpus() const;                    // in NVML's order, which is that of PCI addresses
    Result<MemoryUse> memory(const std::string& uuid) const;  // of a GPU, or of a MIG device
    Result<std::vector<Process>> processes(const std::string& uuid) const;
    Result<Load> load(const std::string& uuid) const;  // what it does not tell is 0
    Result<Health> health(const std::string& uuid) const;
    // Every counter that it tells, in their order. Takes its time: NVML watches PCIe for 20 ms in each direction.
    Result<std::vector<Measured>> sample(const std::string& uuid) const;
    Result<std::vector<Measured>> sample_instance(const std::string& uuid) const;  // of a MIG device
    Result<std::vector<Link>> links(const std::string& uuid) const;  // none: it has none, or MIG keeps them from use

    // Nobody makes a context there but one process: an MPS server, once it has. Of whole GPUs; false: whoever wants to.
    Result<> set_exclusive(const std::string& uuid, bool on) const;
    Result<bool> is_exclusive(const std::string& uuid) const;
    Result<int> capability_major(const std::string& uuid) const;  // 9: Hopper

    // MIG. What waits for a reset answers `unavailable` and says so; what is in use answers `conflict`.
    Result<> set_mig(const std::string& uuid, bool on) const;
    Result<std::vector<Profile>> profiles(const std::string& uuid) const;
    Result<std::vector<Instance>> instances(const std::string& uuid) const;
    // A GPU instance at that place with one compute instance over all of it: the MIG device that a tenant gets. Whole
    // or not at all: when the second cannot be made the first is taken away again.
    Result<Instance> create_instance(const std::string& uuid, unsigned profile, gpu::Placement place) const;
    Result<> destroy_instance(const std::string& uuid, unsigned id) const;

    // Waits for the next critical error of any GPU. Nothing: none came in time, or no GPU reports them.
    class Watch;
    Result<Watch> watch() const;

private:
    Nvml() = default;
    Result<Device> find(const std::string& uuid) const;
    Result<Instance> describe(Device device, GpuInstance instance) const;
    Result<unsigned> whole_compute_profile(GpuInstance instance) const;
    std::shared_ptr<const Library> library_;
};

class Nvml::Watch {
public:
    Result<std::optional<Xid>> wait(unsigned timeout_ms) const;

private:
    friend class Nvml;
    std::shared_ptr<const Library> library_;
    std::shared_ptr<void> events_;
};

}  // namespace bulkhead::nvml
