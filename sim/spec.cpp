#include "sim/spec.hpp"

namespace bulkhead::sim {

namespace {

constexpr Duration minutes(std::int64_t count) { return {count * 60'000}; }

constexpr Mishaps everything{
    .server_killed = minutes(40),
    .power_cut = minutes(40),
    .second_leader = minutes(90),
    .disk_full = minutes(120),
    .disk_fails = minutes(120),
    .restore = minutes(240),
    .clock_step = minutes(60),
    .agent_killed = minutes(2),
    .host_crash = minutes(30),
    .gpu_lost = minutes(30),
    .gpu_drained = minutes(20),
    .memory_stuck = minutes(20),
    .fence_falls = minutes(15),
    .wipe_fails = minutes(10),
    .wipe_lies = minutes(10),
    .wipe_hangs = minutes(30),
    .start_fails = minutes(15),
    .stop_fails = minutes(15),
    .partition = minutes(15),
    .node_lost = minutes(120),
    .slow_node = minutes(20),
    .lost = 2,
    .duplicated = 10,
    .delayed = 20,
    .reordered = 2,
    .agent_dies_at_journal = 1,
};

constexpr Mishaps network_only{
    .partition = minutes(5), .slow_node = minutes(10), .lost = 20, .duplicated = 50, .delayed = 100, .reordered = 20};

constexpr Mishaps disk_only{.server_killed = minutes(10),
                            .power_cut = minutes(4),
                            .second_leader = minutes(20),
                            .disk_full = minutes(15),
                            .disk_fails = minutes(10)};

constexpr Mishaps nodes_only{.agent_killed = Duration{30'000},
                             .host_crash = minutes(10),
                             .gpu_lost = minutes(10),
                             .gpu_drained = minutes(5),
                             .memory_stuck = minutes(5),
                             .fence_falls = minutes(5),
                             .wipe_fails = minutes(3),
                             .wipe_lies = minutes(3),
                             .wipe_hangs = minutes(10),
                             .start_fails = minutes(5),
                             .stop_fails = minutes(5),
                             .agent_dies_at_journal = 20};

constexpr Mishaps restores{.server_killed = minutes(30),
                           .restore = minutes(30),
                           .agent_killed = minutes(5),
                           .gpu_drained = minutes(5),
                           .fence_falls = minutes(5)};

// Few faults, so that between two of them a claim has the time to be served.
constexpr Mishaps now_and_then{.server_killed = minutes(180),
                               .agent_killed = minutes(120),
                               .host_crash = minutes(240),
                               .gpu_lost = minutes(240),
                               .gpu_drained = minutes(240),
                               .wipe_fails = minutes(180),
                               .start_fails = minutes(240),
                               .stop_fails = minutes(240),
                               .partition = minutes(180),
                               .node_lost = minutes(240),
                               .lost = 1,
                               .duplicated = 5,
                               .delayed = 10};

constexpr std::array all_specs{
    Spec{.name = "default", .about = "32 nodes of 8 GPUs, churn, and every fault there is", .mishaps = everything},
    Spec{.name = "calm", .about = "churn, and nothing goes wrong", .mishaps = {}},
    Spec{.name = "network", .about = "lost, late, twice, out of order, cut off", .mishaps = network_only},
    Spec{.name = "disk",
         .about = "crashes at any write, torn writes, a full and a failing disk, two leaders",
         .mishaps = disk_only},
    Spec{.name = "nodes", .about = "agents, hosts and devices that die, hang and lie", .mishaps = nodes_only},
    Spec{.name = "restore", .about = "again and again from an old backup", .mishaps = restores},
    Spec{.name = "small",
         .about = "two nodes under every fault, crowded",
         .nodes = 2,
         .gpus = 4,
         .between_submits = Duration{10'000},
         .run_for = Duration{300'000},
         .between_operators = Duration{600'000},
         .mishaps = everything},
    Spec{.name = "guarantees",
         .about = "four nodes that small work closes, and tenants who claim what they are guaranteed",
         .nodes = 4,
         .gpus = 4,
         .between_submits = Duration{20'000},
         .run_for = Duration{420'000},
         .between_operators = Duration{1'800'000},
         .bound = minutes(7),
         .claims = true,
         .mishaps = now_and_then},
};

}  // namespace

std::span<const Spec> specs() { return all_specs; }

const Spec* find_spec(std::string_view name) {
    for (const Spec& spec : all_specs)
        if (spec.name == name) return &spec;
    return nullptr;
}

}  // namespace bulkhead::sim
