// Every combination of candidates, by branch and bound: each stays, gives spare tasks, moves or ends.
//
// Candidates are decided from the most expensive to the cheapest, and each stays if it can: so the first plan that is
// found is a good one, and a branch is left as soon as it costs more than the best plan, or when not even taking all
// candidates that are still undecided would make room. Quota, place and protection are looked at together.
#include <algorithm>
#include <bit>

#include "bulkhead/sched/plan_moves.hpp"

namespace bulkhead::sched {

namespace {

// Looks at one node in one state, and tasks that are tried in a place when jobs move: of one kind of plan. A search
// among few tasks of few jobs on few nodes needs less than it may spend.
constexpr std::int64_t looks_allowed = 6'000, looks_for_few = 8'000'000;
constexpr std::int64_t looks_node_by_node = 16'000;  // of all kinds on all nodes; a quarter for one kind on one node
constexpr std::size_t exact_nodes = 4, exact_jobs = 8, exact_tasks = 32;
constexpr std::size_t compare_keys_up_to = 10;  // candidates; beyond, the first of equal plans is taken
constexpr int most_scattered_moves = 16;        // for one guarantee claim
constexpr int nodes_tried = 8;                  // of the cheapest, where not all combinations can be tried
constexpr std::size_t ways_to_shrink = 24;      // of one gang; beyond, whole nodes of it

}  // namespace

struct Engine::State::ExactSearch {
    enum class Fate : std::uint8_t { stays, gives, moves, ends };
    struct Decision {
        Fate fate = Fate::stays;
        std::vector<std::int32_t> given;  // by piece: tasks
    };
    struct Piece {  // of a candidate, on one node: seats that are alike
        std::size_t candidate = 0;
        std::size_t node = 0;  // into `nodes`
        std::vector<SeatNo> seats;
    };
    struct Place {
        NodeNo node = 0;
        std::vector<std::size_t> pieces;
        std::unordered_map<std::uint64_t, std::int32_t> known;  // room, by how many seats of each piece are gone
    };

    PlanSearch& search;
    State& state;
    std::vector<PlanSearch::Candidate> among;
    std::vector<Place> places;
    std::vector<Piece> pieces;
    std::vector<std::vector<std::size_t>> pieces_of;           // by candidate
    std::vector<std::vector<std::vector<std::int32_t>>> ways;  // by candidate: how it could give spare tasks
    std::vector<Decision> decided;
    PlanKind kind = PlanKind::spares;
    bool with_moves = false, ways_cut = false;
    std::int64_t looks = 0;
    bool on_targets = false;  // on given nodes only, as one of several attempts
    std::optional<Plan> best;
    std::vector<std::int64_t> best_keys;
    MoveTrial trial;

    // `targets`: the nodes on which the claimant may start; none: all.
    ExactSearch(PlanSearch& of, std::vector<PlanSearch::Candidate> candidates, std::span<const NodeNo> targets)
        : search{of}, state{of.state}, among{std::move(candidates)}, on_targets{!targets.empty()}, trial{of} {
        std::ranges::sort(among, [](const PlanSearch::Candidate& a, const PlanSearch::Candidate& b) {
            return a.cost != b.cost ? a.cost > b.cost : a.key > b.key;
        });
        std::vector<std::size_t> at(state.fleet.nodes(), state.fleet.nodes());
        for (NodeNo node = 0; node < state.fleet.nodes(); ++node)
            if (search.usable(node) && (targets.empty() || std::ranges::find(targets, node) != targets.end())) {
                at[node] = places.size();
                places.push_back({.node = node, .pieces = {}, .known = {}});
            }
        pieces_of.resize(among.size());
        ways.resize(among.size());
        decided.resize(among.size());
        for (std::size_t i = 0; i < among.size(); ++i) {
            std::vector<NodeNo> here;
            for (SeatNo s = state.jobs[among[i].job].seats; s != nil; s = state.fleet.seat(s).next_of_job)
                here.push_back(state.fleet.seat(s).node);
            std::ranges::sort(here);
            here.erase(std::ranges::unique(here).begin(), here.end());
            for (const NodeNo node : here)
                for (std::vector<SeatNo>& seats : alike(search.seats_of(among[i].job, node))) {
                    pieces_of[i].push_back(pieces.size());
                    if (at[node] < places.size()) places[at[node]].pieces.push_back(pieces.size());
                    pieces.push_back({i, at[node], std::move(seats)});
                }
            list_ways(i);
        }
    }

    // Seats of one job on one node in groups: it does not matter which seat of a group is given up. Whole GPUs are
    // alike; parts of different GPUs are not, because others sit beside them.
    std::vector<std::vector<SeatNo>> alike(const std::vector<SeatNo>& seats) const {
        std::vector<std::vector<SeatNo>> groups;
        for (const SeatNo seat : seats) {
            const SeatRec& rec = state.fleet.seat(seat);
            const bool joins = !groups.empty() && (state.fleet.whole_gpus(rec.shape) > 0 ||
                                                   state.fleet.seat(groups.back().front()).gpus == rec.gpus);
            if (!joins) groups.emplace_back();
            groups.back().push_back(seat);
        }
        return groups;
    }

    // Every number of tasks on every node, the fewest first.
    void list_ways(std::size_t i) {
        if (among[i].spare == 0) return;
        std::vector<std::int32_t> way(pieces_of[i].size());
        const auto add = [&](auto&& self, std::size_t piece, std::int32_t left) -> void {
            if (ways[i].size() > ways_to_shrink) return;
            if (piece == way.size()) {
                if (left < among[i].spare) ways[i].push_back(way);
                return;
            }
            const auto most = static_cast<std::int32_t>(pieces[pieces_of[i][piece]].seats.size());
            for (std::int32_t n = 0; n <= std::min(left, most); ++n) {
                way[piece] = n;
                self(self, piece + 1, left - n);
            }
            way[piece] = 0;
        };
        add(add, 0, among[i].spare);
        if (ways[i].size() > ways_to_shrink) {
            ways_cut = true;
            ways[i].clear();
            for (std::size_t piece = 0; piece < way.size(); ++piece) {
                std::vector<std::int32_t> one(way.size());
                one[piece] =
                    std::min(among[i].spare, static_cast<std::int32_t>(pieces[pieces_of[i][piece]].seats.size()));
                ways[i].push_back(std::move(one));
            }
            std::vector<std::int32_t> all(way.size());
            std::int32_t left = among[i].spare;
            for (std::size_t piece = 0; piece < way.size(); ++piece) {
                all[piece] = std::min(left, static_cast<std::int32_t>(pieces[pieces_of[i][piece]].seats.size()));
                left -= all[piece];
            }
            ways[i].push_back(std::move(all));
        }
        std::ranges::sort(ways[i], {}, [](const std::vector<std::int32_t>& each) {
            std::int32_t sum = 0;
            for (const std::int32_t n : each) sum += n;
            return std::pair{sum, each};
        });
    }

    // How many seats of a piece are gone; with `undecided_from`, candidates from there on count as far as they could
    // go.
    std::size_t gone_of(std::size_t piece, std::size_t undecided_from) const {
        const Piece& its = pieces[piece];
        const PlanSearch::Candidate& candidate = among[its.candidate];
        if (its.candidate >= undecided_from) {
            if (can_end(candidate) || can_move(candidate)) return its.seats.size();
            if (kind == PlanKind::moves) return 0;
            return std::min(its.seats.size(), static_cast<std::size_t>(std::max(candidate.spare, 0)));
        }
        const Decision& decision = decided[its.candidate];
        if (decision.fate == Fate::ends || decision.fate == Fate::moves) return its.seats.size();
        if (decision.fate == Fate::stays) return 0;
        const std::vector<std::size_t>& all = pieces_of[its.candidate];
        return static_cast<std::size_t>(
            decision.given[static_cast<std::size_t>(std::ranges::find(all, piece) - all.begin())]);
    }
    bool can_end(const PlanSearch::Candidate& candidate) const {
        return candidate.may_end && (kind == PlanKind::gentle || kind == PlanKind::harsh);
    }
    bool can_move(const PlanSearch::Candidate& candidate) const { return with_moves && candidate.may_move; }

    std::int32_t room(Place& place, std::size_t undecided_from) {
        --looks;
        std::uint64_t key = 1;
        bool fits_key = !state.fleet.shares_fabric(place.node);
        for (const std::size_t piece : place.pieces) {
            const std::uint64_t radix = pieces[piece].seats.size() + 1;
            if (key > (std::uint64_t{1} << 62) / radix) fits_key = false;
            if (fits_key) key = key * radix + gone_of(piece, undecided_from);
        }
        if (fits_key)
            if (const auto known = place.known.find(key); known != place.known.end()) return known->second;
        looks -= 4;
        const auto mark = [&](std::uint8_t is) {
            if (!state.fleet.shares_fabric(place.node)) {
                for (const std::size_t piece : place.pieces) mark_piece(piece, undecided_from, is);
                return;
            }
            for (std::size_t piece = 0; piece < pieces.size(); ++piece) mark_piece(piece, undecided_from, is);
        };
        mark(1);
        const std::int32_t takes = search.room_without(place.node);
        mark(0);
        if (fits_key) place.known.emplace(key, takes);
        return takes;
    }
    void mark_piece(std::size_t piece, std::size_t undecided_from, std::uint8_t is) {
        const std::size_t count = gone_of(piece, undecided_from);
        for (std::size_t k = 0; k < count; ++k) state.spare_gone[pieces[piece].seats[k]] = is;
    }

    // Where the claimant would go.
    std::vector<FleetIndex::Portion> where(std::size_t undecided_from) {
        std::vector<std::vector<FleetIndex::Portion>> bins(state.fleet.domain_count(search.job.within));
        for (Place& place : places)
            if (const std::int32_t takes = room(place, undecided_from); takes > 0)
                bins[state.fleet.domain_of(place.node, search.job.within)].push_back({place.node, takes});
        for (std::vector<FleetIndex::Portion>& bin : bins)
            if (auto found = state.fleet.arrange(search.job, search.tasks, bin); !found.empty()) return found;
        return {};
    }

    std::vector<Protection::Taken> taken() const {
        std::vector<Protection::Taken> out;
        for (std::size_t i = 0; i < among.size(); ++i) {
            const JobRec& rec = state.jobs[among[i].job];
            if (decided[i].fate == Fate::ends) out.push_back({rec.job.tenant, among[i].holds, among[i].holds});
            if (decided[i].fate != Fate::gives) continue;
            std::int32_t sum = 0;
            for (const std::int32_t n : decided[i].given) sum += n;
            const std::int64_t spared = among[i].holds - rec.job.counted(rec.placed - sum);
            out.push_back({rec.job.tenant, spared, spared});
        }
        return out;
    }
    Cost cost_of(std::size_t i) const {
        switch (decided[i].fate) {
            case Fate::stays:
                return {};
            case Fate::gives: {
                std::int64_t sum = 0;
                for (const std::int32_t n : decided[i].given) sum += n;
                return {0, 0, 1, sum};
            }
            case Fate::moves:
                return {0, among[i].cost.lost, 1, 0};
            case Fate::ends:
                break;
        }
        return among[i].cost;
    }
    std::vector<std::int64_t> keys() const {
        std::vector<std::int64_t> out;
        for (std::size_t i = 0; i < among.size(); ++i)
            if (decided[i].fate != Fate::stays) out.push_back(among[i].key);
        std::ranges::sort(out);
        return out;
    }

    // The state as decided so far, with everything else as it is. True: it is a plan, or cannot become a better one.
    bool settle(const Cost& cost) {
        const std::vector<Protection::Taken> given = taken();
        if (!search.protection.owed_after(given) || !search.within_quota_after(given)) return false;
        std::vector<FleetIndex::Portion> found = where(among.size());
        if (found.empty()) return false;
        Plan plan{.victims = {}, .where = std::move(found), .cost = cost, .budget_spent = false, .kind = kind};
        for (std::size_t i = among.size(); i-- > 0;) {
            const JobNo job = among[i].job;
            if (decided[i].fate == Fate::ends) plan.victims.push_back(job);
            if (decided[i].fate == Fate::moves) plan.moves.push_back({job, {}});
            if (decided[i].fate != Fate::gives) continue;
            Shrink shrink{job, {}};
            for (std::size_t piece = 0; piece < pieces_of[i].size(); ++piece) {
                const std::vector<SeatNo>& seats = pieces[pieces_of[i][piece]].seats;
                shrink.seats.insert(shrink.seats.end(), seats.begin(), seats.begin() + decided[i].given[piece]);
            }
            plan.shrinks.push_back(std::move(shrink));
        }
        if (!plan.moves.empty()) {
            std::vector<TenantNo> scattered;
            for (std::size_t i = 0; i < among.size(); ++i)
                if (decided[i].fate == Fate::moves && among[i].scattered)
                    scattered.push_back(state.jobs[among[i].job].job.tenant);
            if (!trial.place_all(plan, scattered, looks)) return false;
        }
        if (!state.stays_entitled(search.job, plan.where)) return false;
        std::vector<std::int64_t> its = keys();
        if (!best || cost < best->cost || (cost == best->cost && its < best_keys)) {
            best = std::move(plan);
            best_keys = std::move(its);
        }
        return true;
    }

    // Only so many jobs move; for a guarantee claim more of those that are scattered within their own guarantee.
    bool may_move_too(std::size_t at) {
        int moved = 0, scattered = 0;
        for (std::size_t i = 0; i < at; ++i)
            if (decided[i].fate == Fate::moves) ++(among[i].scattered ? scattered : moved);
        if (search.law != Law::guarantee) return moved + scattered < state.settings.moves;
        if (!among[at].scattered) return moved < state.settings.moves;
        if (scattered >= most_scattered_moves) search.spent = true;
        return scattered < most_scattered_moves;
    }

    void decide(std::size_t at, const Cost& cost, bool changed) {
        if (looks <= 0) {
            search.spent = true;
            return;
        }
        if (best && (cost > best->cost || (among.size() > compare_keys_up_to && cost >= best->cost))) return;
        if (changed && settle(cost)) return;
        if (at == among.size() || where(at).empty()) return;
        const PlanSearch::Candidate& candidate = among[at];
        decide(at + 1, cost, false);
        const auto go_on = [&](bool counts) {
            if (counts && !search.protection.in_order(taken(), kind == PlanKind::gentle)) return;
            Cost more = cost;
            more += cost_of(at);
            decide(at + 1, more, true);
        };
        if (kind != PlanKind::moves)
            for (const std::vector<std::int32_t>& way : ways[at]) {
                decided[at] = {Fate::gives, way};
                go_on(true);
            }
        if (can_move(candidate) && may_move_too(at)) {
            decided[at] = {Fate::moves, {}};
            go_on(false);
        }
        if (can_end(candidate)) {
            decided[at] = {Fate::ends, {}};
            go_on(true);
        }
        decided[at] = {};
    }

    // `bound`: a plan of the same kind that is known already; only a cheaper one is of use.
    std::optional<Plan> find(PlanKind of, bool moving, std::optional<Plan> bound) {
        kind = of;
        with_moves = moving;
        best = std::move(bound);
        best_keys.clear();
        looks = is_small() ? looks_for_few : on_targets ? looks_node_by_node / 4 : looks_allowed;
        const std::int64_t had = looks;
        for (Place& place : places) place.known.clear();
        decide(0, {}, search.law != Law::priority);
        search.looked += had - looks;
        return std::move(best);
    }

    bool is_small() const {
        std::size_t candidates_tasks = 0;
        for (const Piece& piece : pieces) candidates_tasks += piece.seats.size();
        return state.fleet.nodes() <= exact_nodes && among.size() <= exact_jobs && candidates_tasks <= exact_tasks;
    }

    // The claimant would have room if all that may go went.
    bool could_ever() {
        kind = PlanKind::harsh;
        with_moves = true;
        looks = looks_allowed;
        return !where(0).empty();
    }

    bool any_moves() const {
        return std::ranges::any_of(among, [](const PlanSearch::Candidate& each) { return each.may_move; });
    }
};

// Moves alone are taken where they lose no more than the best plan in which work ends.
std::optional<Plan> Engine::State::PlanSearch::exact(std::vector<Candidate> among, std::span<const NodeNo> targets) {
    ExactSearch search{*this, std::move(among), targets};
    if (!search.could_ever()) return std::nullopt;
    const bool movable = search.any_moves();
    std::optional<Plan> moves;
    if (movable && state.fleet.free_units() >= protection.asked)
        moves = search.find(PlanKind::moves, true, std::nullopt);
    if (moves && moves->cost.lost == 0) return moves;
    std::optional<Plan> ends;
    for (const PlanKind kind : {PlanKind::spares, PlanKind::gentle, PlanKind::harsh}) {
        if (kind == PlanKind::harsh && law == Law::priority) break;
        ends = search.find(kind, false, std::nullopt);
        // Moves beside evictions are of use where nothing else helps, or where less is lost by them.
        if (movable && (!ends || ends->cost.lost > 0)) ends = search.find(kind, true, std::move(ends));
        if (ends) break;
    }
    if (moves && (!ends || moves->cost.lost <= ends->cost.lost)) ends = std::move(moves);
    if (search.ways_cut && (!ends || ends->kind >= PlanKind::spares)) spent = true;
    if (ends) ends->budget_spent = spent;
    return ends;
}

// Where there are too many candidates to try every combination: among those on one node, or on the few nodes of a gang,
// the nodes that lose least first.
std::optional<Plan> Engine::State::PlanSearch::node_by_node(const std::vector<Candidate>& all) {
    struct Target {
        NodeNo node = 0;
        std::int32_t room = 0;  // without its candidates
        std::int64_t lost = 0;
        std::vector<std::size_t> here;  // into `all`
    };
    std::vector<std::size_t> number_of(state.jobs.size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) number_of[all[i].job] = i;
    std::vector<std::vector<Target>> bins(state.fleet.domain_count(job.within));
    for (NodeNo node = 0; node < state.fleet.nodes(); ++node) {
        if (!usable(node)) continue;
        Target target{.node = node, .room = 0, .lost = 0, .here = {}};
        std::vector<SeatNo> spared;
        for (SeatNo s = state.fleet.first_seat(node); s != nil; s = state.fleet.seat(s).next_here) {
            const SeatRec& seat = state.fleet.seat(s);
            if (seat.job == nil || seat.promised || number_of[seat.job] == all.size()) continue;
            state.spare_gone[s] = 1;
            spared.push_back(s);
            const std::size_t candidate = number_of[seat.job];
            if (std::ranges::find(target.here, candidate) != target.here.end()) continue;
            target.here.push_back(candidate);
            target.lost += all[candidate].cost.lost;
        }
        target.room = room_without(node);
        for (const SeatNo s : spared) state.spare_gone[s] = 0;
        if (target.room > 0) bins[state.fleet.domain_of(node, job.within)].push_back(std::move(target));
    }
    const auto cheaper = [&](const Target& a, const Target& b) {
        const std::int64_t x = a.lost / std::min(a.room, tasks), y = b.lost / std::min(b.room, tasks);
        return std::tuple{x, a.here.size(), a.node} < std::tuple{y, b.here.size(), b.node};
    };
    std::vector<std::vector<Target>> attempts;
    for (std::vector<Target>& bin : bins) {
        std::ranges::sort(bin, cheaper);
        if (tasks == 1) {
            for (Target& each : bin) attempts.push_back({std::move(each)});
            continue;
        }
        // The cheapest nodes until there is enough.
        std::vector<FleetIndex::Portion> room;
        std::vector<Target> chosen;
        for (Target& each : bin) {
            room.push_back({each.node, each.room});
            chosen.push_back(std::move(each));
            std::vector<FleetIndex::Portion> copy = room;
            if (state.fleet.arrange(job, tasks, copy).empty()) continue;
            attempts.push_back(std::move(chosen));
            break;
        }
    }
    const auto lost_by_all = [](const std::vector<Target>& nodes) {
        std::int64_t lost = 0;
        for (const Target& each : nodes) lost += each.lost;
        return std::pair{lost, nodes.front().node};
    };
    spent = false;
    if (attempts.empty()) return std::nullopt;  // not even all of them would make room
    std::ranges::sort(attempts, {}, lost_by_all);
    std::optional<Plan> best;
    int tried = 0;
    const std::int64_t before = looked;
    for (const std::vector<Target>& nodes : attempts) {
        if (++tried > nodes_tried || looked - before > looks_node_by_node) break;
        std::vector<std::size_t> numbers;
        std::vector<NodeNo> targets;
        for (const Target& each : nodes) {
            targets.push_back(each.node);
            numbers.insert(numbers.end(), each.here.begin(), each.here.end());
        }
        std::ranges::sort(numbers);
        numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
        std::vector<Candidate> among;
        among.reserve(numbers.size());
        for (const std::size_t i : numbers) among.push_back(all[i]);
        auto plan = exact(std::move(among), targets);
        if (plan && (!best || std::tie(plan->kind, plan->cost) < std::tie(best->kind, best->cost)))
            best = std::move(plan);
        if (best && best->kind == PlanKind::moves) break;
    }
    spent = true;
    if (best) best->budget_spent = true;
    return best;
}

}  // namespace bulkhead::sched
