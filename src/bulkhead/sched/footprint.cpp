// What work closes to others, and how much of that its tenant's guarantee entitles it to.
//
// A node is closed while a resident keeps distrusting strangers away from it: one on the host kernel, or one whose
// contract bears no distrusting neighbour on the node. The GPU capacity of a closed node that no lease holds is its
// closed remainder. On any other node the rest of a GPU is closed whose holders bear no stranger on that GPU. Residents
// carry the remainder in proportion to what they lease there.
//
// A host that was used and cannot show a verified reboot is closed to strangers as well, without any resident. While
// such nodes are empty, work of their trust domain on other nodes closes them too, as far as it would have room there.
#include <algorithm>
#include <bit>
#include <map>

#include "bulkhead/policy/node_sizes.hpp"
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

// The guarantees of one trust domain together, rounded up to the smallest set of nodes that has so many GPUs, because
// work of that domain keeps nodes to itself; each tenant gets its part by what its own work is guaranteed.
std::span<const std::int64_t> Engine::State::entitlements() {
    if (!entitlements_stale && entitled_nodes == fleet.nodes()) return entitled;
    entitlements_stale = false;
    entitled_nodes = fleet.nodes();
    std::map<std::int64_t, std::int64_t> sizes;
    for (NodeNo node = 0; node < fleet.nodes(); ++node)
        if (fleet.gpus(node) > 0) ++sizes[fleet.gpus(node)];
    std::map<std::uint64_t, std::int64_t> guaranteed;  // by domain; a tenant without one is a domain of its own
    for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant)
        guaranteed[domain_key(tenant)] += own_guarantee(tenant);
    std::map<std::uint64_t, std::int64_t> reserved;
    for (const auto& [key, all] : guaranteed)
        reserved[key] =
            sizes.empty()
                ? all
                : counted_whole_gpu * gpus_of_fewest_nodes(sizes, (all + counted_whole_gpu - 1) / counted_whole_gpu);
    entitled.assign(tenants.size(), 0);
    for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant) {
        const std::int64_t own = own_guarantee(tenant), all = guaranteed[domain_key(tenant)];
        if (own == 0) continue;
        const std::int64_t nodes = reserved[domain_key(tenant)];
        const Wide part = static_cast<Wide>(own) * static_cast<Wide>(nodes) * static_cast<Wide>(footprint_unit) /
                          static_cast<Wide>(all);
        for (const TenantNo holder : tenants[tenant].line) entitled[holder] += static_cast<std::int64_t>(part);
    }
    return entitled;
}

std::vector<std::int64_t> Engine::State::footprints(const FleetIndex& of) const {
    std::vector<std::int64_t> sums(tenants.size());       // millionths of GPUs that work closes beyond what it leases
    std::vector<std::int64_t> elsewhere(tenants.size());  // and all that it closes on nodes that others could use
    std::map<DomainKey, std::int64_t> idle;               // GPUs of empty nodes that only this domain may use
    const auto bound_to = [&](NodeNo node) -> std::optional<DomainKey> {
        const Company users = of.host_users(node);
        if (users.empty() || of.can_reboot(node) || users.kind() == Company::Kind::strangers) return std::nullopt;
        return users.kind() == Company::Kind::tenant ? domain_key(users.id()) : DomainKey{users.id()};
    };
    for (NodeNo node = 0; node < of.nodes(); ++node)
        if (of.first_seat(node) == nil && of.is_open(node))
            if (const auto key = bound_to(node)) idle[*key] += of.gpus(node);
    std::vector<FleetIndex::ClosedPart> parts;
    for (NodeNo node = 0; node < of.nodes(); ++node) {
        if (of.first_seat(node) == nil) continue;
        of.closed_parts(node, parts);
        const bool is_bound = !idle.empty() && bound_to(node).has_value();
        for (const FleetIndex::ClosedPart& part : parts) {
            const SeatRec& seat = of.seat(part.seat);
            sums[seat.tenant] += part.millionths;
            if (idle.empty() || is_bound) continue;
            elsewhere[seat.tenant] += part.millionths;
            for (std::uint64_t gpus = seat.gpus; gpus != 0; gpus &= gpus - 1)
                elsewhere[seat.tenant] +=
                    1000 * of.leased_thousandths(part.seat, static_cast<std::size_t>(std::countr_zero(gpus)));
        }
    }
    for (const auto& [key, gpus] : idle) {
        std::int64_t all = 0;
        for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant)
            if (domain_key(tenant) == key) all += elsewhere[tenant];
        const std::int64_t closed = std::min(gpus * 1'000'000, all);
        for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant)
            if (all > 0 && domain_key(tenant) == key)
                sums[tenant] += static_cast<std::int64_t>(
                    static_cast<Wide>(closed) * static_cast<Wide>(elsewhere[tenant]) / static_cast<Wide>(all));
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
