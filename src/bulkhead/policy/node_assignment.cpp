#include "bulkhead/policy/node_assignment.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace bulkhead {

namespace {

std::int64_t divided_up(std::int64_t amount, std::int64_t by) { return (amount + by - 1) / by; }

// Maximum flow by shortest augmenting paths over a small sparse graph. Every edge that is looked at is a step.
class SmallFlow {
public:
    SmallFlow(std::size_t points, std::int64_t& steps) : out_(points), before_(points), steps_{steps} {}

    std::size_t edge(std::size_t from, std::size_t to, std::int64_t capacity) {
        out_[from].push_back(edges_.size());
        edges_.push_back({to, capacity});
        out_[to].push_back(edges_.size());
        edges_.push_back({from, 0});
        return edges_.size() - 2;
    }

    std::int64_t most(std::size_t source, std::size_t sink) {
        std::int64_t sum = 0;
        while (reach(source, sink)) {
            std::int64_t amount = std::numeric_limits<std::int64_t>::max();
            for (std::size_t at = sink; at != source; at = edges_[before_[at] ^ 1].to)
                amount = std::min(amount, edges_[before_[at]].left);
            for (std::size_t at = sink; at != source; at = edges_[before_[at] ^ 1].to) {
                edges_[before_[at]].left -= amount;
                edges_[before_[at] ^ 1].left += amount;
            }
            sum += amount;
        }
        return sum;
    }

    std::int64_t through(std::size_t edge) const { return edges_[edge ^ 1].left; }

private:
    struct Edge {
        std::size_t to;
        std::int64_t left;
    };
    static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

    bool reach(std::size_t source, std::size_t sink) {
        std::ranges::fill(before_, nowhere);
        queue_.assign(1, source);
        for (std::size_t next = 0; next < queue_.size(); ++next)
            for (const std::size_t each : out_[queue_[next]]) {
                --steps_;
                const Edge& edge = edges_[each];
                if (edge.left == 0 || edge.to == source || before_[edge.to] != nowhere) continue;
                before_[edge.to] = each;
                if (edge.to == sink) return true;
                queue_.push_back(edge.to);
            }
        return false;
    }

    std::vector<Edge> edges_;
    std::vector<std::vector<std::size_t>> out_;
    std::vector<std::size_t> before_, queue_;
    std::int64_t& steps_;
};

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max() / 4;

// The claims that may be on one node of a kind together.
struct Seats {
    std::size_t kind = 0;
    std::vector<std::size_t> claims;
};

// Claims that can meet on a node, directly or by others in between, and the seats they compete for. Groups compete with
// each other for nodes alone.
struct Group {
    std::vector<std::size_t> claims, seats;
    std::int64_t rounding = 0;  // GPUs that the group closes at least, beyond what its claims ask
};

using Counts = std::vector<std::int64_t>;

class NodeSearch {
public:
    NodeSearch(std::span<const NodeKind> kinds, std::span<const NodeClaim> claims, std::int64_t budget)
        : kinds_{kinds}, claims_{claims}, steps_{budget} {
        for (const NodeKind& kind : kinds_) all_.push_back(kind.nodes);
    }

    Assignment run() {
        std::int64_t asked = 0, there = 0;
        for (const NodeKind& kind : kinds_) there += kind.nodes * kind.gpus;
        for (std::size_t c = 0; c < claims_.size(); ++c) {
            asked += claims_[c].amount;  // a node has at least one GPU
            if (claims_[c].amount > most_of(c) || asked > there) return {.keepable = Keepable::no, .given = {}};
        }
        draw_seats();
        draw_groups();
        given_.assign(seats_.size(), 0);
        const bool found = place(0, all_);
        if (found) return {.keepable = Keepable::yes, .given = assigned()};
        return {.keepable = steps_ < 0 ? Keepable::undecided : Keepable::no, .given = {}};
    }

private:
    std::int64_t most_of(std::size_t c) const {
        std::int64_t most = 0;
        for (std::size_t k = 0; k < kinds_.size(); ++k)
            if (claims_[c].bears[k])
                most += claims_[c].whole_nodes ? kinds_[k].nodes : kinds_[k].nodes * kinds_[k].gpus;
        return most;
    }

    // On a kind of node a claim sits alone, with its domain, or with all that bear any neighbour.
    void draw_seats() {
        for (std::size_t k = 0; k < kinds_.size(); ++k) {
            std::map<std::size_t, std::vector<std::size_t>> domains;
            std::set<std::size_t> guarded;  // domains with a claim that bears its domain and no stranger
            std::vector<std::size_t> open;
            for (std::size_t c = 0; c < claims_.size(); ++c) {
                const auto& bears = claims_[c].bears[k];
                if (!bears) continue;
                if (claims_[c].whole_nodes || *bears == PeerTrust::same_tenant) {
                    seats_.push_back({k, {c}});
                    continue;
                }
                domains[claims_[c].domain].push_back(c);
                if (*bears == PeerTrust::same_domain) guarded.insert(claims_[c].domain);
                if (*bears == PeerTrust::distrusting) open.push_back(c);
            }
            for (auto& [domain, members] : domains)
                if (guarded.contains(domain)) seats_.push_back({k, std::move(members)});
            if (!open.empty()) seats_.push_back({k, std::move(open)});
        }
    }

    void draw_groups() {
        std::vector<std::size_t> head(claims_.size());
        std::iota(head.begin(), head.end(), std::size_t{0});
        const auto root = [&](std::size_t c) {
            while (head[c] != c) c = head[c] = head[head[c]];
            return c;
        };
        for (const Seats& seats : seats_)
            for (const std::size_t c : seats.claims) head[root(c)] = root(seats.claims.front());
        std::map<std::size_t, Group> groups;
        for (std::size_t c = 0; c < claims_.size(); ++c)
            if (claims_[c].amount > 0) groups[root(c)].claims.push_back(c);
        for (std::size_t s = 0; s < seats_.size(); ++s)
            if (const auto group = groups.find(root(seats_[s].claims.front())); group != groups.end())
                group->second.seats.push_back(s);
        std::map<std::size_t, std::int64_t> wanted_by;  // how many groups want a kind
        for (auto& [first, group] : groups) {
            group.rounding = rounding_of(group);
            for (const std::size_t s : group.seats) ++wanted_by[seats_[s].kind];
            groups_.push_back(std::move(group));
        }
        // Kinds that many want are tried last to be used, groups with few nodes to choose from come first.
        for (Group& group : groups_)
            std::ranges::sort(group.seats, [&](std::size_t a, std::size_t b) {
                const auto by_a = wanted_by[seats_[a].kind], by_b = wanted_by[seats_[b].kind];
                return by_a != by_b ? by_a > by_b : a < b;
            });
        const auto choice = [&](const Group& group) {
            std::int64_t nodes = 0;
            for (const std::size_t s : group.seats) nodes += kinds_[seats_[s].kind].nodes;
            return std::pair{nodes, group.seats.empty() ? 0 : group.seats.front()};
        };
        std::ranges::sort(groups_, {}, choice);
    }

    bool is_single(const Group& group) const { return group.claims.size() == 1; }

    // GPUs that the claim closes at least, as the bound counts it.
    std::int64_t least_gpus(const Group& group, std::size_t c) const {
        const NodeClaim& claim = claims_[c];
        if (!claim.whole_nodes) return claim.amount + (is_single(group) ? group.rounding : 0);
        std::int64_t smallest = unlimited;
        for (std::size_t k = 0; k < kinds_.size(); ++k)
            if (claim.bears[k] && kinds_[k].nodes > 0) smallest = std::min(smallest, kinds_[k].gpus);
        return claim.amount * smallest;
    }

    // A group closes whole nodes: the smallest sum of node sizes that covers what its claims ask, minus that.
    std::int64_t rounding_of(const Group& group) const {
        std::int64_t asked = 0;
        for (const std::size_t c : group.claims) {
            if (claims_[c].whole_nodes) return 0;
            asked += claims_[c].amount;
        }
        std::set<std::int64_t> sizes;
        for (const std::size_t s : group.seats) sizes.insert(kinds_[seats_[s].kind].gpus);
        if (sizes.empty()) return 0;
        if (sizes.size() == 1) return divided_up(asked, *sizes.begin()) * *sizes.begin() - asked;
        std::vector<char> sum(static_cast<std::size_t>(asked + *sizes.rbegin()) + 1);
        sum[0] = 1;
        for (std::size_t at = 0; at < sum.size(); ++at) {
            if (!sum[at]) continue;
            if (std::cmp_greater_equal(at, asked)) return static_cast<std::int64_t>(at) - asked;
            for (const std::int64_t size : sizes)
                if (at + static_cast<std::size_t>(size) < sum.size()) sum[at + static_cast<std::size_t>(size)] = 1;
        }
        return 0;
    }

    // Whether the groups from here on could be served if nodes could be divided; the flow suggests how.
    struct Bound {
        bool feasible = false;
        std::vector<std::pair<std::size_t, std::int64_t>> gpus;  // by seats of the first group
        Counts spare;                                            // GPUs that the flow leaves, by kind
    };
    Bound bound(std::size_t first, const Counts& left) {
        const std::size_t source = 0, sink = 1, kinds_from = 2;
        std::size_t points = kinds_from + kinds_.size();
        for (std::size_t g = first; g < groups_.size(); ++g)
            points += groups_[g].claims.size() + groups_[g].seats.size() + 1;
        SmallFlow flow{points, steps_};
        std::size_t next = kinds_from + kinds_.size();
        std::int64_t wanted = 0;
        std::vector<std::size_t> first_edges;
        for (std::size_t g = first; g < groups_.size(); ++g) {
            const Group& group = groups_[g];
            std::map<std::size_t, std::size_t> point_of;
            for (const std::size_t c : group.claims) {
                point_of[c] = next;
                wanted += least_gpus(group, c);
                flow.edge(source, next++, least_gpus(group, c));
            }
            const std::size_t rounding = next++;
            if (!is_single(group)) {
                wanted += group.rounding;
                flow.edge(source, rounding, group.rounding);
            }
            for (const std::size_t s : group.seats) {
                for (const std::size_t c : seats_[s].claims)
                    if (const auto at = point_of.find(c); at != point_of.end()) flow.edge(at->second, next, unlimited);
                if (!is_single(group)) flow.edge(rounding, next, unlimited);
                const std::size_t edge = flow.edge(next++, kinds_from + seats_[s].kind, unlimited);
                if (g == first) first_edges.push_back(edge);
            }
        }
        std::vector<std::size_t> kind_edges;
        kind_edges.reserve(kinds_.size());
        for (std::size_t k = 0; k < kinds_.size(); ++k)
            kind_edges.push_back(flow.edge(kinds_from + k, sink, left[k] * kinds_[k].gpus));
        Bound out{.feasible = flow.most(source, sink) == wanted, .gpus = {}, .spare = {}};
        if (!out.feasible) return out;
        for (std::size_t i = 0; i < first_edges.size(); ++i)
            out.gpus.emplace_back(groups_[first].seats[i], flow.through(first_edges[i]));
        for (std::size_t k = 0; k < kinds_.size(); ++k)
            out.spare.push_back(left[k] * kinds_[k].gpus - flow.through(kind_edges[k]));
        return out;
    }

    // Whether the nodes given to a group serve its claims.
    bool enough(const Group& group) {
        --steps_;
        if (is_single(group)) {
            const NodeClaim& claim = claims_[group.claims.front()];
            std::int64_t has = 0;
            for (const std::size_t s : group.seats)
                has += claim.whole_nodes ? given_[s] : given_[s] * kinds_[seats_[s].kind].gpus;
            return has >= claim.amount;
        }
        return !shares_of(group).empty();
    }

    // How the claims of a group share the nodes given to it; empty: they are not served.
    std::vector<std::pair<std::size_t, AssignedNodes::Part>> shares_of(const Group& group) {
        SmallFlow flow{2 + group.claims.size() + group.seats.size(), steps_};
        struct Link {
            std::size_t seats, claim, edge;
        };
        std::vector<Link> links;
        std::int64_t wanted = 0;
        for (std::size_t i = 0; i < group.claims.size(); ++i) {
            wanted += claims_[group.claims[i]].amount;
            flow.edge(0, 2 + i, claims_[group.claims[i]].amount);
        }
        for (std::size_t j = 0; j < group.seats.size(); ++j) {
            const std::size_t s = group.seats[j], at = 2 + group.claims.size() + j;
            flow.edge(at, 1, given_[s] * kinds_[seats_[s].kind].gpus);
            for (std::size_t i = 0; i < group.claims.size(); ++i)
                if (std::ranges::find(seats_[s].claims, group.claims[i]) != seats_[s].claims.end())
                    links.push_back({s, group.claims[i], flow.edge(2 + i, at, unlimited)});
        }
        if (flow.most(0, 1) != wanted) return {};
        std::vector<std::pair<std::size_t, AssignedNodes::Part>> out;
        for (const Link& link : links)
            if (flow.through(link.edge) > 0) out.push_back({link.seats, {link.claim, flow.through(link.edge)}});
        return out;
    }

    bool place(std::size_t g, const Counts& left) {
        if (g == groups_.size()) return true;
        if (--steps_ < 0 || failed_.contains({g, left})) return false;
        const Bound may = bound(g, left);
        if (may.feasible) {
            const Group& group = groups_[g];
            for (const auto& [s, gpus] : may.gpus) given_[s] = divided_up(gpus, kinds_[seats_[s].kind].gpus);
            if (within(group, left) && enough(group) && place_rest(g, left)) return true;
            if (round_down_and_fill(group, may, left) && place_rest(g, left)) return true;
            for (const std::size_t s : group.seats) given_[s] = 0;
            if (choose(g, 0, left)) return true;
            for (const std::size_t s : group.seats) given_[s] = 0;
        }
        if (steps_ >= 0) failed_.insert({g, left});
        return false;
    }

    // What the flow suggests, rounded down, and then nodes of the kinds that the flow leaves the most of.
    bool round_down_and_fill(const Group& group, const Bound& may, const Counts& left) {
        for (const auto& [s, gpus] : may.gpus) given_[s] = gpus / kinds_[seats_[s].kind].gpus;
        while (!enough(group)) {
            std::optional<std::size_t> best;
            for (const std::size_t s : group.seats)
                if (free_of(group, left, seats_[s].kind) > 0 &&
                    (!best || may.spare[seats_[s].kind] - given_[s] > may.spare[seats_[*best].kind] - given_[*best]))
                    best = s;
            if (!best || steps_ < 0) return false;
            ++given_[*best];
        }
        return true;
    }

    std::int64_t free_of(const Group& group, const Counts& left, std::size_t kind) const {
        std::int64_t free = left[kind];
        for (const std::size_t s : group.seats)
            if (seats_[s].kind == kind) free -= given_[s];
        return free;
    }
    bool within(const Group& group, const Counts& left) const {
        return std::ranges::all_of(group.seats,
                                   [&](std::size_t s) { return free_of(group, left, seats_[s].kind) >= 0; });
    }
    bool place_rest(std::size_t g, Counts left) {
        for (const std::size_t s : groups_[g].seats) left[seats_[s].kind] -= given_[s];
        return place(g + 1, left);
    }

    // Tries every number of nodes for the group's seats from the given one on; never more nodes than are needed.
    bool choose(std::size_t g, std::size_t at, const Counts& left) {
        if (--steps_ < 0) return false;
        const Group& group = groups_[g];
        if (enough(group)) return place_rest(g, left);
        if (at == group.seats.size() || !could_be_enough(group, at, left)) return false;
        const std::size_t s = group.seats[at];
        const std::int64_t most = free_of(group, left, seats_[s].kind);
        for (std::int64_t nodes = 0; nodes <= most && steps_ >= 0; ++nodes) {
            given_[s] = nodes;
            if (choose(g, at + 1, left)) return true;
            for (std::size_t rest = at + 1; rest < group.seats.size(); ++rest) given_[group.seats[rest]] = 0;
            if (enough(group)) break;  // more of these nodes would only be wasted
        }
        given_[s] = 0;
        return false;
    }
    bool could_be_enough(const Group& group, std::size_t at, const Counts& left) {
        Counts kept;
        for (std::size_t rest = at; rest < group.seats.size(); ++rest) {
            kept.push_back(given_[group.seats[rest]]);
            given_[group.seats[rest]] = 0;
        }
        Counts most;
        for (std::size_t rest = at; rest < group.seats.size(); ++rest)
            most.push_back(free_of(group, left, seats_[group.seats[rest]].kind));
        for (std::size_t rest = at; rest < group.seats.size(); ++rest) given_[group.seats[rest]] = most[rest - at];
        const bool could = enough(group);
        for (std::size_t rest = at; rest < group.seats.size(); ++rest) given_[group.seats[rest]] = kept[rest - at];
        return could;
    }

    std::vector<AssignedNodes> assigned() {
        std::vector<AssignedNodes> out;
        for (const Group& group : groups_) {
            std::map<std::size_t, AssignedNodes> by_seats;
            for (const std::size_t s : group.seats)
                if (given_[s] > 0) by_seats[s] = {.kind = seats_[s].kind, .nodes = given_[s], .parts = {}};
            if (is_single(group)) {
                const NodeClaim& claim = claims_[group.claims.front()];
                std::int64_t rest = claim.amount;
                for (auto& [s, nodes] : by_seats) {
                    const std::int64_t here = nodes.nodes * kinds_[nodes.kind].gpus;
                    const std::int64_t gpus = claim.whole_nodes ? here : std::min(rest, here);
                    nodes.parts.push_back({group.claims.front(), gpus});
                    if (!claim.whole_nodes) rest -= gpus;
                }
            } else {
                for (const auto& [s, part] : shares_of(group)) by_seats[s].parts.push_back(part);
            }
            for (auto& [s, nodes] : by_seats) out.push_back(std::move(nodes));
        }
        return out;
    }

    std::span<const NodeKind> kinds_;
    std::span<const NodeClaim> claims_;
    std::int64_t steps_;
    Counts all_, given_;  // nodes by kind; nodes given, by seats
    std::vector<Seats> seats_;
    std::vector<Group> groups_;
    std::set<std::pair<std::size_t, Counts>> failed_;
};

}  // namespace

Assignment assign_nodes(std::span<const NodeKind> kinds, std::span<const NodeClaim> claims, std::int64_t budget) {
    return NodeSearch{kinds, claims, budget}.run();
}

}  // namespace bulkhead
