// What policy answers. A Contract says what a workload gets, what stays open and what reclaim does; a Refusal lists
// every objection and the nearest request that would be accepted. Both are described, so every door prints them alike.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bulkhead/base/reason.hpp"
#include "bulkhead/model/tenant_class.hpp"
#include "bulkhead/model/workload.hpp"
#include "bulkhead/policy/catalogue.hpp"
#include "bulkhead/policy/objection.hpp"

namespace bulkhead {

// With whom, at most, each layer is shared. The scheduler keeps to it; the invariants check it.
struct SharingScope {
    PeerTrust node = PeerTrust::same_tenant;
    PeerTrust gpu = PeerTrust::same_tenant;
    PeerTrust instance = PeerTrust::same_tenant;
    PeerTrust nvlink = PeerTrust::same_tenant;

    static constexpr void describe(auto&& field) {
        field("node", &SharingScope::node, "The least trusted tenant on the same node.");
        field("gpu", &SharingScope::gpu, "The least trusted tenant on the same GPU.");
        field("instance", &SharingScope::instance, "The least trusted tenant in the same GPU instance or memory.");
        field("nvlink", &SharingScope::nvlink,
              "The least trusted tenant in the same NVLink partition; in the whole board or domain where it cannot be "
              "partitioned.");
    }
    friend bool operator==(const SharingScope&, const SharingScope&) = default;
};

// What an isolation request closes beyond the rules: for each layer the least trusted tenant that the rules alone would
// let in. Capacity of the layer that no lease holds counts against the tenant's limit and is metered.
struct AskedExclusivity {
    std::optional<PeerTrust> node, gpu;

    static constexpr void describe(auto&& field) {
        field("node", &AskedExclusivity::node, "On the same node; absent: the request closes no more than the rules.");
        field("gpu", &AskedExclusivity::gpu, "On the same GPU; absent: the request closes no more than the rules.");
    }
    bool any() const { return node || gpu; }
    friend bool operator==(const AskedExclusivity&, const AskedExclusivity&) = default;
};

// What happens to the host's kernel between tenants that distrust each other.
enum class Handover : std::uint8_t {
    own_kernel,        // the tenant never ran on it: a VM or confidential VM
    verified_reboot,   // the node reboots to a known image, and that is verified, before a distrusting tenant
    same_domain_only,  // the node cannot prove what it booted, so it stays with this trust domain
    excepted_only,     // likewise, and with the tenants of the exception in force
};
constexpr auto words(Handover) {
    return std::to_array<Words>({"own-kernel", "verified-reboot", "same-domain-only", "excepted-only"});
}

// What a contract holds, with how it is known.
struct Held {
    std::string subject;
    Strength strength = Strength::none;
    Grade grade = Grade::assumed;
    std::string says;
    std::string source;

    static constexpr void describe(auto&& field) {
        field("subject", &Held::subject, "What it is about.", Rule{.required = true});
        field("strength", &Held::strength, "How well it is kept apart.", Rule{.required = true});
        field("grade", &Held::grade, "How that is known.", Rule{.required = true});
        field("says", &Held::says, "The claim.", Rule{.required = true});
        field("source", &Held::source, "Where it is written or measured.");
    }
    friend bool operator==(const Held&, const Held&) = default;
};

struct ReclaimStep {
    std::string name;
    std::string says;

    static constexpr void describe(auto&& field) {
        field("name", &ReclaimStep::name, "The step.", Rule{.required = true});
        field("says", &ReclaimStep::says, "What must be verified before anyone else gets it.", Rule{.required = true});
    }
    friend bool operator==(const ReclaimStep&, const ReclaimStep&) = default;
};

// The longest time until work within its tenant's guarantee starts, if removing unprotected preemptible work makes
// room for it: the sum of what the policy and the limits of nodes allow. A failed wipe, a lost node or a legal hold
// begins it anew.
struct StartBound {
    Duration minRuntime, save, stop, wipe, reboot, total, aim;

    static constexpr void describe(auto&& field) {
        field("minRuntime", &StartBound::minRuntime,
              "The longest reclaimMinRuntime of a tenant: so long work runs at least before it gives way.");
        field("save", &StartBound::save, "Time to save a checkpoint: checkpointAtMost of the FleetPolicy.");
        field("stop", &StartBound::stop, "Time to stop its processes.");
        field("wipe", &StartBound::wipe, "Time to destroy instances and to wipe memory, drives and virtual functions.");
        field("reboot", &StartBound::reboot,
              "Time for a verified reboot of the host; 0s: no node that may serve it is rebooted between tenants.");
        field("total", &StartBound::total, "The sum.", Rule{.required = true});
        field("aim", &StartBound::aim, "The reclaimBound of the class: what is aimed at, not what is promised.");
    }
    friend bool operator==(const StartBound&, const StartBound&) = default;
};

// An exception this contract relies on.
struct ExceptionInForce {
    std::string name;
    std::vector<std::string> tenants;
    Tier tier{};
    Instant expires;

    static constexpr void describe(auto&& field) {
        field("name", &ExceptionInForce::name, "Its name.", Rule{.required = true});
        field("tenants", &ExceptionInForce::tenants, "Whom alone it covers.", Rule{.required = true});
        field("tier", &ExceptionInForce::tier, "The tier in force between them.", Rule{.required = true});
        field("expires", &ExceptionInForce::expires, "When it ends.", Rule{.required = true});
    }
    friend bool operator==(const ExceptionInForce&, const ExceptionInForce&) = default;
};

// What one task gets on a GPU model.
struct Slice {
    std::string model;
    std::string slice;
    std::string engines;

    static constexpr void describe(auto&& field) {
        field("model", &Slice::model, "The GPU model.", Rule{.required = true});
        field("slice", &Slice::slice, "What a task holds of it.", Rule{.required = true});
        field("engines", &Slice::engines, "SMs and engines that come with it, as this profile really has them.");
    }
    friend bool operator==(const Slice&, const Slice&) = default;
};

// One objection in words, for whoever is asking.
struct Objected {
    std::string code;
    std::int64_t rule = 0;
    std::string says;
    std::string remedy;

    static constexpr void describe(auto&& field) {
        field("code", &Objected::code, "Stable code of the objection.", Rule{.required = true});
        field("rule", &Objected::rule, "Which of the eight rules; 0: class, quota or geometry.");
        field("says", &Objected::says, "The object, the rule, the numbers.", Rule{.required = true});
        field("remedy", &Objected::remedy, "The next step.");
    }
    friend bool operator==(const Objected&, const Objected&) = default;
};

struct ExcludedNodes {
    std::vector<std::string> nodes;
    std::vector<Objected> objections;

    static constexpr void describe(auto&& field) {
        field("nodes", &ExcludedNodes::nodes, "Nodes in the same situation.");
        field("objections", &ExcludedNodes::objections, "Everything that speaks against them.", Rule{.required = true});
    }
    friend bool operator==(const ExcludedNodes&, const ExcludedNodes&) = default;
};

// A capability of the nodes that the contract leans on, at the weakest grade among those that may serve it.
struct ReliedOn {
    Capability capability{};
    Grade grade{};

    static constexpr void describe(auto&& field) {
        field("capability", &ReliedOn::capability, "What a node must be able to do.", Rule{.required = true});
        field("grade", &ReliedOn::grade, "How that is known.", Rule{.required = true});
    }
    friend bool operator==(const ReliedOn&, const ReliedOn&) = default;
};

// How much of a contract is written. The terms are what is decided by, and the nodes that can serve it; the clauses are
// what is said to readers: guaranteed, entitlement, isolates, open, reclaim, controls, excluded, reliesOn and grade.
// Most contracts are never read.
enum class Written : std::uint8_t { in_full, terms_alone };

struct Contract {
    std::string workload, tenant, tenantClass;
    ThreatModel threatModel{};
    Instant asOf;
    Mechanism mechanism{};
    bool fraction = false;
    std::vector<Slice> slices;
    std::int64_t tasks = 1;
    Gpus gpus;
    Tier tier{};
    Tier requiredTier{};
    SharingScope sharing;
    std::optional<AskedExclusivity> exclusivity;
    Handover handover{};
    Slo slo{};
    std::vector<Aspect> sloResources;
    QuotaModel quota{};
    Gpus guarantee;
    std::string guaranteed;
    Gpus entitlement;
    StartBound bound;
    bool preemptible = false;
    std::int64_t priority = 0;
    Compliance compliance{};
    std::int64_t surchargePercent = 0;
    std::vector<Held> isolates;
    std::vector<Held> open;
    std::vector<ReclaimStep> reclaim;
    std::vector<std::string> controls;
    std::vector<ExceptionInForce> exceptions;
    Grade grade{};
    std::vector<ReliedOn> reliesOn;
    std::vector<std::string> nodes;
    // Nodes that would serve it if they were not closed to new leases. Not printed: `excluded` says it to readers.
    std::vector<std::string> closed_nodes;
    std::vector<ExcludedNodes> excluded;

    static constexpr void describe(auto&& field) {
        field("workload", &Contract::workload, "The workload.", Rule{.required = true});
        field("tenant", &Contract::tenant, "Its tenant.", Rule{.required = true});
        field("class", &Contract::tenantClass, "The tenant's class.", Rule{.required = true});
        field("threatModel", &Contract::threatModel, "Under which threat model.", Rule{.required = true});
        field("asOf", &Contract::asOf, "The moment it was compiled for.", Rule{.required = true});
        field("mechanism", &Contract::mechanism, "How the GPU is divided; never swapped for a weaker one.",
              Rule{.required = true});
        field("fraction", &Contract::fraction, "Whether a fraction is packed over the mechanism.");
        field("slices", &Contract::slices, "What a task holds, per GPU model.");
        field("tasks", &Contract::tasks, "How many tasks, all or none.", Rule{.required = true});
        field("gpus", &Contract::gpus, "What quota counts, all tasks together.", Rule{.required = true});
        field("tier", &Contract::tier, "The tier in force.", Rule{.required = true});
        field("requiredTier", &Contract::requiredTier, "The weakest tier that trust and policy allow here.",
              Rule{.required = true});
        field("sharing", &Contract::sharing, "With whom, at most, each layer is shared.", Rule{.required = true});
        field("exclusivity", &Contract::exclusivity,
              "What its isolation request closes beyond the rules, with whom the rules would share it.");
        field("handover", &Contract::handover, "How the host passes to a distrusting tenant.", Rule{.required = true});
        field("slo", &Contract::slo, "The service level.", Rule{.required = true});
        field("sloResources", &Contract::sloResources, "What a hard level covers.");
        field("quota", &Contract::quota, "The quota model.", Rule{.required = true});
        field("guarantee", &Contract::guarantee, "The tenant's guaranteed GPUs.");
        field("guaranteed", &Contract::guaranteed, "The guarantee in its unit: 2 nodes of 8 GPUs.");
        field(
            "entitlement", &Contract::entitlement,
            "The footprint that admission reserved for the guarantee: the tenant's part of its trust domain's nodes.");
        field("bound", &Contract::bound, "Within what time work within the guarantee starts.");
        field("preemptible", &Contract::preemptible, "Whether it may be stopped for other work.",
              Rule{.required = true});
        field("priority", &Contract::priority, "Its priority.", Rule{.required = true});
        field("compliance", &Contract::compliance, "Compliance mode.", Rule{.required = true});
        field("surchargePercent", &Contract::surchargePercent, "What compliance mode adds to the price.");
        field("isolates", &Contract::isolates, "What is kept apart.");
        field("open", &Contract::open, "What is NOT isolated: disclosed.");
        field("reclaim", &Contract::reclaim, "What happens before anyone else gets the silicon.");
        field("controls", &Contract::controls, "Key controls this contract relies on.");
        field("exceptions", &Contract::exceptions, "Exceptions it relies on.");
        field("grade", &Contract::grade,
              "The weakest grade among its claims; reliesOn says what is known of the nodes.", Rule{.required = true});
        field("reliesOn", &Contract::reliesOn, "Capabilities of the nodes it leans on, and how each is known.");
        field("nodes", &Contract::nodes, "Nodes that can serve it now.");
        field("excluded", &Contract::excluded, "Nodes that cannot, and why.");
    }
    friend bool operator==(const Contract&, const Contract&) = default;
};

struct Change {
    std::string field;
    std::string from, to;

    static constexpr void describe(auto&& field) {
        field("field", &Change::field, "Path in the manifest.", Rule{.required = true});
        field("from", &Change::from, "What was asked.", Rule{.required = true});
        field("to", &Change::to, "What would be accepted.", Rule{.required = true});
    }
    friend bool operator==(const Change&, const Change&) = default;
};

// The nearest request that would be accepted: compiled, not guessed.
struct Proposal {
    std::vector<Change> changes;
    GpuWorkload request;

    static constexpr void describe(auto&& field) {
        field("changes", &Proposal::changes, "The fewest fields to change.", Rule{.required = true});
        field("request", &Proposal::request, "The whole request, ready to apply.", Rule{.required = true});
    }
    friend bool operator==(const Proposal&, const Proposal&) = default;
};

struct Refusal {
    std::string workload, tenant, tenantClass;
    ThreatModel threatModel{};
    Instant asOf;
    std::vector<Objected> objections;
    std::vector<ExcludedNodes> excluded;
    std::optional<Proposal> proposal;
    std::string without_proposal;  // why nothing the tenant could ask for would be accepted

    static constexpr void describe(auto&& field) {
        field("workload", &Refusal::workload, "The workload.", Rule{.required = true});
        field("tenant", &Refusal::tenant, "Its tenant.", Rule{.required = true});
        field("class", &Refusal::tenantClass, "The tenant's class.", Rule{.required = true});
        field("threatModel", &Refusal::threatModel, "Under which threat model.", Rule{.required = true});
        field("asOf", &Refusal::asOf, "The moment it was compiled for.", Rule{.required = true});
        field("objections", &Refusal::objections, "Every rule that objects, not only the first.");
        field("excluded", &Refusal::excluded, "Why each node objects.");
        field("proposal", &Refusal::proposal, "The nearest request that would be accepted.");
        field("withoutProposal", &Refusal::without_proposal, "Why there is none.");
    }
    friend bool operator==(const Refusal&, const Refusal&) = default;
};

using Decision = std::variant<Contract, Refusal>;

}  // namespace bulkhead
