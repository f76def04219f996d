// What the NVIDIA driver of one node knows, as a value: GPUs, MIG instances, processes and what they hold, contents of
// memory, health. NVML and CUDA are two doors to it; the simulators of both (nvml-sim/) keep one model per node in a
// file and let every process act on it.
//
// It answers as the driver would and refuses for the driver's reasons; words and numbers of either door are the door's
// business. It is pure: time is handed in, ids follow from what happened before, and the same calls always give the
// same state.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/node/driver_memory.hpp"
#include "bulkhead/node/driver_profile.hpp"
#include "bulkhead/node/driver_spec.hpp"

namespace bulkhead::driver {

enum class Refusal : std::uint8_t {
    invalid,         // no such profile, place or value
    not_supported,   // not on this GPU, or not in its present mode
    not_found,       // no such GPU, instance, process or allocation
    in_use,          // somebody is still there
    no_room,         // no free place, or the most there can be
    no_memory,       // of a GPU or an instance
    reset_required,  // only somebody outside can finish this
    prohibited,      // by the compute mode
    lost,            // the GPU has fallen off the bus
};
template <class T = void>
using Answer = std::expected<T, Refusal>;

enum class ComputeMode : std::uint8_t { normal, prohibited, exclusive_process };
constexpr auto words(ComputeMode) {
    return std::array<std::string_view, 3>{"normal", "prohibited", "exclusive-process"};
}
enum class ProcessKind : std::uint8_t { compute, graphics, mps };
constexpr auto words(ProcessKind) { return std::array<std::string_view, 3>{"compute", "graphics", "mps"}; }
enum class EventKind : std::uint8_t { xid, single_bit, double_bit, mig_change };
constexpr auto words(EventKind) {
    return std::array<std::string_view, 4>{"xid", "single-bit", "double-bit", "mig-change"};
}
enum class FaultKind : std::uint8_t {
    slow,  // the call takes `value` milliseconds longer
    fail,  // it answers the return code `value` and does nothing
    lie,   // one that changes something says it did, and did not; one that tells a number tells `value`
};
constexpr auto words(FaultKind) { return std::array<std::string_view, 3>{"slow", "fail", "lie"}; }

// Memory on which what kernels store does not arrive, though the driver says nothing of it.
enum class Stuck : std::uint8_t { no, until_reset, for_good };
constexpr auto words(Stuck) { return std::array<std::string_view, 3>{"no", "until-reset", "for-good"}; }

// Where on a GPU: all of it, or one compute instance of one GPU instance.
struct Place {
    std::uint16_t gpu{};
    std::optional<std::uint32_t> gpu_instance, compute_instance;
    friend auto operator<=>(const Place&, const Place&) = default;
};

struct ComputeInstance {
    std::uint32_t id{}, profile{}, start{};
    std::uint32_t index{};  // among the MIG devices of its GPU
    std::string uuid;       // "MIG-..."; another every time one is made
    friend bool operator==(const ComputeInstance&, const ComputeInstance&) = default;
};
struct GpuInstance {
    std::uint32_t id{}, profile_id{}, start{};
    std::uint64_t born{};  // unique on the node: tells an instance from a later one with the same id
    std::map<std::uint32_t, ComputeInstance> compute;
    friend bool operator==(const GpuInstance&, const GpuInstance&) = default;
};
struct Process {
    std::uint32_t pid{};
    std::uint64_t
        started{};  // tells a process from a later one with the same pid; 0: nobody's, stays until it is told to end
    Place where;
    ProcessKind kind{};
    std::uint64_t context_bytes{};
    std::uint32_t sm_percent{}, memory_percent{};
    friend bool operator==(const Process&, const Process&) = default;
};
struct Allocation {
    Range range;
    std::uint32_t pid{};
    Place where;
    friend bool operator==(const Allocation&, const Allocation&) = default;
};
struct Health {
    std::uint64_t corrected{}, uncorrected{};                    // since the driver was loaded
    std::uint64_t corrected_lifetime{}, uncorrected_lifetime{};  // kept by the board
    std::uint32_t remapped_corrected{}, remapped_uncorrected{};  // rows
    bool remap_pending = false, remap_failed = false;
    friend bool operator==(const Health&, const Health&) = default;
};
struct Event {
    std::uint64_t number{};  // counts up on the node
    EventKind kind{};
    Place where;
    std::uint64_t data{};  // the number of an Xid
    friend bool operator==(const Event&, const Event&) = default;
};
struct Fault {
    std::string call;  // "nvmlDeviceGetMigMode", or "*" for every call
    FaultKind kind{};
    std::uint64_t value{};
    std::uint32_t times = 1;
    friend bool operator==(const Fault&, const Fault&) = default;
};

struct Gpu {
    bool mig = false, mig_pending = false;
    std::map<std::uint32_t, GpuInstance> instances;
    std::vector<Process> processes;
    std::map<std::uint64_t, Allocation> allocations;  // by first byte
    GpuMemory contents;
    Health health;
    ComputeMode compute_mode{};
    bool persistence = true;
    std::uint32_t timeslice = 0;  // default, short, medium, long
    std::uint32_t power_limit_mw{};
    std::uint64_t energy_mj = 0;  // up to `Model::advanced`
    bool lost = false, keeps_residue = false;
    Stuck stuck{};
    friend bool operator==(const Gpu&, const Gpu&) = default;
};

// A simple function of what runs: nothing here is a measurement.
struct Load {
    std::uint32_t sm_percent{}, memory_percent{}, power_mw{}, celsius{}, memory_celsius{};
    Clocks clocks;
};
struct MemoryUse {
    std::uint64_t total{}, reserved{}, used{};
    std::uint64_t free() const { return total - reserved - used; }
};

class Model {
public:
    explicit Model(Spec spec);

    const Spec& spec() const { return spec_; }
    std::size_t gpus() const { return gpus_.size(); }
    const Gpu& gpu(std::uint16_t index) const { return gpus_[index]; }
    const Product& product(std::uint16_t index) const { return *products_[index]; }
    const std::vector<GpuProfile>& profiles(std::uint16_t index) const { return profiles_[index]; }

    // Modes. The answer of set_mig_mode is whether the mode is active now; if not, why not, and it stays pending.
    Answer<Answer<>> set_mig_mode(std::uint16_t gpu, bool on);
    Answer<> set_compute_mode(std::uint16_t gpu, ComputeMode mode);
    Answer<> set_persistence(std::uint16_t gpu, bool on);
    Answer<> set_timeslice(std::uint16_t gpu, std::uint32_t timeslice);
    Answer<> set_power_limit(std::uint16_t gpu, std::uint32_t mw);
    Answer<> reset(std::uint16_t gpu);
    void reboot();
    std::uint32_t boots() const { return boots_; }

    // Instances. By profile id; without a start the driver chooses.
    const GpuProfile* profile(std::uint16_t gpu, std::uint32_t id) const;
    Answer<std::uint32_t> room(std::uint16_t gpu, std::uint32_t profile_id) const;
    Answer<std::uint32_t> create_instance(std::uint16_t gpu, std::uint32_t profile_id,
                                          std::optional<gpu::Placement> at = {});
    Answer<> destroy_instance(std::uint16_t gpu, std::uint32_t id);
    const GpuInstance* instance(std::uint16_t gpu, std::uint32_t id) const;
    std::vector<ComputeProfile> compute_profiles_of(std::uint16_t gpu, std::uint32_t instance) const;
    Answer<std::uint32_t> compute_room(std::uint16_t gpu, std::uint32_t instance, std::uint32_t profile) const;
    Answer<std::uint32_t> create_compute(std::uint16_t gpu, std::uint32_t instance, std::uint32_t profile,
                                         std::optional<gpu::Placement> at = {});
    Answer<> destroy_compute(std::uint16_t gpu, std::uint32_t instance, std::uint32_t id);
    struct MigDevice {
        Place where;
        const GpuInstance* instance = nullptr;
        const ComputeInstance* compute = nullptr;
    };
    std::optional<MigDevice> mig_device(std::uint16_t gpu, std::uint32_t index) const;
    std::optional<MigDevice> mig_device_by_uuid(std::string_view uuid) const;

    // Work. A process attaches to a place (CUDA: makes a context), takes memory there, and leaves with everything it
    // took.
    Answer<> attach(Process process);
    Answer<> set_load(std::uint32_t pid, Place where, std::uint32_t sm_percent, std::uint32_t memory_percent);
    void detach(std::uint32_t pid, const Place& where);  // from one place, with what it held there
    void end(std::uint32_t pid);                         // from everywhere
    Answer<std::uint64_t> allocate(std::uint32_t pid, Place where, std::uint64_t bytes);
    Answer<> free(std::uint32_t pid, std::uint16_t gpu, std::uint64_t base);
    // Contents: only of what the process holds.
    Answer<> fill(std::uint32_t pid, std::uint16_t gpu, Range range, const Pattern& pattern);
    Answer<> write(std::uint32_t pid, std::uint16_t gpu, std::uint64_t begin, std::string_view bytes);
    Answer<std::string> read(std::uint32_t pid, std::uint16_t gpu, Range range) const;
    Answer<GpuMemory::Tally> compare(std::uint32_t pid, std::uint16_t gpu, Range range, const Pattern& pattern) const;
    Range memory_of(const Place& where) const;  // the bytes of the GPU that belong to the place
    MemoryUse memory(const Place& where) const;
    Load load(std::uint16_t gpu) const;
    std::uint64_t energy_mj(std::uint16_t gpu, Instant now) const;
    void advance(Instant now);  // before the load changes, so that energy adds up

    // Health and faults.
    void raise(EventKind kind, Place where, std::uint64_t data);
    const std::vector<Event>& events() const { return events_; }  // the newest; older ones are forgotten
    std::uint64_t last_event() const { return next_event_ - 1; }
    void set_health(std::uint16_t gpu, Health health) { gpus_[gpu].health = health; }
    void clear_errors(std::uint16_t gpu, bool lifetime);
    void set_lost(std::uint16_t gpu, bool lost) { gpus_[gpu].lost = lost; }
    void set_keeps_residue(std::uint16_t gpu, bool keeps) { gpus_[gpu].keeps_residue = keeps; }
    void set_stuck(std::uint16_t gpu, Stuck stuck) { gpus_[gpu].stuck = stuck; }
    void add_fault(Fault fault) { faults_.push_back(std::move(fault)); }
    void clear_faults() { faults_.clear(); }
    const std::vector<Fault>& faults() const { return faults_; }
    // The faults that this call meets, each used up once.
    std::vector<Fault> meet(std::string_view call);
    bool ready() const { return ready_; }  // confidential computing: whether GPUs accept work
    void set_ready(bool ready) { ready_ = ready; }

    std::string to_bytes() const;
    static Result<Model> from_bytes(std::string_view bytes);
    friend bool operator==(const Model& a, const Model& b) { return a.to_bytes() == b.to_bytes(); }

private:
    static constexpr std::size_t events_kept = 256;

    bool free_slices(std::uint16_t gpu, const GpuProfile& profile, std::uint32_t start) const;
    bool free_compute(std::uint16_t gpu, const GpuInstance& instance, const ComputeProfile& profile,
                      std::uint32_t start) const;
    Answer<GpuInstance*> at(std::uint16_t gpu, std::uint32_t instance);
    Answer<const ComputeProfile> compute_profile(std::uint16_t gpu, std::uint32_t instance,
                                                 std::uint32_t profile) const;
    Answer<> usable(std::uint16_t gpu) const;
    bool holds(std::uint32_t pid, std::uint16_t gpu, Range range) const;
    void release(Gpu& gpu, const Allocation& allocation);
    void look_up_products();
    bool is_sound() const;
    template <class Archive, class Self>
    static void walk(Archive& archive, Self& self);

    Spec spec_;
    std::vector<Gpu> gpus_;
    std::vector<const Product*> products_;           // by GPU; follows from spec_
    std::vector<std::vector<GpuProfile>> profiles_;  // likewise
    std::vector<Event> events_;
    std::vector<Fault> faults_;
    std::uint64_t next_event_ = 1, next_born_ = 1;
    Instant advanced_{};
    std::uint32_t boots_ = 1;
    bool ready_ = true;
};

}  // namespace bulkhead::driver
