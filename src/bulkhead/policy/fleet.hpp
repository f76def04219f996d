// A fleet as the compiler sees it: the policy in force, the classes by name, and pools: nodes in the same state with
// GPUs of one model count as one. Built once per snapshot and moment.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/model/snapshot.hpp"
#include "bulkhead/policy/ask.hpp"
#include "bulkhead/policy/slice.hpp"
#include "bulkhead/policy/version_gate.hpp"

namespace bulkhead {

struct Pool {
    std::vector<std::string> nodes;  // names, in the snapshot's order
    std::string_view model;          // the snapshot's text
    Silicon silicon;
    std::int64_t gpus = 0;  // of that model, per node
    std::string site, jurisdiction;
    bool closed = false;  // unschedulable
    std::int64_t cpu = 0;
    ByteSize memory;
    NodeTraits traits;
    std::vector<OpenAdvisory> advisories;
    std::vector<DetectedCapability> capabilities;  // as detected, for grades
};

struct FleetView {
    FleetView(const Snapshot& snapshot, Instant now);

    const TenantClass* find_class(std::string_view name) const;
    Circumstances circumstances_of(const Tenant& tenant, const TenantClass& tenant_class) const;
    // The unexpired exception that names this tenant, and at least one other for whom it is not void, with the weakest
    // tier; null: none.
    const TierException* exception_of(const std::string& tenant) const;

    const Snapshot& snapshot;
    Instant now;
    FleetPolicySpec policy;  // the default one when the snapshot has none
    std::vector<Pool> pools;
    Duration longest_min_runtime;                 // of any tenant's work before it is reclaimed
    std::map<std::string_view, Gpus> guarantees;  // in GPUs, of tenants whose guarantee has another unit
};

}  // namespace bulkhead
