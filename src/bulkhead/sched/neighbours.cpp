#include "bulkhead/sched/neighbours.hpp"

#include <algorithm>

namespace bulkhead::sched {

bool Resident::excepts(TenantNo other) const { return std::ranges::find(excepted, other) != excepted.end(); }

bool may_meet(const Relations& relations, TenantNo a, PeerTrust a_bears, TenantNo b, PeerTrust b_bears) {
    const PeerTrust trust = relations.trust(a, b);
    return trust <= a_bears && trust <= b_bears;
}

bool kernels_apart(const Relations& relations, const Resident& a, const Resident& b) {
    if (relations.trust(a.tenant, b.tenant) != PeerTrust::distrusting) return true;
    if (!a.on_host_kernel && !b.on_host_kernel) return true;
    return a.excepts(b.tenant) && b.excepts(a.tenant);
}

namespace {

// How near two leases sit on a node: on no GPU together, on one, or in the same memory of one.
struct Nearness {
    bool gpu = false, memory = false;
};

Nearness nearness(const Node& node, LeaseKey a, LeaseKey b) {
    Nearness near;
    for (const Gpu& gpu : node.gpus)
        for (const Seat& one : gpu.seats)
            for (const Seat& other : gpu.seats) {
                if (one.lease != a || other.lease != b) continue;
                near.gpu = true;
                near.memory =
                    near.memory || (one.start < other.start + other.size && other.start < one.start + one.size);
            }
    return near;
}

bool may_stay(const Relations& relations, const Node& node, const Resident& a, const Resident& b) {
    const auto meet = [&](PeerTrust Resident::* place) {
        return may_meet(relations, a.tenant, a.*place, b.tenant, b.*place);
    };
    if (!meet(&Resident::node) || !kernels_apart(relations, a, b)) return false;
    if (node.board_is_one && !meet(&Resident::nvlink)) return false;
    const Nearness near = nearness(node, a.lease, b.lease);
    return (!near.gpu || meet(&Resident::gpu)) && (!near.memory || meet(&Resident::instance));
}

}  // namespace

std::vector<LeaseKey> intruders(const Relations& relations, const Node& node) {
    std::vector<LeaseKey> found;
    for (const Resident& one : node.residents)
        for (const Resident& older : node.residents)
            if (older.lease < one.lease && !may_stay(relations, node, older, one)) {
                found.push_back(one.lease);
                break;
            }
    return found;
}

}  // namespace bulkhead::sched
