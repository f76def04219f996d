// Work of a cluster that a person writes by hand: what waits, and what runs already and where.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::sched {

inline constexpr std::int64_t most_cluster_tasks = 1'000'000;
inline constexpr std::int64_t most_span_ms = 100LL * 365 * 24 * 3'600'000;  // a hundred years

struct ClusterIsolation {
    Tier tier = Tier::container;
    PeerTrust node = PeerTrust::same_domain;
    PeerTrust gpu = PeerTrust::same_domain;

    static constexpr void describe(auto&& field) {
        field("tier", &ClusterIsolation::tier, "The tier it runs in. Default: container.");
        field("node", &ClusterIsolation::node,
              "The least trusted tenant that may run on the same node. Default: same-domain.");
        field("gpu", &ClusterIsolation::gpu,
              "The least trusted tenant that may run on the same GPU. Default: same-domain.");
    }
    friend bool operator==(const ClusterIsolation&, const ClusterIsolation&) = default;
};

struct ClusterJob {
    std::string name;
    std::int64_t count = 1;
    std::string tenant;
    std::int64_t tasks = 1;
    std::optional<std::int64_t> minTasks;
    std::optional<Gpus> gpus;
    std::string profile;
    std::optional<ByteSize> gpuMemory;
    std::optional<Mechanism> mechanism;
    std::vector<std::string> models;
    std::optional<std::int64_t> cpu;
    std::optional<ByteSize> memory, nvme;
    bool rdma = false;
    TopologyLevel within = TopologyLevel::none, prefer = TopologyLevel::none;
    std::optional<std::int64_t> groupTasks;
    TopologyLevel groupWithin = TopologyLevel::none;
    std::int64_t priority = 0;
    bool preemptible = true;
    std::optional<Duration> duration;
    std::optional<Instant> deadline;
    std::optional<Duration> deadlineIn;
    std::optional<Duration> checkpoint;
    ClusterIsolation isolation;
    Duration waited;
    std::vector<std::string> on;
    Duration ran;

    static constexpr void describe(auto&& field) {
        const Rule some_tasks{.min = 1, .max = 100'000}, some_bytes{.min = 1, .max = 1LL << 50};
        const Rule some_time{.min = 1, .max = most_span_ms}, any_time{.min = 0, .max = most_span_ms};
        field("name", &ClusterJob::name, "Its name, unique in the cluster.",
              Rule{.required = true, .format = Format::name});
        field("count", &ClusterJob::count, "How many such jobs; more than one are called name-1, name-2, ...",
              some_tasks);
        field("tenant", &ClusterJob::tenant, "Whose it is; one that is not listed is a root. Default: default.",
              Rule{.format = Format::name});
        field("tasks", &ClusterJob::tasks, "How many tasks start together, all or none. Default: 1.", some_tasks);
        field("minTasks", &ClusterJob::minTasks, "Elastic: the fewest tasks worth running.", some_tasks);
        field("gpus", &ClusterJob::gpus,
              "GPUs for each task: a whole number, or a fraction below 1; 0: none. Default: 1.",
              Rule{.min = 0, .max = 64 * gpu_unit});
        field("profile", &ClusterJob::profile,
              "Instead of gpus: a MIG profile (3g.40gb) or AMD partition for each task.", Rule{.format = Format::line});
        field("gpuMemory", &ClusterJob::gpuMemory, "Instead of gpus: an amount of one GPU's memory for each task.",
              some_bytes);
        field("mechanism", &ClusterJob::mechanism,
              "How the GPU is divided. Default: whole for whole GPUs, mig for a profile, mps for the rest.");
        field("models", &ClusterJob::models, "Only these GPU models. Default: any.", Rule{.format = Format::line});
        field("cpu", &ClusterJob::cpu, "CPU cores for each task.", Rule{.min = 0, .max = 65'536});
        field("memory", &ClusterJob::memory, "Host memory for each task.", some_bytes);
        field("nvme", &ClusterJob::nvme, "For each task one drive of at least this size.", some_bytes);
        field("rdma", &ClusterJob::rdma, "For each task one virtual function of a NIC.");
        field("within", &ClusterJob::within, "All tasks must be inside one of these.");
        field("prefer", &ClusterJob::prefer, "All tasks should be inside one of these.");
        field("groupTasks", &ClusterJob::groupTasks,
              "Of each so many tasks, all must be inside one of groupWithin; divides tasks and minTasks.", some_tasks);
        field("groupWithin", &ClusterJob::groupWithin, "Where the tasks of one group must be together.");
        field("priority", &ClusterJob::priority, "Within its tenant the higher goes first.",
              Rule{.min = 0, .max = 1000});
        field("preemptible", &ClusterJob::preemptible, "Whether it may be stopped for other work. Default: true.");
        field("duration", &ClusterJob::duration, "How long it is expected to run.", some_time);
        field("deadline", &ClusterJob::deadline, "When it must be done.");
        field("deadlineIn", &ClusterJob::deadlineIn, "Instead of deadline: how long from now.", some_time);
        field("checkpoint", &ClusterJob::checkpoint, "How often it saves its work; left out: never.", some_time);
        field("isolation", &ClusterJob::isolation, "Tier and neighbours.");
        field("waited", &ClusterJob::waited, "How long it has waited.", any_time);
        field("on", &ClusterJob::on, "It runs: the node of each task, or one node for all of them.",
              Rule{.format = Format::name});
        field("ran", &ClusterJob::ran, "How long it has run.", any_time);
    }
    friend bool operator==(const ClusterJob&, const ClusterJob&) = default;
};

}  // namespace bulkhead::sched
