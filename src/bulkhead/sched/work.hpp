// What the engine is told of work and of whose it is. Plain values; numbers instead of names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/policy/contract.hpp"
#include "bulkhead/sched/fleet.hpp"
#include "bulkhead/sched/forest.hpp"

namespace bulkhead::sched {

// Who owns work. Its number is its place in the list given to the engine.
struct TenantFacts {
    std::string name;
    Parent parent;
    std::uint32_t domain = 0;  // 0: trusts nobody
    Gpus guarantee;
    std::optional<Gpus> limit;
    std::int64_t weight = 1;
    std::int64_t over_quota_priority = 0;
    std::int64_t shares = 1;     // in Fair Tree
    std::int64_t usage = 0;      // GPU-seconds of its own work, as far as they still count
    std::int64_t usage_ms = 0;   // and what there is beyond whole GPU-seconds: parts of GPUs (Gpus) times milliseconds
    std::int64_t seniority = 0;  // smaller: older
    bool hard = false;           // the guarantee is never lent and never exceeded
    std::int64_t grant = 1000;   // the highest priority granted, which a deadline may raise its work to
    std::optional<Duration> reclaim_after, preempt_after;  // how long its work runs at least; none: as above it
    // The guarantee counts whole nodes of so many GPUs each, and each has at least so many; 0: it counts GPUs.
    std::int64_t node_gpus = 0, least_node = 0;
    std::optional<std::vector<std::string>> sites;  // where it is kept; nothing: anywhere
};

// What a task asks of GPUs of one model, ready to be looked for.
struct Want {
    enum class Form : std::uint8_t { whole, instance, share, partition };
    Form form = Form::whole;
    std::string model;
    std::int64_t count = 1;     // whole or shared GPUs
    std::int64_t share = 1000;  // thousandths of each
    const gpu::Geometry* geometry = nullptr;
    std::size_t profile = 0;   // of an instance, into the board's
    std::uint8_t size = 1;     // memory slices of an instance or partition
    std::string profile_name;  // of an instance or partition

    bool is_sliced() const { return form == Form::instance || form == Form::partition; }
    bool is_shared() const { return form == Form::share && count == 1 && share < 1000; }  // a part of one GPU
    friend bool operator==(const Want&, const Want&) = default;
};

// What one task needs, whoever asks. Equal needs are one shape to the engine.
struct TaskNeed {
    std::vector<Want> wants;  // one for each model that will do; none at all: it needs no GPU
    bool any_model = false;   // it named no model, and the wants are for all there are
    Mechanism mechanism = Mechanism::whole;
    std::int64_t cpu = 0;     // cores
    std::int64_t memory = 0;  // bytes
    std::int64_t nvme = 0;    // bytes of one drive of its own; 0: none
    bool rdma = false;        // one virtual function
    SharingScope sharing{PeerTrust::same_domain, PeerTrust::same_domain, PeerTrust::same_domain,
                         PeerTrust::same_domain};
    bool on_host_kernel = true;        // a tier below vm
    bool keeps_node = false;           // it asked to share the node with fewer tenants than the rules allow
    bool keeps_gpu = false;            // likewise of its GPU
    std::vector<TenantNo> excepted;    // tenants that an exception lets share the kernel
    std::vector<std::uint32_t> kinds;  // kinds of nodes (Node::kind) that may serve it; none: every kind

    friend bool operator==(const TaskNeed&, const TaskNeed&) = default;
};

using ShapeNo = std::uint32_t;
using NodeNo = std::uint32_t;
using JobNo = std::uint32_t;

// Tasks that start together. All of one shape.
struct Job {
    std::int64_t key = 0;  // the caller's; of two alike the lower goes first
    TenantNo tenant = 0;
    ShapeNo shape = 0;
    std::int32_t tasks = 1;
    std::int32_t least = 0;    // elastic: the fewest tasks worth running; 0: all
    std::int32_t grow_by = 0;  // with `grow_by_restart`, while it runs: the fewest more that are worth one; 0: none yet
    Gpus gpus;                 // what quota counts for one task
    Gpus all;                  // and for all, where that is not as many times the one: three sevenths round up once
    TopologyLevel within = TopologyLevel::none, prefer = TopologyLevel::none;
    std::int32_t group = 0;  // tasks that must be together in one `group_within`; divides `tasks`
    TopologyLevel group_within = TopologyLevel::none;
    std::int64_t priority = 0;
    bool preemptible = true;
    bool held_back = false;  // it may not start now; room that is kept for it stays kept
    Instant submitted;
    std::optional<Instant> deadline;
    std::optional<Duration> duration;    // as estimated
    std::optional<Duration> checkpoint;  // how often it saves its work; none: never

    // What quota counts for so many of its tasks.
    std::int64_t counted(std::int64_t count) const {
        if (all.units == 0) return gpus.units * count;
        return (all.units * count + tasks - 1) / tasks;
    }
};

}  // namespace bulkhead::sched
