#include "bulkhead/sched/blocking_text.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bulkhead/sched/statement.hpp"

namespace bulkhead::sched {

namespace {

constexpr std::size_t names_in_a_sentence = 3;

// A tenant reads an obstacle in the words of the reason with the same meaning.
std::string_view obstacle_code(Obstacle obstacle) {
    switch (obstacle) {
        case Obstacle::kind:
            return "wait.kind";
        case Obstacle::model:
            return "wait.model";
        case Obstacle::closed:
            return "wait.closed";
        case Obstacle::neighbours:
            return "wait.neighbours";
        case Obstacle::nvlink:
            return "wait.nvlink";
        case Obstacle::host:
            return "wait.host";
        case Obstacle::reboot:
            return "wait.reboot";
        case Obstacle::reserved:
            return "wait.held-for-others";
        case Obstacle::cores:
            return "wait.cores";
        case Obstacle::devices:
            return "wait.devices";
        case Obstacle::gpus:
        case Obstacle::none:
        case Obstacle::end:
            return "wait.gpus";
    }
    return "wait.gpus";
}

std::string says_of_node(const BlockedNode& node, const std::string& name) {
    std::string text = "node " + name;
    switch (node.obstacle) {
        case Obstacle::none:
            text += " has room for some of its tasks";
            break;
        case Obstacle::kind:
            text += " may not serve it under its contract";
            break;
        case Obstacle::model:
            text += " has too few working GPUs of a model that it accepts";
            break;
        case Obstacle::closed:
            text += " is closed to new work: drained, silent or not yet reconciled";
            break;
        case Obstacle::neighbours:
            text += " runs work that may not share a node with it";
            break;
        case Obstacle::nvlink:
            text += " has an NVLink fabric that another tenant uses";
            break;
        case Obstacle::host:
            text += " was used by a tenant that it does not trust, and cannot be rebooted now";
            break;
        case Obstacle::reboot:
            text += " must be rebooted to a known image before it may use it";
            break;
        case Obstacle::reserved:
            text += " has free capacity that is reserved for workloads ahead of this one";
            break;
        case Obstacle::cores:
            text += " has too few free cores or too little free memory";
            break;
        case Obstacle::devices:
            text += " has no free virtual function or drive of the size it needs";
            break;
        case Obstacle::gpus:
        case Obstacle::end:
            text += " has too few GPUs or slices that are free and clean";
            break;
    }
    if (node.wiping) text += "; GPUs there are being wiped or await a verified wipe";
    return text;
}

// Whole seconds: milliseconds help no reader. Upwards, so that an estimate is not before its time.
Duration in_seconds(Duration span) { return Duration{span.ms / 1000 * 1000}; }
Instant rounded_up(Instant at, std::int64_t to_ms) { return Instant{(at.ms + to_ms - 1) / to_ms * to_ms}; }

std::string names_listed(const std::vector<std::string>& all) {
    std::vector<std::string> some = all;
    if (some.size() > names_in_a_sentence) some.resize(names_in_a_sentence);
    std::string text = fmt::format("{}", fmt::join(some, ", "));
    if (all.size() > some.size()) text += fmt::format(" and {} more", all.size() - some.size());
    return text;
}

std::string gpus_counted(Gpus gpus) { return fmt::format("{} GPU{}", print(gpus), gpus == Gpus::whole(1) ? "" : "s"); }

// Why work stays, as the end of a sentence about it.
std::string why_it_stays(const Blocker& work) {
    switch (work.stays) {
        case Stays::ending:
            return "it is stopping";
        case Stays::not_preemptible:
            return "it would have to end, and it may not be preempted";
        case Stays::guarantee:
            return "it would have to end, and it is within its tenant's guarantee";
        case Stays::due:
            return "it would have to end, and its tenant leases no more than it is due";
        case Stays::priority:
            return "it would have to end, and its priority is not lower";
        case Stays::minimum_run_time:
            return fmt::format("it would have to end; it is preemptible and has run {} of a minimum of {}",
                               print(in_seconds(work.ran.value_or(Duration{}))),
                               print(work.minimum.value_or(Duration{})));
        case Stays::no_claim:
            return "it would have to end, and is not evicted because the waiting workload's tenant would hold more "
                   "than it is due";
        case Stays::reserved:
            return "it is ahead of this one";
        case Stays::evictable:
            return "it would have to end; it may be evicted for this one";
    }
    return {};
}

std::string says_of_work(const Blocker& work, const WorkInTheWay& named, const BlockingNames& names,
                         const std::vector<BlockedNode>& nodes) {
    std::string text;
    if (!named.nodes.empty())
        text += fmt::format("node{} {}: ", named.nodes.size() == 1 ? "" : "s", names_listed(named.nodes));
    const std::string who = named.workload.empty() ? fmt::format("a lease of tenant {}", names.tenant(work.tenant))
                                                   : fmt::format("job {} of tenant {}", named.workload, named.tenant);
    const auto node =
        work.nodes.empty() ? nodes.end() : std::ranges::find(nodes, work.nodes.front(), &BlockedNode::node);
    if (work.stays == Stays::reserved)
        text += fmt::format("{} reserved for {}", gpus_counted(work.leased), who);
    else if (work.closes_node && work.nodes.size() == 1 && node != nodes.end())
        text += fmt::format("{} closes the node ({} of {} GPUs leased)", who, print(work.leased), node->gpus);
    else if (work.leased > Gpus{})
        text += fmt::format("{} leases {}", who, gpus_counted(work.leased));
    else
        text += fmt::format("{} is there", who);
    text += "; " + why_it_stays(work);
    if (work.ends) text += fmt::format("; by its declared run time it ends at {}", print(rounded_up(*work.ends, 1000)));
    return text;
}

std::string_view says_of_others(Stays stays) {
    switch (stays) {
        case Stays::ending:
            return "other work in its way is stopping";
        case Stays::not_preemptible:
            return "other work would have to end, and it may not be preempted";
        case Stays::guarantee:
            return "other work would have to end, and a guarantee protects it";
        case Stays::minimum_run_time:
            return "other work would have to end, and its minimum run time is not over";
        case Stays::reserved:
            return "capacity is reserved for workloads ahead of this one";
        case Stays::evictable:
            return "other work would have to end; it may be evicted for this one";
        case Stays::due:
        case Stays::priority:
        case Stays::no_claim:
            break;
    }
    return "other work would have to end, and it is not evicted for this one";
}

// A tenant is not told its due, which follows from what others ask for.
Stays told_to_tenants(Stays stays) { return stays == Stays::no_claim || stays == Stays::priority ? Stays::due : stays; }

bool has_no_known_end(const Blocker& work) {
    return !work.ends && !work.until && work.stays != Stays::ending && work.stays != Stays::evictable;
}

std::string no_estimate(const Blocking& blocking, const InTheWay& named, Audience reader) {
    std::vector<std::string> unknown;
    bool any = false;
    for (std::size_t i = 0; i < blocking.must_end.size(); ++i) {
        if (!has_no_known_end(blocking.must_end[i])) continue;
        any = true;
        if (reader == Audience::fleet_operator && !named.mustEnd[i].workload.empty())
            unknown.push_back(named.mustEnd[i].workload);
    }
    if (!unknown.empty()) return fmt::format("no estimate: the run time of {} is not declared", names_listed(unknown));
    if (any) return "no estimate: the run time of work in its way is not declared";
    if (!blocking.reserved_for.empty()) return "no estimate: free GPUs stay reserved for guarantees";
    if (blocking.nodes.empty()) return {};
    return "no estimate: no node could take it even if all work there ended";
}

std::string says_of_start(const Blocking& blocking, const InTheWay& named, Audience reader) {
    const std::string at = named.expectedStart ? print(*named.expectedStart) : std::string{};
    switch (blocking.basis) {
        case StartBasis::unknown:
            return no_estimate(blocking, named, reader);
        case StartBasis::reservation:
            return fmt::format("expected to start at {}: capacity is reserved for it and should be free by then", at);
        case StartBasis::run_times:
            return fmt::format("expected to start at {} at the earliest, if running work ends as declared", at);
        case StartBasis::minimum_run_time:
            return fmt::format("expected to start at {} at the earliest, when work in its way has run its minimum time",
                               at);
        case StartBasis::under_way:
            if (blocking.nodes.empty() && blocking.must_end.empty()) return {};
            return "no estimate: it waits for work to stop, for wipes or for reboots, which take a time that is not "
                   "known";
    }
    return {};
}

}  // namespace

InTheWay in_the_way(const Blocking& blocking, const BlockingNames& names, Audience reader) {
    InTheWay out;
    const bool full = reader == Audience::fleet_operator;
    for (const BlockedNode& node : blocking.nodes) {
        if (full) {
            const std::string name = names.node(node.node);
            out.nodes.push_back({name, node.obstacle, says_of_node(node, name)});
        } else if (node.obstacle != Obstacle::none &&
                   std::ranges::find(out.nodes, node.obstacle, &NodeInTheWay::obstacle) == out.nodes.end()) {
            out.nodes.push_back(
                {"", node.obstacle, std::string{words_of(obstacle_code(node.obstacle), Audience::tenant)}});
        }
    }
    for (const Blocker& work : blocking.must_end) {
        WorkInTheWay named{.stays = work.stays};
        if (full || names.is_own(work.tenant)) {
            if (work.workload != 0) named.workload = names.workload(work.workload);
            named.tenant = names.tenant(work.tenant);
            for (const std::uint32_t node : work.nodes) named.nodes.push_back(names.node(node));
            named.gpus = work.leased;
            if (work.until) named.until = rounded_up(*work.until, 1000);
            if (work.ends) named.ends = rounded_up(*work.ends, 1000);
            named.says = says_of_work(work, named, names, blocking.nodes);
        } else {
            named.stays = told_to_tenants(work.stays);
            named.says = says_of_others(named.stays);
            if (std::ranges::find(out.mustEnd, named) != out.mustEnd.end()) continue;
        }
        out.mustEnd.push_back(std::move(named));
    }
    if (full)
        for (const TenantNo tenant : blocking.reserved_for) out.reservedFor.push_back(names.tenant(tenant));
    if (blocking.start) out.expectedStart = rounded_up(*blocking.start, full ? 1000 : 60'000);
    out.expectedFrom = blocking.basis;
    out.expectedSays = says_of_start(blocking, out, reader);
    return out;
}

}  // namespace bulkhead::sched
