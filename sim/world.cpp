#include "sim/world.hpp"

#include <algorithm>
#include <cmath>

#include "sim/tenants.hpp"
#include "sim/world_state.hpp"

namespace bulkhead::sim {

World::World(const Spec& spec, std::uint64_t seed, const std::string& trace)
    : spec_{spec}, rng_{seed}, checkers_{tenant_facts(spec.nodes, spec.gpus), spec.bound} {
    result_.seed = seed;
    checkers_.trace(trace);
    Disk::seed_sqlite(static_cast<std::uint32_t>(rng_.next()));
    agents_.reserve(spec.nodes);
    for (std::uint32_t i = 0; i < spec.nodes; ++i) {
        std::string seed_bytes(32, '\0');
        for (char& byte : seed_bytes) byte = static_cast<char>(rng_.next());
        agents_.emplace_back(node_model_spec(i, spec.gpus), *evidence::SigningKey::from_seed(seed_bytes));
    }
    servers_.resize(2);
    calm_at_ = spec.length.ms - spec.calm.ms;
}

RunResult World::run() {
    at(0, Happening::server_starts, 0);
    for (std::uint32_t i = 0; i < agents_.size(); ++i) at(rng_.between(1000, 20'000), Happening::agent_starts, i);
    at(60'000, Happening::submit);
    at(spec_.between_operators.ms, Happening::operate);
    at(1'200'000, Happening::repair);
    at(600'000, Happening::backup);
    at(calm_at_, Happening::calm);
    arm_mishaps();
    while (!queue_.empty() && queue_.top().at <= spec_.length.ms && checkers_.violations().empty()) {
        const Item item = queue_.top();
        queue_.pop();
        now_ = item.at;
        checkers_.set_time(now_);
        ++result_.events;
        happen(item);
    }
    if (checkers_.violations().empty()) finish();
    result_.simulated_ms = now_;
    result_.probes = checkers_.probes();
    result_.violations = checkers_.violations();
    for (Server& server : servers_) {
        server.core.reset();
        server.store.reset();
    }
    return result_;
}

void World::at(std::int64_t delay, Happening what, std::uint32_t who, std::uint64_t argument) {
    queue_.push({now_ + std::max<std::int64_t>(delay, 0), ++order_, what, who, argument});
}

// Exponential, by inverting a uniform draw in integers' reach.
std::int64_t World::about(Duration mean) {
    const double uniform = (static_cast<double>(rng_.below(1'000'000)) + 1) / 1'000'001.0;
    return static_cast<std::int64_t>(-std::log(uniform) * static_cast<double>(mean.ms)) + 1;
}

void World::happen(const Item& item) {
    switch (item.what) {
        case Happening::message:
            return deliver(messages_.take(item.argument));
        case Happening::operation_done:
            return operation_done(item.who, operations_.take(item.argument));
        case Happening::agent_tick:
            return agent_tick(item.who, item.argument);
        case Happening::agent_starts:
            return start_agent(item.who);
        case Happening::server_turn:
            return server_turn(item.who, item.argument);
        case Happening::server_tick:
            return server_tick(item.who, item.argument);
        case Happening::server_starts:
            return start_server(item.who, false);
        case Happening::submit:
            return submit();
        case Happening::forget:
            return forget(names_.take(item.argument));
        case Happening::operate:
            return operate();
        case Happening::repair:
            return repair();
        case Happening::backup:
            return back_up();
        case Happening::mishap:
            return mishap(item.who);
        case Happening::heal_disk:
            checkers_.disturbed();
            disk_.heal();
            return;
        case Happening::heal_partition:
            checkers_.disturbed();
            agents_[item.who].cut_off = false;
            return;
        case Happening::heal_node:
            checkers_.disturbed();
            agents_[item.who].model.set_slowness(1000);
            return;
        case Happening::undo:
            checkers_.disturbed();
            return command(undo_.take(item.argument), {Asked::What::other, {}});
        case Happening::calm:
            return begin_calm();
    }
}

void World::begin_calm() {
    checkers_.disturbed();
    if (++calms_ == 2) return checkers_.calm_began();
    at((spec_.calm.ms * 2) / 3, Happening::calm);
    disk_.heal();
    for (Agent& agent : agents_) {
        agent.cut_off = false;
        agent.model.clear_faults();
        agent.model.set_slowness(1000);
    }
    for (Server& server : servers_) server.skew = 0;
    if (leader() == nullptr) at(30'000, Happening::server_starts, 0);
    if (spec_.claims) last_input();
    // One last round of repairs while things come to rest; then the checkers expect silence.
    at(600'000, Happening::repair);
}

void World::finish() {
    checkers_.finished();
    // Everything once more from the disk.
    for (std::uint32_t i = 0; i < servers_.size(); ++i) stop_server(i);
    disk_.kill_processes();
    auto store = store::Store::open({.path = "bulkhead.db", .vfs = disk_.vfs()});
    if (!store) return checkers_.impossible(4, "the store cannot be opened: " + store.error().what);
    Rows rows;
    const auto loaded = store->load([&](Row&& row) -> Result<> {
        rows[{row.table, row.key}] = std::move(row.body);
        return {};
    });
    std::vector<Hash> entries;
    if (const auto leaves = store->leaves(0, loaded ? loaded->log_size : 0); leaves)
        for (const Leaf& leaf : *leaves) entries.push_back(leaf.entry);
    checkers_.recovered(rows, entries);
    checkers_.check_bill(rows);
}

RunResult run(const Spec& spec, std::uint64_t seed, const std::string& trace) { return World{spec, seed, trace}.run(); }

}  // namespace bulkhead::sim
