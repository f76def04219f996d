// GpuWorkload: what a tenant asks for. Whatever is left open is filled in by its class and decided by policy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/model/meta.hpp"

namespace bulkhead {

// Per task: whole GPUs, or a named slice, or a fraction, or an amount of GPU memory. One of the four.
struct GpuRequest {
    std::optional<std::int64_t> count;
    std::string profile;
    std::optional<Gpus> fraction;
    std::optional<ByteSize> memory;
    std::optional<Mechanism> mechanism;
    std::vector<std::string> models;
    bool nvlink = false;

    static constexpr void describe(auto&& field) {
        field("count", &GpuRequest::count, "Whole GPUs per task.", Rule{.min = 1, .max = 1024});
        field("profile", &GpuRequest::profile,
              "A named slice per task: a MIG profile (3g.40gb) or an AMD partition (cpx_nps4).");
        field("fraction", &GpuRequest::fraction, "A fraction of one GPU per task: 0.5, 1/7.",
              Rule{.min = gpu_unit / 1000, .max = gpu_unit - gpu_unit / 1000});
        field("memory", &GpuRequest::memory, "An amount of one GPU's memory per task: 10Gi.",
              Rule{.min = 1, .max = 1LL << 50});
        field("mechanism", &GpuRequest::mechanism,
              "How the GPU is divided; for a fraction, what backs it. Default: the class's first that fits.");
        field("models", &GpuRequest::models, "Only these GPU models; empty: any.", Rule{.format = Format::name});
        field("nvlink", &GpuRequest::nvlink, "Whether the GPUs must reach each other over NVLink.");
    }
    friend bool operator==(const GpuRequest&, const GpuRequest&) = default;
};

struct IsolationRequest {
    std::optional<Tier> tier;
    std::optional<PeerTrust> node;
    std::optional<PeerTrust> gpu;

    static constexpr void describe(auto&& field) {
        field("tier", &IsolationRequest::tier, "The tier to run in. Default: what trust and class demand.");
        field("node", &IsolationRequest::node,
              "The least trusted tenant that may run on the same node. Default: the class's.");
        field("gpu", &IsolationRequest::gpu,
              "The least trusted tenant that may run on the same GPU. Default: the class's.");
    }
    friend bool operator==(const IsolationRequest&, const IsolationRequest&) = default;
};

struct SloRequest {
    Slo level = Slo::soft;
    std::vector<Aspect> resources;

    static constexpr void describe(auto&& field) {
        field("level", &SloRequest::level, "hard: holds whatever the neighbours do. soft: best effort.");
        field("resources", &SloRequest::resources,
              "What a hard level is about. Default: sm, l2, memory-capacity, memory-bandwidth.");
    }
    friend bool operator==(const SloRequest&, const SloRequest&) = default;
};

struct NetworkRequest {
    bool rdma = false;
    bool reserved = false;
    bool encrypted = false;

    static constexpr void describe(auto&& field) {
        field("rdma", &NetworkRequest::rdma, "Whether tasks talk over RDMA.");
        field("reserved", &NetworkRequest::reserved, "Whether bandwidth on a NIC is reserved for it.");
        field("encrypted", &NetworkRequest::encrypted, "Whether the tenant encrypts this traffic itself.");
    }
    friend bool operator==(const NetworkRequest&, const NetworkRequest&) = default;
};

struct StorageRequest {
    std::optional<ByteSize> localNvme;
    bool encrypted = false;

    static constexpr void describe(auto&& field) {
        field("localNvme", &StorageRequest::localNvme, "Scratch space on the node's own drives, per task.",
              Rule{.min = 1});
        field("encrypted", &StorageRequest::encrypted, "Whether the tenant encrypts what it writes there itself.");
    }
    friend bool operator==(const StorageRequest&, const StorageRequest&) = default;
};

struct TopologyRequest {
    TopologyLevel within = TopologyLevel::none;
    TopologyLevel prefer = TopologyLevel::none;
    std::optional<std::int64_t> groupTasks;
    TopologyLevel groupWithin = TopologyLevel::none;

    static constexpr void describe(auto&& field) {
        field("within", &TopologyRequest::within, "All tasks must be inside one of these.");
        field("prefer", &TopologyRequest::prefer, "All tasks should be inside one of these.");
        field("groupTasks", &TopologyRequest::groupTasks,
              "Of each so many tasks, all must be inside one of groupWithin; divides tasks and minTasks.",
              Rule{.min = 1, .max = 100'000});
        field("groupWithin", &TopologyRequest::groupWithin, "Where the tasks of one group must be together.");
    }
    friend bool operator==(const TopologyRequest&, const TopologyRequest&) = default;
};

// What is run in its tier, beside the work, before it is stopped to be run again later. Ending with status 0, it says
// that the work is saved; what it printed is handed to the work when it is run again.
struct CheckpointHook {
    std::vector<std::string> command;
    Duration within{60'000};

    static constexpr void describe(auto&& field) {
        field("command", &CheckpointHook::command,
              "A program by its path or name, and its arguments. BULKHEAD_PID is the work's process, which must "
              "outlive it: "
              "work that ends while it is saved takes this with it, and counts as not saved.",
              Rule{.required = true});
        field("within", &CheckpointHook::within, "How long it may take; then the work is stopped unsaved.",
              Rule{.min = 1'000, .max = 3'600'000});
    }
    friend bool operator==(const CheckpointHook&, const CheckpointHook&) = default;
};

// Work of the vm tier brings no kernel of its own: it names one that its nodes admit.
struct VmRequest {
    std::string image;

    static constexpr void describe(auto&& field) {
        field("image", &VmRequest::image,
              "The boot image, by its name in the node's directory of images. Default: the node's own, called default.",
              Rule{.format = Format::name});
    }
    friend bool operator==(const VmRequest&, const VmRequest&) = default;
};

struct GpuWorkloadSpec {
    std::string tenant;
    std::int64_t tasks = 1;
    std::optional<std::int64_t> minTasks;
    GpuRequest gpu;
    std::optional<std::int64_t> cpu;
    std::optional<ByteSize> memory;
    IsolationRequest isolation;
    SloRequest slo;
    NetworkRequest network;
    StorageRequest storage;
    std::optional<std::int64_t> priority;
    std::optional<bool> preemptible;
    std::optional<Instant> deadline;
    std::optional<Duration> duration;
    std::optional<Duration> checkpointInterval;
    std::optional<CheckpointHook> checkpoint;
    TopologyRequest topology;
    Whereabouts placement;
    std::vector<std::string> command;
    std::vector<std::string> environment;
    std::optional<VmRequest> vm;
    RestartPolicy restartPolicy = RestartPolicy::never;
    std::int64_t backoffLimit = 6;
    std::optional<Duration> activeDeadline;
    std::optional<Duration> ttlAfterFinished;

    static constexpr void describe(auto&& field) {
        field("tenant", &GpuWorkloadSpec::tenant, "Who owns the work.", Rule{.required = true, .format = Format::name});
        field("tasks", &GpuWorkloadSpec::tasks, "How many tasks run together, all or none.",
              Rule{.min = 1, .max = 100'000});
        field("minTasks", &GpuWorkloadSpec::minTasks, "For elastic gangs: the fewest tasks worth running.",
              Rule{.min = 1, .max = 100'000});
        field("gpu", &GpuWorkloadSpec::gpu, "What each task needs of GPUs.", Rule{.required = true});
        field("cpu", &GpuWorkloadSpec::cpu, "CPU cores reserved per task.", Rule{.min = 1, .max = 4096});
        field("memory", &GpuWorkloadSpec::memory, "Host memory reserved per task.", Rule{.min = 1, .max = 1LL << 50});
        field("isolation", &GpuWorkloadSpec::isolation, "Tier and neighbours, where the default will not do.");
        field("slo", &GpuWorkloadSpec::slo, "The service level asked for.");
        field("network", &GpuWorkloadSpec::network, "What it needs of the fabric.");
        field("storage", &GpuWorkloadSpec::storage, "What it needs of local drives.");
        field("priority", &GpuWorkloadSpec::priority, "Its priority, within what the tenant was granted.",
              Rule{.min = 0, .max = 1000});
        field("preemptible", &GpuWorkloadSpec::preemptible, "Whether it may be stopped for other work.");
        field("deadline", &GpuWorkloadSpec::deadline, "When it must be done.");
        field("duration", &GpuWorkloadSpec::duration, "How long it is expected to run.", Rule{.min = 1});
        field("checkpointInterval", &GpuWorkloadSpec::checkpointInterval, "How often it can save its work.",
              Rule{.min = 1});
        field("checkpoint", &GpuWorkloadSpec::checkpoint,
              "How its work is saved when it is stopped to be run again later. None: it is stopped as it is.");
        field("topology", &GpuWorkloadSpec::topology, "How close together its tasks must or should be.");
        field("placement", &GpuWorkloadSpec::placement, "Where it may run, within what its tenant allows.");
        field(
            "command", &GpuWorkloadSpec::command,
            "What each node of the gang runs in the tier: a program by its path or name, and its arguments. None: the "
            "lease holds its GPUs until it is deleted.");
        field("environment", &GpuWorkloadSpec::environment, "Variables for the command: NAME=value.");
        field("vm", &GpuWorkloadSpec::vm, "Of work in tier vm: what its machine boots.");
        field("restartPolicy", &GpuWorkloadSpec::restartPolicy,
              "Whether it is run again when its command fails: never, or on-failure. A start that failed before any of "
              "its code ran is tried again under both.");
        field("backoffLimit", &GpuWorkloadSpec::backoffLimit,
              "How often it is tried again after failures of its own, first after 10 s, then 20 s, 40 s, up to 6 min. "
              "Evictions, drains and lost nodes do not count.",
              Rule{.min = 0, .max = 1000});
        field("activeDeadline", &GpuWorkloadSpec::activeDeadline,
              "How long after its first start it may take in all, with retries and interruptions; then it fails: 2h.",
              Rule{.min = 1'000});
        field("ttlAfterFinished", &GpuWorkloadSpec::ttlAfterFinished,
              "How long it is kept after it finished or failed; then it is deleted, and the history keeps it: 1d. "
              "Default: until it is deleted.",
              Rule{.min = 0});
    }
    friend bool operator==(const GpuWorkloadSpec&, const GpuWorkloadSpec&) = default;
};

// One run of a workload that has ended.
struct WorkAttempt {
    std::int64_t attempt = 0;
    std::string lease;
    std::vector<std::string> nodes;
    std::optional<Instant> startedAt, endedAt;
    std::optional<FailureReason> reason;
    std::optional<std::int64_t> exitStatus;
    std::string says;

    static constexpr void describe(auto&& field) {
        field("attempt", &WorkAttempt::attempt, "Which of its runs, from 1.", Rule{.required = true});
        field("lease", &WorkAttempt::lease, "Its lease.");
        field("nodes", &WorkAttempt::nodes, "Where it was.");
        field("startedAt", &WorkAttempt::startedAt, "When all of it could start; absent: it never could.");
        field("endedAt", &WorkAttempt::endedAt, "When it was asked to end.");
        field("reason", &WorkAttempt::reason, "Why it ended before its work was done; absent: it ended well.");
        field("exitStatus", &WorkAttempt::exitStatus, "How its command ended, where it did.");
        field("says", &WorkAttempt::says, "The same in words.");
    }
    friend bool operator==(const WorkAttempt&, const WorkAttempt&) = default;
};
inline constexpr std::size_t attempts_kept_max = 10;  // the newest

// The last failure that was the work's own. `final`: it is not tried again.
struct WorkFailure {
    FailureReason reason{};
    std::string says, next;
    std::optional<std::int64_t> exitStatus;
    std::string node;
    std::int64_t attempt = 0;
    bool final = false;

    static constexpr void describe(auto&& field) {
        field("reason", &WorkFailure::reason, "Why, for programs.", Rule{.required = true});
        field("says", &WorkFailure::says, "Why, in words.");
        field("next", &WorkFailure::next, "What to do.");
        field("exitStatus", &WorkFailure::exitStatus,
              "How its command ended, as a shell says it; 127: there is no such program, 126: it may not be executed.");
        field("node", &WorkFailure::node, "Where.");
        field("attempt", &WorkFailure::attempt, "In which of its runs, from 1.");
        field("final", &WorkFailure::final, "Whether that was the end of it; else it is tried again.");
    }
    friend bool operator==(const WorkFailure&, const WorkFailure&) = default;
};

// What it went through before the lease it has or waits for.
struct WorkHistory {
    std::optional<Instant> submittedAt, startedAt, retryAt;
    std::string submittedBy;
    std::int64_t starts = 0;
    std::int64_t interruptions = 0;
    std::int64_t failures = 0;
    std::vector<WorkAttempt> attempts;
    std::optional<Instant> savedAt;
    std::vector<std::string> saved;
    Duration lost;

    static constexpr void describe(auto&& field) {
        field("submittedAt", &WorkHistory::submittedAt, "When it was first applied.");
        field("submittedBy", &WorkHistory::submittedBy, "By whom.");
        field("startedAt", &WorkHistory::startedAt, "When it first ran: activeDeadline counts from here.");
        field("failures", &WorkHistory::failures, "How often it failed by its own fault: backoffLimit counts these.");
        field("retryAt", &WorkHistory::retryAt, "After a failure: it is not tried again before.");
        field("attempts", &WorkHistory::attempts, "Its last runs that have ended, ten at most, the newest last.");
        field("starts", &WorkHistory::starts, "How many leases it was given, the present one among them.");
        field("interruptions", &WorkHistory::interruptions, "How often it was stopped while it ran, to be run again.");
        field("savedAt", &WorkHistory::savedAt, "When its work was last saved on every node of it.");
        field("saved", &WorkHistory::saved,
              "What its checkpoint command printed then, node by node; each is handed to the node of that rank.");
        field("lost", &WorkHistory::lost,
              "GPU time that was spent and not saved: from its start, or at most the interval it says it saves at.");
    }
    friend bool operator==(const WorkHistory&, const WorkHistory&) = default;
};

struct WorkPrinted {
    std::int64_t out = 0, err = 0, outKept = 0;

    static constexpr void describe(auto&& field) {
        field("out", &WorkPrinted::out, "Bytes of its first stream, in all.");
        field("err", &WorkPrinted::err, "Of its second.");
        field("outKept", &WorkPrinted::outKept, "How much of output is of the first; the rest is of the second.");
    }
    friend bool operator==(const WorkPrinted&, const WorkPrinted&) = default;
};

struct GpuWorkloadStatus {
    WorkloadPhase phase = WorkloadPhase::pending;
    std::string lease;
    std::optional<Instant> since;
    std::vector<std::string> reasons;
    bool deleting = false;
    std::optional<std::int64_t> exitStatus;
    std::optional<WorkFailure> failure;
    std::string output;
    WorkPrinted printed;
    WorkHistory history;

    // It has ended, well or not, and is not run again; its lease may still be closing.
    bool is_over() const { return exitStatus || (failure && failure->final); }

    static constexpr void describe(auto&& field) {
        field("phase", &GpuWorkloadStatus::phase, "Where it stands.", Rule{.shown = true});
        field("lease", &GpuWorkloadStatus::lease, "Its lease, if it has one.");
        field("since", &GpuWorkloadStatus::since, "Since when.");
        field("reasons", &GpuWorkloadStatus::reasons, "Why it waits or was refused.");
        field("deleting", &GpuWorkloadStatus::deleting, "Deleted; it goes when its lease is closed.");
        field("exitStatus", &GpuWorkloadStatus::exitStatus,
              "How its command ended, as a shell says it: 128 and the signal for one that was killed.");
        field("failure", &GpuWorkloadStatus::failure, "Its last failure, and whether that was the end of it.");
        field("output", &GpuWorkloadStatus::output, "The end of what its command printed.");
        field("printed", &GpuWorkloadStatus::printed, "How much its command printed.");
        field("history", &GpuWorkloadStatus::history, "What it went through before.");
    }
    friend bool operator==(const GpuWorkloadStatus&, const GpuWorkloadStatus&) = default;
};

struct GpuWorkload {
    static constexpr std::string_view kind = "GpuWorkload";
    static constexpr std::string_view about = "Work that a tenant wants to run on GPUs.";
    Metadata metadata;
    GpuWorkloadSpec spec;
    std::optional<GpuWorkloadStatus> status;

    static constexpr void describe(auto&& field) {
        field("metadata", &GpuWorkload::metadata, "Name and labels.", Rule{.required = true});
        field("spec", &GpuWorkload::spec, "What is asked for.", Rule{.required = true});
        field("status", &GpuWorkload::status, "Where it stands; written by the system.");
    }
    friend bool operator==(const GpuWorkload&, const GpuWorkload&) = default;
};

}  // namespace bulkhead
