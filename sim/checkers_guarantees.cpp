// Invariant 6, its second half: guaranteed capacity comes back within the bound, and what is lent is lent on those
// terms. Seen from outside, by what is durable alone.
//
// A claim, to this checker, is a waiting workload that one node can hold, of whole GPUs in one task or of sevenths of
// them, that asks for nothing else there are few of, and that leaves its tenant within its guarantee together with all
// that its tenant waits for. A node can be freed if it is ready and sound and every lease on it is of a tenant that is
// guaranteed nothing: such tenants run preemptible work alone. While there are as many such nodes as waiting claims may
// need, each claim must start within the bound. Whatever goes wrong, and whatever an operator does, begins the bound
// anew: how long it lasts is not this checker's to judge. That makes it blind while faults follow each other quickly,
// and sound.
#include <fmt/core.h>

#include <algorithm>

#include "sim/checkers.hpp"
#include "sim/reading.hpp"

namespace bulkhead::sim {

namespace json = boost::json;

namespace {

const json::object* object_in(const json::object& object, std::string_view key) {
    const json::value* found = object.if_contains(key);
    return found != nullptr && found->is_object() ? &found->as_object() : nullptr;
}

constexpr std::int64_t one_gpu = 21'000;  // as leases and guarantees are counted here

bool holds_units(const std::string& phase) { return phase == "preparing" || phase == "active"; }

}  // namespace

void Checkers::disturbed() {
    restless_until_ = now_;
    for (auto& [key, work] : works_) work.claims_since.reset();
}

void Checkers::read_work(const Row& row) {
    if (row.erased) {
        works_.erase(row.key);
        return;
    }
    const json::value parsed = json::parse(row.body);
    const json::object& object = parsed.as_object();
    const json::object& spec = object.at("spec").as_object();
    WorkSeen work;
    work.name = text(object.at("metadata").as_object(), "name");
    work.tenant = text(spec, "tenant");
    const std::int64_t tasks = number(spec, "tasks", 1);
    work.units = tasks * one_gpu;
    work.nodes = tasks;
    const json::object* status = object_in(object, "status");
    const std::string phase = status == nullptr ? std::string{} : text(*status, "phase");
    work.waits = phase.empty() || phase == "pending";
    if (status != nullptr && status->contains("deleting")) work.waits = false;
    if (const json::object* gpu = object_in(spec, "gpu")) {
        const std::int64_t count = number(*gpu, "count", 0);
        work.units = tasks * std::max<std::int64_t>(count, 1) * one_gpu;
        work.plain = tasks == 1 && count > 0 && !gpu->contains("profile") && !gpu->contains("fraction");
        if (text(*gpu, "profile") == "1g.10gb" && tasks <= 7) {
            work.plain = true;
            work.units = tasks * (one_gpu / 7);
            work.nodes = 1;
        }
    }
    for (const char* more : {"network", "storage", "topology", "isolation", "priority"})
        if (spec.contains(more)) work.plain = false;
    // It is the same claim as long as it waits.
    if (const auto before = works_.find(row.key); before != works_.end() && before->second.waits) {
        if (work.waits) work.claims_since = before->second.claims_since;
        if (before->second.claims_since && now_ - *before->second.claims_since > 60'000 && phase == "starting")
            probe("a guaranteed claim was served after a reclaim");
    }
    works_[row.key] = std::move(work);
}

void Checkers::read_node(const Row& row) {
    if (row.erased) {
        nodes_.erase(row.key);
        return;
    }
    const json::value parsed = json::parse(row.body);
    const json::object& object = parsed.as_object();
    NodeSeen& node = nodes_[row.key];
    node.name = text(object.at("metadata").as_object(), "name");
    const json::object* spec = object_in(object, "spec");
    const json::object* status = object_in(object, "status");
    node.open =
        status != nullptr && text(*status, "phase") == "ready" && (spec == nullptr || !spec->contains("unschedulable"));
}

void Checkers::read_limit(const Row& row) {
    const json::value parsed = json::parse(row.body);
    const json::object& object = parsed.as_object();
    const std::string name = text(object.at("metadata").as_object(), "name");
    const json::object* spec = object_in(object, "spec");
    const json::object* quota = spec == nullptr ? nullptr : object_in(*spec, "quota");
    const std::int64_t limit = quota != nullptr && quota->contains("limit") ? gpu_units(*quota, "limit") : -1;
    LimitSeen& seen = limits_[name];
    if (seen.units != limit) seen = {limit, now_, now_};
    const json::object* status = object_in(object, "status");
    const bool bound = status != nullptr && (status->contains("legalHold") || text(*status, "phase") == "frozen");
    if (bound)
        bound_tenants_.insert(name);
    else
        bound_tenants_.erase(name);
}

// What a node's devices are like: a unit that is out of use, or kept for a hold, makes it no candidate.
std::set<std::string> Checkers::unsound_nodes() const {
    std::set<std::string> out{hanging_.begin(), hanging_.end()};
    for (const auto& [row, states] : gates_) {
        const auto name = gate_names_.find(row);
        if (name == gate_names_.end()) continue;
        if (std::ranges::any_of(states, [](const std::string& s) { return s == "quarantined" || s == "held"; }))
            out.insert(name->second.substr(0, name->second.find('/')));
    }
    for (const auto& [gpu, drain] : drains_)
        if (drain.open) out.insert(gpu.substr(0, gpu.find('/')));
    for (const auto& [node, fences] : fences_)
        if (is_known_open(node) || fences.shown) out.insert(node);
    return out;
}

// By node: whether it can be freed for a tenant, whatever that is.
std::map<std::string, Checkers::Freeing> Checkers::freeable_nodes() const {
    std::map<std::string, Freeing> out;
    const std::set<std::string> unsound = unsound_nodes();
    for (const auto& [key, node] : nodes_)
        if (node.open && !unsound.contains(node.name)) out[node.name] = {};
    for (const auto& [key, lease] : leases_) {
        const auto facts = tenants_.find(lease.tenant);
        for (const std::string& node : lease.nodes) {
            const auto found = out.find(node);
            if (found == out.end()) continue;
            if (facts == tenants_.end() || !facts->second.gives_way) found->second.can_be = false;
            if (facts != tenants_.end() && facts->second.never_gives_way && lease.phase != "ending")
                found->second.closed_for_good = true;
        }
    }
    return out;
}

// What each tenant that is guaranteed any has, and waits for; and how many more nodes each trust domain may need for
// that.
void Checkers::follow_guarantees() {
    if (!bound_tenants_.empty()) return disturbed();
    struct Asking {
        std::int64_t held = 0, waits = 0;
    };
    struct Domain {
        std::int64_t nodes = 0, asked = 0;
        bool never_gives_way = true;
        std::set<std::string> closed;
        // Nodes beside those it closes. Work that gives way may be scattered over more than its guarantee takes up.
        std::int64_t may_need() const {
            return std::min(asked, never_gives_way ? std::max<std::int64_t>(nodes - std::ssize(closed), 0) : nodes);
        }
    };
    const auto domain_of = [](const TenantFacts& facts) { return facts.domain.empty() ? facts.name : facts.domain; };
    std::map<std::string, Asking> asking;
    std::map<std::string, Domain> domains;
    for (const auto& [key, work] : works_) {
        const auto facts = tenants_.find(work.tenant);
        if (!work.waits || facts == tenants_.end() || facts->second.guarantee <= 0) continue;
        asking[work.tenant].waits += work.units;
        Domain& domain = domains[domain_of(facts->second)];
        domain.nodes = facts->second.nodes;
        domain.asked += work.nodes;
        domain.never_gives_way = domain.never_gives_way && facts->second.never_gives_way;
    }
    waiting_claims_ = needed_nodes_ = 0;
    if (asking.empty()) return;
    for (const auto& [key, lease] : leases_) {
        if (const auto tenant = asking.find(lease.tenant); tenant != asking.end()) tenant->second.held += lease.gpus;
        const auto facts = tenants_.find(lease.tenant);
        if (facts == tenants_.end()) continue;
        if (const auto domain = domains.find(domain_of(facts->second)); domain != domains.end())
            domain->second.closed.insert(lease.nodes.begin(), lease.nodes.end());
    }
    for (const auto& [name, domain] : domains) needed_nodes_ += domain.may_need();
    const std::map<std::string, Freeing> nodes = freeable_nodes();
    const auto can_be = std::ranges::count_if(nodes, [](const auto& node) { return node.second.can_be; });
    for (auto& [key, work] : works_) {
        const auto its = asking.find(work.tenant);
        bool claims = work.waits && work.plain && its != asking.end() && can_be >= needed_nodes_;
        if (claims) {
            const TenantFacts& facts = tenants_.at(work.tenant);
            const Domain& domain = domains.at(domain_of(facts));
            claims = its->second.held + its->second.waits <= facts.guarantee &&
                     std::ssize(domain.closed) + domain.asked <= domain.nodes;
        }
        if (!claims) {
            work.claims_since.reset();
            continue;
        }
        ++waiting_claims_;
        if (!work.claims_since) {
            work.claims_since = now_;
            probe("a guaranteed claim waited");
        }
        if (now_ - *work.claims_since > bound_.ms)
            violate(
                6,
                fmt::format(
                    "{} of {} asks for {} of 1/21,000 GPU that are guaranteed; {} nodes can be freed, claims need {}, "
                    "and it has waited for {} s of at most {}",
                    work.name, work.tenant, work.units, can_be, needed_nodes_, (now_ - *work.claims_since) / 1000,
                    bound_.ms / 1000));
    }
}

// A lease begins: not where the one claim that waits would have to end it again.
void Checkers::check_lent(const LeaseSeen& lease) {
    const auto facts = tenants_.find(lease.tenant);
    if (facts == tenants_.end() || !facts->second.gives_way || waiting_claims_ != 1 || needed_nodes_ != 1) return;
    const auto claim = std::ranges::find_if(works_, [&](const auto& work) {
        return work.second.claims_since && now_ - *work.second.claims_since > 10'000 && now_ - restless_until_ > 10'000;
    });
    if (claim == works_.end()) return;
    const std::map<std::string, Freeing> nodes = freeable_nodes();
    for (const std::string& node : lease.nodes) {
        const auto here = nodes.find(node);
        if (here == nodes.end() || !here->second.can_be) continue;
        // A node that is drained, silent or being rebooted may be the one that is kept for the claim.
        const bool elsewhere = std::ranges::any_of(nodes_, [&](const auto& other) {
            const auto known = nodes.find(other.second.name);
            return other.second.name != node && (known == nodes.end() || !known->second.closed_for_good);
        });
        if (!elsewhere)
            violate(
                6, fmt::format("{} of {} is given {}, the one node that can be freed for {} of {}, which is guaranteed "
                               "it and waits",
                               lease.name, lease.tenant, node, claim->second.name, claim->second.tenant));
    }
}

// A limit that was lowered ends what is beyond it.
void Checkers::follow_limits() {
    for (auto& [tenant, limit] : limits_) {
        const auto facts = tenants_.find(tenant);
        if (limit.units < 0 || facts == tenants_.end() || !facts->second.gives_way) continue;
        std::int64_t held = 0;
        for (const auto& [key, lease] : leases_)
            if (lease.tenant == tenant && holds_units(lease.phase)) held += lease.gpus;
        if (held <= limit.units) limit.kept_at = now_;
        const std::int64_t since = std::max({limit.since, limit.kept_at, restless_until_});
        if (now_ - since > bound_.ms)
            violate(6, fmt::format("{} holds more than its limit of {} of 1/21,000 GPU for {} s, of at most {}", tenant,
                                   limit.units, (now_ - since) / 1000, bound_.ms / 1000));
    }
}

// One MPS server serves 48 clients. Leases that are on one GPU alone are counted: of the others it is not known how
// many tasks are where.
void Checkers::check_clients(const LeaseSeen& lease) {
    if (lease.mechanism != "mps" || lease.pieces.size() != 1) return;
    std::int64_t clients = 0;
    for (const auto& [key, other] : leases_)
        if (other.mechanism == "mps" && other.pieces.size() == 1 && holds_units(other.phase) &&
            other.pieces.front().node == lease.pieces.front().node &&
            other.pieces.front().gpu == lease.pieces.front().gpu)
            clients += other.tasks;
    if (clients > 48)
        violate(1, fmt::format("{} clients of MPS are on {}, and a server takes 48", clients,
                               gpu_name(lease.pieces.front().node, lease.pieces.front().gpu)));
}

}  // namespace bulkhead::sim
