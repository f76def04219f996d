// What goes wrong: each kind of mishap strikes again and again, a random while after the last of its kind.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "sim/world_state.hpp"

namespace bulkhead::sim {

struct World::MishapKind {
    std::string_view name;  // as it is counted; empty: it counts itself
    Duration Mishaps::* mean;
    void (World::*strike)(std::uint32_t node);
};

// In this order their first strikes are drawn: another order, and every seed is another world.
std::span<const World::MishapKind> World::mishap_kinds() {
    static constexpr std::array all{
        MishapKind{"server killed", &Mishaps::server_killed, &World::server_killed},
        MishapKind{"power cut", &Mishaps::power_cut, &World::power_cut},
        MishapKind{"second leader", &Mishaps::second_leader, &World::second_leader},
        MishapKind{"disk full", &Mishaps::disk_full, &World::disk_full},
        MishapKind{"disk fails", &Mishaps::disk_fails, &World::disk_fails},
        MishapKind{"", &Mishaps::restore, &World::restore},  // if there is a backup, and it can be copied
        MishapKind{"clock step", &Mishaps::clock_step, &World::clock_step},
        MishapKind{"agent killed", &Mishaps::agent_killed, &World::kill_agent},
        MishapKind{"host crash", &Mishaps::host_crash, &World::host_crash},
        MishapKind{"gpu lost", &Mishaps::gpu_lost, &World::gpu_lost},
        MishapKind{"wipe fails", &Mishaps::wipe_fails, &World::wipe_fails},
        MishapKind{"wipe lies", &Mishaps::wipe_lies, &World::wipe_lies},
        MishapKind{"wipe hangs", &Mishaps::wipe_hangs, &World::wipe_hangs},
        MishapKind{"start fails", &Mishaps::start_fails, &World::start_fails},
        MishapKind{"stop fails", &Mishaps::stop_fails, &World::stop_fails},
        MishapKind{"partition", &Mishaps::partition, &World::partition},
        MishapKind{"slow node", &Mishaps::slow_node, &World::slow_node},
        MishapKind{"gpu drained", &Mishaps::gpu_drained, &World::gpu_drained},
        MishapKind{"memory stuck", &Mishaps::memory_stuck, &World::memory_stuck},
        MishapKind{"fence falls", &Mishaps::fence_falls, &World::fence_falls},
        MishapKind{"node lost", &Mishaps::node_lost, &World::node_lost},
    };
    return all;
}

void World::arm_mishaps() {
    const std::span<const MishapKind> kinds = mishap_kinds();
    for (std::uint32_t i = 0; i < kinds.size(); ++i)
        if (const Duration mean = spec_.mishaps.*kinds[i].mean; mean.ms != 0)
            at(300'000 + about(mean), Happening::mishap, i);
}

void World::mishap(std::uint32_t kind) {
    if (is_calm()) return;
    const MishapKind& it = mishap_kinds()[kind];
    at(about(spec_.mishaps.*it.mean), Happening::mishap, kind);
    const auto node = static_cast<std::uint32_t>(rng_.below(agents_.size()));
    if (!it.name.empty()) fault(std::string{it.name});
    checkers_.disturbed();
    (this->*it.strike)(node);
}

// ---- of servers and their disk ----

void World::server_killed(std::uint32_t) {
    for (std::uint32_t i = 0; i < servers_.size(); ++i)
        if (servers_[i].store) restart_later(i);
    disk_.kill_processes();
}

void World::power_cut(std::uint32_t) { disk_.crash_at_write(disk_.writes() + 1 + rng_.below(12)); }

void World::second_leader(std::uint32_t) {
    const std::uint32_t other = servers_[0].core ? 1 : 0;
    start_server(other, false);
}

void World::disk_full(std::uint32_t) {
    disk_.leave_free(rng_.below(20'000));
    at(rng_.between(5000, 120'000), Happening::heal_disk);
}

void World::disk_fails(std::uint32_t) {
    switch (rng_.below(3)) {
        case 0:
            disk_.fail_writes(rng_.below(6));
            break;
        case 1:
            disk_.fail_sync(rng_.chance(500) ? Disk::SyncFault::keeps : Disk::SyncFault::loses);
            break;
        default:
            disk_.read_only(true);
    }
    at(rng_.between(1000, 60'000), Happening::heal_disk);
}

void World::clock_step(std::uint32_t) {
    if (Server* server = leader()) server->skew = rng_.between(-120'000, 20'000);
}

// ---- of nodes ----

void World::host_crash(std::uint32_t node) {
    agents_[node].model.crash_host();
    checkers_.host_crashed(agents_[node].name);
    kill_agent(node);
}

// Longer than the control plane keeps its leases for it.
void World::node_lost(std::uint32_t node) {
    Agent& agent = agents_[node];
    if (!agent.executor) return;
    agent.model.crash_host();
    checkers_.host_crashed(agent.name);
    agent.executor.reset();
    ++agent.life;
    agent.session = 0;
    agent.welcomed = false;
    at(rng_.between(400'000, 1'500'000), Happening::agent_starts, node);
}

void World::gpu_lost(std::uint32_t node) {
    Agent& agent = agents_[node];
    const auto gpu = static_cast<std::uint16_t>(rng_.below(spec_.gpus));
    agent.model.set_lost(gpu, true);
    if (agent.executor)
        carry(node, agent.executor->on_fault(
                        agent_time(),
                        {.kind = UnitKind::memory, .device = gpu, .why = "Xid 79: GPU has fallen off the bus"}));
}

// Each for a reason of its own, by which the checkers know it again.
void World::gpu_drained(std::uint32_t node) {
    Agent& agent = agents_[node];
    const auto gpu = static_cast<std::uint16_t>(rng_.below(spec_.gpus));
    if (!agent.executor) return;
    const FaultReport drain{UnitKind::memory, gpu, fmt::format("Xid 63, number {}", ++drains_), true};
    Outcome outcome = agent.executor->on_fault(agent_time(), drain);
    const std::int64_t number = outcome.reports.empty() ? 0 : outcome.reports.back().number;
    // One whose agent died before it was written down has not been seen by anybody.
    if (carry(node, std::move(outcome))) checkers_.drained(agent.name, drain, number);
}

void World::memory_stuck(std::uint32_t node) {
    const auto gpu = static_cast<std::uint16_t>(rng_.below(spec_.gpus));
    std::uint32_t& lies = agents_[node].model.faults({UnitKind::memory, gpu}).lie;
    lies = std::max(lies, 2u);
}

void World::fence_falls(std::uint32_t node) { agents_[node].fence_is_open = !agents_[node].fence_is_open; }

DeviceId World::some_device() {
    switch (rng_.below(4)) {
        case 0:
            return {UnitKind::drive, static_cast<std::uint16_t>(rng_.below(2))};
        case 1:
            return {UnitKind::vf, static_cast<std::uint16_t>(rng_.below(4))};
        default:
            return {UnitKind::memory, static_cast<std::uint16_t>(rng_.below(spec_.gpus))};
    }
}

void World::wipe_fails(std::uint32_t node) { agents_[node].model.faults(some_device()).fail += 1; }

void World::wipe_lies(std::uint32_t node) {
    agents_[node].model.faults(some_device()).lie += 1 + static_cast<std::uint32_t>(rng_.below(2));
}

void World::wipe_hangs(std::uint32_t node) { agents_[node].model.faults(some_device()).hang += 1; }

void World::start_fails(std::uint32_t node) { agents_[node].model.fail_starts(1); }

void World::stop_fails(std::uint32_t node) { agents_[node].model.fail_stops(1); }

void World::slow_node(std::uint32_t node) {
    agents_[node].model.set_slowness(rng_.between(2000, 20'000));
    at(rng_.between(60'000, 600'000), Happening::heal_node, node);
}

// ---- of lines ----

void World::partition(std::uint32_t node) {
    const std::uint64_t size = 1 + rng_.below(std::max<std::uint64_t>(agents_.size() / 4, 1));
    const std::int64_t until = rng_.chance(200) ? rng_.between(300'000, 900'000) : rng_.between(5000, 90'000);
    for (std::uint64_t i = 0; i < size; ++i) {
        const auto one = static_cast<std::uint32_t>((node + i) % agents_.size());
        agents_[one].cut_off = true;
        at(until, Happening::heal_partition, one);
    }
}

}  // namespace bulkhead::sim
