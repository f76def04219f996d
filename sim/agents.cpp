// Agents: the real executor over a journal that may tear and hardware that may fail.
#include "sim/world_state.hpp"

namespace bulkhead::sim {

void World::start_agent(std::uint32_t index) {
    Agent& agent = agents_[index];
    if (agent.executor) return;
    const auto read = read_journal(agent.journal);
    if (!read) {
        checkers_.impossible(4, "a journal cannot be read back: " + read.error().what);
        return;
    }
    if (read->dropped_bytes != 0) checkers_.probe("a torn journal was taken up");
    agent.journal.resize(read->sound_bytes);
    agent.frames = read->next_sequence;
    ++agent.life;
    // Every other operator lets GPUs be reset.
    agent.executor.emplace(
        NodeIdentity{.node = agent.name, .grade = Grade::simulated, .limits = {}, .gpu_reset = index % 2 == 0},
        agent.key, read->records);
    agent.session = 0;
    agent.welcomed = false;
    if (!carry(index, agent.executor->resume(agent_time(), agent.model.boot_id()))) return;
    const std::uint64_t life = agent.life;
    test_fences(index, 0);
    if (agent.life != life) return;
    at(rng_.between(100, 2000), Happening::agent_tick, index, agent.life);
}

void World::kill_agent(std::uint32_t index) {
    Agent& agent = agents_[index];
    if (!agent.executor) return;
    agent.executor.reset();
    ++agent.life;
    agent.session = 0;
    agent.welcomed = false;
    at(rng_.between(500, 30'000), Happening::agent_starts, index);
}

// The journal first; then hardware; then words. False: the process died on the way.
bool World::carry(std::uint32_t index, Outcome outcome) {
    Agent& agent = agents_[index];
    const std::uint64_t life = agent.life;
    if (!outcome.journal.empty() && !append_to_journal(index, outcome.journal)) return false;
    for (const Operation& operation : outcome.begin) begin_operation(index, operation);
    if (outcome.test_fabric) test_fences(index, *outcome.test_fabric);
    for (Report& report : outcome.reports) {
        if (const LeaseReport* lease = std::get_if<LeaseReport>(&report.what)) {
            if (lease->phase == PartPhase::prepared) checkers_.prepared(agent.name, lease->lease);
            if (lease->phase == PartPhase::refused)
                checkers_.probe("the node's own gate refused a lease: " + lease->why);
            if (lease->phase == PartPhase::failed) checkers_.probe("a part failed");
        }
        if (agent.welcomed) to_server(index, std::move(report));
    }
    return agent.life == life;
}

bool World::append_to_journal(std::uint32_t index, const std::vector<JournalRecord>& records) {
    Agent& agent = agents_[index];
    const std::string frame = journal_frame(agent.frames, records);
    const bool dies =
        !is_calm() && spec_.mishaps.agent_dies_at_journal != 0 && rng_.chance(spec_.mishaps.agent_dies_at_journal);
    const std::uint64_t how = dies ? rng_.below(3) : 3;  // before it, in the middle of it, right after it; not at all
    if (how == 1) agent.journal += frame.substr(0, rng_.below(frame.size()));
    if (how >= 2) {
        agent.journal += frame;
        ++agent.frames;
    }
    if (dies) {
        fault("agent died at its journal");
        kill_agent(index);
        return false;
    }
    if (agent.journal.size() > 200'000) {
        agent.journal = journal_frame(agent.frames, agent.executor->compacted());
        ++agent.frames;
        checkers_.probe("a journal was compacted");
    }
    return true;
}

void World::begin_operation(std::uint32_t index, const Operation& operation) {
    Agent& agent = agents_[index];
    checkers_.begun(agent.name, agent.model, operation);
    const Duration takes = agent.model.duration(operation);
    auto answer = agent.model.carry_out(operation);
    if (!answer) return checkers_.hangs(agent.name);
    checkers_.ended(agent.name, agent.model, operation, answer->ok);
    at(takes.ms, Happening::operation_done, index, operations_.put({agent.life, operation, std::move(*answer)}));
}

void World::operation_done(std::uint32_t index, OperationDone done) {
    Agent& agent = agents_[index];
    if (!agent.executor || agent.life != done.life) return;
    const Wipe* wipe = std::get_if<Wipe>(&done.operation.what);
    if (wipe != nullptr && wipe->kind == UnitKind::host && done.result.ok) {
        // The host went down under its agent: the process begins anew, and finds out from its journal.
        checkers_.probe("a host was rebooted on order");
        kill_agent(index);
        return;
    }
    carry(index, agent.executor->on_result(agent_time(), done.result));
}

void World::agent_tick(std::uint32_t index, std::uint64_t life) {
    Agent& agent = agents_[index];
    if (!agent.executor || agent.life != life) return;
    at(rng_.between(1800, 2200), Happening::agent_tick, index, life);
    if (agent.session != 0 && now_ - agent.heard_at > 25'000) reconnect(index, "silence");
    if (agent.session == 0 && now_ - agent.opened_at >= 0) {
        open_session(index);
    } else if (agent.welcomed && now_ - agent.beat_at >= 10'000) {
        agent.beat_at = now_;
        to_server(index, Beat{});
        // The transport's own keep-alive tells the agent that the other end is there.
        const Server& server = servers_[agent.server];
        if (server.core && !agent.cut_off && server.sessions.contains(agent.session)) agent.heard_at = now_;
    }
    if (const auto deadline = agent.executor->next_deadline(); deadline && deadline->ms <= agent_time().ms)
        carry(index, agent.executor->tick(agent_time()));
}

// One in four proves nothing: the link is down, or its guard's program is being replaced.
void World::test_fences(std::uint32_t index, Key ticket) {
    Agent& agent = agents_[index];
    const std::vector<NodeFunction> functions = agent.model.inventory().functions;
    if (!agent.executor || functions.empty()) return;
    const FabricFound found = rng_.chance(250)      ? FabricFound::unproven
                              : agent.fence_is_open ? FabricFound::open
                                                    : FabricFound::closed;
    evidence::FabricStatement statement;
    statement.nic = functions.front().physical;
    statement.began = statement.ended = agent_time();
    statement.honest_passes = found != FabricFound::unproven;
    if (statement.honest_passes)
        statement.attempts.push_back(
            {"forged-mac", "a frame", found == FabricFound::open ? AttemptEnd::got_through : AttemptEnd::stopped, {}});
    statement.grade = Grade::simulated;
    statement.boot = agent.model.boot_id();
    statement.ticket = ticket;
    Outcome outcome = agent.executor->on_fabric_tested(std::move(statement));
    const std::int64_t number = outcome.reports.empty() ? 0 : outcome.reports.back().number;
    if (number == 0) return checkers_.probe("a test of the fences was not told");
    if (found != FabricFound::open) checkers_.fences_tested(agent.name, number, found);
    if (carry(index, std::move(outcome)) && found == FabricFound::open)
        checkers_.fences_tested(agent.name, number, found);
}

void World::open_session(std::uint32_t index) {
    Agent& agent = agents_[index];
    agent.session = ++sessions_;
    agent.sent = agent.received = 0;
    agent.opened_at = agent.heard_at = agent.beat_at = now_;
    agent.server = preferred_;
    if (servers_[1 - preferred_].core && rng_.chance(300)) agent.server = 1 - preferred_;
    Hello hello = agent.executor->hello(agent.model.inventory(), agent.model.boot_id());
    for (const KnownLease& lease : hello.leases)
        if (lease.phase == PartPhase::prepared || lease.phase == PartPhase::running)
            checkers_.prepared(agent.name, lease.lease);
    to_server(index, std::move(hello));
}

}  // namespace bulkhead::sim
