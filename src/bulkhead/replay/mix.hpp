// What a fleet is made of and what is asked of it, in one short document, to be measured against:
//
//     kind: FleetMix
//     full: 0.9
//     tenants: {departments: 20, teams: 12, domainOf: 4, alone: 20, vm: 10, hard: 5, idle: 10}
//     nodes:
//       - {model: h100-80gb-sxm5, cpu: 192, memory: 2Ti}
//     jobs:
//       - {weight: 3, gpus: 1, cpu: [8], memory: [64Gi]}
//       - {weight: 1, fraction: [0.05, 0.95], variants: 20, cpu: [1, 15], memory: [3Gi, 61Gi]}
//
// How many nodes there are is not in it: the same mix is tried at every size. What is made of it and a seed is in
// mix_fleet.hpp. Strict like every other document: all errors, each with its place. apiVersion may be left out.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/meta.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::replay {

inline constexpr std::int64_t most_mix_tenants = 10'000;
inline constexpr std::int64_t most_mix_memory = std::int64_t{1} << 50;

struct MixTenants {
    std::int64_t departments = 1;
    std::int64_t teams = 0;
    std::int64_t domainOf = 1;
    std::int64_t alone = 0, vm = 0, hard = 0, idle = 0;  // percent
    std::int64_t guaranteed = 70;                        // percent

    static constexpr void describe(auto&& field) {
        constexpr Rule percent{.min = 0, .max = 100};
        field("departments", &MixTenants::departments, "How many roots the tree of tenants has.",
              Rule{.min = 1, .max = 1000});
        field("teams", &MixTenants::teams, "How many teams each department has; 0: it works itself.",
              Rule{.min = 0, .max = 1000});
        field("domainOf", &MixTenants::domainOf, "How many neighbouring teams form one trust domain.",
              Rule{.min = 1, .max = 1000});
        field("alone", &MixTenants::alone, "Percent of the teams that trust nobody.", percent);
        field("vm", &MixTenants::vm,
              "Percent of the teams that run in virtual machines, and bear strangers on their nodes and GPUs.",
              percent);
        field("hard", &MixTenants::hard, "Percent of the teams whose guarantee is never lent and never exceeded.",
              percent);
        field("idle", &MixTenants::idle, "Percent of the teams that ask for nothing, until they claim their due.",
              percent);
        field("guaranteed", &MixTenants::guaranteed, "Percent of all GPUs that are guaranteed to somebody.", percent);
    }
    friend bool operator==(const MixTenants&, const MixTenants&) = default;
};

struct MixTopology {
    std::int64_t nodesPerLeaf = 16, leavesPerRack = 2, racksPerZone = 16, zonesPerSite = 8;

    static constexpr void describe(auto&& field) {
        constexpr Rule some{.min = 1, .max = 1000};
        field("nodesPerLeaf", &MixTopology::nodesPerLeaf, "Nodes on one leaf switch.", some);
        field("leavesPerRack", &MixTopology::leavesPerRack, "Leaves in one rack.", some);
        field("racksPerZone", &MixTopology::racksPerZone, "Racks in one zone.", some);
        field("zonesPerSite", &MixTopology::zonesPerSite, "Zones of one site.", some);
    }
    friend bool operator==(const MixTopology&, const MixTopology&) = default;
};

// One sort of nodes. A rack has one sort.
struct MixNodes {
    std::int64_t weight = 1;
    std::string model;
    std::int64_t gpus = 8;
    std::int64_t cpu = 0;
    ByteSize memory;
    bool boardIsOne = false;
    std::int64_t cut = 0;  // percent

    static constexpr void describe(auto&& field) {
        field("weight", &MixNodes::weight, "How many there are, against the other sorts.",
              Rule{.min = 0, .max = 1'000'000});
        field("model", &MixNodes::model, "The GPU model; one that `bulkhead mig boards` lists can be cut.",
              Rule{.required = true, .format = Format::name});
        field("gpus", &MixNodes::gpus, "GPUs of one node.", Rule{.min = 1, .max = 16});
        field("cpu", &MixNodes::cpu, "Cores of one node.", Rule{.required = true, .min = 1, .max = 4096});
        field("memory", &MixNodes::memory, "Memory of one node.",
              Rule{.required = true, .min = 1, .max = most_mix_memory});
        field("boardIsOne", &MixNodes::boardIsOne, "NVLink joins all GPUs of a node and cannot be partitioned.");
        field("cut", &MixNodes::cut,
              "Percent of these nodes on which instances of somebody's sit for good, at odd places.",
              Rule{.min = 0, .max = 100});
    }
    friend bool operator==(const MixNodes&, const MixNodes&) = default;
};

// One sort of jobs. Lists of one value mean it, of two anything between them.
struct MixJobs {
    std::int64_t weight = 1;
    std::optional<std::int64_t> gpus;
    std::vector<Gpus> fraction;
    std::string profile;
    std::string model;
    std::int64_t tasks = 1;
    TopologyLevel within = TopologyLevel::none;
    std::int64_t group = 0;
    TopologyLevel groupWithin = TopologyLevel::none;
    std::vector<std::int64_t> cpu;
    std::vector<ByteSize> memory;
    std::int64_t variants = 1;
    std::int64_t priority = 0;
    std::int64_t preemptible = 100;  // percent

    static constexpr void describe(auto&& field) {
        field("weight", &MixJobs::weight, "How many there are, against the other sorts.",
              Rule{.min = 0, .max = 1'000'000});
        field("gpus", &MixJobs::gpus, "Whole GPUs of one task.", Rule{.min = 1, .max = 16});
        field("fraction", &MixJobs::fraction, "The part of one GPU that a task shares under MPS, in hundredths.",
              Rule{.min = gpu_unit / 100, .max = gpu_unit * 99 / 100});
        field("profile", &MixJobs::profile, "The MIG profile of one task.");
        field("model", &MixJobs::model, "The model it insists on; empty: any.", Rule{.format = Format::name});
        field("tasks", &MixJobs::tasks, "Tasks that start together.", Rule{.min = 1, .max = 4096});
        field("within", &MixJobs::within, "Where all tasks must be together.");
        field("group", &MixJobs::group, "Tasks that must be together in one groupWithin; divides tasks. 0: no groups.",
              Rule{.min = 0, .max = 4096});
        field("groupWithin", &MixJobs::groupWithin, "Where the tasks of a group must be together.");
        field("cpu", &MixJobs::cpu, "Cores of one task.", Rule{.min = 0, .max = 4096});
        field("memory", &MixJobs::memory, "Memory of one task, in steps of 1 MiB.",
              Rule{.min = 0, .max = most_mix_memory});
        field("variants", &MixJobs::variants, "How many different requests are drawn from the lists above.",
              Rule{.min = 1, .max = 10'000});
        field("priority", &MixJobs::priority, "Its priority.", Rule{.min = 0, .max = 1000});
        field("preemptible", &MixJobs::preemptible, "Percent of the jobs that may be stopped for others.",
              Rule{.min = 0, .max = 100});
    }
    friend bool operator==(const MixJobs&, const MixJobs&) = default;
};

struct FleetMix {
    static constexpr std::string_view kind = "FleetMix";
    static constexpr std::string_view about = "What a fleet is made of, and what is asked of it.";
    Gpus full = Gpus::of_thousandths(900);
    Gpus dirty, quarantined;
    MixTenants tenants;
    MixTopology topology;
    std::vector<MixNodes> nodes;
    std::vector<MixJobs> jobs;

    static constexpr void describe(auto&& field) {
        field("full", &FleetMix::full, "The part of all GPUs that is in use while decisions are measured.",
              Rule{.min = gpu_unit / 1000, .max = gpu_unit});
        field("dirty", &FleetMix::dirty, "The part of all GPUs that is being wiped, wholly or some slices.",
              Rule{.min = 0, .max = gpu_unit / 2});
        field("quarantined", &FleetMix::quarantined, "The part of all GPUs that waits for a person.",
              Rule{.min = 0, .max = gpu_unit / 2});
        field("tenants", &FleetMix::tenants, "Whose work it is.");
        field("topology", &FleetMix::topology, "Where nodes stand.");
        field("nodes", &FleetMix::nodes, "The sorts of nodes.", Rule{.required = true});
        field("jobs", &FleetMix::jobs, "The sorts of jobs.", Rule{.required = true});
    }
    friend bool operator==(const FleetMix&, const FleetMix&) = default;
};

// One document, whose every sort of jobs fits onto some sort of nodes while that is empty.
std::expected<FleetMix, std::vector<Diagnostic>> read_mix(std::string_view file, std::string_view text);

}  // namespace bulkhead::replay
