// Why a job waits: everything that stands in its way, with numbers, from the buckets of the fleet.
#include <set>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

Waiting Engine::State::why(JobNo number, Instant now) const {
    const JobRec& rec = jobs[number];
    Waiting waiting{.workload = rec.job.key, .reasons = {}, .expected_ms = {}, .blocking = {}};
    std::vector<Reason>& reasons = waiting.reasons;
    std::set<NodeNo> wiping;  // of its own claim
    for (const RoomClaim& claim : claims)
        if (claim.job == number) {
            for (const SeatNo seat : claim.seats)
                if (fleet.awaits_wipe(seat)) wiping.insert(fleet.seat(seat).node);
            reasons.push_back({claim.freed_for_it ? "wait.freeing" : "wait.kept",
                               {{"tasks", static_cast<std::int64_t>(claim.seats.size())}}});
            if (claim.expected) waiting.expected_ms = claim.expected->ms;
            // Capacity that is being freed is free when wipes and reboots are over, which no run time says.
            if (claim.expected && !claim.freed_for_it && *claim.expected > now) {
                // To the minute, so that an estimate that moves by a moment is no new reason.
                const Instant minute{(claim.expected->ms + 59'999) / 60'000 * 60'000};
                reasons.push_back({"wait.expected", {{"at", print(minute)}}});
            }
        }
    // What is reserved for it counts already: its quota was checked when it was.
    const bool has_claim =
        std::ranges::any_of(claims, [&](const RoomClaim& claim) { return claim.job == number && claim.firm(); });
    if (auto quota = has_claim ? std::nullopt : over_quota(rec.job, rec.fewest()))
        reasons.push_back(std::move(*quota));
    else if (rec.keeps_in == generation)
        if (auto keeps = keeps_over_limit(rec.job, rec.fewest(), rec.keeps_too_much))
            reasons.push_back(std::move(*keeps));
    if (rec.outside_in == generation)
        if (auto outside = outside_entitlement(rec.job)) reasons.push_back(std::move(*outside));
    const FleetIndex::Tally tally = fleet.tally(rec.job);
    const auto say = [&](std::string_view code, Obstacle obstacle) {
        if (const std::int64_t count = tally.nodes[static_cast<std::size_t>(obstacle)]; count > 0)
            reasons.push_back({code, {{"count", count}}});
    };
    say("wait.closed", Obstacle::closed);
    say("wait.neighbours", Obstacle::neighbours);
    say("wait.nvlink", Obstacle::nvlink);
    say("wait.host", Obstacle::host);
    say("wait.reboot", Obstacle::reboot);
    if (reasons.empty() || (reasons.front().code != "wait.freeing" && reasons.front().code != "wait.kept"))
        say("wait.held-for-others", Obstacle::reserved);
    say("wait.cores", Obstacle::cores);
    say("wait.devices", Obstacle::devices);
    say("wait.gpus", Obstacle::gpus);
    if (const std::int64_t dirty = tally.wiping + std::ssize(wiping); dirty > 0)
        reasons.push_back({"wait.wiping", {{"count", dirty}}});
    if (rec.fewest() > 1 || rec.job.within != TopologyLevel::none) {
        const auto level = words(TopologyLevel{})[static_cast<std::size_t>(rec.job.within)];
        if (rec.job.within == TopologyLevel::none)
            reasons.push_back({"wait.room",
                               {{"tasks", std::int64_t{rec.fewest()}},
                                {"most", tally.room},
                                {"nodes", tally.nodes[static_cast<std::size_t>(Obstacle::none)]}}});
        else
            reasons.push_back({"wait.within",
                               {{"tasks", std::int64_t{rec.fewest()}},
                                {"level", std::string{level}},
                                {"most", fleet.most(rec.job)},
                                {"all", tally.room}}});
    }
    // Last, because they stay as they are while work comes and goes: what changes is the cause more often.
    say("wait.model", Obstacle::model);
    say("wait.kind", Obstacle::kind);
    const TenantRec& tenant = tenants[rec.job.tenant];
    const std::int64_t asked = least_of(number);
    if (tenant.held + asked > tenant.due)
        reasons.push_back(
            {"wait.due",
             {{"asked", print(Gpus{asked})}, {"held", print(Gpus{tenant.held})}, {"due", print(Gpus{tenant.due})}}});
    if (rec.job.deadline && rec.job.duration && now + *rec.job.duration > *rec.job.deadline)
        reasons.push_back({"wait.too-late", {{"duration", print(*rec.job.duration)}}});
    if (rec.budget_in == generation) reasons.push_back({"wait.budget", {}});
    if (reasons.empty()) reasons.push_back({"wait.order", {}});
    return waiting;
}

namespace {

struct ReasonWords {
    std::string_view code, text;
};

constexpr std::array all_words{
    ReasonWords{"wait.kind", "{count} {count:node|nodes} may not serve it under its contract"},
    ReasonWords{"wait.model", "{count} {count:node has|nodes have} too few working GPUs of a model that it accepts"},
    ReasonWords{"wait.no-commands",
                "all nodes that may serve it are models of nodes, which run no commands (nodes: {count})"},
    ReasonWords{"wait.models",
                "{count} {count:node that may serve it is a model|nodes that may serve it are models} of nodes, which "
                "run no commands"},
    ReasonWords{"wait.closed",
                "{count} {count:node is|nodes are} closed to new work: drained, silent or not yet reconciled"},
    ReasonWords{"wait.neighbours", "{count} {count:node runs|nodes run} work that may not share a node with it"},
    ReasonWords{"wait.nvlink", "{count} {count:node has|nodes have} an NVLink fabric that another tenant uses"},
    ReasonWords{
        "wait.host",
        "{count} {count:node was|nodes were} used by tenants that it does not trust, and cannot be rebooted now"},
    ReasonWords{"wait.reboot", "{count} {count:node|nodes} must be rebooted to a known image before use"},
    ReasonWords{"wait.held-for-others",
                "{count} {count:node has|nodes have} free capacity that is reserved for workloads ahead of this one"},
    ReasonWords{"wait.cores", "{count} {count:node has|nodes have} too few free cores or too little free memory"},
    ReasonWords{"wait.devices",
                "{count} {count:node has|nodes have} no free virtual function or drive of the size it needs"},
    ReasonWords{"wait.gpus", "{count} {count:node has|nodes have} too few GPUs or slices that are free and clean"},
    ReasonWords{"wait.wiping",
                "{count} of these nodes {count:has|have} GPUs that are being wiped or await a verified wipe"},
    ReasonWords{"wait.room",
                "{tasks} {tasks:task|tasks} must start together; the {nodes} {nodes:node open to it has|nodes open to "
                "it have} room "
                "for {most}"},
    ReasonWords{"wait.within",
                "{tasks} {tasks:task|tasks} must start together in one {level}; the best {level} has room for {most}, "
                "the whole "
                "fleet for {all}"},
    ReasonWords{"wait.quota", "it asks for {asked} {asked:GPU|GPUs}; its tenant holds {held} of at most {limit}"},
    ReasonWords{"wait.parent-quota",
                "it asks for {asked} {asked:GPU|GPUs}; a tenant above its own has reached its limit"},
    ReasonWords{"wait.exclusive",
                "it asks for {asked} {asked:GPU|GPUs}, and its isolation request would keep {keeps} more from others "
                "beyond the "
                "rules, which counts too; its tenant leases {held} and keeps {kept} in this way, of at most {limit}"},
    ReasonWords{"wait.parent-exclusive",
                "it asks for {asked} {asked:GPU|GPUs}, and its isolation request would keep {keeps} more from others "
                "beyond the "
                "rules, which counts too; a tenant above its own has reached its limit"},
    ReasonWords{"wait.pinned",
                "it may not be preempted, so it must fit in its tenant's guarantee: it asks for {asked} "
                "{asked:GPU|GPUs}, and work "
                "that may not be preempted holds {held} of {guarantee} guaranteed"},
    ReasonWords{
        "wait.entitlement",
        "it may not be preempted, so it may close only nodes that its tenant's trust domain needs for its guarantees, "
        "and that no other guarantee needs: such work closes {closed} {closed:GPU|GPUs} now, and {guaranteed} are "
        "guaranteed"},
    ReasonWords{"wait.reserved", "free GPUs are reserved for guarantees, and it asks for {asked} more than are left"},
    ReasonWords{"wait.due",
                "its tenant would hold more than it is due now ({held} held, {asked} asked, {due} due), so no running "
                "work is evicted for it"},
    ReasonWords{"wait.freeing", "capacity for {tasks} {tasks:task|tasks} is being freed for it"},
    ReasonWords{
        "wait.bound",
        "its capacity is being freed since {since} and is free by {by}, unless a wipe fails, a node is lost or a "
        "legal hold comes: {run} for minimum run times, {save} to save, {stop} to stop, {wipe} to wipe, "
        "{reboot} to reboot"},
    ReasonWords{"wait.kept", "capacity for {tasks} {tasks:task|tasks} is reserved for it until all of it is free"},
    ReasonWords{"wait.expected", "it is expected to start at {at}, when the capacity reserved for it should be free"},
    ReasonWords{"wait.order", "there is room for it, but other workloads come first"},
    ReasonWords{"wait.budget",
                "the search for work that could give way to it ended at its budget; it is searched for again when "
                "something changes"},
    ReasonWords{"wait.too-late", "it takes {duration} and can no longer finish before its deadline"},
    ReasonWords{"wait.stopping", "its last lease is still ending"},
    ReasonWords{"wait.frozen", "its tenant is frozen"},
    ReasonWords{"wait.fabric", "the fabric has no subnet, VLAN or partition left for its tenant"},
    ReasonWords{
        "wait.fabric-size",
        "it needs {functions} functions on the fabric at once, and a tenant's subnet has {addresses} addresses"},
    ReasonWords{"wait.fabric-addresses", "its tenant's subnet has too few addresses left for its functions"},
    ReasonWords{"wait.restoring",
                "the control plane was restored from a backup and waits until every node has reported"},
    ReasonWords{"evict.stale", "{tasks} {tasks:task is|tasks are} left of a gang that needs {least}"},
    ReasonWords{"evict.limit",
                "its tenant, or a tenant above it, held {held} {held:GPU|GPUs}, and its limit is {limit} now"},
    ReasonWords{
        "evict.exclusive",
        "its tenant, or a tenant above it, leased {held} {held:GPU|GPUs} and kept {kept} from others by isolation "
        "requests beyond the rules, and its limit is {limit} now"},
    ReasonWords{
        "evict.surplus",
        "it ran {tasks} {tasks:task|tasks} and needs {least}: tasks above the minimum are given back on demand"},
    ReasonWords{"evict.reclaim", "its tenant held {held} {held:GPU|GPUs} and was due {due}"},
    ReasonWords{
        "evict.guarantee",
        "its tenant held {held} {held:GPU|GPUs} and is guaranteed {guarantee}; work within another guarantee needs the "
        "room"},
    ReasonWords{"evict.budget", "the search for work to evict reached its budget; a cheaper choice may exist"},
    ReasonWords{"evict.preempt",
                "its priority is {own}; work of the same tenant with priority {priority} needs the capacity"},
};

// The number of nodes and their free capacity follow from what other tenants do: a tenant reads the obstacle without
// its numbers.
constexpr std::array tenants_words{
    ReasonWords{"wait.kind", "some nodes may not serve it under its contract"},
    ReasonWords{"wait.model", "some nodes have too few working GPUs of a model that it accepts"},
    ReasonWords{"wait.no-commands", "no node that may serve it runs commands"},
    ReasonWords{"wait.models", "some nodes that may serve it run no commands"},
    ReasonWords{"wait.closed", "nodes that could serve it are closed to new work"},
    ReasonWords{"wait.neighbours", "nodes that could serve it run work that may not share a node with it"},
    ReasonWords{"wait.nvlink", "NVLink fabrics that it could use are in use"},
    ReasonWords{"wait.host", "nodes that could serve it must be rebooted first, and cannot be rebooted now"},
    ReasonWords{"wait.reboot", "nodes must be rebooted to a known image before it may use them"},
    ReasonWords{"wait.held-for-others", "free capacity is reserved for workloads ahead of this one"},
    ReasonWords{"wait.cores", "nodes have too few free cores or too little free memory"},
    ReasonWords{"wait.devices", "nodes have no free virtual function or drive of the size it needs"},
    ReasonWords{"wait.gpus", "too few GPUs or slices are free and clean"},
    ReasonWords{"wait.wiping", "GPUs are being wiped or await a verified wipe"},
    ReasonWords{"wait.room", "{tasks} {tasks:task|tasks} must start together, and there is not room for all of them"},
    ReasonWords{
        "wait.within",
        "{tasks} {tasks:task|tasks} must start together in one {level}, and no {level} has room for all of them"},
    ReasonWords{"evict.reclaim", "its tenant held {held} {held:GPU|GPUs}, which was more than it was due"},
    ReasonWords{"evict.guarantee",
                "its tenant held {held} {held:GPU|GPUs}, which was more than it is guaranteed, and a guarantee of "
                "another tenant "
                "needs the room"},
};

// Sentences of earlier releases, which stored workloads and ended leases may still carry.
constexpr std::array former_words{
    ReasonWords{"wait.kind", "{count} nodes are not allowed to serve it by its contract"},
    ReasonWords{"wait.model", "{count} nodes have no GPUs, or too few in order, of a model that it accepts"},
    ReasonWords{"wait.closed", "{count} nodes that could serve it are closed, silent or not yet reconciled"},
    ReasonWords{"wait.neighbours", "{count} nodes have work on them that it may not sit beside"},
    ReasonWords{"wait.nvlink", "{count} nodes have an NVLink fabric that somebody else holds"},
    ReasonWords{"wait.host", "{count} nodes were used by tenants it does not trust, and cannot be rebooted now"},
    ReasonWords{"wait.reboot", "{count} nodes must be rebooted to a known image before it may use them"},
    ReasonWords{"wait.reboot", "{count} nodes are being rebooted to a known image before it may use them"},
    ReasonWords{"wait.held-for-others", "{count} nodes have room that is kept for work whose turn came before"},
    ReasonWords{"wait.cores", "{count} nodes have too few cores or too little memory left"},
    ReasonWords{"wait.gpus", "{count} nodes have too few GPUs, or slices, that are free and clean"},
    ReasonWords{"wait.wiping", "of those, {count} nodes have GPUs that are being wiped, or that nobody vouches for"},
    ReasonWords{"wait.room",
                "{tasks} tasks must start together; the {nodes} nodes that are open to it have room for {most}"},
    ReasonWords{
        "wait.within",
        "{tasks} tasks must start together in one {level}; the best has room for {most}, all together for {all}"},
    ReasonWords{"wait.pinned",
                "it may not be preempted, so it must fit in a guarantee: it asks for {asked} GPUs, {held} of "
                "{guarantee} guaranteed are held by work like it"},
    ReasonWords{"wait.reserved", "what is free is reserved for guarantees; {asked} GPUs would eat into them"},
    ReasonWords{"wait.due",
                "its tenant would hold more than it is due now ({held} held, {asked} asked, {due} due), so nobody is "
                "disturbed for it"},
    ReasonWords{"wait.freeing", "room for {tasks} tasks is being freed for it"},
    ReasonWords{"wait.kept", "room for {tasks} tasks is kept for it until all of it is free"},
    ReasonWords{"wait.order", "there is room for it, but its turn has not come"},
    ReasonWords{"wait.too-late", "its deadline passes before it could be done: it takes {duration}"},
    ReasonWords{"wait.fabric", "the fabric has no subnet, VLAN or partition left to give its tenant"},
    ReasonWords{"wait.fabric-addresses", "its tenant's subnet has not enough addresses left for its functions"},
    ReasonWords{"wait.restoring", "the control plane was restored from a backup and waits for every node to report"},
    ReasonWords{"evict.surplus", "{tasks} tasks of an elastic gang that needs {least}: the rest is lent"},
    ReasonWords{"evict.budget", "there were more places to look than were looked at"},
    ReasonWords{"evict.preempt",
                "its priority is {own}; work of the same tenant with priority {priority} needs the room"},
    ReasonWords{"wait.kind", "not every node is allowed to serve it by its contract"},
    ReasonWords{"wait.model", "not every node has GPUs of a model that it accepts"},
    ReasonWords{"wait.closed", "nodes that could serve it are closed, silent or not yet reconciled"},
    ReasonWords{"wait.neighbours", "nodes that could serve it have work on them that it may not sit beside"},
    ReasonWords{"wait.host", "nodes that could serve it have to be rebooted first, and cannot be now"},
    ReasonWords{"wait.reboot", "nodes are being rebooted to a known image before it may use them"},
    ReasonWords{"wait.held-for-others", "room that there is is kept for work whose turn came before"},
    ReasonWords{"wait.cores", "nodes have too few cores or too little memory left"},
    ReasonWords{"wait.gpus", "too few GPUs, or slices, are free and clean"},
    ReasonWords{"wait.wiping", "GPUs are being wiped, or nobody vouches for them"},
};

// Whether a text is what the template would be with something in the place of each {name}, and either of the words in
// the place of each {name:one|many}: earlier releases wrote "1 nodes".
bool could_be(std::string_view text, std::string_view pattern) {
    const std::size_t open = pattern.find('{');
    if (open == std::string_view::npos) return text == pattern;
    if (!text.starts_with(pattern.substr(0, open))) return false;
    text.remove_prefix(open);
    const std::string_view inside = pattern.substr(open + 1, pattern.find('}') - open - 1);
    pattern.remove_prefix(pattern.find('}') + 1);
    if (const std::size_t colon = inside.find(':'); colon != std::string_view::npos) {
        const std::size_t bar = inside.find('|');
        for (const std::string_view words : {inside.substr(colon + 1, bar - colon - 1), inside.substr(bar + 1)})
            if (text.starts_with(words) && could_be(text.substr(words.size()), pattern)) return true;
        return false;
    }
    if (pattern.empty()) return true;
    // Up to the next literal text, or to any place where the next words by number may follow.
    const std::string_view next = pattern.substr(0, pattern.find('{'));
    for (std::size_t at = text.find(next); at != std::string_view::npos; at = text.find(next, at + 1))
        if (could_be(text.substr(at), pattern)) return true;
    return false;
}

}  // namespace

std::string_view words_of(std::string_view code, Audience reader) {
    if (reader == Audience::tenant)
        for (const ReasonWords& row : tenants_words)
            if (row.code == code) return row.text;
    for (const ReasonWords& row : all_words)
        if (row.code == code) return row.text;
    return "{code}";
}

std::string_view code_of(std::string_view words) {
    for (const ReasonWords& row : tenants_words)
        if (could_be(words, row.text)) return row.code;
    for (const ReasonWords& row : all_words)
        if (could_be(words, row.text)) return row.code;
    for (const ReasonWords& row : former_words)
        if (could_be(words, row.text)) return row.code;
    return {};
}

std::span<const std::string_view> reason_codes() {
    static const auto codes = [] {
        std::array<std::string_view, all_words.size()> out;
        std::ranges::transform(all_words, out.begin(), &ReasonWords::code);
        return out;
    }();
    return codes;
}

std::string_view cause_of(std::string_view code) {
    struct Row {
        std::string_view code, cause;
    };
    static constexpr Row rows[] = {
        {"wait.quota", "quota"},
        {"wait.parent-quota", "quota"},
        {"wait.exclusive", "quota"},
        {"wait.parent-exclusive", "quota"},
        {"wait.pinned", "quota"},
        {"wait.entitlement", "guarantees"},
        {"wait.due", "quota"},
        {"wait.reserved", "guarantees"},
        {"wait.held-for-others", "turn"},
        {"wait.order", "turn"},
        {"wait.budget", "turn"},
        {"wait.kept", "turn"},
        {"wait.expected", "turn"},
        {"wait.freeing", "turn"},
        {"wait.bound", "turn"},
        {"wait.gpus", "capacity"},
        {"wait.cores", "capacity"},
        {"wait.devices", "capacity"},
        {"wait.model", "capacity"},
        {"wait.wiping", "wipe"},
        {"wait.reboot", "wipe"},
        {"wait.neighbours", "isolation"},
        {"wait.nvlink", "isolation"},
        {"wait.host", "isolation"},
        {"wait.kind", "isolation"},
        {"wait.room", "fragmentation"},
        {"wait.within", "fragmentation"},
        {"wait.closed", "nodes"},
        {"wait.no-commands", "nodes"},
        {"wait.models", "nodes"},
        {"wait.restoring", "nodes"},
        {"wait.stopping", "stopping"},
        {"wait.frozen", "frozen"},
        {"wait.fabric", "fabric"},
        {"wait.fabric-size", "addresses"},
        {"wait.fabric-addresses", "addresses"},
        {"wait.too-late", "deadline"},
    };
    for (const Row& row : rows)
        if (row.code == code) return row.cause;
    return "other";
}

}  // namespace bulkhead::sched
