// Work that may not be preempted. It starts only inside the entitlement of its trust domain, and only where every
// guarantee can still be kept afterwards: no other tenant can take back the capacity that it closes.
//
// A node is fixed for a trust domain while work of the domain that may not be preempted is on it, or has room kept
// there. The domain's guarantees are met on its fixed nodes first; what is left of them needs other nodes, each of
// which serves one domain.
#include <algorithm>
#include <map>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

namespace {

constexpr std::size_t fixed_nodes_looked_at = 64;  // of one domain, the newest first

}  // namespace

std::uint64_t Engine::State::domain_key(TenantNo tenant) const {
    const std::uint32_t domain = tenants[tenant].facts.domain;
    return domain != 0 ? std::uint64_t{domain} : std::uint64_t{tenant} << 32 | 1u << 31;
}

std::optional<Engine::State::Fixed> Engine::State::fixed_for(NodeNo node) const {
    std::optional<Fixed> out;
    for (SeatNo s = fleet.first_seat(node); s != nil; s = fleet.seat(s).next_here) {
        const SeatRec& seat = fleet.seat(s);
        if (!seat.pinned || seat.job == nil) continue;
        const std::uint64_t key = domain_key(seat.tenant);
        if (!out) out = Fixed{.domain = key};
        out->shared = out->shared || out->domain != key;
        out->closed = out->closed || seat.host_kernel || seat.scope(0) != PeerTrust::distrusting;
    }
    return out;
}

// Guarantees that would find no node, in GPUs; `also`: nodes that are fixed for the domain too. Each node that is not
// fixed serves one domain; a domain takes the smallest one that is enough, else the largest there is.
std::int64_t Engine::State::uncovered(std::uint64_t domain, std::span<const NodeNo> also, FixedNodes* out) const {
    std::map<std::uint64_t, std::int64_t> needs;
    for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant)
        if (const std::int64_t own = own_guarantee(tenant); own > 0) needs[domain_key(tenant)] += own;
    if (out != nullptr) out->guaranteed = needs;
    using Sizes = std::map<std::int64_t, std::int64_t>;  // how many nodes of each
    Sizes free;
    std::map<std::uint64_t, Sizes> free_for;  // nodes that serve one domain only, because they cannot be rebooted
    std::int64_t largest = 0;
    for (NodeNo node = 0; node < fleet.nodes(); ++node) {
        const std::int64_t gpus = fleet.gpus(node) * counted_whole_gpu;
        largest = std::max(largest, gpus);
        std::optional<Fixed> fixed = fixed_for(node);
        if (std::ranges::find(also, node) != also.end()) {
            if (!fixed) fixed = Fixed{.domain = domain};
            fixed->shared = fixed->shared || fixed->domain != domain;
        }
        if (!fixed) {
            if (!fleet.is_open(node)) continue;
            const Company users = fleet.host_users(node);
            if (users.empty() || fleet.can_reboot(node))
                ++free[gpus];
            else if (users.kind() == Company::Kind::tenant)
                ++free_for[domain_key(users.id())][gpus];
            else if (users.kind() == Company::Kind::domain)
                ++free_for[users.id()][gpus];
            continue;
        }
        if (!fixed->shared) {
            if (const auto need = needs.find(fixed->domain); need != needs.end()) need->second -= gpus;
            if (out != nullptr) out->nodes[fixed->domain].push_back(node);
        }
        if (!fixed->shared && (fixed->closed || out == nullptr)) {
            if (out != nullptr) out->gpus[fixed->domain] += gpus;
            continue;
        }
        // Each domain has what its own work leases there.
        for (SeatNo s = fleet.first_seat(node); s != nil; s = fleet.seat(s).next_here) {
            const SeatRec& seat = fleet.seat(s);
            if (!seat.pinned || seat.job == nil) continue;
            const std::int64_t leased = jobs[seat.job].job.counted(1);
            const std::uint64_t its = domain_key(seat.tenant);
            if (out != nullptr) out->gpus[its] += leased;
            if (const auto need = needs.find(its); fixed->shared && need != needs.end()) need->second -= leased;
        }
    }
    std::vector<std::pair<std::int64_t, std::uint64_t>> open;
    for (const auto& [key, gpus] : needs)
        if (gpus > 0) open.emplace_back(gpus, key);
    std::ranges::sort(open, std::ranges::greater{});
    std::int64_t missing = 0;
    for (auto& [gpus, key] : open) {
        const auto take = [&, &left = gpus](Sizes& from) {
            while (left > 0 && !from.empty()) {
                auto chosen = from.lower_bound(left);
                if (chosen == from.end()) --chosen;
                const std::int64_t nodes =
                    std::clamp<std::int64_t>(left / std::max<std::int64_t>(chosen->first, 1), 1, chosen->second);
                left -= nodes * chosen->first;
                chosen->second -= nodes;
                if (chosen->second == 0) from.erase(chosen);
            }
        };
        if (const auto own = free_for.find(key); own != free_for.end()) take(own->second);
        take(free);
        missing += std::max<std::int64_t>(gpus, 0);
    }
    if (out != nullptr) {
        out->uncovered = missing;
        out->largest = largest;
        // Any node of the fleet could be replaced by one of these.
        const auto spare = free.find(largest);
        out->spare = spare == free.end() ? 0 : spare->second;
    }
    return missing;
}

void Engine::State::look_for_fixed_nodes() {
    fixed_nodes = {};
    uncovered(0, {}, &fixed_nodes);
    fixed_nodes.generation = generation;
    fixed_nodes.cycle = cycles;
    fixed_nodes.known = true;
}

std::int64_t Engine::State::entitlement_of(std::uint64_t domain) const {
    const auto found = fixed_nodes.guaranteed.find(domain);
    if (found == fixed_nodes.guaranteed.end()) return 0;
    const std::int64_t unit = fixed_nodes.largest;
    return unit > 0 ? (found->second + unit - 1) / unit * unit : found->second;
}

bool Engine::State::stays_entitled(const Job& job, std::span<const FleetIndex::Portion> where) {
    if (job.preemptible || where.empty()) return true;
    const std::uint64_t domain = domain_key(job.tenant);
    const bool closes_nodes = fleet.closes_node(job.shape);
    std::vector<NodeNo> fresh;
    std::int64_t more = 0;
    for (const FleetIndex::Portion& portion : where) {
        const std::optional<Fixed> fixed = fixed_for(portion.node);
        if (!fixed || fixed->shared || fixed->domain != domain) fresh.push_back(portion.node);
        const bool is_closed = fixed && !fixed->shared && fixed->domain == domain && fixed->closed;
        if (!is_closed)
            more += closes_nodes ? fleet.gpus(portion.node) * counted_whole_gpu : job.counted(portion.tasks);
    }
    if (more == 0) return true;  // it closes nothing that is not closed already
    if (!fixed_nodes.known) look_for_fixed_nodes();
    for (;;) {
        const std::int64_t closes = fixed_nodes.gpus[domain] + more;
        if (closes <= entitlement_of(domain)) {
            if (fixed_nodes.spare >= std::ssize(fresh)) return true;
            if (uncovered(domain, fresh, nullptr) <= fixed_nodes.uncovered) return true;
        }
        // What was counted may have ended since.
        if (fixed_nodes.generation == generation && fixed_nodes.cycle == cycles) return false;
        look_for_fixed_nodes();
    }
}

void Engine::State::note_fixed(JobNo job, std::span<const FleetIndex::Portion> where) {
    if (jobs[job].job.preemptible || !fixed_nodes.known) return;
    const std::uint64_t domain = domain_key(jobs[job].job.tenant);
    std::vector<NodeNo>& known = fixed_nodes.nodes[domain];
    const bool closes_nodes = fleet.closes_node(jobs[job].job.shape);
    for (const FleetIndex::Portion& portion : where) {
        const bool fresh = std::ranges::find(known, portion.node) == known.end();
        if (fresh) known.push_back(portion.node);
        if (fresh) fixed_nodes.spare = std::max<std::int64_t>(fixed_nodes.spare - 1, 0);
        if (!closes_nodes)
            fixed_nodes.gpus[domain] += jobs[job].job.counted(portion.tasks);
        else if (fresh)
            fixed_nodes.gpus[domain] += fleet.gpus(portion.node) * counted_whole_gpu;
    }
}

std::vector<FleetIndex::Portion> Engine::State::arranged(const Job& job, std::int32_t tasks,
                                                         std::span<const NodeNo> nodes) const {
    std::vector<std::vector<FleetIndex::Portion>> bins(fleet.domain_count(job.within));
    for (const NodeNo node : nodes)
        if (const std::int64_t takes = fleet.capacity(node, job.shape, job.tenant); takes > 0)
            bins[fleet.domain_of(node, job.within)].push_back({node, static_cast<std::int32_t>(takes)});
    for (std::vector<FleetIndex::Portion>& bin : bins) {
        if (bin.empty()) continue;
        if (auto where = fleet.arrange(job, tasks, bin); !where.empty()) return where;
    }
    return {};
}

// First on nodes that are fixed for its domain already, then wherever it would go otherwise, then on nodes that are not
// fixed for others.
std::vector<FleetIndex::Portion> Engine::State::find_entitled_room(JobNo number, std::int32_t tasks) {
    const Job& job = jobs[number].job;
    if (!fixed_nodes.known) look_for_fixed_nodes();
    const std::uint64_t domain = domain_key(job.tenant);
    if (const auto found = fixed_nodes.nodes.find(domain); found != fixed_nodes.nodes.end()) {
        const std::span<const NodeNo> all = found->second;
        auto where = arranged(job, tasks, all.last(std::min(all.size(), fixed_nodes_looked_at)));
        if (!where.empty() && stays_entitled(job, where)) return where;
    }
    auto where = find_room(number, tasks);
    if (where.empty() || stays_entitled(job, where)) return where;
    std::vector<NodeNo> nodes;
    for (NodeNo node = 0; node < fleet.nodes(); ++node) {
        const std::optional<Fixed> fixed = fixed_for(node);
        if (!fixed || (!fixed->shared && fixed->domain == domain)) nodes.push_back(node);
    }
    where = arranged(job, tasks, nodes);
    if (!where.empty() && stays_entitled(job, where)) return where;
    jobs[number].outside_in = generation;
    return {};
}

// A node that the job could have without closing more than it is entitled to, as far as one node tells.
bool Engine::State::may_fix(const Job& job, NodeNo node) {
    if (job.preemptible) return true;
    const FleetIndex::Portion one{node, 1};
    return stays_entitled(job, {&one, 1});
}

std::optional<Reason> Engine::State::outside_entitlement(const Job& job) const {
    if (job.preemptible || !fixed_nodes.known) return std::nullopt;
    const std::uint64_t domain = domain_key(job.tenant);
    const auto closed = fixed_nodes.gpus.find(domain);
    return Reason{"wait.entitlement",
                  {{"closed", print(Gpus{closed == fixed_nodes.gpus.end() ? 0 : closed->second})},
                   {"entitlement", print(Gpus{entitlement_of(domain)})}}};
}

}  // namespace bulkhead::sched
