// FleetPolicy: what the operator of a fleet declares once: threat model, sites, trust domains, exceptions, version
// gate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/model/fabric.hpp"
#include "bulkhead/model/meta.hpp"
#include "bulkhead/model/pricing.hpp"
#include "bulkhead/model/role.hpp"

namespace bulkhead {

struct Site {
    std::string name;
    std::string jurisdiction;

    static constexpr void describe(auto&& field) {
        field("name", &Site::name, "The site's name.", Rule{.required = true, .format = Format::name});
        field("jurisdiction", &Site::jurisdiction, "Whose law holds there: a country or union code in lower case.",
              Rule{.required = true, .format = Format::name});
    }
    friend bool operator==(const Site&, const Site&) = default;
};

// Tenants that trust each other. Both sides must say so: the domain lists the member, the member names the domain
// and gives its consent.
struct TrustDomain {
    std::string name;
    std::vector<std::string> members;

    static constexpr void describe(auto&& field) {
        field("name", &TrustDomain::name, "The domain's name.", Rule{.required = true, .format = Format::name});
        field("members", &TrustDomain::members, "Tenants admitted to the domain.", Rule{.format = Format::name});
    }
    friend bool operator==(const TrustDomain&, const TrustDomain&) = default;
};

struct TenantConsent {
    std::string tenant;
    std::string by;
    Instant at;

    static constexpr void describe(auto&& field) {
        field("tenant", &TenantConsent::tenant, "The tenant that consents.",
              Rule{.required = true, .format = Format::name});
        field("by", &TenantConsent::by, "Who consents for it: a person or role that can be asked.",
              Rule{.required = true, .format = Format::line});
        field("at", &TenantConsent::at, "When, in UTC.", Rule{.required = true});
    }
    friend bool operator==(const TenantConsent&, const TenantConsent&) = default;
};

// Named tenants that distrust each other may share a kernel at a weaker tier than trust demands: granted by the
// security admin, consented to by each tenant, with a reason and an end. Void in `regulated`, under compliance mode,
// and while an escape advisory is open on the node.
struct TierException {
    std::string name;
    std::vector<std::string> tenants;
    Tier tier = Tier::container;
    std::string grantedBy;
    std::vector<TenantConsent> consents;
    Instant expires;
    std::string reason;

    static constexpr void describe(auto&& field) {
        field("name", &TierException::name, "The exception's name, printed in every contract it touches.",
              Rule{.required = true, .format = Format::name});
        field("tenants", &TierException::tenants, "The tenants it covers, two or more.",
              Rule{.required = true, .format = Format::name});
        field("tier", &TierException::tier, "The tier in force between them instead of vm.");
        field("grantedBy", &TierException::grantedBy, "The security admin who grants it.",
              Rule{.required = true, .format = Format::line});
        field("consents", &TierException::consents, "Each tenant's own consent.", Rule{.required = true});
        field("expires", &TierException::expires, "When it ends, in UTC.", Rule{.required = true});
        field("reason", &TierException::reason, "Why.", Rule{.required = true, .format = Format::line});
    }
    friend bool operator==(const TierException&, const TierException&) = default;
};

struct FixedVersion {
    std::string branch;
    std::string version;

    static constexpr void describe(auto&& field) {
        field("branch", &FixedVersion::branch, "Release branch, such as 580; empty: all branches.");
        field("version", &FixedVersion::version, "First version without the flaw.",
              Rule{.required = true, .format = Format::line});
    }
    friend bool operator==(const FixedVersion&, const FixedVersion&) = default;
};

// A published flaw as data: which component, fixed where, which tiers and mechanisms it opens, and by when the fix is
// due.
struct Advisory {
    std::string id;
    Component component{};
    std::vector<FixedVersion> fixed;
    Severity severity = Severity::high;
    bool escape = false;
    std::vector<Tier> closesTiers;
    std::vector<Mechanism> closesMechanisms;
    Instant published;
    std::optional<Instant> due;
    std::string source;

    static constexpr void describe(auto&& field) {
        field("id", &Advisory::id, "CVE or bulletin number.", Rule{.required = true, .format = Format::line});
        field("component", &Advisory::component, "The software that has the flaw.", Rule{.required = true});
        field("fixed", &Advisory::fixed, "First fixed version of each branch; a branch not listed stays vulnerable.",
              Rule{.required = true});
        field("severity", &Advisory::severity, "Decides the due date where none is given.");
        field("escape", &Advisory::escape, "Lets code leave its container or VM; voids exceptions while open.");
        field("closesTiers", &Advisory::closesTiers, "Tiers a vulnerable node can no longer protect; empty: all.");
        field("closesMechanisms", &Advisory::closesMechanisms, "Mechanisms it concerns; empty: all.");
        field("published", &Advisory::published, "When it became known.", Rule{.required = true});
        field("due", &Advisory::due, "When the fix must be in; after it the tiers close. Default: by severity.");
        field("source", &Advisory::source, "Where it is written.");
    }
    friend bool operator==(const Advisory&, const Advisory&) = default;
};

struct DueDays {
    std::int64_t critical = 7, high = 30, medium = 90, low = 180;

    static constexpr void describe(auto&& field) {
        field("critical", &DueDays::critical, "Days to fix a critical flaw.", Rule{.min = 0, .max = 3650});
        field("high", &DueDays::high, "Days to fix a high flaw.", Rule{.min = 0, .max = 3650});
        field("medium", &DueDays::medium, "Days to fix a medium flaw.", Rule{.min = 0, .max = 3650});
        field("low", &DueDays::low, "Days to fix a low flaw.", Rule{.min = 0, .max = 3650});
    }
    friend bool operator==(const DueDays&, const DueDays&) = default;
};

struct VersionGate {
    bool shippedAdvisories = true;
    DueDays dueDays;
    std::vector<Advisory> advisories;

    static constexpr void describe(auto&& field) {
        field("shippedAdvisories", &VersionGate::shippedAdvisories,
              "Also hold nodes to the advisories that ship with Bulkhead.");
        field("dueDays", &VersionGate::dueDays, "Days from publication to the due date, by severity.");
        field("advisories", &VersionGate::advisories, "Further advisories; one with a shipped id replaces it.");
    }
    friend bool operator==(const VersionGate&, const VersionGate&) = default;
};

struct FleetPolicySpec {
    ThreatModel threatModel = ThreatModel::cloud;
    std::vector<Site> sites;
    std::vector<TrustDomain> trustDomains;
    std::vector<TierException> exceptions;
    VersionGate versionGate;
    Duration evidenceMaxAge = Duration::hours(24);
    Duration checkpointAtMost{300'000};
    Duration historyRetention = Duration::days(90);
    Pricing pricing;
    std::vector<RoleBinding> bindings;
    std::optional<FabricPolicy> fabric;

    static constexpr void describe(auto&& field) {
        field("threatModel", &FleetPolicySpec::threatModel, "Who is assumed to attack whom: the preset of rules.");
        field("sites", &FleetPolicySpec::sites, "Where the fleet stands, and under whose law.");
        field("trustDomains", &FleetPolicySpec::trustDomains, "Which tenants trust each other.");
        field("exceptions", &FleetPolicySpec::exceptions, "Named, consented, expiring departures from a tier.");
        field("versionGate", &FleetPolicySpec::versionGate, "Which flaws close which tiers, and when.");
        field("evidenceMaxAge", &FleetPolicySpec::evidenceMaxAge,
              "How old the evidence for a trust-raising capability may be.", Rule{.min = 1});
        field("checkpointAtMost", &FleetPolicySpec::checkpointAtMost,
              "How long work may take to save itself while somebody waits for its GPUs.",
              Rule{.min = 1'000, .max = 3'600'000});
        field("historyRetention", &FleetPolicySpec::historyRetention,
              "How long ended workloads and leases stay in the history: 90d.", Rule{.min = 3'600'000});
        field("pricing", &FleetPolicySpec::pricing, "What time on GPUs costs, and compliance mode.");
        field("bindings", &FleetPolicySpec::bindings,
              "Who of the identity provider's people run, secure and audit the fleet; changed by a security-admin.");
        field("fabric", &FleetPolicySpec::fabric,
              "The network for RDMA; absent: agents hand out no virtual function of a real NIC, and nothing keeps "
              "tenants apart on simulated ones.");
    }
    friend bool operator==(const FleetPolicySpec&, const FleetPolicySpec&) = default;
};

struct FleetPolicy {
    static constexpr std::string_view kind = "FleetPolicy";
    static constexpr std::string_view about = "The operator's declaration for one fleet; exactly one per fleet.";
    Metadata metadata;
    FleetPolicySpec spec;

    static constexpr void describe(auto&& field) {
        field("metadata", &FleetPolicy::metadata, "Name and labels.", Rule{.required = true});
        field("spec", &FleetPolicy::spec, "What the operator declares.");
    }
    friend bool operator==(const FleetPolicy&, const FleetPolicy&) = default;
};

}  // namespace bulkhead
