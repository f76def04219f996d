// Work that may not be preempted. It starts only inside the entitlement of its trust domain, and only where every
// guarantee can still be kept afterwards: no other tenant can take back the capacity that it closes.
//
// A node is fixed for a trust domain while work of the domain that may not be preempted is on it, or has room kept
// there. Fixed nodes serve their domain only, with the GPUs that such work does not touch. A start is allowed if nodes
// can still be given to trust domains so that every guarantee is kept (guaranteed_nodes.hpp), and, where it closes a
// further node, if the nodes that are fixed for its domain already are not enough for the domain's guarantees.
#include <algorithm>
#include <bit>
#include <set>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

namespace {

constexpr std::size_t fixed_nodes_looked_at = 64;  // of one domain at first, the newest

void add_nodes(std::map<NodeSort, std::int64_t>& sorts, const NodeSort& sort, std::int64_t more) {
    if ((sorts[sort] += more) == 0) sorts.erase(sort);
}

}  // namespace

DomainKey Engine::State::domain_key(TenantNo tenant) const {
    const std::uint32_t domain = tenants[tenant].facts.domain;
    return domain != 0 ? DomainKey{domain} : DomainKey{tenant} << 32 | 1u << 31;
}

std::optional<Engine::State::Fixed> Engine::State::fixed_for(NodeNo node) const {
    std::optional<Fixed> out;
    for (SeatNo s = fleet.first_seat(node); s != nil; s = fleet.seat(s).next_here) {
        const SeatRec& seat = fleet.seat(s);
        if (!seat.pinned || seat.job == nil) continue;
        const DomainKey key = domain_key(seat.tenant);
        if (!out) out = Fixed{.domain = key, .tenant = seat.tenant};
        out->shared = out->shared || out->domain != key;
        out->one_tenant = out->one_tenant && out->tenant == seat.tenant;
        out->closed = out->closed || seat.host_kernel || seat.scope(0) != PeerTrust::distrusting;
        out->leased += jobs[seat.job].job.counted(1);
        for (std::uint64_t gpus = seat.gpus & ~out->touched; gpus != 0; gpus &= gpus - 1)
            out->fragments += counted_whole_gpu;
        out->touched |= seat.gpus;
        for (std::uint64_t gpus = seat.gpus; gpus != 0; gpus &= gpus - 1)
            out->fragments -=
                seat.profile == 0 ? seat.share * (counted_whole_gpu / 1000) : jobs[seat.job].job.counted(1);
    }
    if (out) out->fragments = std::max<std::int64_t>(out->fragments, 0);
    return out;
}

// Nothing: it is no use to any guarantee.
std::optional<NodeSort> Engine::State::sort_of(NodeNo node, const std::optional<Fixed>& fixed) const {
    NodeSort sort{.gpus = fleet.gpus(node), .site = sites[node]};
    if (fixed) {
        if (fixed->shared || fixed_nodes.units.contains(node)) return std::nullopt;
        sort.gpus = std::max<std::int64_t>(sort.gpus - std::popcount(fixed->touched), 0);
        sort.fixed = true;
        sort.domain = fixed->domain;
        return sort;
    }
    if (!fleet.is_open(node)) return std::nullopt;
    const Company users = fleet.host_users(node);
    if (users.empty() || fleet.can_reboot(node)) return sort;
    if (users.kind() == Company::Kind::strangers) return std::nullopt;
    sort.domain = users.kind() == Company::Kind::tenant ? domain_key(users.id()) : users.id();
    return sort;
}

void Engine::State::list_guaranteed(std::map<DomainKey, FixedNodes::Domain>& domains) const {
    for (TenantNo tenant = 0; tenant < tenants.size(); ++tenant) {
        const std::int64_t own = own_guarantee(tenant);
        if (own <= 0) continue;
        const TenantFacts& facts = tenants[tenant].facts;
        FixedNodes::Domain& domain = domains[domain_key(tenant)];
        const std::int64_t each = facts.node_gpus * counted_whole_gpu;
        domain.guaranteed += own;
        domain.alike = domain.alike && each == 0 &&
                       (domain.owns.empty() || tenants[domain.owns.begin()->first].facts.sites == facts.sites);
        domain.owns[tenant] = {.gpus = each > 0 ? own % each : own, .nodes = each > 0 ? own / each : 0};
    }
}

std::int64_t Engine::State::left_of(TenantNo tenant, const FixedNodes::Own& own) const {
    return own.gpus - own.promised - tenants[tenant].own_pinned;
}

// Adds what one node holds to the sums.
void Engine::State::count_fixed(NodeNo node) {
    const std::optional<Fixed> fixed = fixed_for(node);
    FixedNodes::OnNode& on = fixed_nodes.on[node];
    on = {};
    if (fixed) {
        std::vector<std::pair<TenantNo, std::int64_t>> promised;
        for (SeatNo s = fleet.first_seat(node); s != nil; s = fleet.seat(s).next_here) {
            const SeatRec& seat = fleet.seat(s);
            if (seat.pinned && seat.promised && seat.job != nil)
                promised.emplace_back(seat.tenant, jobs[seat.job].job.counted(1));
        }
        for (const auto& [tenant, leased] : promised)
            fixed_nodes.domains[domain_key(tenant)].owns[tenant].promised += leased;
        if (!promised.empty()) fixed_nodes.promised[node] = std::move(promised);
        on.several = fixed->shared;
        if (fixed->shared) {
            fixed_nodes.several.insert(node);
        } else {
            FixedNodes::Domain& its = fixed_nodes.domains[fixed->domain];
            its.nodes.push_back(node);
            const TenantFacts& facts = tenants[fixed->tenant].facts;
            FixedNodes::Own& own = its.owns[fixed->tenant];
            if (fixed->one_tenant && own.nodes > 0 && fleet.gpus(node) >= std::max<std::int64_t>(facts.least_node, 1)) {
                --own.nodes;
                own.gpus += fixed->leased;
                fixed_nodes.units[node] = fixed->tenant;
            } else {
                on.fragments = static_cast<std::int32_t>(fixed->fragments);
                its.fragments += fixed->fragments;
            }
        }
    }
    if (const auto sort = sort_of(node, fixed)) {
        on.counts = true;
        on.sort = *sort;
        ++fixed_nodes.sorts[*sort];
        if (sort->fixed) fixed_nodes.domains[sort->domain].room += sort->gpus;
    }
}

// Takes off the sums what one node held when it was counted.
void Engine::State::discount_fixed(NodeNo node) {
    const FixedNodes::OnNode& on = fixed_nodes.on[node];
    if (on.counts) {
        add_nodes(fixed_nodes.sorts, on.sort, -1);
        if (on.sort.fixed) {
            FixedNodes::Domain& its = fixed_nodes.domains[on.sort.domain];
            its.room -= on.sort.gpus;
            its.fragments -= on.fragments;
            its.nodes.erase(std::ranges::find(its.nodes, node));
        }
    }
    if (on.several) fixed_nodes.several.erase(node);
    if (const auto promised = fixed_nodes.promised.find(node); promised != fixed_nodes.promised.end()) {
        for (const auto& [tenant, leased] : promised->second)
            fixed_nodes.domains[domain_key(tenant)].owns[tenant].promised -= leased;
        fixed_nodes.promised.erase(promised);
    }
}

// Counts one node anew. The known way to keep every guarantee stays one where a node is no longer fixed for its domain:
// it is the domain's from now on.
void Engine::State::recount_fixed(NodeNo node) {
    const FixedNodes::OnNode before = fixed_nodes.on[node];
    discount_fixed(node);
    count_fixed(node);
    const FixedNodes::OnNode& now = fixed_nodes.on[node];
    if (before == now) return;
    fixed_nodes.answers.clear();
    fixed_nodes.after.reset();
    if (!fixed_nodes.given) return;
    const bool was_fixed = before.counts && before.sort.fixed, is_fixed = now.counts && now.sort.fixed;
    const bool is_known_way = fixed_nodes.given->keepable == Keepable::yes && !before.several && !now.several;
    if (is_known_way && was_fixed && is_fixed && before.sort.domain == now.sort.domain) return;
    if (is_known_way && was_fixed && now.counts && (now.sort.domain == 0 || now.sort.domain == before.sort.domain))
        ++fixed_nodes.given->given[{before.sort.domain, now.sort}];
    else
        fixed_nodes.given.reset();
}

// Brings what is known of fixed nodes up to date. Where a guarantee is in whole nodes, which node counts for it depends
// on all others, so all are counted.
void Engine::State::look_for_fixed_nodes() {
    if (fixed_nodes.known && fleet.changed_nodes().empty()) return;
    if (!fixed_nodes.known || fixed_nodes.counts_nodes) {
        fixed_nodes = {};
        list_guaranteed(fixed_nodes.domains);
        for (const auto& [key, domain] : fixed_nodes.domains)
            for (const auto& [tenant, own] : domain.owns)
                fixed_nodes.counts_nodes = fixed_nodes.counts_nodes || own.nodes > 0;
        fixed_nodes.on.resize(fleet.nodes());
        for (NodeNo node = 0; node < fleet.nodes(); ++node) count_fixed(node);
        fleet.forget_changed_nodes();
        fixed_nodes.known = true;
        return;
    }
    fixed_nodes.on.resize(fleet.nodes());
    for (const NodeNo node : fleet.changed_nodes()) recount_fixed(node);
    fleet.forget_changed_nodes();
}

// Parts of GPUs are counted together, and find room on GPUs that such work of their domain leases in part.
std::vector<GuaranteedPart> Engine::State::parts_of(DomainKey key, const FixedNodes::Domain& domain) const {
    std::vector<GuaranteedPart> out;
    std::map<std::optional<std::vector<std::uint32_t>>, std::pair<std::int64_t, std::int64_t>>
        gpus;  // whole, and parts
    for (const auto& [tenant, own] : domain.owns) {
        const std::int64_t left = left_of(tenant, own);
        if (left <= 0 && own.nodes <= 0) continue;
        const TenantFacts& facts = tenants[tenant].facts;
        std::optional<std::vector<std::uint32_t>> at;
        if (facts.sites) {
            at.emplace();
            for (const std::string& site : *facts.sites)
                if (const auto known = site_numbers.find(site); known != site_numbers.end())
                    at->push_back(known->second);
            std::ranges::sort(*at);
        }
        if (own.nodes > 0)
            out.push_back({.domain = key,
                           .sites = at,
                           .least = std::max<std::int64_t>(facts.least_node, 1),
                           .amount = own.nodes});
        if (left <= 0) continue;
        auto& [whole, parts] = gpus[std::move(at)];
        whole += left / counted_whole_gpu;
        parts += left % counted_whole_gpu;
    }
    std::int64_t fragments = domain.fragments;
    for (const auto& [at, amounts] : gpus) {
        const std::int64_t found = std::min(amounts.second, fragments);
        fragments -= found;
        out.push_back({.domain = key,
                       .sites = at,
                       .least = 0,
                       .amount = amounts.first + (amounts.second - found + counted_whole_gpu - 1) / counted_whole_gpu});
    }
    return out;
}

std::vector<GuaranteedPart> Engine::State::all_parts(DomainKey but, const FixedNodes::Domain& instead) const {
    std::vector<GuaranteedPart> out;
    for (const auto& [key, domain] : fixed_nodes.domains)
        for (GuaranteedPart& part : parts_of(key, key == but ? instead : domain)) out.push_back(std::move(part));
    return out;
}

std::vector<GuaranteedPart> Engine::State::guaranteed_parts() const {
    std::map<DomainKey, FixedNodes::Domain> domains;
    list_guaranteed(domains);
    std::vector<GuaranteedPart> out;
    for (auto& [key, domain] : domains) {
        for (auto& [tenant, own] : domain.owns) own.gpus += tenants[tenant].own_pinned;  // which parts_of takes off
        for (GuaranteedPart& part : parts_of(key, domain)) out.push_back(std::move(part));
    }
    return out;
}

const NodesGiven& Engine::State::given_now() {
    if (!fixed_nodes.given) fixed_nodes.given = give_nodes(fixed_nodes.sorts, all_parts(0, {}));
    return *fixed_nodes.given;
}

std::int64_t Engine::State::opens(const Job& job, const FleetIndex::Portion& portion,
                                  const std::optional<Fixed>& fixed) const {
    const std::int64_t whole = fleet.whole_gpus(job.shape), share = job.gpus.units;
    if (whole > 0) return whole * portion.tasks;
    if (share <= 0) return 0;
    const std::int64_t fits = fixed ? fixed->fragments / share : 0;
    if (portion.tasks <= fits) return 0;
    const std::int64_t each = std::max<std::int64_t>(counted_whole_gpu / share, 1);
    return (portion.tasks - fits + each - 1) / each;
}

std::vector<Engine::State::FixedStart> Engine::State::starts_of(const Job& job,
                                                                std::span<const FleetIndex::Portion> where) const {
    const DomainKey domain = domain_key(job.tenant);
    std::vector<FixedStart> out;
    for (const FleetIndex::Portion& portion : where) {
        FixedStart start{.node = portion.node, .tasks = portion.tasks, .fixed = fixed_for(portion.node)};
        start.sort = sort_of(portion.node, start.fixed);
        start.own = start.fixed && !start.fixed->shared && start.fixed->domain == domain;
        start.opens = opens(job, portion, start.fixed);
        out.push_back(start);
    }
    return out;
}

// What is left of the domain's guarantees, and of nodes for all, after a start.
void Engine::State::apply(const Job& job, std::span<const FixedStart> starts, FixedNodes::Domain& domain,
                          std::map<NodeSort, std::int64_t>& sorts) const {
    const DomainKey key = domain_key(job.tenant);
    const std::int64_t least = std::max<std::int64_t>(tenants[job.tenant].facts.least_node, 1);
    FixedNodes::Own& own = domain.owns[job.tenant];
    std::int64_t tasks = 0;
    for (const FixedStart& start : starts) {
        if (const auto unit = fixed_nodes.units.find(start.node); unit != fixed_nodes.units.end()) {
            if (unit->second == job.tenant) continue;
            if (start.own) ++domain.owns[unit->second].nodes;  // another tenant's node is no whole one then
        }
        if (start.sort) add_nodes(sorts, *start.sort, -1);
        if (!start.fixed && own.nodes > 0 && start.sort && start.sort->gpus >= least) {
            --own.nodes;
            continue;
        }
        tasks += start.tasks;
        if (start.fixed && !start.own) continue;
        const std::int64_t untouched =
            start.sort ? start.sort->gpus
                       : fleet.gpus(start.node) - (start.fixed ? std::popcount(start.fixed->touched) : 0);
        add_nodes(sorts,
                  {.gpus = std::max<std::int64_t>(untouched - start.opens, 0),
                   .site = sites[start.node],
                   .fixed = true,
                   .domain = key},
                  1);
        if (fleet.whole_gpus(job.shape) == 0)
            domain.fragments = std::max<std::int64_t>(
                domain.fragments + start.opens * counted_whole_gpu - job.counted(start.tasks), 0);
    }
    own.gpus -= job.counted(tasks);
}

// Whether the nodes that are fixed for the domain, and all but the largest of those that the start would close, leave
// some of the domain's guarantees without room.
bool Engine::State::needs_more_nodes(const Job& job, std::span<const FixedStart> starts) const {
    const DomainKey key = domain_key(job.tenant);
    std::optional<NodeSort> largest;
    std::map<NodeSort, std::int64_t> closed;
    bool any = false;
    for (const FixedStart& start : starts) {
        if (start.own || (start.sort && !start.sort->fixed && start.sort->domain == key)) continue;
        any = true;
        if (!start.sort || start.sort->fixed) continue;  // no use to its guarantees
        if (!largest || start.sort->gpus > largest->gpus) largest = start.sort;
        add_nodes(closed, *start.sort, 1);
    }
    if (!any) return true;  // it closes nothing that could serve others
    if (largest) add_nodes(closed, *largest, -1);
    const auto known = fixed_nodes.domains.find(key);
    if (known == fixed_nodes.domains.end()) return false;
    const std::vector<GuaranteedPart> parts = parts_of(key, known->second);
    if (parts.empty()) return false;
    if (known->second.alike && !parts.front().sites) {
        std::int64_t room = known->second.room, needed = 0;
        for (const auto& [sort, nodes] : closed) room += sort.gpus * nodes;
        for (const GuaranteedPart& part : parts) needed += part.amount;
        return needed > room;
    }
    for (const auto& [sort, nodes] : fixed_nodes.sorts)
        if (sort.fixed && sort.domain == key) add_nodes(closed, sort, nodes);
    return give_nodes(closed, parts).keepable != Keepable::yes;
}

// Whether the start takes only nodes that the known way to keep every guarantee gives its domain, or leaves over.
// `take`: they are its from now on.
bool Engine::State::is_as_given(const Job& job, std::span<const FixedStart> starts, bool take) {
    const DomainKey key = domain_key(job.tenant);
    const auto known = fixed_nodes.domains.find(key);
    if (known == fixed_nodes.domains.end() || !known->second.alike) return false;
    const bool is_part = fleet.whole_gpus(job.shape) == 0;
    std::int64_t tasks = 0;
    for (const FixedStart& start : starts) tasks += start.tasks;
    const auto own = known->second.owns.find(job.tenant);
    if (own == known->second.owns.end() || left_of(job.tenant, own->second) < job.counted(tasks)) return false;
    const auto takes_nothing_more = [&](const FixedStart& start) {
        return start.own && (!is_part || start.opens == 0) && !fixed_nodes.units.contains(start.node);
    };
    if (std::ranges::all_of(starts, takes_nothing_more)) return true;
    if (given_now().keepable != Keepable::yes) return false;
    std::map<NodeSort, std::int64_t> used;
    for (const FixedStart& start : starts) {
        if (start.own) continue;
        if (!start.sort || start.sort->fixed) return false;
        ++used[*start.sort];
    }
    NodesGiven& given = *fixed_nodes.given;
    for (const auto& [sort, nodes] : used) {
        const auto its = given.given.find({key, sort});
        const auto spare = given.spare.find(sort);
        const std::int64_t granted = its == given.given.end() ? 0 : its->second;
        const std::int64_t free = spare == given.spare.end() ? 0 : spare->second;
        if (granted + free < nodes) return false;
    }
    if (is_part) {
        // A further GPU is opened: what is left of the domain's guarantees must fit beside it.
        if (tenants[job.tenant].facts.sites) return false;
        FixedNodes::Domain after = known->second;
        std::map<NodeSort, std::int64_t> changed;
        apply(job, starts, after, changed);
        std::int64_t room = known->second.room, needed = 0;
        for (const auto& [sort, nodes] : changed)
            if (sort.fixed && sort.domain == key) room += sort.gpus * nodes;
        for (auto each = given.given.lower_bound({key, NodeSort{.gpus = -1}});
             each != given.given.end() && each->first.first == key; ++each) {
            const NodeSort& sort = each->first.second;
            const auto taken = used.find(sort);
            if (!sort.fixed)
                room += sort.gpus * std::max<std::int64_t>(each->second - (taken == used.end() ? 0 : taken->second), 0);
        }
        for (const GuaranteedPart& part : parts_of(key, after)) needed += part.amount;
        if (needed > room) return false;
    }
    if (!take) return true;
    for (const auto& [sort, nodes] : used) {
        const std::int64_t granted = std::min(given.given[{key, sort}], nodes);
        given.given[{key, sort}] -= granted;
        given.spare[sort] -= nodes - granted;
    }
    return true;
}

bool Engine::State::keeps_guarantees(const Job& job, std::span<const FixedStart> starts) {
    if (is_as_given(job, starts, false)) return true;
    const DomainKey key = domain_key(job.tenant);
    FixedNodes::Domain domain = fixed_nodes.domains[key];
    std::map<NodeSort, std::int64_t> sorts = fixed_nodes.sorts;
    apply(job, starts, domain, sorts);
    NodesGiven after = give_nodes(sorts, all_parts(key, domain));
    if (after.keepable == Keepable::yes) {
        FixedNodes::After& known = fixed_nodes.after.emplace(FixedNodes::After{.tenant = job.tenant});
        for (const FixedStart& start : starts) known.nodes.push_back(start.node);
        known.given = std::move(after);
        return true;
    }
    const NodesGiven& before = given_now();
    // Where guarantees cannot all be kept, as after the loss of a node, none may become worse.
    return before.keepable != Keepable::yes && after.missing <= before.missing;
}

bool Engine::State::stays_entitled(const Job& job, std::span<const FleetIndex::Portion> where) {
    if (job.preemptible || where.empty()) return true;
    look_for_fixed_nodes();
    const bool closes_nodes = fleet.closes_node(job.shape);
    const std::vector<FixedStart> starts = starts_of(job, where);
    FixedNodes::Portions portions;
    bool in_units = false;
    for (const FixedStart& start : starts) {
        portions.emplace_back(start.sort, std::int64_t{start.tasks} << 32 | start.opens << 2 |
                                              (start.fixed.has_value() ? 2 : 0) | (start.own ? 1 : 0));
        in_units = in_units || fixed_nodes.units.contains(start.node);
    }
    const auto ask = [&] { return (!closes_nodes || needs_more_nodes(job, starts)) && keeps_guarantees(job, starts); };
    if (in_units) return ask();
    const auto [known, fresh] =
        fixed_nodes.answers.try_emplace({job.tenant, job.shape, closes_nodes, std::move(portions)}, false);
    if (fresh) known->second = ask();
    return known->second;
}

// Asked before the job starts there. True: the known way to keep every guarantee is still one afterwards.
bool Engine::State::takes_as_given(const Job& job, std::span<const FleetIndex::Portion> where) {
    if (job.preemptible || !fixed_nodes.known || fixed_nodes.counts_nodes) return false;
    look_for_fixed_nodes();
    return is_as_given(job, starts_of(job, where), true);
}

void Engine::State::note_fixed(const Job& job, std::span<const FleetIndex::Portion> where, bool as_given) {
    if (job.preemptible || !fixed_nodes.known || fixed_nodes.counts_nodes) return;
    std::optional<NodesGiven> given;
    if (as_given)
        given = std::move(fixed_nodes.given);
    else if (fixed_nodes.after && fixed_nodes.after->tenant == job.tenant &&
             std::ranges::equal(fixed_nodes.after->nodes, where, {}, {}, &FleetIndex::Portion::node))
        given = std::move(fixed_nodes.after->given);
    fixed_nodes.given.reset();
    for (const FleetIndex::Portion& portion : where) recount_fixed(portion.node);
    fixed_nodes.given = std::move(given);
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

std::vector<NodeNo> Engine::State::nodes_with_room(const Job& job) const {
    std::vector<std::pair<std::int64_t, NodeNo>> by_room;
    for (NodeNo node = 0; node < fleet.nodes(); ++node)
        if (const std::int64_t takes = fleet.capacity(node, job.shape, job.tenant); takes > 0)
            by_room.emplace_back(-takes, node);
    std::ranges::sort(by_room);
    std::vector<NodeNo> out;
    out.reserve(by_room.size());
    for (const auto& [takes, node] : by_room) out.push_back(node);
    return out;
}

// The nodes that are fixed for its domain, and as many others as the known way to keep every guarantee gives it.
std::vector<NodeNo> Engine::State::nodes_given(const Job& job) {
    const DomainKey key = domain_key(job.tenant);
    std::map<NodeSort, std::int64_t> left;
    for (const auto& [whose, nodes] : given_now().given)
        if (whose.first == key && !whose.second.fixed) left[whose.second] += nodes;
    std::vector<NodeNo> out;
    for (const NodeNo node : nodes_with_room(job)) {
        const std::optional<Fixed> fixed = fixed_for(node);
        if (fixed && !fixed->shared && fixed->domain == key) out.push_back(node);
        if (fixed) continue;
        const std::optional<NodeSort> sort = sort_of(node, fixed);
        const auto known = sort ? left.find(*sort) : left.end();
        if (known == left.end() || known->second == 0) continue;
        --known->second;
        out.push_back(node);
    }
    return out;
}

// Whether a task of the job may close a node that is not fixed for its domain and that others could use.
bool Engine::State::may_close_a_node(const Job& job) const {
    const FixedStart anywhere{.sort = NodeSort{.gpus = 1}};
    return needs_more_nodes(job, {&anywhere, 1});
}

// Nodes on which one task of the job would be allowed. Nodes without fixed work are asked about once for each sort.
std::vector<NodeNo> Engine::State::nodes_it_may_fix(const Job& job) {
    std::map<NodeSort, bool> known;
    std::vector<NodeNo> out;
    for (NodeNo node = 0; node < fleet.nodes(); ++node) {
        if (!fleet.able(node, job.shape)) continue;
        const FixedNodes::OnNode& on = fixed_nodes.on[node];
        if (!on.counts || on.sort.fixed || on.several) {
            if (may_fix(job, node)) out.push_back(node);
            continue;
        }
        const auto [answer, fresh] = known.try_emplace(on.sort, false);
        if (fresh) answer->second = may_fix(job, node);
        if (answer->second) out.push_back(node);
    }
    return out;
}

// First on nodes that are fixed for its domain already, then on nodes that no other domain may use, then wherever it
// would go otherwise, then on nodes that it may have alone, then on those that are its part of all.
std::vector<FleetIndex::Portion> Engine::State::find_entitled_room(JobNo number, std::int32_t tasks) {
    const Job& job = jobs[number].job;
    look_for_fixed_nodes();
    const DomainKey key = domain_key(job.tenant);
    std::vector<FleetIndex::Portion> where;
    const auto found_on = [&](std::span<const NodeNo> nodes) {
        where = arranged(job, tasks, nodes);
        return !where.empty() && stays_entitled(job, where);
    };
    std::span<const NodeNo> fixed;
    if (const auto found = fixed_nodes.domains.find(key); found != fixed_nodes.domains.end())
        fixed = found->second.nodes;
    const std::span<const NodeNo> newest = fixed.last(std::min(fixed.size(), fixed_nodes_looked_at));
    if (found_on(newest)) return where;
    std::vector<NodeNo> nodes;
    if (std::ranges::any_of(fixed_nodes.sorts,
                            [&](const auto& each) { return each.first.domain == key && !each.first.fixed; })) {
        for (NodeNo node = 0; node < fleet.nodes(); ++node)
            if (const FixedNodes::OnNode& on = fixed_nodes.on[node]; on.counts && on.sort.domain == key)
                nodes.push_back(node);
        if (found_on(nodes)) return where;
    }
    jobs[number].outside_in = nil;
    if (tasks == 1 && fleet.closes_node(job.shape) && !may_close_a_node(job)) {
        if (newest.size() < fixed.size() && found_on(fixed)) return where;
    } else {
        where = find_room(number, tasks);
        if (where.empty() || stays_entitled(job, where)) return where;
        if (found_on(nodes_it_may_fix(job)) || found_on(nodes_given(job))) return where;
    }
    jobs[number].outside_in = generation;
    return {};
}

// A node that the job could have without closing more than it is entitled to, as far as one node tells.
bool Engine::State::may_fix(const Job& job, NodeNo node) {
    if (job.preemptible) return true;
    const FleetIndex::Portion one{node, 1};
    return stays_entitled(job, {&one, 1});
}

// What work of the domain that may not be preempted closes now, Gpus::units.
std::int64_t Engine::State::closed_by_fixed(DomainKey domain) const {
    const auto known = fixed_nodes.domains.find(domain);
    if (known == fixed_nodes.domains.end()) return 0;
    std::int64_t closed = 0;
    for (const NodeNo node : known->second.nodes)
        if (const auto fixed = fixed_for(node))
            closed += fixed->closed ? fleet.gpus(node) * counted_whole_gpu : fixed->leased;
    for (const NodeNo node : fixed_nodes.several)
        for (SeatNo s = fleet.first_seat(node); s != nil; s = fleet.seat(s).next_here)
            if (const SeatRec& seat = fleet.seat(s);
                seat.pinned && seat.job != nil && domain_key(seat.tenant) == domain)
                closed += jobs[seat.job].job.counted(1);
    return closed;
}

std::optional<Reason> Engine::State::outside_entitlement(const Job& job) const {
    if (job.preemptible || !fixed_nodes.known) return std::nullopt;
    const DomainKey key = domain_key(job.tenant);
    const auto domain = fixed_nodes.domains.find(key);
    const std::int64_t guaranteed = domain == fixed_nodes.domains.end() ? 0 : domain->second.guaranteed;
    return Reason{"wait.entitlement",
                  {{"closed", print(Gpus{closed_by_fixed(key)})}, {"guaranteed", print(Gpus{guaranteed})}}};
}

}  // namespace bulkhead::sched
