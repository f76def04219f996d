// TenantClass: fixes mechanism, quota model, tier and service level together, so that what is sold is what is enforced.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/model/meta.hpp"

namespace bulkhead {

struct Sharing {
    PeerTrust node = PeerTrust::same_tenant;
    PeerTrust gpu = PeerTrust::same_tenant;

    static constexpr void describe(auto&& field) {
        field("node", &Sharing::node, "The least trusted tenant that may run on the same node.");
        field("gpu", &Sharing::gpu, "The least trusted tenant that may run on the same GPU.");
    }
    friend bool operator==(const Sharing&, const Sharing&) = default;
};

struct PriorityRange {
    std::int64_t usual = 0;
    std::int64_t highest = 0;

    static constexpr void describe(auto&& field) {
        field("usual", &PriorityRange::usual, "What a workload gets that names none.", Rule{.min = 0, .max = 1000});
        field("highest", &PriorityRange::highest, "The most a workload of this class may ask for.",
              Rule{.min = 0, .max = 1000});
    }
    friend bool operator==(const PriorityRange&, const PriorityRange&) = default;
};

struct TenantClassSpec {
    std::string description;
    std::vector<Mechanism> mechanisms;
    bool fractions = false;
    QuotaModel quota = QuotaModel::fair_share;
    Slo slo = Slo::soft;
    Tier tier = Tier::container;
    Sharing sharing;
    Preemption preemption = Preemption::allowed;
    PriorityRange priority;
    Duration reclaimBound = Duration{300'000};

    static constexpr void describe(auto&& field) {
        field("description", &TenantClassSpec::description, "For whom this class is.");
        field("mechanisms", &TenantClassSpec::mechanisms,
              "How GPUs may be divided for this class, the preferred one first.", Rule{.required = true});
        field("fractions", &TenantClassSpec::fractions, "Whether work may ask for a fraction of a GPU.");
        field("quota", &TenantClassSpec::quota,
              "hard: N GPUs, never lent, never exceeded. fair-share: a target; idle GPUs are lent and reclaimed.");
        field("slo", &TenantClassSpec::slo, "The strongest service level this class may ask for.");
        field("tier", &TenantClassSpec::tier, "The weakest tier this class runs in; trust may demand more.");
        field("sharing", &TenantClassSpec::sharing, "With whom, at most, nodes and GPUs are shared.");
        field("preemption", &TenantClassSpec::preemption, "Whether its work may, must or must not be preemptible.");
        field("priority", &TenantClassSpec::priority, "Priorities of this class.");
        field(
            "reclaimBound", &TenantClassSpec::reclaimBound,
            "Lent guaranteed GPUs should come back within this. A contract states the bound that holds, part by part.",
            Rule{.min = 0});
    }
    friend bool operator==(const TenantClassSpec&, const TenantClassSpec&) = default;
};

struct TenantClass {
    static constexpr std::string_view kind = "TenantClass";
    static constexpr std::string_view about = "Mechanism, quota, tier and service level of a kind of tenant, together.";
    Metadata metadata;
    TenantClassSpec spec;

    static constexpr void describe(auto&& field) {
        field("metadata", &TenantClass::metadata, "Name and labels.", Rule{.required = true});
        field("spec", &TenantClass::spec, "What the class fixes.", Rule{.required = true});
    }
    friend bool operator==(const TenantClass&, const TenantClass&) = default;
};

}  // namespace bulkhead
