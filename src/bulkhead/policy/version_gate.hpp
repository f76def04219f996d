// The version gate: advisories as data, with due dates, decide which tiers and mechanisms a node may still serve.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/model/policy.hpp"

namespace bulkhead {

// The advisories that ship with Bulkhead.
std::span<const Advisory> shipped_advisories();

// A flaw that a node still has.
struct OpenAdvisory {
    Advisory advisory;
    std::string installed;  // the version found; empty: not reported by a node that must have the component
    std::string wanted;     // the first version without the flaw on that branch; empty: no fix on that branch.
                            // For a version that is missing or cannot be read: any of the fixed ones
    Instant due;
    bool overdue = false;
};

// Every advisory in force that the node's versions do not settle, shipped ones and the policy's own, by id. A component
// the node does not have is not vulnerable; one it must have, to do what was detected, and does not name, is.
std::vector<OpenAdvisory> open_advisories(const GpuNode& node, const FleetPolicySpec& policy, Instant now);

// Whether the flaw closes this tier for this mechanism: it is overdue and concerns both.
bool closes(const OpenAdvisory& open, Tier tier, Mechanism mechanism);

// Versions as vendors write them: numbers between dots, perhaps after a v, compared number by number:
// 580.9 < 580.65.06. Nothing when one of them is anything else.
std::optional<int> compare_versions(std::string_view a, std::string_view b);

}  // namespace bulkhead
