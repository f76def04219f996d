// The node's own gate: whether what a lease asks for may be handed out, by nothing but the node's own journal. Every
// rule can object, none can overrule another.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/node/ledger.hpp"

namespace bulkhead {

struct GateRules {
    bool host_must_be_known = false;
};

// For the operator's eyes: they name leases. None: it may be handed out.
std::vector<std::string> objections(const Ledger& ledger, const Prepare& order, const GateRules& rules);

// The first few, as one sentence.
std::string joined(const std::vector<std::string>& objections);

// Whether this is a wipe of something that can exist.
bool well_formed(const WipeTask& task);

}  // namespace bulkhead
