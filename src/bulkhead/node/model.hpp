// A node's hardware as data: GPUs with their instances and what their memory holds, drives, virtual functions, the
// host, and the tenants that run on it. Simulation and an agent without GPUs run against it; it follows NVML where NVML
// has rules (what may be placed where, that nothing in use is destroyed).
//
// Contents are one number for each unit: the lease that wrote it last, 0 for zeros. Nothing but a wipe removes them:
// not destroying an instance, not detaching, not losing the device, and for GPU memory not even a reboot. That is
// harsher than most hardware, and what a clean gate must be able to stand.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/gpu/board.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/node/ledger.hpp"
#include "bulkhead/node/operation.hpp"

namespace bulkhead {

struct NodeModelSpec {
    std::string node = "node-1";               // UUIDs and serials are made of it
    std::string gpu_model = "h100-80gb-sxm5";  // of the boards we know; any other name: a GPU that cannot be cut
    std::uint16_t gpus = 8;
    std::uint16_t drives = 0;
    ByteSize drive_size{3'840'755'982'336};
    std::uint16_t functions = 0;
    std::vector<Capability> capabilities;
    std::vector<InstalledVersion> versions;
    std::int64_t cpu = 64;
    ByteSize memory{std::int64_t{512} << 30};
    NvLink nvlink = NvLink::none;
    ConfidentialMode confidential_mode = ConfidentialMode::off;
    friend bool operator==(const NodeModelSpec&, const NodeModelSpec&) = default;
};

// Of one device, how many of its next operations go wrong, and how. There is no wipe whose Verify lies as well: nobody
// outside the device could tell, and a rule that is not testable is not worth writing down.
struct ModelFaults {
    std::uint32_t fail = 0;  // answer: no
    std::uint32_t lie = 0;   // wipes only: answer yes, and leave the contents
    std::uint32_t hang = 0;  // never answer, and do nothing
    friend bool operator==(const ModelFaults&, const ModelFaults&) = default;
};

class NodeModel {
public:
    // All contents are unknown to begin with: each unit holds `old_dirt`, whatever was there before we came.
    static constexpr std::uint64_t old_dirt = 0xD127'D127'D127'D127;

    explicit NodeModel(NodeModelSpec spec);

    // The state changes at once; whoever calls lets `duration` pass before the answer counts. Nothing: it hangs. Every
    // operation is idempotent. A Wipe of memory takes apart instances over it that nobody runs in.
    std::optional<OperationResult> carry_out(const Operation& operation);
    Duration duration(const Operation& operation) const;

    GpuNodeStatus inventory() const;  // capabilities are graded simulated
    std::string boot_id() const;      // changes with every reboot

    // The truth, for checkers outside. Of the host: the last lease whose code ran on its kernel since it booted.
    std::uint64_t read(UnitId unit) const;
    std::vector<UnitId> units() const;  // all there are

    struct Instance {
        std::string profile;
        std::uint8_t start = 0, size = 0;
        friend bool operator==(const Instance&, const Instance&) = default;
    };
    const std::vector<Instance>& instances(std::uint16_t gpu) const { return gpus_[gpu].instances; }
    std::vector<Key> running() const;  // leases whose code runs now
    std::int64_t boots() const { return boots_; }
    std::uint8_t slices_per_gpu() const;
    const NodeModelSpec& spec() const { return spec_; }

    // Faults.
    ModelFaults& faults(DeviceId device) { return faults_[device]; }
    void fail_starts(std::uint32_t times, PartFault fault = PartFault::start) {
        fail_starts_ = times;
        start_fault_ = fault;
    }
    void fail_stops(std::uint32_t times) { fail_stops_ = times; }  // the tenant stays, and the answer says so
    void hang_starts(std::uint32_t times) { hang_starts_ = times; }
    void hang_stops(std::uint32_t times) { hang_stops_ = times; }
    void set_lost(std::uint16_t gpu, bool lost);                              // fallen off the bus; contents remain
    void set_image_good(bool good) { image_good_ = good; }                    // what a measured boot finds
    void set_slowness(std::int64_t thousandths) { slowness_ = thousandths; }  // 1000: as built
    void clear_faults();
    // The host goes down and comes back, unasked: tenants and instances are gone, contents of devices are not.
    void crash_host();

    std::string to_bytes() const;
    static Result<NodeModel> from_bytes(std::string_view bytes);
    friend bool operator==(const NodeModel&, const NodeModel&) = default;

private:
    struct Gpu {
        bool lost = false;
        bool mig = false;
        std::vector<Instance> instances;      // by start
        std::vector<std::uint64_t> contents;  // of each memory slice
        friend bool operator==(const Gpu&, const Gpu&) = default;
    };
    struct Drive {
        Key attached = 0;
        std::uint64_t contents = 0;
        friend bool operator==(const Drive&, const Drive&) = default;
    };
    struct Function {
        Key attached = 0;
        std::uint64_t addresses = 0;
        friend bool operator==(const Function&, const Function&) = default;
    };
    struct Tenant {
        StartTenant what;
        friend bool operator==(const Tenant& a, const Tenant& b) {
            return a.what.lease == b.what.lease && a.what.tier == b.what.tier && a.what.gpus == b.what.gpus &&
                   a.what.drives == b.what.drives && a.what.functions == b.what.functions &&
                   a.what.program == b.what.program;
        }
    };

    OperationResult carry(const CreateInstance& what);
    OperationResult carry(const DestroyInstance& what);
    OperationResult carry(const AttachDrive& what);
    OperationResult carry(const DetachDrive& what);
    OperationResult carry(const AttachFunction& what);
    OperationResult carry(const DetachFunction& what);
    OperationResult carry(const StartTenant& what);
    OperationResult carry(const StopTenant& what);
    OperationResult carry(const Wipe& what);
    OperationResult carry(const Verify& what);
    OperationResult carry(const ResetGpu& what);
    std::optional<std::string> unusable(const StartTenant& what) const;
    bool in_use(std::uint16_t gpu, unsigned start, unsigned size) const;
    bool spend_lie(DeviceId device);
    void reboot();
    void identify(DeviceId device, OperationResult& result) const;
    std::int64_t slice_bytes() const;
    const gpu::Board* board() const;
    template <class Archive, class Self>
    static void walk(Archive& archive, Self& self);
    bool is_sound() const;
    bool is_profile(const Instance& instance) const;

    NodeModelSpec spec_;
    std::vector<Gpu> gpus_;
    std::vector<Drive> drives_;
    std::vector<Function> functions_;
    std::map<Key, Tenant> tenants_;
    std::set<Key> ran_on_kernel_;  // since boot
    std::uint64_t host_contents_ = old_dirt;
    std::int64_t boots_ = 1;
    bool image_good_ = true;
    std::int64_t slowness_ = 1000;
    std::map<DeviceId, ModelFaults> faults_;
    std::uint32_t fail_starts_ = 0, fail_stops_ = 0, hang_starts_ = 0, hang_stops_ = 0;
    PartFault start_fault_ = PartFault::start;  // of the next start that fails
};

}  // namespace bulkhead
