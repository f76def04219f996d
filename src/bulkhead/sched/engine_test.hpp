// A small fleet to try the engine on: rows of nodes, tenants and jobs in few words.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "bulkhead/gpu/board.hpp"
#include "bulkhead/gpu/geometry.hpp"
#include "bulkhead/gpu/profile_name.hpp"
#include "bulkhead/sched/engine.hpp"

namespace bulkhead::sched {

inline constexpr const char* h100 = "h100-80gb-sxm5";

inline const gpu::Geometry& h100_geometry() {
    static const gpu::Geometry geometry{**gpu::find_board(h100)};
    return geometry;
}

struct NodeRow {
    std::string name;
    std::size_t gpus = 8;
    std::string zone = "z", rack = "r", leaf = "l";
    std::int64_t cpu = 128;
};

inline Node node_of(const NodeRow& row) {
    Node node;
    node.name = row.name;
    node.site = "s";
    node.zone = row.zone;
    node.rack = row.rack;
    node.leaf = row.leaf;
    node.open = true;
    node.cpu_free = row.cpu;
    node.memory_free = std::int64_t{1} << 40;
    node.functions = {0, 1, 2, 3, 4, 5, 6, 7};
    const gpu::Board* board = *gpu::find_board(h100);
    for (std::size_t i = 0; i < row.gpus; ++i)
        node.gpus.push_back({.model = h100, .board = board, .slices = 8, .available = 0xFF, .seats = {}});
    return node;
}

struct JobRow {
    std::string name;
    TenantNo tenant = 0;
    std::int64_t gpus = 1;  // whole, of each task
    std::int32_t tasks = 1;
    std::int64_t share = 1000;
    std::string profile = {};
    std::int64_t priority = 0;
    bool preemptible = true;
    std::int32_t least = 0;
    std::int32_t grow_by = 0;
    TopologyLevel within = TopologyLevel::none, prefer = TopologyLevel::none;
    std::int32_t group = 0;
    TopologyLevel group_within = TopologyLevel::none;
    std::int64_t cpu = 0;
    std::optional<Duration> duration = {}, checkpoint = {};
    std::optional<Instant> deadline = {};
    SharingScope sharing{PeerTrust::same_domain, PeerTrust::same_domain, PeerTrust::same_domain,
                         PeerTrust::same_domain};
    bool on_host_kernel = true;
    bool rdma = false;
    bool keeps_node = false, keeps_gpu = false;
};

// Everything by name. Time starts at noon.
struct Play {
    static constexpr Instant noon{1'800'000'000'000};
    Engine engine;
    Instant now = noon;
    std::vector<std::string> nodes;
    std::vector<std::string> job_names;  // by key
    std::map<std::string, JobNo> jobs;
    Statement last;

    explicit Play(EngineSettings settings = {}) : engine{settings} {}

    void tenants(std::vector<TenantFacts> facts) {
        for (TenantFacts& each : facts)
            if (each.domain == 0) each.domain = 1;
        engine.set_tenants(std::move(facts));
    }
    void node(const NodeRow& row) {
        nodes.push_back(row.name);
        engine.add_node(node_of(row));
    }
    static TaskNeed need_of(const JobRow& row) {
        TaskNeed need;
        Want want{.model = h100, .profile_name = {}};
        if (!row.profile.empty()) {
            const gpu::Board& board = **gpu::find_board(h100);
            want.form = Want::Form::instance;
            want.profile = gpu::find_profile(board, row.profile)->index;
            want.geometry = &h100_geometry();
            want.size = static_cast<std::uint8_t>(board.profiles[want.profile].memory_slices);
            want.profile_name = row.profile;
            need.mechanism = Mechanism::mig;
        } else if (row.share < 1000) {
            want.form = Want::Form::share;
            want.share = row.share;
            need.mechanism = Mechanism::mps;
        } else {
            want.count = row.gpus;
        }
        need.wants.push_back(want);
        need.any_model = true;
        need.cpu = row.cpu;
        need.sharing = row.sharing;
        need.on_host_kernel = row.on_host_kernel;
        need.rdma = row.rdma;
        need.keeps_node = row.keeps_node;
        need.keeps_gpu = row.keeps_gpu;
        return need;
    }
    // What quota counts for one task: of an instance its compute slices.
    static Gpus counted(const JobRow& row) {
        if (row.profile.empty()) return Gpus::of_thousandths(row.share < 1000 ? row.share : row.gpus * 1000);
        const gpu::Board& board = **gpu::find_board(h100);
        return {gpu_unit * board.profiles[gpu::find_profile(board, row.profile)->index].slices / board.slices};
    }
    JobNo submit(const JobRow& row, bool held_back = false) {
        Job job;
        job.held_back = held_back;
        job.key = std::ssize(job_names);
        job.tenant = row.tenant;
        job.shape = engine.shape(need_of(row));
        job.tasks = row.tasks;
        job.least = row.least;
        job.grow_by = row.grow_by;
        job.gpus = counted(row);
        job.within = row.within;
        job.prefer = row.prefer;
        job.group = row.group;
        job.group_within = row.group_within;
        job.priority = row.priority;
        job.preemptible = row.preemptible;
        job.submitted = now;
        job.duration = row.duration;
        job.checkpoint = row.checkpoint;
        job.deadline = row.deadline;
        job_names.push_back(row.name);
        return jobs[row.name] = engine.submit(job);
    }
    // Submitted, and placed by a cycle at once.
    void run(const JobRow& row) {
        submit(row);
        cycle();
        EXPECT_TRUE(engine.running(jobs.at(row.name))) << row.name << " did not start";
    }
    const Statement& cycle() { return last = engine.cycle(now); }
    // Evicted work leaves, and waits again.
    void stop_evicted() {
        for (const Eviction& eviction : last.evict)
            if (eviction.whole) engine.stopped(jobs.at(name(eviction.workload)));
    }
    // Until nothing happens any more; how many cycles that took.
    int settle(int at_most = 50) {
        for (int i = 1; i <= at_most; ++i) {
            cycle();
            if (last.quiet()) return i;
            stop_evicted();
        }
        ADD_FAILURE() << "it does not settle";
        return at_most;
    }
    void later(Duration by) { now = now + by; }

    const std::string& name(std::int64_t key) const { return job_names[static_cast<std::size_t>(key)]; }
    bool runs(const std::string& job) const { return engine.running(jobs.at(job)); }
    std::vector<std::string> evicted() const {
        std::vector<std::string> out;
        for (const Eviction& eviction : last.evict) out.push_back(name(eviction.workload));
        std::ranges::sort(out);
        return out;
    }
    std::vector<std::string> bound() const {
        std::vector<std::string> out;
        for (const Binding& binding : last.bind) out.push_back(name(binding.workload));
        return out;
    }
    // The nodes of a job's tasks, each once.
    std::vector<std::string> where(const std::string& job) const {
        std::vector<std::string> out;
        for (const TaskSeat& task : engine.seats(jobs.at(job))) out.push_back(nodes[task.node]);
        std::ranges::sort(out);
        const auto twice = std::ranges::unique(out);
        out.erase(twice.begin(), twice.end());
        return out;
    }
    bool waits_for(const std::string& job, std::string_view code) const {
        const auto reasons = engine.why(jobs.at(job), now).reasons;
        return std::ranges::find(reasons, code, &Reason::code) != reasons.end();
    }
    bool is_on(const std::string& job, const std::string& node) const {
        const auto its = where(job);
        return std::ranges::find(its, node) != its.end();
    }
    std::vector<std::string> codes(const std::string& job) const {
        std::vector<std::string> out;
        for (const Reason& reason : engine.why(jobs.at(job), now).reasons) out.emplace_back(reason.code);
        return out;
    }
};

using Names = std::vector<std::string>;

inline TenantFacts team(std::string name, std::int64_t guarantee = 0, std::int64_t weight = 1) {
    TenantFacts facts;
    facts.name = std::move(name);
    facts.guarantee = Gpus::whole(guarantee);
    facts.weight = weight;
    return facts;
}

}  // namespace bulkhead::sched
