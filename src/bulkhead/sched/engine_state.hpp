// What the engine keeps: jobs, tenants with what they hold and are due, and claims on room that is not free yet. Where
// things stand is FleetIndex's. The parts of the engine are functions of this: engine.cpp (doors, placing), cycle.cpp
// (one cycle), turns.cpp (quota, dues, whose turn), whole_gpus.cpp (dues in whole GPUs), limits.cpp (limits that were
// lowered), growth.cpp (elastic gangs), disturb.cpp (making room), plan_search.hpp (which work has to go),
// footprint.cpp (what work closes to others), pinned.cpp (work that may not be preempted), unequal_nodes.cpp
// (guaranteed work in fleets of unequal nodes), exclusivity.cpp (what work
// asked to keep from others), claims.cpp (room that is kept), guarantee_claims.cpp (room that is kept for guarantees),
// why.cpp (words), blocking.cpp (what is in the way of one job).
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "bulkhead/sched/division.hpp"
#include "bulkhead/sched/engine.hpp"
#include "bulkhead/sched/fair_tree.hpp"
#include "bulkhead/sched/fleet_index.hpp"
#include "bulkhead/sched/guaranteed_nodes.hpp"

namespace bulkhead::sched {

// A whole GPU in the unit that quota counts in.
inline constexpr std::int64_t counted_whole_gpu = gpu_unit;
inline constexpr std::int64_t footprint_unit = 1000;
inline constexpr std::int64_t rounding_of_footprints = 256;  // the most that rounding can add up to
constexpr Gpus counted_gpus(std::int64_t counted) { return Gpus{counted}; }

struct JobRec {
    enum class Phase : std::uint8_t { unused, pending, running, ending };
    Job job;
    SeatNo seats = nil;
    std::int32_t placed = 0;         // tasks
    std::uint32_t at = 0;            // its place among those of its phase
    std::uint32_t evicted_in = nil;  // the generation of input in which it was evicted last: it is not evicted twice
    std::uint32_t moved_in = nil;   // and in which it moved last: it does not move twice, and may be evicted after that
    std::uint32_t moved_at = nil;   // the cycle of that
    std::uint32_t tried_in = nil;   // and in which disturbing others for it did not help
    std::uint32_t searched_in = 0;  // the last cycle in which others would have been disturbed for it, and none helped
    std::uint32_t started_in = nil;  // the cycle that gave it room last: in that cycle it is no victim
    std::uint32_t served_in = 0;     // the last cycle in which it was looked at as a guarantee claim
    std::uint32_t shrunk_in = nil;   // the generation of input in which it lost a spare task last
    std::uint32_t outside_in = nil;  // the generation in which its room was outside its entitlement (pinned.cpp)
    std::uint32_t budget_in = nil;   // the generation in which the budget ended a search for it without a plan
    // A running elastic gang asks for its next task through a record of its own, which waits like any job.
    JobNo growth = nil;          // of a gang: the record that asks for its next task
    JobNo grows = nil;           // of such a record: the gang
    std::int64_t waits_for = 0;  // its part of what its tenant waits for
    // What it would have kept from others in the place that a limit forbade, and the generation of input of that.
    std::int64_t keeps_too_much = 0;
    std::uint32_t keeps_in = nil;
    Phase phase = Phase::unused;
    Instant started;
    std::int32_t fewest() const { return job.least > 0 ? job.least : job.tasks; }
    std::int64_t asked() const { return job.counted(job.tasks); }
    std::int64_t holds() const { return job.counted(placed); }
};

struct TenantRec {
    TenantFacts facts;
    std::vector<TenantNo> line;  // itself and everyone above it, itself first
    std::vector<TenantNo> children;
    std::int64_t held = 0, pinned = 0;  // with everyone below
    std::int64_t kept = 0;              // closed by isolation requests beyond the rules, with everyone below
    std::int64_t own = 0, waiting = 0;  // of its own work
    std::int64_t own_pinned = 0;        // likewise, of work that may not be preempted
    struct Coming {
        std::int64_t reserved = 0;                 // kept for it
        std::int64_t freed = 0, freed_pinned = 0;  // likewise, by a firm claim
        std::int64_t leaving = 0;                  // what it holds and is on its way out
        std::int64_t sum() const { return reserved + freed - leaving; }
        void add(const Coming& more) {
            reserved += more.reserved;
            freed += more.freed;
            freed_pinned += more.freed_pinned;
            leaving += more.leaving;
        }
    };
    Coming coming, own_coming;  // with everyone below; of its own work
    std::int64_t will_hold() const { return held + coming.sum(); }
    std::int64_t own_will_hold() const { return own + own_coming.sum(); }
    // The most it may ever hold, in Gpus::units: its limit, and of a hard partition its guarantee.
    std::optional<std::int64_t> most() const {
        std::optional<std::int64_t> out;
        if (facts.limit) out = facts.limit->units;
        if (facts.hard) out = std::min(out.value_or(facts.guarantee.units), facts.guarantee.units);
        return out;
    }
    std::optional<std::int64_t> partition() const {  // of a hard partition: what it is guaranteed
        return facts.hard ? std::optional{facts.guarantee.units} : std::nullopt;
    }
    // What counts against that. Room of a firm claim counts as if it were held, so that no other work of the tenant
    // uses up the quota meanwhile. Capacity that work asked to keep from others counts as if it were leased.
    std::int64_t counts() const { return held + kept + coming.freed; }
    bool would_exceed(std::int64_t asked) const { return most() && counts() + asked > *most(); }
    // What could be taken from it: a promise is nothing that anybody can take.
    std::int64_t has() const { return held - coming.leaving; }
    std::int64_t own_has() const { return own - own_coming.leaving; }
    std::int64_t due = 0, own_due = 0;
    std::int64_t guarantee = 0;  // its own, or what those below it are guaranteed together
    std::int64_t owed = 0;       // guaranteed, never lent, not yet held, and not part of what someone below is owed
    std::int64_t usage = 0;      // parts of GPUs (Gpus) times milliseconds, as far as they still count
    std::int64_t ended = 0;      // what its own work gave up since usage was last brought up to date
    Fraction level, own_level;   // in Fair Tree
    // While a cycle runs:
    std::vector<JobNo> queue;
    std::size_t next = 0;
    std::int64_t untried = 0;  // jobs, with everyone below
};

// Room that is kept for a job.
struct RoomClaim {
    JobNo job = nil;
    std::vector<SeatNo> seats;        // promised
    std::optional<Instant> expected;  // when it should be free; none: unknown
    bool freed_for_it = false;        // others were disturbed for it
    bool guaranteed = false;          // its job is a guarantee claim, so that no other work may start there
    bool firm() const { return freed_for_it || guaranteed; }
};

// By which law a job may make others give way: its guarantee, its due, or its priority inside its own tenant.
enum class Law : std::uint8_t { guarantee, share, priority };

// What a plan costs. Preemption takes the lowest priorities first, and only among those the least work that is lost.
struct Cost {
    std::int64_t urgency = 0;  // of all, where it counts
    std::int64_t lost = 0;     // GPU-milliseconds
    std::int64_t jobs = 0;     // that are touched
    std::int64_t tasks = 0;    // spare tasks that go
    Cost& operator+=(const Cost& more) {
        urgency += more.urgency;
        lost += more.lost;
        jobs += more.jobs;
        tasks += more.tasks;
        return *this;
    }
    friend auto operator<=>(const Cost&, const Cost&) = default;
};

// Ways to make room for a claimant, the least disruptive first.
enum class PlanKind : std::uint8_t {
    nothing,  // what is leaving, being wiped or rebooted will do
    moves,    // jobs go elsewhere and lose no place
    spares,   // elastic gangs give tasks above their least number
    gentle,   // whole jobs go, and leave every level of their branch at its guarantee (or due) or above
    harsh,    // the last job that goes takes a level below
};

// Spare tasks of one elastic gang that go.
struct Shrink {
    JobNo job = nil;
    std::vector<SeatNo> seats;
};

// A whole job that goes elsewhere.
struct Relocation {
    JobNo job = nil;
    std::vector<TaskSeat> to;
};

struct Plan {
    std::vector<JobNo> victims;              // whole jobs that end
    std::vector<FleetIndex::Portion> where;  // the claimant's tasks
    Cost cost;
    bool budget_spent = false;  // there may be a better plan
    PlanKind kind = PlanKind::nothing;
    std::vector<Shrink> shrinks;
    std::vector<Relocation> moves;
};

struct Engine::State {
    EngineSettings settings;
    FleetIndex fleet;
    std::vector<JobRec> jobs;
    std::vector<JobNo> spare_jobs, pending, running;
    std::vector<JobNo> retired;  // records of growth that are done: spare from the next cycle on
    std::vector<TenantRec> tenants;
    std::vector<TenantNo> roots;
    std::vector<TenantNo> down;  // everyone, each after its parent
    std::vector<RoomClaim> claims;
    std::int64_t owed = 0;
    bool dues_stale = true, mix_given = false, deciding = false;
    bool any_elastic = false;                  // an elastic gang was ever submitted
    std::int64_t fractional = 0;               // jobs that ask for parts of GPUs
    std::int64_t counted = 0, mixed_at = 0;    // tasks submitted, and at the last look at the mix
    std::uint32_t generation = 0;              // of input
    std::uint32_t cycles = 1;                  // the number of the one that runs, or will
    std::uint32_t round = 1;                   // since which one nobody is searched for twice
    int searches = 0;                          // looks at the fleet for victims, in this cycle
    int future_searches = 0;                   // for places that waiting guarantee claims reserve, in this cycle
    std::optional<Instant> aged;               // when usage was last brought up to date
    std::unordered_set<std::uint64_t> failed;  // what found no room in this cycle
    // In suppositions: jobs that are gone, by number, and seats of spare tasks that are gone.
    mutable std::vector<bool> gone;
    mutable std::vector<std::uint8_t> spare_gone;
    bool entitlements_stale = true;  // tenants have changed
    std::size_t entitled_nodes = 0;  // so many nodes there were when they were computed
    std::vector<std::int64_t> entitled;
    // Of capacity that work keeps from others beyond the rules: one job's part of one node.
    struct Kept {
        TenantNo tenant = 0;
        JobNo job = nil;
        std::int64_t units = 0;
        bool keeper = false;
    };
    bool keeping = false;  // a job that keeps anything was ever submitted
    std::map<NodeNo, std::vector<Kept>> kept_on;
    struct NodeSizes {
        std::uint32_t generation = nil;
        std::int64_t least = 0, most = 0;  // Gpus::units
    };
    mutable std::map<ShapeNo, NodeSizes> node_sizes;  // of nodes that could serve the shape

    // engine.cpp
    void enlist(std::vector<JobNo>& list, JobNo job, JobRec::Phase phase);
    void unlist(JobNo job);
    void hold(JobNo job, std::int64_t gpus);  // Gpus::units, of its tenant and everyone above; negative: no longer
    void expect(JobNo job, const TenantRec::Coming& more);  // likewise, but not yet
    void expect(const RoomClaim& claim, bool is_kept);      // the least that the job asks for
    std::int64_t least_of(JobNo job) const { return jobs[job].job.counted(jobs[job].fewest()); }
    void set_ending(JobNo job);
    void seat(JobNo job, SeatNo seat);
    void start(JobNo job, std::span<const FleetIndex::Portion> where, Instant now);
    void leave(JobNo job, bool clean);                                                             // all its seats
    void begin(JobNo job, std::span<const FleetIndex::Portion> where, Instant now, Binding* out);  // start, and tell
    bool place(JobNo job, Instant now, Binding* out);
    bool keeps_share(JobNo job, std::int64_t tasks);
    std::vector<FleetIndex::Portion> find_room(JobNo job, std::int32_t tasks);
    Binding described(JobNo job, SeatNo after = nil) const;  // `after`: only the tasks that came after that one
    void refresh_mix();
    std::uint64_t signature(const Job& job) const;
    void count_waiting(JobNo job);  // what its tenant waits for, after the job changed

    // cycle.cpp
    struct Round;  // what one cycle keeps in mind
    void serve(JobNo job, bool guaranteed, Round& round, Statement& statement, Instant now);
    void serve_guaranteed(JobNo job, bool over, Round& round, Statement& statement, Instant now);
    bool make_room(JobNo job, bool over, Round& round, Statement& statement, Instant now);
    void serve_in_turn(bool guarantees, Round& round, Statement& statement, Instant now);
    void tell_waiting(const Round& round, Statement& statement, Instant now);
    void clear_stale(Statement& statement, Instant now);
    void want_reboots(Statement& statement, JobNo job) const;

    // limits.cpp
    void enforce_limits(Statement& statement, Instant now);
    struct LimitPlan;
    void bring_below(TenantNo limited, std::int64_t most, LimitPlan& plan, Instant now) const;
    std::vector<std::size_t> levels_below(TenantNo tenant, TenantNo limited) const;
    bool is_guaranteed_below(TenantNo tenant, TenantNo limited) const;  // what it holds is within a guarantee there
    void spare_needless(LimitPlan& plan, Instant now) const;
    void carry_out(const LimitPlan& plan, Statement& statement, Instant now);
    Duration least_run_under_limit(TenantNo victim, TenantNo limited) const;
    bool can_spare(const JobRec& rec) const;   // it runs with tasks that it can spare, of a gang in groups whole groups
    bool can_shrink(const JobRec& rec) const;  // likewise, and one by one
    std::vector<SeatNo> spare_seats(const JobRec& rec, std::int32_t tasks) const;
    bool has_a_seat_for_each(const JobRec& rec) const;  // of its tasks
    void give_up(JobNo job, SeatNo seat);               // one task of an elastic gang

    // growth.cpp
    bool can_grow(const JobRec& rec) const;
    void raise_growth();
    bool starts_again(const JobRec& rec) const;  // now, if there is room for more of its tasks
    JobNo growth_of(JobNo gang);                 // the record that asks for its next task
    // It asks for more tasks of a gang that has to start again to get them.
    bool restarts(JobNo record) const { return settings.grow_by_restart && jobs[record].grows != nil; }
    void size_growth(JobNo gang, std::int32_t tasks);
    std::int32_t deserved_growth(JobNo record, bool guaranteed);
    bool still_deserves(JobNo record) const;
    void serve_growth(JobNo record, bool guaranteed, Round& served, Statement& statement, Instant now);
    void end_growth(JobNo gang);     // with the room that is kept for it
    void retire_growth(JobNo gang);  // its record no longer waits; a claim of it is the caller's
    void grow(Statement& statement, Instant now);
    // A gang grows by whole groups, and inside the domain where it must stay together.
    static std::int32_t step_of(const Job& job) { return std::max(job.group, 1); }
    bool grows_in_place(JobNo job) const;  // the record of growth of a gang that must stay in one domain
    std::vector<FleetIndex::Portion> room_to_grow(JobNo gang, std::int32_t tasks);
    std::vector<NodeNo> out_of_reach(JobNo job) const;  // of such a record: nodes in other domains

    // turns.cpp
    void set_tenants(std::vector<TenantFacts> facts);
    void count_owed();
    bool within_quota(const Job& job, std::int64_t tasks, std::int64_t freed = 0) const;  // `freed`: and then free too
    // GPUs that firm claims take from what is free, beyond what is on its way out and what hard partitions are owed.
    std::int64_t spoken_for() const;
    std::optional<Reason> over_quota(const Job& job, std::int64_t tasks) const;
    void divide_now();

    // whole_gpus.cpp
    static bool is_whole(const Division& division);
    void rank_for_rest(std::vector<Queue>& queues, const Division& exact) const;
    std::vector<std::int64_t> use_of_one_more(const Division& exact) const;

    // turns.cpp, continued
    void age(Instant now);
    std::int64_t urgency(const Job& job, Instant now) const;  // priority, raised by a near deadline
    void line_up(Instant now, bool guarantees);  // either jobs that may be guarantee claims, or all not yet served
    bool goes_before(JobNo a, JobNo b) const;    // of two jobs of one tenant with equal urgency
    bool may_be_guaranteed(JobNo job) const;     // cheap, and true for every guarantee claim
    std::optional<JobNo> next_in_turn();
    bool deserves(JobNo job) const;  // its tenant and those above stay within what they are due
    bool fits_due(JobNo job) const;  // they would, once work of theirs that runs now is done

    // plan_search.hpp
    struct Protection;
    struct PlanSearch;
    struct ExactSearch;
    struct MoveTrial;
    struct PlanAsk {
        bool future = false;              // as if every minimum run time were over
        std::optional<TenantNo> inside;   // only among what this tenant holds with everyone below
        std::span<const NodeNo> avoid{};  // nodes that are no place for the claimant
        bool moving = false;              // those who go would be placed elsewhere
    };
    bool lists_candidates() const;  // the fleet is small enough to look at every job that could be touched
    // The best plan that this law allows for a waiting job; nothing: there is none, or the budget was spent
    // (`budget_in`).
    std::optional<Plan> find_plan(JobNo job, Law law, Instant now, const PlanAsk& ask);
    // The plan that would serve a waiting guarantee claim if every minimum run time were over, all that is ending had
    // ended, dirty GPUs were wiped and nodes that can be rebooted were. Nothing: not even then.
    std::optional<Plan> future_plan(JobNo job, Instant now);
    // Whether the job's tenant and every tenant above it, with the job's least size added, stay within their
    // guarantees.
    bool is_guarantee_claim(JobNo job) const;
    std::int64_t lost_by(const JobRec& job, Instant now) const;
    Duration least_run(TenantNo victim, TenantNo claimant, Action action) const;
    // The tenant whose limit is in the way, the lowest if there are several; nothing: no limit is.
    std::optional<TenantNo> limited_by(const Job& job, std::int64_t tasks) const;

    // pinned.cpp
    struct Fixed {
        DomainKey domain = 0;
        TenantNo tenant = 0;
        bool shared = false;         // other domains have such work there too
        bool closed = false;         // and keeps strangers away from the node
        bool one_tenant = true;      // all of it is the tenant's
        std::uint64_t touched = 0;   // GPUs that it holds, or parts of them; one bit each
        std::int64_t leased = 0;     // by it, Gpus::units
        std::int64_t fragments = 0;  // of these GPUs what it does not lease, Gpus::units
    };
    // What is known of nodes that work which may not be preempted is on. Sums over all nodes; a node that changes is
    // taken off them and counted anew.
    struct FixedNodes {
        struct Own {                    // of one tenant's own guarantee
            std::int64_t gpus = 0;      // in GPUs, and what it leases on nodes that count as whole ones; Gpus::units
            std::int64_t nodes = 0;     // whole nodes that it does not hold
            std::int64_t promised = 0;  // to such work, Gpus::units
        };
        struct Domain {
            std::map<TenantNo, Own> owns;
            std::int64_t guaranteed = 0;  // Gpus::units
            std::int64_t fragments = 0;   // of GPUs that such work leases in part, Gpus::units
            std::int64_t room = 0;        // GPUs on its nodes that such work does not touch
            bool alike = true;            // its guarantees are in GPUs, and kept on the same nodes
            std::vector<NodeNo> nodes;    // fixed for it alone, the newest last
        };
        struct OnNode {                  // what one node adds to the sums
            NodeSort sort;               // if it counts
            std::int32_t fragments = 0;  // Gpus::units
            bool counts = false;         // it is of use to a guarantee
            bool several = false;        // several domains have such work there
            friend bool operator==(const OnNode&, const OnNode&) = default;
        };
        using Portions = std::vector<std::pair<std::optional<NodeSort>, std::int64_t>>;
        bool known = false;
        bool counts_nodes = false;  // a guarantee is in whole nodes
        std::map<DomainKey, Domain> domains;
        std::map<NodeSort, std::int64_t> sorts;
        std::vector<OnNode> on;    // by node
        std::set<NodeNo> several;  // nodes with work of several domains
        std::map<NodeNo, std::vector<std::pair<TenantNo, std::int64_t>>> promised;  // there, Gpus::units
        std::map<NodeNo, TenantNo> units;  // nodes that count for a guarantee in nodes
        std::optional<NodesGiven> given;   // one way to keep every guarantee
        struct After {                     // and one after the start that was tested last
            TenantNo tenant = 0;
            std::vector<NodeNo> nodes;
            NodesGiven given;
        };
        std::optional<After> after;
        std::map<std::tuple<TenantNo, ShapeNo, bool, Portions>, bool> answers;
    };
    FixedNodes fixed_nodes;
    std::map<std::string, std::uint32_t, std::less<>> site_numbers;
    std::vector<std::uint32_t> sites;             // by node
    DomainKey domain_key(TenantNo tenant) const;  // a tenant without a domain is one of its own
    std::optional<Fixed> fixed_for(NodeNo node) const;
    std::optional<NodeSort> sort_of(NodeNo node, const std::optional<Fixed>& fixed) const;
    std::int64_t left_of(TenantNo tenant, const FixedNodes::Own& own) const;  // not leased by such work, Gpus::units
    void count_fixed(NodeNo node);
    void discount_fixed(NodeNo node);
    void recount_fixed(NodeNo node);
    void look_for_fixed_nodes();
    void list_guaranteed(std::map<DomainKey, FixedNodes::Domain>& domains) const;
    std::vector<GuaranteedPart> parts_of(DomainKey key, const FixedNodes::Domain& domain) const;
    std::vector<GuaranteedPart> all_parts(DomainKey but, const FixedNodes::Domain& instead) const;
    std::vector<GuaranteedPart> guaranteed_parts() const;  // of all guarantees, as if nothing were leased
    const NodesGiven& given_now();
    // Work on one node that would start.
    struct FixedStart {
        NodeNo node = 0;
        std::int32_t tasks = 0;
        std::optional<Fixed> fixed;
        std::optional<NodeSort> sort;
        bool own = false;        // only its trust domain has such work there
        std::int64_t opens = 0;  // GPUs that no such work held so far
    };
    std::vector<FixedStart> starts_of(const Job& job, std::span<const FleetIndex::Portion> where) const;
    std::int64_t opens(const Job& job, const FleetIndex::Portion& portion, const std::optional<Fixed>& fixed) const;
    void apply(const Job& job, std::span<const FixedStart> starts, FixedNodes::Domain& domain,
               std::map<NodeSort, std::int64_t>& sorts) const;
    bool needs_more_nodes(const Job& job, std::span<const FixedStart> starts) const;
    bool is_as_given(const Job& job, std::span<const FixedStart> starts, bool take);
    bool keeps_guarantees(const Job& job, std::span<const FixedStart> starts);
    // Work that may be preempted always does.
    bool stays_entitled(const Job& job, std::span<const FleetIndex::Portion> where);
    bool takes_as_given(const Job& job, std::span<const FleetIndex::Portion> where);
    void note_fixed(const Job& job, std::span<const FleetIndex::Portion> where, bool as_given);
    std::vector<FleetIndex::Portion> arranged(const Job& job, std::int32_t tasks, std::span<const NodeNo> nodes) const;
    std::vector<NodeNo> nodes_with_room(const Job& job) const;  // for a task of the job now, the most tasks first
    std::vector<NodeNo> nodes_given(const Job& job);
    std::vector<FleetIndex::Portion> find_entitled_room(JobNo job, std::int32_t tasks);
    bool may_close_a_node(const Job& job) const;
    std::vector<NodeNo> nodes_it_may_fix(const Job& job);
    bool may_fix(const Job& job, NodeNo node);
    std::int64_t closed_by_fixed(DomainKey domain) const;
    std::optional<Reason> outside_entitlement(const Job& job) const;

    // unequal_nodes.cpp
    bool has_unequal_nodes() const;
    std::vector<DomainKey> nodes_kept() const;
    std::vector<NodeNo> nodes_for_guarantee(const Job& job) const;
    // `where`, or a better place for a guarantee claim that would open a node.
    std::vector<FleetIndex::Portion> on_given_nodes(JobNo job, std::int32_t tasks,
                                                    std::vector<FleetIndex::Portion> where);

    // footprint.cpp
    std::int64_t own_guarantee(TenantNo tenant) const;  // without what its children are guaranteed
    std::span<const std::int64_t> entitlements();       // by tenant, with everyone below
    // By tenant, with everyone below: what it leases, and its part of what its work closes to others. Footprints and
    // entitlements are counted in thousandths of quota's unit, because parts do not divide evenly.
    std::vector<std::int64_t> footprints(const FleetIndex& of) const;

    // exclusivity.cpp
    bool keeps(const Job& job) const;
    std::vector<Kept> kept_at(NodeNo node) const;
    void recount_kept(NodeNo node);
    void recount_all_kept();
    std::int64_t would_keep(const Job& job, std::int64_t tasks, bool at_most) const;
    std::vector<FleetIndex::Portion> room_in_own(const Job& job, std::int32_t tasks) const;
    std::vector<FleetIndex::Portion> room_within_limits(JobNo job, std::int32_t tasks);
    bool limits_allow(JobNo job, std::span<const FleetIndex::Portion> where);
    std::optional<Reason> keeps_over_limit(const Job& job, std::int64_t tasks, std::int64_t keeps) const;
    void give_up_kept(TenantNo limited, std::int64_t most, Statement& statement, Instant now);

    // disturb.cpp
    bool disturb(JobNo job, Instant now, bool over_quota, Statement& statement);
    void carry_out(JobNo job, const Plan& plan, Law law, Instant now, Statement& statement);
    bool consolidate(JobNo job, Instant now, std::int64_t most_lost, Statement& statement);
    void shrink(JobNo claimant, const Shrink& shrink, Statement& statement);
    void relocate(JobNo claimant, const Plan& plan, Instant now, Statement& statement);
    void lift_job(JobNo job, bool clean);  // off all its seats, for a moment
    void say_moved(JobNo job, JobNo claimant, const Binding& from, Binding to, Instant now, Statement& statement);

    // claims.cpp
    RoomClaim* claim_of(JobNo job);
    void drop_claim(JobNo job);
    bool drop_undeserved_claims();  // whether there were any
    // As the nodes will be when those marked in `gone` have left.
    void keep_room(JobNo job, std::span<const FleetIndex::Portion> where, std::optional<Instant> expected, bool freed);
    // Its promises, taken back while somebody looks for room, and made again.
    std::vector<SeatRec> lift(RoomClaim& claim);
    void lower(RoomClaim& claim, std::span<const SeatRec> lifted);
    void settle_claims(Statement& statement, Instant now, bool firm);
    bool place_as_promised(JobNo job, std::span<const SeatRec> promised, Instant now, Binding* out);
    bool reserve(JobNo job, Instant now);
    bool backfill(JobNo job, Instant now, Statement& statement);

    // guarantee_claims.cpp
    // Its tenant's own work stays within what is guaranteed to it. A sibling that holds too much does not count against
    // it.
    bool claims_guarantee(JobNo job) const;
    struct LiftedClaim {
        JobNo job = nil;
        std::vector<SeatRec> seats;
    };
    std::vector<LiftedClaim> lift_lesser_claims(JobNo job);
    void lower_lesser_claims(std::span<const LiftedClaim> lifted);
    bool reserve_guaranteed(JobNo job, Instant now);
    bool still_possible(const RoomClaim& claim, std::span<const SeatRec> lifted);

    // why.cpp
    Waiting why(JobNo job, Instant now) const;

    // blocking.cpp
    struct Obstruction;
    Blocking blocking(JobNo job, Instant now);
};

}  // namespace bulkhead::sched
