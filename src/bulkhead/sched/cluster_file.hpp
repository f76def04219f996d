// A cluster in one short document that a person writes by hand to ask "who would get what?" and "what would run
// where?":
//
//     kind: Cluster
//     nodes:
//       - {name: n, count: 2}
//     tenants:
//       - {name: research, guarantee: 4, weight: 2}
//       - {name: vision, parent: research, request: 10}
//     jobs:
//       - {name: train, tenant: vision, tasks: 2, gpus: 8}
//
// Strict like every other document: all errors, each with its place. apiVersion may be left out.
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/model/tenant.hpp"
#include "bulkhead/sched/cluster_job.hpp"
#include "bulkhead/sched/cluster_node.hpp"
#include "bulkhead/sched/fair_tree.hpp"

namespace bulkhead::sched {

struct ClusterTenant {
    std::string name;
    std::string parent;
    Gpus guarantee;
    std::optional<Gpus> limit;
    std::int64_t weight = 1;
    std::int64_t overQuotaPriority = 0;
    std::optional<std::int64_t> shares;
    Gpus request;
    std::int64_t usage = 0;
    std::optional<Instant> since;
    std::string domain;
    bool hard = false;
    std::int64_t priorityGrant = 1000;
    std::optional<Duration> reclaimMinRuntime, preemptMinRuntime;

    static constexpr void describe(auto&& field) {
        field("name", &ClusterTenant::name, "Its name, unique in the cluster.",
              Rule{.required = true, .format = Format::name});
        field("parent", &ClusterTenant::parent, "The tenant this one is part of; empty: a root.",
              Rule{.format = Format::name});
        field("guarantee", &ClusterTenant::guarantee, "GPUs that are this tenant's whenever it wants them.",
              Rule{.min = 0, .max = most_gpus});
        field("limit", &ClusterTenant::limit, "The most it may ever hold.", Rule{.min = 0, .max = most_gpus});
        field("weight", &ClusterTenant::weight,
              "Its share of what is idle, relative to its siblings; 0: nothing of it.",
              Rule{.min = 0, .max = most_weight});
        field("overQuotaPriority", &ClusterTenant::overQuotaPriority,
              "Whose turn it is for what is idle: siblings of a higher number first.",
              Rule{.min = 0, .max = most_over_quota_priority});
        field("shares", &ClusterTenant::shares, "Its shares in Fair Tree. Default: its weight.",
              Rule{.min = 0, .max = most_shares});
        field("request", &ClusterTenant::request, "GPUs that its own work asks for, without its children's.",
              Rule{.min = 0, .max = most_gpus});
        field("usage", &ClusterTenant::usage, "GPU-seconds that its own work has used, as far as they still count.",
              Rule{.min = 0, .max = most_usage});
        field("since", &ClusterTenant::since,
              "Since when it exists: the older wins a tie. Default: after all who say; these go by name.");
        field("domain", &ClusterTenant::domain,
              "The trust domain it is in. Default: one that all are in who name none, so that they share nodes.",
              Rule{.format = Format::name});
        field("hard", &ClusterTenant::hard, "A hard partition: its guarantee is never lent and never exceeded.");
        field("priorityGrant", &ClusterTenant::priorityGrant,
              "The highest priority that a near deadline may raise its work to. Default: 1000.",
              Rule{.min = 0, .max = 1000});
        field("reclaimMinRuntime", &ClusterTenant::reclaimMinRuntime,
              "How long its work runs at least before it is reclaimed. Default: as the tenant above it.",
              Rule{.min = 0, .max = most_span_ms});
        field("preemptMinRuntime", &ClusterTenant::preemptMinRuntime,
              "How long its work runs at least before it is preempted. Default: as the tenant above it.",
              Rule{.min = 0, .max = most_span_ms});
    }
    friend bool operator==(const ClusterTenant&, const ClusterTenant&) = default;
};

struct ClusterSettings {
    std::optional<Duration> halfLife, staleGrace, reclaimMinRuntime, preemptMinRuntime;
    std::optional<std::int64_t> reservations;

    static constexpr void describe(auto&& field) {
        const Rule any_time{.min = 0, .max = most_span_ms};
        field("halfLife", &ClusterSettings::halfLife, "After this time past usage counts half. Default: 7d.",
              Rule{.min = 1, .max = most_span_ms});
        field("staleGrace", &ClusterSettings::staleGrace,
              "How long a gang may run with fewer tasks than its minimum. Default: 1m.", any_time);
        field("reclaimMinRuntime", &ClusterSettings::reclaimMinRuntime,
              "How long work runs at least before it is reclaimed, where no tenant says. Default: 0s.", any_time);
        field("preemptMinRuntime", &ClusterSettings::preemptMinRuntime,
              "How long work runs at least before it is preempted, where no tenant says. Default: 0s.", any_time);
        field("reservations", &ClusterSettings::reservations,
              "How many waiting gangs may keep room free for themselves. Default: 4.", Rule{.min = 0, .max = 1000});
    }
    friend bool operator==(const ClusterSettings&, const ClusterSettings&) = default;
};

struct Cluster {
    static constexpr std::string_view kind = "Cluster";
    static constexpr std::string_view about = "Nodes or a number of GPUs, tenants, and their jobs.";
    std::optional<Gpus> gpus;  // or nodes
    std::vector<ClusterTenant> tenants;
    std::vector<ClusterNode> nodes;
    std::vector<ClusterJob> jobs;
    Instant now{1'767'225'600'000};
    ClusterSettings settings;

    // As said, or those of the nodes.
    Gpus all_gpus() const;

    static constexpr void describe(auto&& field) {
        field("gpus", &Cluster::gpus, "How many GPUs there are. Default: those of the nodes.",
              Rule{.min = 0, .max = most_gpus});
        field("tenants", &Cluster::tenants, "The tenants, in any order.");
        field("nodes", &Cluster::nodes, "The machines.");
        field("jobs", &Cluster::jobs, "What runs and what waits; of two alike the earlier goes first.");
        field("now", &Cluster::now, "The moment that is asked about. Default: 2026-01-01T00:00:00Z.");
        field("settings", &Cluster::settings, "How the scheduler is set, where the default will not do.");
    }
    friend bool operator==(const Cluster&, const Cluster&) = default;
};

// What several alike are called: the name itself, or name-1, name-2, ...
std::string numbered(const std::string& name, std::int64_t count, std::int64_t at);

// Whether a text holds a document that is, or was meant to be, of this kind.
bool holds_cluster(std::string_view text);

// One document; its tenants have names of their own and parents that form trees, its nodes and jobs names of their own,
// and jobs that run do so on nodes that are there.
std::expected<Cluster, std::vector<Diagnostic>> read_cluster(std::string_view file, std::string_view text);

// Something that is wrong with one job or node of a cluster that was read.
struct Misfit {
    std::string_view list;  // "jobs", "nodes"
    std::size_t index = 0;
    std::string_view field;
    std::string what, remedy;
};
// Where that is written in the same text.
std::vector<Diagnostic> located(std::string_view file, std::string_view text, std::span<const Misfit> misfits);

}  // namespace bulkhead::sched
