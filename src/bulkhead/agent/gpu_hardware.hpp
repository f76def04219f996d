// A node's real GPUs as hardware: NVML cuts them, CUDA wipes them (in a process of its own), MPS shares them, and
// tenants of the process and container tiers run on them. The same code runs against the driver and against nvml-sim;
// which of the two it was is in the grade of everything it says.
//
// Every operation goes on in a thread of its own, because drivers take their time; what comes of it waits for `poll`.
// All state is the driver's, the kernel's, or the tenants' own: a new agent finds what there is.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bulkhead/agent/drives.hpp"
#include "bulkhead/agent/functions.hpp"
#include "bulkhead/agent/gpu_places.hpp"
#include "bulkhead/agent/gpu_scrub.hpp"
#include "bulkhead/agent/hardware.hpp"
#include "bulkhead/agent/machines.hpp"
#include "bulkhead/hw/container/tenants.hpp"
#include "bulkhead/hw/mps/control.hpp"
#include "bulkhead/hw/nvml/nvml.hpp"

namespace bulkhead::agent {

// Where the tenants of an agent are on its host: apart from those of other agents, whose control planes number their
// leases without knowing of these. What is there ends with the boot, as tenants do.
struct HostPlaces {
    std::string run_folder;  // files of tenants and pipes of MPS: tenants may pass through it
    std::string cgroups;     // below every tree
};
HostPlaces host_places(const std::string& agent_folder);

struct GpuHardwareSettings {
    std::string nvml = "libnvidia-ml.so.1", cuda = "libcuda.so.1", mps = "nvidia-cuda-mps-control";
    std::string smi = "nvidia-smi";  // resets GPUs and sets time slices: NVML has no public call for either
    std::string time_slice;          // default, short, medium or long, where GPUs are shared by turns; empty: as it is
    bool allow_gpu_reset = false;
    std::string folder;  // the agent's own, which nobody else may enter
    // A descriptor that whoever wipes or resets a GPU for us keeps open until it is gone: the next agent waits for the
    // lock on it, and so for them. -1: nobody waits.
    int lock = -1;
    std::vector<std::string> scrub;         // the command that wipes; what to wipe is put behind it
    std::string tenant_program;             // bulkhead-tenant
    std::string runtime = "/usr/bin/crun";  // of the container tier
    std::uint32_t first_id = 1'000'000;     // user ids of tenants begin here, 65,536 for each
    Duration grace{10'000};                 // between SIGTERM and SIGKILL
    std::int64_t burn_in_passes = 8;        // before a GPU that was quarantined returns
    Duration health_every{10'000};          // how often counters of memory errors are looked at
    Duration sample_every{5'000};           // and everything that is measured for monitoring
    DriveSettings drives;                   // for tenants; they are in the agent's folder by `folder`
    // NICs whose virtual functions tenants may have, and no others: "0000:3b:00.0=8".
    std::vector<std::string> nics;
    std::optional<Error> no_functions;  // why none can be had, where the host could not be prepared for them
    FunctionsSettings functions{.lock_patience = std::chrono::seconds{30}};  // NICs and folders are filled in
    // Whether the fences of NICs are attacked by ourselves, and in which VLAN: that and the next are nobody else's.
    bool test_fabric = true;
    std::uint16_t test_vlan = 3'900;
    MachineSettings machines;  // of the vm tier; without a URI there is none
};

class GpuHardware final : public Hardware {
public:
    static Result<std::unique_ptr<GpuHardware>> open(GpuHardwareSettings settings);
    ~GpuHardware() override;

    Result<GpuNodeStatus> inventory() override;
    std::string boot_id() override { return boot_; }
    Grade grade() const override { return nvml_.is_simulated() ? Grade::simulated : Grade::silicon; }
    Result<> begin(Instant now, const Operation& operation) override;
    Result<News> poll(Instant now) override;
    Result<OutputPiece> output(const OutputPlace& place) override;
    Result<std::optional<Telemetry>> telemetry() override;
    std::optional<Instant> next_due() const override;
    Result<> test_fabric(const FabricTestOrder& order) override;
    // Why tenants have no virtual functions here, though NICs were named. Everything else goes on, and they are looked
    // for again as often as GPUs' health is.
    std::optional<Error> why_no_functions() const;

private:
    GpuHardware(GpuHardwareSettings settings, nvml::Nvml nvml, std::unique_ptr<GpuPlaces> gpus,
                container::Tenants tenants, std::unique_ptr<Drives> drives,
                Result<std::unique_ptr<Functions>> functions);

    OperationResult carry(const CreateInstance& what);
    OperationResult carry(const DestroyInstance& what);
    OperationResult carry(const StartTenant& what);
    OperationResult carry(const StopTenant& what);
    OperationResult carry(const Wipe& what);
    OperationResult carry(const Verify& what);
    OperationResult carry(const ResetGpu& what);
    OperationResult carry(const AttachDrive& what) { return drives_->attach(what); }
    OperationResult carry(const DetachDrive& what) { return drives_->detach(what); }
    OperationResult carry(const AttachFunction& what);
    OperationResult carry(const DetachFunction& what);
    static OperationResult none_here(std::string_view what);

    // The GPU by the index that orders use: the one it had when the agent started.
    Result<const nvml::Gpu*> gpu(std::uint16_t index) const;
    Result<nvml::Instance> instance_at(const nvml::Gpu& gpu, unsigned start) const;
    struct Devices {  // of one lease
        std::vector<std::string> uuids;
        std::vector<container::DeviceNode> nodes;
        std::string drives;  // the tenant's names for what of these are drives
    };
    struct Shared {  // what a tenant needs to be a client of MPS
        std::vector<std::pair<std::string, std::string>> environment;
        std::vector<container::ReadOnlyMount> mounts;
    };
    Result<Devices> devices_of(const StartTenant& what) const;
    Result<container::TenantSpec> spec_of(const StartTenant& what, const Devices& devices, const Shared& shared);
    Result<> give_functions(const StartTenant& what, container::TenantSpec& spec) const;
    // As they are called now that they are the lease's; and the row of the GID table, where all have the same.
    Result<std::optional<unsigned>> name_functions(Key lease, GpuNodeStatus& inventory) const;
    void show_simulation(container::TenantSpec& spec) const;  // of a driver that is one: how a tenant can look at it
    Result<container::IdRange> ids_of(const std::string& tenant);
    Result<> begin_start(const StartTenant& what, const Devices& devices, const Shared& shared);

    struct Sharing {        // of one device
        std::mutex daemon;  // whoever starts it, sets its limits or takes it down
        int joining = 0;    // who count on it and have no record yet
    };
    Result<> begin_shared(const StartTenant& what, const Devices& devices);
    struct Company {  // of one device: its tenant's leases
        mps::Limits limits;
        std::size_t leases = 0;
        std::uint32_t user = 0;
        void widen(const mps::Limits& other);
    };
    Result<> begin_daemon(const std::string& folder, const Company& company) const;
    Result<> end_daemon(const std::string& folder) const;
    Company company_on(const std::string& folder, Key but);
    Result<> has_room(const GpuPart& part, std::size_t leases) const;
    void end_clients(Key lease, const std::string& folder);
    void look_after_daemons();
    void watch_daemons();
    Sharing& join(const std::string& folder);
    Result<std::string> pipes_of(Key lease) const;
    Result<bool> others_on(const std::string& folder, Key leaving);
    Result<> leave_daemon(const std::string& folder, Key leaving, const std::function<Result<>()>& forget);
    Result<> leave(Key lease);
    void end_unused_daemons();

    Functions* functions() const;                             // none: no NIC was named, or none can be had yet
    void reach_functions();                                   // tries again, where they could not be had
    Machines* machines() const;                               // none: libvirt was not reached yet
    Result<Machines*> reach_machines();                       // tries again, and may take its time
    Result<> gets_whole_gpus(const StartTenant& what) const;  // else a machine would get more than its lease
    OperationResult start_machine(const StartTenant& what);
    OperationResult stop_machine(const StopTenant& what);
    std::string return_path(
        std::uint16_t gpu) const;                 // before the words on how it was wiped; empty: it was in no machine
    void forget_return(std::uint16_t gpu) const;  // it was wiped, and that was verified
    bool has_devices() const;                     // that can go to a machine
    bool is_in_machine(const nvml::Gpu& gpu) const;
    void look_for_machines();
    void add_machines(GpuNodeStatus& status) const;
    void look_at_machines(News& news);

    Result<> attack(FunctionPair pair, FabricFence fence, const FabricTestOrder& order);  // why none was made
    static std::vector<FaultReport> take_back_tests(Functions& functions);

    OperationResult start_tenant(const StartTenant& what);
    // Starts a trivial program of this node's own in that tier, with nothing of any tenant's. Why it failed; nothing:
    // it worked.
    std::optional<std::string> why_nothing_starts(Tier tier);
    Result<bool> clear_away(Key lease, Duration grace);  // stopped and forgotten
    OperationResult wait_until_it_runs(Key lease);
    std::optional<Saved> save(const StopTenant& what);  // nothing: this agent ends
    Result<> take_turns(const StartTenant& what) const;
    OperationResult scrub_whole(const nvml::Gpu& gpu, const Wipe& what);
    OperationResult scrub_slices(const nvml::Gpu& gpu, const Wipe& what);
    Result<GpuScrub> scrub_device(const std::string& uuid, bool burn_in) const;
    Result<> want_mig(const std::string& uuid, bool on);
    Result<> set_mig(const std::string& uuid, bool on);  // for as long as nobody wants another, over reboots too
    Result<> return_to_modes();
    std::vector<GpuPosition> positions() const;
    std::string cpus_beside(const std::vector<GpuPart>& gpus) const;  // empty: unknown
    void watch_for_errors();
    std::vector<FaultReport> look_at_health(std::map<std::uint16_t, std::string>& told) const;
    void look_at_tenants(News& news);
    struct Xids {  // of one GPU, since the agent started
        std::uint64_t last = 0, count = 0;
    };
    void watch_counters();
    std::vector<GpuSample> sample() const;
    std::vector<InstanceSample> sample_instances(const nvml::Gpu& gpu) const;

    GpuHardwareSettings settings_;
    std::string run_folder_;
    nvml::Nvml nvml_;
    Result<nvml::Nvml::Watch> watch_;  // from the first moment on; or why there is none
    std::unique_ptr<GpuPlaces> gpus_;
    std::unique_ptr<Drives> drives_;
    std::string boot_;
    mutable std::mutex functions_mutex_;            // guards whether there are
    Result<std::unique_ptr<Functions>> functions_;  // none: no NIC was named; or why there are none yet
    MachineRecords records_;                        // of machines, whether libvirt answers or not
    std::mutex reaching_;                           // whoever tries to reach libvirt
    mutable std::mutex machines_mutex_;             // guards whether there are
    Result<std::unique_ptr<Machines>> machines_;    // or why there are none yet
    std::vector<TenantExit> machine_exits_;         // that were not told yet

    std::mutex own_start_mutex_;  // one at a time
    std::mutex tenants_mutex_;    // guards what follows; only a reset holds it for long
    container::Tenants tenants_;
    std::set<Key> ended_;                     // whose end was told
    std::map<std::string, Sharing> sharing_;  // by the folder of the device's MPS daemon

    mutable std::mutex mutex_;  // guards what follows
    News news_;
    std::string no_machines_;  // as it was last told
    struct Verified {          // of the last wipe, for the Verify that comes next
        unsigned size = 0;
        OperationResult read;
    };
    std::map<std::pair<std::uint16_t, unsigned>, Verified> verified_;  // by GPU and first slice
    std::map<std::string, bool> modes_;                                // wanted of MIG, by UUID
    std::map<std::string, Xids> xids_;                                 // by UUID
    std::optional<Telemetry> measured_;
    std::chrono::steady_clock::time_point measured_at_;
    bool stopping_ = false;
    bool testing_ = false;  // the fences

    Instant polled_;                               // or begun something, last
    std::map<std::int64_t, Key> starting_;         // by operation: whose end is not told before their start is
    std::map<std::int64_t, std::thread> threads_;  // by the operation they carry out
    std::thread watcher_, daemons_, sampler_, tester_;
};

}  // namespace bulkhead::agent
