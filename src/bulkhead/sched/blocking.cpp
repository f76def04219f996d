// What is in the way of one waiting job. The question is asked by people, for one job at a time; so it may cost a
// millisecond, and the search is bounded: the candidates that look cheapest are weighed exactly, the others are not.
#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "bulkhead/sched/engine_state.hpp"

namespace bulkhead::sched {

using Phase = JobRec::Phase;

namespace {

constexpr std::size_t nodes_weighed = 32;            // for a single task
constexpr std::size_t nodes_weighed_for_gang = 256;  // and for a gang, or twice as many as it has tasks
constexpr std::size_t nodes_weighed_most = 2048;
constexpr std::size_t domains_weighed = 8;
constexpr std::size_t nodes_listed = 8;
constexpr std::size_t work_listed = 16;
constexpr std::size_t subsets_of = 8;           // every subset of so many jobs on one node is tried
constexpr std::size_t dropped_one_by_one = 64;  // jobs of a gang's set that are tried whether they are needed
constexpr std::size_t endings_weighed = 256;
constexpr std::int64_t much = std::int64_t{1} << 50;  // GPU-milliseconds

}  // namespace

struct Engine::State::Obstruction {
    State& state;
    JobNo number;
    Instant now;
    const Job& job = state.jobs[number].job;
    const std::int32_t tasks = state.jobs[number].fewest();
    FleetIndex::Supposed supposed{};
    Blocking out{};

    struct Candidate {
        NodeNo node = 0;
        std::int64_t cost = 0;  // GPU-milliseconds that would be lost, estimated
        Obstacle obstacle = Obstacle::none;
    };
    struct Here {
        std::int64_t cost = 0;
        std::int64_t key = 0;
        JobNo job = nil;
        std::int64_t gpus = 0;  // that it touches on the node
        friend auto operator<=>(const Here&, const Here&) = default;
    };
    struct Place {
        std::vector<JobNo> jobs;  // that would have to end
        std::vector<NodeNo> nodes;
        std::int64_t cost = 0;
    };

    const JobRec& rec(JobNo each) const { return state.jobs[each]; }
    bool left(const SeatRec& seat) const {
        return seat.ending || seat.job == number || (seat.job != nil && state.gone[seat.job]);
    }
    std::int32_t room_without(NodeNo node) {
        state.fleet.suppose(supposed, node, [&](const SeatRec& seat) { return left(seat); });
        state.fleet.suppose_cleaned(supposed);
        return static_cast<std::int32_t>(state.fleet.capacity(supposed.view, node, job.shape, job.tenant));
    }
    std::int64_t cost_of(JobNo each) const {
        return rec(each).phase == Phase::running ? state.lost_by(rec(each), now) : 0;
    }

    // --- places ------------------------------------------------------------------------------------------------------

    // The jobs on a node, the cheapest first; where its NVLink fabric is one, those on the nodes of the fabric too.
    std::vector<Here> residents(NodeNo node, Obstacle obstacle) const {
        std::vector<Here> here;
        const auto look = [&](NodeNo at) {
            for (SeatNo s = state.fleet.first_seat(at); s != nil; s = state.fleet.seat(s).next_here) {
                const SeatRec& seat = state.fleet.seat(s);
                if (seat.job == nil || seat.job == number || seat.ending) continue;
                const auto known = std::ranges::find(here, seat.job, &Here::job);
                const std::int64_t gpus = std::popcount(seat.gpus);
                if (known != here.end())
                    known->gpus += gpus;
                else
                    here.push_back({cost_of(seat.job), rec(seat.job).job.key, seat.job, gpus});
            }
        };
        if (obstacle == Obstacle::nvlink) {
            constexpr auto fabric = TopologyLevel::nvlink_domain;
            for (const NodeNo other : state.fleet.domains(fabric)[state.fleet.domain_of(node, fabric)].nodes)
                look(other);
        } else {
            look(node);
        }
        std::ranges::sort(here);
        return here;
    }

    // The nodes that could take a task if all work on them ended, the cheapest first; and those that are closed.
    std::vector<Candidate> candidates(std::vector<Candidate>& closed) const {
        std::vector<Candidate> found;
        const std::int64_t gpus = state.fleet.whole_gpus(job.shape);
        for (NodeNo node = 0; node < state.fleet.nodes(); ++node) {
            const Obstacle obstacle = state.fleet.obstacle(node, job);
            if (obstacle == Obstacle::closed) closed.push_back({node, 0, obstacle});
            if (obstacle == Obstacle::kind || obstacle == Obstacle::model || obstacle == Obstacle::closed) continue;
            Candidate candidate{node, 0, obstacle};
            if (obstacle != Obstacle::none) {
                const bool all = obstacle == Obstacle::neighbours || obstacle == Obstacle::nvlink ||
                                 obstacle == Obstacle::host || obstacle == Obstacle::cores;
                std::int64_t touched = state.fleet.whole(node);
                for (const Here& each : residents(node, obstacle)) {
                    if (!all && touched >= std::max<std::int64_t>(gpus, 1)) break;
                    candidate.cost = std::min(candidate.cost + each.cost, much);
                    touched += each.gpus;
                }
            }
            found.push_back(candidate);
        }
        const std::size_t most =
            tasks == 1 ? nodes_weighed
                       : std::min(std::max(nodes_weighed_for_gang, 2 * std::size_t(tasks)), nodes_weighed_most);
        const auto middle = found.begin() + static_cast<std::ptrdiff_t>(std::min(most, found.size()));
        std::ranges::partial_sort(found, middle, {},
                                  [](const Candidate& each) { return std::pair{each.cost, each.node}; });
        found.erase(middle, found.end());
        return found;
    }

    // The cheapest set of jobs without which one task fits on the node: exact for few jobs; for many, one from which
    // no job can be left out.
    std::optional<Place> weigh(const Candidate& candidate) {
        const std::vector<Here> here = residents(candidate.node, candidate.obstacle);
        const auto set = [&](bool is) {
            for (const Here& each : here) state.gone[each.job] = is;
        };
        set(true);
        if (room_without(candidate.node) <= 0) {
            set(false);
            return std::nullopt;
        }
        for (std::size_t i = here.size(); i-- > 0;) {
            state.gone[here[i].job] = false;
            if (room_without(candidate.node) <= 0) state.gone[here[i].job] = true;
        }
        Place place{.jobs = {}, .nodes = {candidate.node}, .cost = 0};
        for (const Here& each : here)
            if (state.gone[each.job]) {
                place.jobs.push_back(each.job);
                place.cost += each.cost;
            }
        set(false);
        if (here.size() > subsets_of || place.jobs.size() < 2) return place;
        for (unsigned mask = 1; mask < 1u << here.size(); ++mask) {
            std::int64_t cost = 0;
            for (std::size_t i = 0; i < here.size(); ++i)
                if ((mask >> i & 1u) != 0) cost += here[i].cost;
            if (std::pair{cost, static_cast<std::size_t>(std::popcount(mask))} >=
                std::pair{place.cost, place.jobs.size()})
                continue;
            for (std::size_t i = 0; i < here.size(); ++i) state.gone[here[i].job] = (mask >> i & 1u) != 0;
            if (room_without(candidate.node) <= 0) continue;
            place.cost = cost;
            place.jobs.clear();
            for (const Here& each : here)
                if (state.gone[each.job]) place.jobs.push_back(each.job);
        }
        set(false);
        return place;
    }

    std::optional<Place> for_one_task(const std::vector<Candidate>& from) {
        std::optional<Place> best;
        for (const Candidate& candidate : from) {
            auto place = weigh(candidate);
            if (place &&
                (!best || std::pair{place->cost, place->jobs.size()} < std::pair{best->cost, best->jobs.size()}))
                best = std::move(place);
        }
        return best;
    }

    // One node for a gang: how many tasks it takes now, and without all its work.
    struct Option {
        NodeNo node = 0;
        std::int32_t base = 0, full = 0, room = 0;
        std::int64_t cost = 0;
        std::vector<JobNo> jobs;
    };

    std::vector<FleetIndex::Portion> arranged(const std::vector<Option>& bin) const {
        std::vector<FleetIndex::Portion> room;
        std::int64_t sum = 0;
        for (const Option& option : bin)
            if (option.room > 0) {
                room.push_back({option.node, option.room});
                sum += option.room;
            }
        if (sum < tasks) return {};
        return state.fleet.arrange(job, tasks, room);
    }

    // The nodes of a job that are options are looked at again.
    void look_again(JobNo each, std::vector<Option>& bin, const std::unordered_map<NodeNo, std::size_t>& at) {
        for (SeatNo s = rec(each).seats; s != nil; s = state.fleet.seat(s).next_of_job)
            if (const auto option = at.find(state.fleet.seat(s).node); option != at.end())
                bin[option->second].room = room_without(option->first);
    }

    static std::unordered_map<NodeNo, std::size_t> index_of(const std::vector<Option>& bin) {
        std::unordered_map<NodeNo, std::size_t> at;
        for (std::size_t i = 0; i < bin.size(); ++i) at[bin[i].node] = i;
        return at;
    }

    std::vector<std::vector<Option>> options(const std::vector<Candidate>& from) {
        std::unordered_map<std::uint32_t, std::size_t> bin_of;
        std::vector<std::vector<Option>> bins;
        for (const Candidate& candidate : from) {
            Option option{.node = candidate.node, .base = room_without(candidate.node), .jobs = {}};
            for (const Here& each : residents(candidate.node, candidate.obstacle)) {
                state.gone[each.job] = true;
                option.jobs.push_back(each.job);
                option.cost += each.cost;
            }
            option.full = option.jobs.empty() ? option.base : room_without(candidate.node);
            for (const JobNo each : option.jobs) state.gone[each] = false;
            option.room = option.base;
            if (option.full == 0) continue;
            const auto [bin, fresh] =
                bin_of.try_emplace(state.fleet.domain_of(candidate.node, job.within), bins.size());
            if (fresh) bins.emplace_back();
            bins[bin->second].push_back(std::move(option));
        }
        return bins;
    }

    std::optional<Place> weigh(std::vector<Option> bin) {
        std::ranges::sort(bin, {}, [](const Option& option) {
            return std::tuple{option.cost / std::max<std::int64_t>(option.full - option.base, 1), option.node};
        });
        const auto at = index_of(bin);
        std::vector<JobNo> ending;
        auto where = arranged(bin);
        for (const Option& option : bin) {
            if (!where.empty()) break;
            if (option.full == option.base) continue;
            for (const JobNo each : option.jobs)
                if (!state.gone[each]) {
                    state.gone[each] = true;
                    ending.push_back(each);
                }
            for (const JobNo each : option.jobs) look_again(each, bin, at);
            bin[at.at(option.node)].room = room_without(option.node);
            where = arranged(bin);
        }
        std::optional<Place> place;
        if (!where.empty()) {
            std::ranges::sort(ending, std::greater<>{}, [&](JobNo each) { return std::pair{cost_of(each), each}; });
            for (std::size_t i = 0; i < ending.size() && i < dropped_one_by_one; ++i) {
                state.gone[ending[i]] = false;
                look_again(ending[i], bin, at);
                if (auto still = arranged(bin); !still.empty()) {
                    where = std::move(still);
                    continue;
                }
                state.gone[ending[i]] = true;
                look_again(ending[i], bin, at);
            }
            place.emplace();
            for (const JobNo each : ending)
                if (state.gone[each]) {
                    place->jobs.push_back(each);
                    place->cost += cost_of(each);
                }
            for (const FleetIndex::Portion& portion : where) place->nodes.push_back(portion.node);
        }
        for (const JobNo each : ending) state.gone[each] = false;
        return place;
    }

    std::optional<Place> for_gang(const std::vector<std::vector<Option>>& bins) {
        std::optional<Place> best;
        std::size_t weighed = 0;
        for (const std::vector<Option>& bin : bins) {
            std::int64_t most = 0;
            for (const Option& option : bin) most += option.full;
            if (most < tasks) continue;
            if (++weighed > domains_weighed) break;
            auto place = weigh(bin);
            if (place &&
                (!best || std::pair{place->cost, place->jobs.size()} < std::pair{best->cost, best->jobs.size()}))
                best = std::move(place);
        }
        return best;
    }

    // --- limits ------------------------------------------------------------------------------------------------------

    // Work that a limit counts, and how much of it is too much for the job to start.
    struct Excess {
        std::vector<JobNo> jobs;
        std::int64_t gpus = 0;
    };
    std::optional<Excess> over_limit() const {
        const std::int64_t asked = job.counted(tasks);
        for (const TenantNo holder : state.tenants[job.tenant].line) {
            const TenantRec& tenant = state.tenants[holder];
            Excess excess;
            bool pinned = false;
            if (tenant.would_exceed(asked))
                excess.gpus = tenant.counts() + asked - *tenant.most();
            else if (!job.preemptible && tenant.pinned + tenant.coming.freed_pinned + asked > tenant.guarantee) {
                excess.gpus = tenant.pinned + tenant.coming.freed_pinned + asked - tenant.guarantee;
                pinned = true;
            } else {
                continue;
            }
            for (const JobNo each : state.running) {
                if (pinned && rec(each).job.preemptible) continue;
                const std::vector<TenantNo>& line = state.tenants[rec(each).job.tenant].line;
                if (std::ranges::find(line, holder) != line.end()) excess.jobs.push_back(each);
            }
            return excess;
        }
        return std::nullopt;
    }

    // The cheapest first until they are enough; then those that are not needed are left out, the dearest first.
    std::vector<JobNo> enough_of(const Excess& excess) const {
        std::vector<JobNo> list = excess.jobs;
        std::ranges::sort(list, {}, [&](JobNo each) { return std::pair{cost_of(each), rec(each).job.key}; });
        std::int64_t sum = 0;
        std::size_t count = 0;
        while (count < list.size() && sum < excess.gpus) sum += rec(list[count++]).holds();
        if (sum < excess.gpus) return {};  // even alone it would be too large
        list.resize(count);
        for (std::size_t i = list.size(); i-- > 0;)
            if (sum - rec(list[i]).holds() >= excess.gpus) {
                sum -= rec(list[i]).holds();
                list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
            }
        return list;
    }

    // --- why work stays ----------------------------------------------------------------------------------------------

    // Where the line of another tenant meets the job's own: the levels below that, on each side.
    struct Meeting {
        std::size_t theirs = 0, mine = 0;
    };
    Meeting meeting(TenantNo other) const {
        const std::vector<TenantNo>&theirs = state.tenants[other].line, &mine = state.tenants[job.tenant].line;
        Meeting at;
        while (at.theirs < theirs.size() && std::ranges::find(mine, theirs[at.theirs]) == mine.end()) ++at.theirs;
        at.mine = mine.size();
        if (at.theirs < theirs.size())
            at.mine = static_cast<std::size_t>(std::ranges::find(mine, theirs[at.theirs]) - mine.begin());
        return at;
    }
    std::int64_t own_guarantee(TenantNo number_of_tenant) const {
        std::int64_t below = 0;
        for (const TenantNo child : state.tenants[number_of_tenant].children) below += state.tenants[child].guarantee;
        return std::max<std::int64_t>(state.tenants[number_of_tenant].guarantee - below, 0);
    }
    // Whether a level of the other tenant's branch holds no more than it is guaranteed, or than it is due.
    bool within(TenantNo other, const Meeting& at, bool guarantee) const {
        const TenantRec& own = state.tenants[other];
        const bool own_work_counts = at.theirs == 0 || !own.children.empty();
        if (own_work_counts && own.own_has() <= (guarantee ? own_guarantee(other) : own.own_due)) return true;
        for (std::size_t i = 0; i < at.theirs; ++i) {
            const TenantRec& level = state.tenants[own.line[i]];
            if (level.has() <= (guarantee ? level.guarantee : level.due)) return true;
        }
        return false;
    }
    // Whether the job's own side stays within its guarantee, or its due, below where the lines meet.
    bool claims(const Meeting& at, bool guarantee) const {
        const std::int64_t asked = job.counted(tasks);
        const TenantRec& own = state.tenants[job.tenant];
        if (!own.children.empty() &&
            own.own_will_hold() + asked > (guarantee ? own_guarantee(job.tenant) : own.own_due))
            return false;
        for (std::size_t i = 0; i < at.mine; ++i) {
            const TenantRec& level = state.tenants[own.line[i]];
            if (level.will_hold() + asked > (guarantee ? level.guarantee : level.due)) return false;
        }
        return true;
    }

    Stays why_stays(const JobRec& other, Blocker& blocker) const {
        if (other.phase == Phase::ending) return Stays::ending;
        if (other.phase == Phase::pending) return Stays::reserved;
        if (!other.job.preemptible) return Stays::not_preemptible;
        const bool own = other.job.tenant == job.tenant;
        if (own && state.urgency(other.job, now) >= state.urgency(job, now)) return Stays::priority;
        if (!own) {
            const Meeting at = meeting(other.job.tenant);
            if (within(other.job.tenant, at, true)) return Stays::guarantee;
            const bool guaranteed = claims(at, true);
            if (!guaranteed && !claims(at, false)) return Stays::no_claim;
            if (!guaranteed && within(other.job.tenant, at, false)) return Stays::due;
        }
        const Duration least = state.least_run(other.job.tenant, job.tenant, own ? Action::preempt : Action::reclaim);
        if (now - other.started >= least) return Stays::evictable;
        blocker.ran = Duration{std::max<std::int64_t>((now - other.started).ms, 0)};
        blocker.minimum = least;
        blocker.until = other.started + least;
        return Stays::minimum_run_time;
    }

    Blocker described(JobNo each, std::span<const NodeNo> nodes) const {
        const JobRec& other = rec(each);
        Blocker blocker{.workload = other.job.key, .tenant = other.job.tenant, .nodes = {}};
        blocker.stays = why_stays(other, blocker);
        blocker.leased = Gpus{other.phase == Phase::pending ? state.least_of(each) : other.holds()};
        if (other.phase == Phase::running && other.job.duration)
            blocker.ends = Instant{std::max(now.ms, other.started.ms + other.job.duration->ms)};
        for (const NodeNo node : nodes) {
            bool here = false;
            for (SeatNo s = state.fleet.first_seat(node); s != nil && !here; s = state.fleet.seat(s).next_here)
                here = state.fleet.seat(s).job == each;
            if (!here) continue;
            blocker.nodes.push_back(node);
            const Obstacle obstacle = state.fleet.obstacle(node, job);
            blocker.closes_node = blocker.closes_node || obstacle == Obstacle::neighbours;
        }
        return blocker;
    }

    // Leases that are ending on a node and that the engine has no job for.
    void add_endings(NodeNo node) {
        for (SeatNo s = state.fleet.first_seat(node); s != nil; s = state.fleet.seat(s).next_here) {
            const SeatRec& seat = state.fleet.seat(s);
            if (!seat.ending || (seat.job != nil && rec(seat.job).phase == Phase::pending)) continue;
            const std::int64_t key = seat.job == nil ? 0 : rec(seat.job).job.key;
            const auto known = std::ranges::find_if(out.must_end, [&](const Blocker& each) {
                return each.stays == Stays::ending && each.workload == key && each.tenant == seat.tenant;
            });
            if (known != out.must_end.end()) {
                if (std::ranges::find(known->nodes, node) == known->nodes.end()) known->nodes.push_back(node);
            } else {
                out.must_end.push_back({.workload = key,
                                        .tenant = seat.tenant,
                                        .stays = Stays::ending,
                                        .leased = Gpus{seat.job == nil ? 0 : rec(seat.job).holds()},
                                        .nodes = {node}});
            }
        }
    }

    // --- when --------------------------------------------------------------------------------------------------------

    struct Start {
        std::optional<Instant> at;
        StartBasis basis = StartBasis::unknown;
    };
    static Start earlier(const Start& a, const Start& b) {
        if (!a.at || !b.at) return a.at ? a : b;
        return *b.at < *a.at ? b : a;
    }
    static Start later(const Start& a, const Start& b) {
        if (!a.at) return a;
        if (!b.at) return b;
        return *a.at < *b.at ? b : a;
    }

    // When the last of these has ended, as far as each is known.
    Start when_ended(std::span<const Blocker> work) const {
        Start start{now, StartBasis::under_way};
        for (const Blocker& each : work) {
            if (each.stays == Stays::ending || each.stays == Stays::evictable) continue;
            Start its;
            if (each.until) its = {each.until, StartBasis::minimum_run_time};
            if (each.ends && each.stays != Stays::reserved) its = earlier(its, {each.ends, StartBasis::run_times});
            start = later(start, its);
            if (!start.at) return {};
        }
        return start;
    }

    // Running work in the order in which it says that it ends.
    std::vector<std::pair<Instant, JobNo>> endings(std::span<const JobNo> of) const {
        std::vector<std::pair<Instant, JobNo>> list;
        for (const JobNo each : of)
            if (rec(each).phase == Phase::ending)
                list.emplace_back(now, each);
            else if (rec(each).job.duration)
                list.emplace_back(Instant{std::max(now.ms, rec(each).started.ms + rec(each).job.duration->ms)}, each);
        const auto middle = list.begin() + static_cast<std::ptrdiff_t>(std::min(endings_weighed, list.size()));
        std::ranges::partial_sort(list, middle, [&](const auto& a, const auto& b) {
            return a.first != b.first ? a.first < b.first : rec(a.second).job.key < rec(b.second).job.key;
        });
        list.erase(middle, list.end());
        return list;
    }

    Start when_there_is_room(std::vector<std::vector<Option>> bins) {
        const auto list = endings(state.running);
        std::vector<std::unordered_map<NodeNo, std::size_t>> at;
        at.reserve(bins.size());
        for (const auto& bin : bins) at.push_back(index_of(bin));
        Start start;
        for (const auto& [moment, each] : list) {
            if (start.at) break;
            state.gone[each] = true;
            for (SeatNo s = rec(each).seats; s != nil && !start.at; s = state.fleet.seat(s).next_of_job) {
                const NodeNo node = state.fleet.seat(s).node;
                if (tasks == 1) {
                    if (state.fleet.able(node, job.shape) && room_without(node) > 0)
                        start = {moment, StartBasis::run_times};
                    continue;
                }
                for (std::size_t i = 0; i < bins.size() && !start.at; ++i)
                    if (const auto option = at[i].find(node); option != at[i].end()) {
                        bins[i][option->second].room = room_without(node);
                        if (!arranged(bins[i]).empty()) start = {moment, StartBasis::run_times};
                    }
            }
        }
        for (const auto& [moment, each] : list) state.gone[each] = false;
        return start;
    }

    Start when_within_limit(const Excess& excess) const {
        std::int64_t sum = 0;
        for (const auto& [moment, each] : endings(excess.jobs)) {
            sum += rec(each).holds();
            if (sum >= excess.gpus) return {moment, StartBasis::run_times};
        }
        return {};
    }

    // The nodes that are reserved for the job.
    std::vector<Candidate> reserved_place(const RoomClaim& claim) const {
        std::vector<Candidate> found;
        for (const SeatNo seat : claim.seats) {
            const NodeNo node = state.fleet.seat(seat).node;
            if (std::ranges::find(found, node, &Candidate::node) == found.end())
                found.push_back({node, 0, state.fleet.obstacle(node, job)});
        }
        return found;
    }

    // --- the answer --------------------------------------------------------------------------------------------------

    void list_nodes(const Place* place, std::span<const Candidate> weighed, std::span<const Candidate> closed) {
        const auto list = [&](NodeNo node, Obstacle obstacle, bool chosen) {
            if (out.nodes.size() >= nodes_listed ||
                std::ranges::find(out.nodes, node, &BlockedNode::node) != out.nodes.end())
                return;
            out.nodes.push_back({node, obstacle, state.fleet.gpus(node), chosen, state.fleet.dirty(node)});
        };
        if (place != nullptr)
            for (const NodeNo node : place->nodes) list(node, state.fleet.obstacle(node, job), true);
        for (const Candidate& each : weighed)
            if (each.obstacle != Obstacle::none) list(each.node, each.obstacle, false);
        for (const Candidate& each : closed) list(each.node, each.obstacle, false);
    }

    Blocking answer() {
        state.gone.assign(state.jobs.size(), false);
        const RoomClaim* claim = state.claim_of(number);
        if (claim != nullptr) state.expect(*claim, false);  // its own reservation does not count against it
        Start start{now, StartBasis::under_way};
        if (const auto excess = over_limit()) {
            std::vector<Blocker> work;
            for (const JobNo each : enough_of(*excess)) work.push_back(described(each, {}));
            start = work.empty() ? Start{} : earlier(when_within_limit(*excess), when_ended(work));
            out.must_end = std::move(work);
        } else if (!state.within_quota(job, tasks)) {
            const std::vector<TenantNo>& mine = state.tenants[job.tenant].line;
            for (TenantNo tenant = 0; tenant < state.tenants.size(); ++tenant)
                if (state.tenants[tenant].owed > 0 && std::ranges::find(mine, tenant) == mine.end())
                    out.reserved_for.push_back(tenant);
            start = {};
        }
        const bool room = tasks == 1 ? state.fleet.tally(job).nodes[0] > 0 : state.fleet.most(job) >= tasks;
        if (!room || claim != nullptr) {
            std::vector<Candidate> closed;
            const std::vector<Candidate> weighed = candidates(closed);
            std::vector<std::vector<Option>> bins;
            std::optional<Place> place;
            const auto look = [&](const std::vector<Candidate>& from) {
                if (tasks > 1) bins = options(from);
                place = tasks == 1 ? for_one_task(from) : for_gang(bins);
            };
            if (claim != nullptr) look(reserved_place(*claim));
            if (!place) look(weighed);
            Start placed;
            if (place) {
                std::vector<Blocker> work;
                for (const JobNo each : place->jobs) work.push_back(described(each, place->nodes));
                placed = earlier(when_there_is_room(std::move(bins)), when_ended(work));
                for (Blocker& each : work)
                    if (std::ranges::find(out.must_end, each.workload, &Blocker::workload) == out.must_end.end())
                        out.must_end.push_back(std::move(each));
                for (const NodeNo node : place->nodes) add_endings(node);
            }
            list_nodes(place ? &*place : nullptr, weighed, closed);
            start = later(start, placed);
        }
        if (claim != nullptr && claim->expected && !claim->freed_for_it && *claim->expected > now)
            start = {claim->expected, StartBasis::reservation};
        if (claim != nullptr) state.expect(*claim, true);
        out.basis = start.basis;
        // What is under way takes a time that is not known.
        if (start.basis != StartBasis::under_way) out.start = start.at;
        if (out.must_end.size() > work_listed) {
            out.more_work = std::ssize(out.must_end) - static_cast<std::int64_t>(work_listed);
            out.must_end.resize(work_listed);
        }
        return std::move(out);
    }
};

Blocking Engine::State::blocking(JobNo number, Instant now) {
    if (jobs[number].phase != Phase::pending) return {};
    return Obstruction{.state = *this, .number = number, .now = now}.answer();
}

}  // namespace bulkhead::sched
