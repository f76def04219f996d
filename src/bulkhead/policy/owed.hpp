// Guarantees of a fleet as claims on its nodes: which nodes can serve which tenant's guarantee, beside which others.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/policy/fleet.hpp"
#include "bulkhead/policy/guarantee.hpp"
#include "bulkhead/policy/node_assignment.hpp"

namespace bulkhead {

// One part of what a tenant's own work is guaranteed: in its unit, or in GPUs what is left beside its children's.
struct Owed {
    const Tenant* tenant = nullptr;
    GuaranteeUnit unit;
    std::int64_t amount = 0;                      // Gpus::units, nodes, or instances
    Gpus gpus;                                    // the same in GPUs
    Tier tier{};                                  // the weakest that trust and policy allow
    std::size_t domain = 0;                       // tenants with the same number trust each other
    bool shares_gpus = false;                     // with others of its trust domain
    std::vector<std::optional<PeerTrust>> bears;  // by kind of node, as in NodeClaim
    std::int64_t per_gpu = 1;                     // instances of the profile that every GPU which may serve it holds
    const gpu::Board* board = nullptr;            // of the profile, where all of these GPUs are of one board
};

class OwedFleet {
public:
    // The snapshot must be consistent and outlive it.
    OwedFleet(const Snapshot& snapshot, Instant now);

    const std::vector<Owed>& owed() const { return owed_; }
    const std::vector<NodeKind>& kinds() const { return kinds_; }

    // Whether these guarantees can be kept at once.
    Keepable keepable(const std::vector<Owed>& owed, std::int64_t budget = assignment_budget) const;

private:
    struct Place;  // nodes in the same state

    void list_owed();
    void list_kinds();
    std::vector<Place> places() const;
    std::optional<PeerTrust> bears(const Owed& owed, const Pool& pool) const;

    FleetView fleet_;
    std::map<std::string, std::size_t> domains_;
    std::vector<Owed> owed_;
    std::vector<NodeKind> kinds_;
};

// The same guarantees as claims in whole GPUs and whole nodes. GPUs that tenants of one domain share are counted
// together, so that two halves are one.
std::vector<NodeClaim> claims_of(const std::vector<Owed>& owed);

}  // namespace bulkhead
