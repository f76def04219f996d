// Tenant: who owns work; whom it trusts, what it is owed, what it accepts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/model/meta.hpp"
#include "bulkhead/model/role.hpp"

namespace bulkhead {

struct DomainMembership {
    std::string name;
    std::optional<Consent> consent;

    static constexpr void describe(auto&& field) {
        field("name", &DomainMembership::name, "A trust domain of the FleetPolicy.",
              Rule{.required = true, .format = Format::name});
        field("consent", &DomainMembership::consent, "The tenant's own consent to be in it.");
    }
    friend bool operator==(const DomainMembership&, const DomainMembership&) = default;
};

inline constexpr std::int64_t most_gpus = 1'000'000'000 * gpu_unit;  // sums of 400,000 such numbers stay exact
inline constexpr std::int64_t most_weight = 1'000'000, most_over_quota_priority = 1000;

struct Quota {
    Gpus guarantee;
    std::string guaranteeUnit = "gpu";
    std::optional<Gpus> limit;
    std::int64_t weight = 1;
    std::int64_t overQuotaPriority = 0;
    std::optional<Duration> reclaimMinRuntime, preemptMinRuntime;

    static constexpr void describe(auto&& field) {
        field("guarantee", &Quota::guarantee, "GPUs that are this tenant's whenever it wants them.",
              Rule{.min = 0, .max = most_gpus});
        field(
            "guaranteeUnit", &Quota::guaranteeUnit,
            "What the guarantee counts: gpu; node, whole nodes of its own; 8-gpu-node, whole nodes of at least 8 GPUs; "
            "or a MIG profile such as 1g.10gb.",
            Rule{.format = Format::line});
        field("limit", &Quota::limit, "The most it may ever hold.", Rule{.min = 0, .max = most_gpus});
        field("weight", &Quota::weight, "Its share of what is idle, relative to its siblings; 0: nothing of it.",
              Rule{.min = 0, .max = most_weight});
        field("overQuotaPriority", &Quota::overQuotaPriority,
              "Whose turn it is for what is idle: siblings of a higher number first.",
              Rule{.min = 0, .max = most_over_quota_priority});
        field("reclaimMinRuntime", &Quota::reclaimMinRuntime,
              "How long its work runs at least before it is reclaimed. Default: as the tenant above it, else 0s.",
              Rule{.min = 0});
        field("preemptMinRuntime", &Quota::preemptMinRuntime,
              "How long its work runs at least before it is preempted. Default: as the tenant above it, else 0s.",
              Rule{.min = 0});
    }
    friend bool operator==(const Quota&, const Quota&) = default;
};

struct AcceptedRisk {
    Risk risk{};
    std::string by;
    Instant at;

    static constexpr void describe(auto&& field) {
        field("risk", &AcceptedRisk::risk, "The disclosed risk that is accepted.", Rule{.required = true});
        field("by", &AcceptedRisk::by, "Who accepts it: a person or role that can be asked.",
              Rule{.required = true, .format = Format::line});
        field("at", &AcceptedRisk::at, "When, in UTC.", Rule{.required = true});
    }
    friend bool operator==(const AcceptedRisk&, const AcceptedRisk&) = default;
};

struct TenantSpec {
    std::string parent;
    std::string tenantClass;
    std::optional<DomainMembership> trustDomain;
    OperatorTrust operatorTrust = OperatorTrust::trusted;
    Quota quota;
    Compliance compliance = Compliance::off;
    std::int64_t priorityGrant = 0;
    std::vector<AcceptedRisk> accepts;
    Whereabouts placement;
    std::vector<RoleBinding> bindings;

    static constexpr void describe(auto&& field) {
        field("parent", &TenantSpec::parent, "The tenant this one is part of; empty: a root.");
        field("class", &TenantSpec::tenantClass, "Its TenantClass.", Rule{.required = true, .format = Format::name});
        field("trustDomain", &TenantSpec::trustDomain, "The domain of tenants it trusts; none: it trusts nobody.");
        field("operatorTrust", &TenantSpec::operatorTrust, "Whether it trusts whoever runs the machines.");
        field("quota", &TenantSpec::quota, "What it is owed.");
        field("compliance", &TenantSpec::compliance, "The Security & Compliance switch, and which way it is kept.");
        field("priorityGrant", &TenantSpec::priorityGrant, "The highest priority granted to it.",
              Rule{.min = 0, .max = 1000});
        field("accepts", &TenantSpec::accepts, "Disclosed risks it accepts by name.");
        field("placement", &TenantSpec::placement, "Where its work and data may be.");
        field("bindings", &TenantSpec::bindings, "Who of the identity provider's people are its admins and users.");
    }
    friend bool operator==(const TenantSpec&, const TenantSpec&) = default;
};

struct TenantStatus {
    TenantPhase phase = TenantPhase::active;
    bool legalHold = false;
    std::string why;

    static constexpr void describe(auto&& field) {
        field("phase", &TenantStatus::phase, "Active, frozen in an incident, or leaving.", Rule{.shown = true});
        field("legalHold", &TenantStatus::legalHold, "What it leaves is kept instead of wiped.");
        field("why", &TenantStatus::why, "Why it is frozen or held.");
    }
    friend bool operator==(const TenantStatus&, const TenantStatus&) = default;
};

struct Tenant {
    static constexpr std::string_view kind = "Tenant";
    static constexpr std::string_view about = "Who owns work: trust, class, quota, compliance.";
    Metadata metadata;
    TenantSpec spec;
    std::optional<TenantStatus> status;

    static constexpr void describe(auto&& field) {
        field("metadata", &Tenant::metadata, "Name and labels.", Rule{.required = true});
        field("spec", &Tenant::spec, "What the tenant is.", Rule{.required = true});
        field("status", &Tenant::status, "Where it stands; written by the system.");
    }
    friend bool operator==(const Tenant&, const Tenant&) = default;
};

}  // namespace bulkhead
