// What a contract says of functions on the fabric: what is kept apart by the numbers that the control plane gives, what
// such a fabric leaves open, and what the nodes' own attacks on their fences have shown, each by its record in the log.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/policy/ask.hpp"
#include "bulkhead/policy/contract.hpp"
#include "bulkhead/policy/fleet.hpp"

namespace bulkhead {

// What got through in an earlier test and was not seen to be stopped since: all that is left of that test.
inline bool is_left_over(const NodeFabricTest& test) { return test.found == FabricFound::open && !test.why.empty(); }

struct FabricReader {
    std::vector<std::string> nodes;  // whose fences it is about
    Audience reader{};               // a tenant reads no node's name
};
void write_fabric(Contract& contract, const Ask& ask, const FleetView& fleet, const FabricReader& of);

}  // namespace bulkhead
