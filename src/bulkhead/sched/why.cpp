// Why a job waits: everything that stands in its way, with numbers, from the buckets of the fleet.
#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

Waiting Engine::State::why(JobNo number, Instant now) const {
    const JobRec& rec = jobs[number];
    Waiting waiting{.workload = rec.job.key, .reasons = {}, .expected_ms = {}};
    std::vector<Reason>& reasons = waiting.reasons;
    for (const RoomClaim& claim : claims)
        if (claim.job == number) {
            reasons.push_back({claim.freed_for_it ? "wait.freeing" : "wait.kept",
                               {{"tasks", static_cast<std::int64_t>(claim.seats.size())}}});
            if (claim.expected) waiting.expected_ms = claim.expected->ms;
        }
    if (auto quota = over_quota(rec.job, rec.fewest())) reasons.push_back(std::move(*quota));
    const FleetIndex::Tally tally = fleet.tally(rec.job);
    const auto say = [&](std::string_view code, Obstacle obstacle) {
        if (const std::int64_t count = tally.nodes[static_cast<std::size_t>(obstacle)]; count > 0)
            reasons.push_back({code, {{"count", count}}});
    };
    say("wait.kind", Obstacle::kind);
    say("wait.model", Obstacle::model);
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
    if (tally.wiping > 0) reasons.push_back({"wait.wiping", {{"count", tally.wiping}}});
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
    const TenantRec& tenant = tenants[rec.job.tenant];
    const std::int64_t asked = least_of(number);
    if (tenant.held + asked > tenant.due)
        reasons.push_back(
            {"wait.due",
             {{"asked", print(Gpus{asked})}, {"held", print(Gpus{tenant.held})}, {"due", print(Gpus{tenant.due})}}});
    if (rec.job.deadline && rec.job.duration && now + *rec.job.duration > *rec.job.deadline)
        reasons.push_back({"wait.too-late", {{"duration", print(*rec.job.duration)}}});
    if (reasons.empty()) reasons.push_back({"wait.order", {}});
    return waiting;
}

std::string_view words_of(std::string_view code) {
    struct Words {
        std::string_view code, text;
    };
    static constexpr std::array all{
        Words{"wait.kind", "{count} nodes are not allowed to serve it by its contract"},
        Words{"wait.model", "{count} nodes have no GPUs, or too few in order, of a model that it accepts"},
        Words{"wait.closed", "{count} nodes that could serve it are closed, silent or not yet reconciled"},
        Words{"wait.neighbours", "{count} nodes have work on them that it may not sit beside"},
        Words{"wait.nvlink", "{count} nodes have an NVLink fabric that somebody else holds"},
        Words{"wait.host", "{count} nodes were used by tenants it does not trust, and cannot be rebooted now"},
        Words{"wait.reboot", "{count} nodes are being rebooted to a known image before it may use them"},
        Words{"wait.held-for-others", "{count} nodes have room that is kept for work whose turn came before"},
        Words{"wait.cores", "{count} nodes have too few cores or too little memory left"},
        Words{"wait.devices", "{count} nodes have no free virtual function or drive of the size it needs"},
        Words{"wait.gpus", "{count} nodes have too few GPUs, or slices, that are free and clean"},
        Words{"wait.wiping", "of those, {count} nodes have GPUs that are being wiped, or that nobody vouches for"},
        Words{"wait.room",
              "{tasks} tasks must start together; the {nodes} nodes that are open to it have room for {most}"},
        Words{"wait.within",
              "{tasks} tasks must start together in one {level}; the best has room for {most}, all together for {all}"},
        Words{"wait.quota", "it asks for {asked} GPUs; its tenant holds {held} of at most {limit}"},
        Words{"wait.parent-quota", "it asks for {asked} GPUs; a tenant above its own has reached its limit"},
        Words{"wait.pinned",
              "it may not be preempted, so it must fit in a guarantee: it asks for {asked} GPUs, {held} of {guarantee} "
              "guaranteed are held by work like it"},
        Words{"wait.reserved", "what is free is reserved for guarantees; {asked} GPUs would eat into them"},
        Words{"wait.due",
              "its tenant would hold more than it is due now ({held} held, {asked} asked, {due} due), so nobody is "
              "disturbed for it"},
        Words{"wait.freeing", "room for {tasks} tasks is being freed for it"},
        Words{"wait.kept", "room for {tasks} tasks is kept for it until all of it is free"},
        Words{"wait.order", "there is room for it, but its turn has not come"},
        Words{"wait.too-late", "its deadline passes before it could be done: it takes {duration}"},
        Words{"wait.stopping", "its last lease is still ending"},
        Words{"wait.frozen", "its tenant is frozen"},
        Words{"wait.restoring", "the control plane was restored from a backup and waits for every node to report"},
        Words{"evict.stale", "{tasks} tasks are left of a gang that needs {least}"},
        Words{"evict.surplus", "{tasks} tasks of an elastic gang that needs {least}: the rest is lent"},
        Words{"evict.reclaim", "its tenant held {held} GPUs and was due {due}"},
        Words{"evict.budget", "there were more places to look than were looked at"},
        Words{"evict.preempt",
              "its priority is {own}; work of the same tenant with priority {priority} needs the room"},
    };
    for (const Words& row : all)
        if (row.code == code) return row.text;
    return "{code}";
}

}  // namespace bulkhead::sched
