// What work closes to others, and how much of that its tenant's guarantee entitles it to.
//
// A node is closed while a resident keeps distrusting strangers away from it: one on the host kernel, or one whose
// contract bears no distrusting neighbour on the node. The GPU capacity of a closed node that no lease holds is its
// closed remainder. On any other node the rest of a GPU is closed whose holders bear no stranger on that GPU. Residents
// carry the remainder in proportion to what they lease there.
#include <algorithm>
#include <map>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

std::int64_t FleetIndex::leased_of(const SeatRec& seat, const Cell& cell) const {
    if (seat.profile == 0) return seat.share;
    return std::int64_t{1000} * seat.size / models_[cell.model].slices * seat.share / 1000;
}

void FleetIndex::closed_parts(NodeNo node, std::vector<ClosedPart>& out) const {
    out.clear();
    const NodeRec& rec = nodes_[node];
    bool closed = false;
    std::vector<std::int64_t> leases;  // of each seat, in the order of `out`
    for (SeatNo s = rec.seats; s != nil; s = seats_[s].next_here) {
        const SeatRec& seat = seats_[s];
        if (seat.promised) continue;
        closed = closed || seat.host_kernel || seat.scope(0) != PeerTrust::distrusting;
        std::int64_t sum = 0;
        for (std::uint64_t bits = seat.gpus; bits != 0; bits &= bits - 1)
            if (const auto at = static_cast<std::size_t>(std::countr_zero(bits)); at < rec.gpus)
                sum += leased_of(seat, cells_[rec.cells + at]);
        out.push_back({s, 0});
        leases.push_back(sum);
    }
    if (out.empty()) return;
    // `remainder` to those of `out` that `weights` names, by weight; equal parts where all weigh nothing.
    const auto split = [&](std::int64_t remainder, const std::vector<std::int64_t>& weights,
                           const std::vector<bool>& among) {
        std::int64_t all = 0, heads = 0;
        for (std::size_t i = 0; i < out.size(); ++i)
            if (among[i]) {
                all += weights[i];
                ++heads;
            }
        for (std::size_t i = 0; i < out.size(); ++i)
            if (among[i]) out[i].millionths += all > 0 ? 1000 * remainder * weights[i] / all : 1000 * remainder / heads;
    };
    std::int64_t free = 0;
    for (std::size_t i = 0; i < rec.gpus; ++i) {
        const Cell& cell = cells_[rec.cells + i];
        const CellModel& model = models_[cell.model];
        const std::int64_t sound = 1000 * (model.slices - std::popcount(cell.lost)) / model.slices;
        const std::int64_t rest = std::max<std::int64_t>(sound - cell.taken, 0);
        free += rest;
        if (closed || rest == 0 || cell.taken == 0) continue;
        std::vector<bool> among(out.size());
        std::vector<std::int64_t> weights(out.size());
        bool alone = false;
        for (std::size_t k = 0; k < out.size(); ++k) {
            const SeatRec& seat = seats_[out[k].seat];
            among[k] = (seat.gpus >> i & 1u) != 0;
            if (!among[k]) continue;
            weights[k] = leased_of(seat, cell);
            alone = alone || seat.scope(1) != PeerTrust::distrusting ||
                    (seat.profile == 0 && seat.scope(2) != PeerTrust::distrusting);
        }
        if (alone) split(rest, weights, among);
    }
    if (closed) split(free, leases, std::vector<bool>(out.size(), true));
}

std::int64_t Engine::State::own_guarantee(TenantNo tenant) const {
    std::int64_t below = 0;
    for (const TenantNo child : tenants[tenant].children) below += tenants[child].guarantee;
    return std::max<std::int64_t>(tenants[tenant].guarantee - below, 0);
}

// The guarantees of one trust domain together, rounded up to whole nodes of the fleet's largest size, because work of
// that domain keeps nodes to itself; each tenant gets its part by what its own work is guaranteed.
std::span<const std::int64_t> Engine::State::entitlements() {
    if (!entitlements_stale && entitled_nodes == fleet.nodes()) return entitled;
    entitlements_stale = false;
    entitled_nodes = fleet.nodes();
    std::int64_t largest = 0;
    for (NodeNo node = 0; node < fleet.nodes(); ++node) largest = std::max<std::int64_t>(largest, fleet.gpus(node));
    const std::int64_t unit = largest * counted_whole_gpu;
    std::map<std::uint64_t, std::int64_t> guaranteed;  // by domain; a tenant without one is a domain of its own
    for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant)
        guaranteed[domain_key(tenant)] += own_guarantee(tenant);
    entitled.assign(tenants.size(), 0);
    for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant) {
        const std::int64_t own = own_guarantee(tenant), all = guaranteed[domain_key(tenant)];
        if (own == 0) continue;
        const std::int64_t nodes = unit > 0 ? (all + unit - 1) / unit * unit : all;
        const Wide part = static_cast<Wide>(own) * static_cast<Wide>(nodes) * static_cast<Wide>(footprint_unit) /
                          static_cast<Wide>(all);
        for (const TenantNo holder : tenants[tenant].line) entitled[holder] += static_cast<std::int64_t>(part);
    }
    return entitled;
}

std::vector<std::int64_t> Engine::State::footprints(const FleetIndex& of) const {
    std::vector<std::int64_t> sums(tenants.size());
    std::vector<FleetIndex::ClosedPart> parts;
    for (NodeNo node = 0; node < of.nodes(); ++node) {
        if (of.first_seat(node) == nil) continue;
        of.closed_parts(node, parts);
        for (const FleetIndex::ClosedPart& part : parts) sums[of.seat(part.seat).tenant] += part.millionths;
    }
    std::vector<std::int64_t> out(tenants.size());
    for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant) {
        out[tenant] += tenants[tenant].held * footprint_unit;
        for (const TenantNo holder : tenants[tenant].line)
            out[holder] += sums[tenant] * counted_whole_gpu / (1'000'000 / footprint_unit);
    }
    return out;
}

}  // namespace bulkhead::sched
