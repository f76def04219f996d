// Who may sit beside whom: asked before anybody is placed, and again whenever trust changes.
#pragma once

#include <vector>

#include "bulkhead/sched/fleet.hpp"

namespace bulkhead::sched {

// Each side says how little trust it bears in that place.
bool may_meet(const Relations& relations, TenantNo a, PeerTrust a_bears, TenantNo b, PeerTrust b_bears);

// Distrusting tenants share a node only with a kernel each, or under an exception that names both.
bool kernels_apart(const Relations& relations, const Resident& a, const Resident& b);

// Leases that may not stay where they are, because trust was withdrawn since: of each pair the younger.
std::vector<LeaseKey> intruders(const Relations& relations, const Node& node);

}  // namespace bulkhead::sched
