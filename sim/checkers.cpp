#include "sim/checkers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "sim/reading.hpp"

namespace bulkhead::sim {

namespace json = boost::json;

Checkers::Checkers(const std::vector<TenantFacts>& tenants, Duration bound) : bound_{bound} {
    for (const TenantFacts& tenant : tenants) tenants_[tenant.name] = tenant;
}

void Checkers::say(std::string_view what) const {
    if (!trace_.empty() && what.find(trace_) != std::string_view::npos)
        fmt::print("{:>12.3f}  {}\n", static_cast<double>(now_) / 1000, what);
}

void Checkers::violate(int invariant, std::string what) {
    if (violations_.size() < 20) violations_.push_back({invariant, now_, std::move(what)});
}

bool Checkers::distrusting(const std::string& a, const std::string& b) const {
    if (a == b) return false;
    const auto x = tenants_.find(a), y = tenants_.find(b);
    if (x == tenants_.end() || y == tenants_.end()) return true;
    return x->second.domain.empty() || x->second.domain != y->second.domain;
}

std::string Checkers::unit_name(std::string_view kind, std::int64_t device, std::int64_t slice) {
    return fmt::format("{}/{}/{}", kind, device, slice);
}

void Checkers::recovered(const std::map<std::pair<Table, std::int64_t>, std::string>& rows,
                         const std::vector<Hash>& entries) {
    for (const auto& [key, body] : rows_) {
        const auto found = rows.find(key);
        if (found == rows.end())
            violate(4, fmt::format("row {} of {} was durable and is gone", key.second, word(key.first)));
        else if (found->second != body)
            violate(4, fmt::format("row {} of {} is not what was durable", key.second, word(key.first)));
    }
    for (const auto& [key, body] : rows)
        if (!rows_.contains(key))
            violate(4, fmt::format("row {} of {} was never acknowledged as durable", key.second, word(key.first)));
    if (entries.size() != entries_.size() || !std::ranges::equal(entries, entries_))
        violate(8, fmt::format("the log had {} leaves and has {} now, or others", entries_.size(), entries.size()));
    // What callers were told.
    std::set<std::string> there;
    for (const auto& [key, body] : rows)
        if (key.first == Table::workload) {
            const json::object object = json::parse(body).as_object();
            const json::value* status = object.if_contains("status");
            const bool deleting = status != nullptr && status->as_object().contains("deleting");
            const std::string name = text(object.at("metadata").as_object(), "name");
            if (!deleting) there.insert(name);
            if (refused_.contains(name)) violate(4, fmt::format("{} was refused and is there", name));
        }
    for (const auto& [name, exists] : workloads_)
        if (exists != there.contains(name))
            violate(4, fmt::format("{} was acknowledged as {}, and is {}", name, exists ? "created" : "deleted",
                                   exists ? "gone" : "there"));
    probe("recovered");
}

std::shared_ptr<const Checkers::Memory> Checkers::remember() const {
    return std::make_shared<const Memory>(Memory{rows_, leases_, usage_expected_, usage_seen_, workloads_, gates_,
                                                 entries_.size(), billed_, switches_, silences_});
}

void Checkers::restored(const Memory& memory) {
    rows_ = memory.rows;
    leases_ = memory.leases;
    usage_expected_ = memory.usage_expected;
    usage_seen_ = memory.usage_seen;
    workloads_ = memory.workloads;
    gates_ = memory.gates;
    billed_ = memory.billed;
    switches_ = memory.switches;
    silences_ = memory.silences;
    works_.clear();
    nodes_.clear();
    limits_.clear();
    bound_tenants_.clear();
    for (const auto& [key, body] : rows_) {
        const Row row{.table = key.first, .key = key.second, .body = body};
        if (key.first == Table::workload) read_work(row);
        if (key.first == Table::node) read_node(row);
        if (key.first == Table::tenant) read_limit(row);
    }
    disturbed();
    // What nobody remembers to have counted counts again, if its unit was not used since; the node sees to that.
    std::erase_if(signatures_, [&](const auto& seen) { return seen.second > memory.log_size; });
    restored_fences();
    probe("restored from a backup");
    if (!trace_.empty()) fmt::print("{:>12.3f}  restored from a backup\n", static_cast<double>(now_) / 1000);
}

void Checkers::acknowledged_create(const std::string& workload) {
    workloads_[workload] = true;
    if (!durable_names_.contains(workload))
        violate(4, fmt::format("{} was acknowledged before it was durable", workload));
}
void Checkers::acknowledged_delete(const std::string& workload) { workloads_[workload] = false; }
void Checkers::refused(const std::string& workload) { refused_.insert(workload); }

void Checkers::calm_began() {
    calm_ = true;
    calm_from_ = entries_.size();
}

void Checkers::finished() {
    // What hung when the calm began is given up hours later: then that is what broke, and what follows takes its time.
    if (given_up_at_) probe("a hang was given up in the calm");
    const auto is_long_ago = [&](const std::optional<std::int64_t>& at) { return !at || now_ - *at > 3'600'000; };
    const bool settled = is_long_ago(given_up_at_) && is_long_ago(grew_at_);
    // With no input and no faults there is nothing to do, sooner or later.
    if (!given_up_at_ && !grew_at_ && entries_.size() != calm_from_) {
        std::string what = fmt::format("{} entries were logged although nothing was asked and nothing broke",
                                       entries_.size() - calm_from_);
        for (const std::string& payload : said_in_calm_) what += "\n    " + payload;
        violate(7, std::move(what));
    }
    if (settled) {
        check_rest();
        follow_guarantees();
        follow_limits();
    }
    for (const auto& [lease, expected] : usage_expected_)
        if (usage_seen_[lease] != expected)
            violate(8, fmt::format("usage of {} is {}, not {}", lease, usage_seen_[lease], expected));
}

// After a long calm nothing is half done: no lease on its way, no wipe without an end, and on the hardware there runs
// what has a lease, all of it.
void Checkers::check_rest() {
    check_fences_at_rest();
    const auto waits = [&](const std::string& node) { return hanging_.contains(node); };
    for (const auto& [row, states] : gates_)
        for (std::size_t i = 0; i < states.size(); ++i)
            if ((states[i] == "sanitizing" || states[i] == "reserved") &&
                !waits(gate_names_[row].substr(0, gate_names_[row].find('/'))))
                violate(7, fmt::format("{}/{} is still {}", gate_names_[row], i, states[i]));
    std::map<Key, std::set<std::string>> runs;
    for (const auto& [node, leases] : running_)
        for (const auto& [key, running] : leases) runs[key].insert(node);
    for (const auto& [key, lease] : leases_) {
        if (std::ranges::any_of(lease.nodes, waits)) continue;
        if (lease.phase != "active")
            violate(7, fmt::format("lease {} is still {}", lease.name, lease.phase));
        else if (runs[key] != lease.nodes)
            violate(5, fmt::format("lease {} is active on {} nodes and runs on {}", lease.name, lease.nodes.size(),
                                   runs[key].size()));
    }
    for (const auto& [key, nodes] : runs)
        if (!nodes.empty() && !leases_.contains(key))
            violate(5, fmt::format("lease {} runs on {} and is nobody's", key, *nodes.begin()));
}

}  // namespace bulkhead::sim
