// The scheduler. It is told what is there and what happens; it keeps indexes of that up to date, and in each cycle
// answers with a statement. The same engine serves the control plane, `bulkhead schedule`, replay and benchmarks.
//
// Order: guarantee claims (jobs with which their tenant stays within its guarantee) before all other work. In both
// groups: tenants that hold less than they are due (division.hpp) first; among those, Fair Tree's order; within a
// tenant by priority, which a near deadline raises up to the tenant's grant; then by age.
//
// Actions, the least disruptive first: allocate; backfill around reservations; consolidate (move); reclaim from
// branches of the tree above their due; preempt lower priorities of the same tenant. Nothing is evicted that would not
// help, and what an eviction frees belongs to its claimant until that is placed. A guarantee claim that has to wait for
// its room (minimum run times, wipes, reboots) keeps that room from all other work. A tenant whose limit was lowered
// below what it leases gives up work until it is within the limit.
//
// Exact for single tasks and for gangs of one shape (every gang here): if room exists without disruption it is found,
// and a single task gets the node with the best packing score. Sets of victims are searched within a budget.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bulkhead/sched/packing.hpp"
#include "bulkhead/sched/statement.hpp"
#include "bulkhead/sched/work.hpp"

namespace bulkhead::sched {

struct EngineSettings {
    Duration half_life = Duration::days(7);  // of usage
    Duration stale_grace = Duration{60'000};
    Duration reclaim_after{}, preempt_after{};  // least run time where no tenant says one
    int reservations = 4;                       // how many waiting gangs may keep room free for themselves
    int guaranteed_reservations = 256;          // and how many guarantee claims, at once and beside those
    Duration patience = Duration{600'000};      // from when on, if nobody knows when what they wait for will end
    int moves = 4;                              // the most gangs that are moved for one claimant
    int disruptions = 16;                       // the most claimants for whom others are disturbed in one cycle
    bool grow = true;                           // elastic gangs get more tasks while there is room
    // Where gangs do not grow so: a gang starts again to grow, by several tasks at once, and only as far as the
    // guarantee or the due of its tenant goes. The binding lists the new tasks; the caller stops and starts the gang.
    bool grow_by_restart = false;
    bool wipes = false;  // what a task leaves is dirty until the caller says otherwise; else it is free at once
    // A task on the host kernel makes its tenant a user of that kernel until the caller says that the node was
    // rebooted. Else the users of a kernel are those that the node was added with.
    bool remember_hosts = false;
};

// Room that is kept for a job until it is free and the job is placed.
struct Promise {
    std::int64_t workload = 0;
    bool freed = false;       // others were disturbed for it
    bool guaranteed = false;  // the job is within its tenant's guarantee
    std::optional<Instant> expected;
    std::vector<TaskSeat> tasks;
};

struct EngineFigures {
    std::size_t nodes = 0, jobs = 0, states = 0;
    std::size_t node_bytes = 0, job_bytes = 0;  // of all nodes with their indexes, and of all jobs
};

class Engine {
public:
    explicit Engine(EngineSettings settings = {});
    ~Engine();
    Engine(Engine&&) noexcept;
    Engine& operator=(Engine&&) noexcept;

    // --- what is there ---

    // First of all, and again when something changes. Numbers stay what they are; new tenants come at the end.
    void set_tenants(std::vector<TenantFacts> tenants);
    // `residents` and `seats` of leases that the engine has no job for sit there all the same.
    NodeNo add_node(const Node& node);
    void clean(NodeNo node, std::uint16_t gpu, std::uint8_t slices);  // they have been wiped
    void rebooted(NodeNo node);                                       // to a known image
    // What usually comes; packing looks at it. Without one the engine counts what it is given.
    void set_mix(Mix mix);

    // --- what happens ---

    ShapeNo shape(const TaskNeed& need);
    JobNo submit(const Job& job);                                             // it waits
    void adopt(JobNo job, std::span<const TaskSeat> tasks, Instant started);  // it runs there already
    // It runs, and where is drawn with the nodes, whose residents name its number. Before those nodes are added.
    // `tasks`: of an elastic gang that runs with fewer than it asks for.
    void run(JobNo job, Instant started, std::optional<std::int32_t> tasks = {});
    void finish(JobNo job);   // done or withdrawn; the number may be given again
    void stopped(JobNo job);  // an evicted job has left; it waits again as what it was

    // --- what follows ---

    Statement cycle(Instant now);

    // Room that is kept for jobs, for an engine that will be built anew.
    std::vector<Promise> promises() const;
    void keep(JobNo job, const Promise& promise);
    // Likewise, after a statement that is `unfinished`: for whom victims were looked for in vain. The next cycle looks
    // for the others first.
    bool was_searched(JobNo job) const;
    void searched(JobNo job);

    // One decision of allocate, outside any cycle: places the job if quota and room allow.
    bool allocate(JobNo job, Instant now);
    // One decision of reclaim: whom it would evict. Nothing is changed; empty: nobody, it would not help.
    std::vector<Eviction> would_reclaim(JobNo job, Instant now);
    // Why it waits, completely: every obstacle with its numbers.
    Waiting why(JobNo job, Instant now) const;
    // Likewise, and what is in its way (blocking.hpp). For questions about one job, between two cycles.
    Waiting explain(JobNo job, Instant now);

    bool running(JobNo job) const;
    bool waiting(JobNo job) const;
    std::vector<TaskSeat> seats(JobNo job) const;
    std::int64_t held(TenantNo tenant) const;     // Gpus::units, with everyone below
    std::int64_t kept(TenantNo tenant) const;     // likewise: closed by isolation requests beyond the rules
    std::int64_t due(TenantNo tenant) const;      // as of the last cycle
    std::int64_t own_due(TenantNo tenant) const;  // of that, for its own work beside its children's
    EngineFigures figures() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace bulkhead::sched
