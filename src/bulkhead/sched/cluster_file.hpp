// A cluster in one short document that a person writes by hand to ask "who would get what?":
//
//     kind: Cluster
//     gpus: 12
//     tenants:
//       - {name: research, guarantee: 4, weight: 2}
//       - {name: vision, parent: research, request: 10}
//
// Strict like every other document: all errors, each with its place. apiVersion may be left out.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/model/tenant.hpp"
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
    }
    friend bool operator==(const ClusterTenant&, const ClusterTenant&) = default;
};

struct Cluster {
    static constexpr std::string_view kind = "Cluster";
    static constexpr std::string_view about = "GPUs, and the tenants among whom they are divided.";
    Gpus gpus;
    std::vector<ClusterTenant> tenants;

    static constexpr void describe(auto&& field) {
        field("gpus", &Cluster::gpus, "How many GPUs there are.", Rule{.required = true, .min = 0, .max = most_gpus});
        field("tenants", &Cluster::tenants, "The tenants, in any order.");
    }
    friend bool operator==(const Cluster&, const Cluster&) = default;
};

// Whether a text holds a document that is, or was meant to be, of this kind.
bool holds_cluster(std::string_view text);

// One document; its tenants have names of their own and parents that form trees.
std::expected<Cluster, std::vector<Diagnostic>> read_cluster(std::string_view file, std::string_view text);

}  // namespace bulkhead::sched
