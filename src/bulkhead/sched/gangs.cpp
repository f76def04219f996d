// Which nodes the tasks of a gang go to.
#include <algorithm>
#include <limits>
#include <map>

#include "bulkhead/sched/fleet_index.hpp"

namespace bulkhead::sched {

namespace {

// Of bins with so much room: the tightest that suffices, else the largest. True: `a` is to be taken before `b`.
bool sooner(std::int64_t a, std::int64_t b, std::int64_t left) {
    if ((a >= left) != (b >= left)) return a >= left;
    return a >= left ? a < b : a > b;
}

}  // namespace

// As few nodes as possible, the tightest last. `room` is ordered so that of equals the first is preferred.
std::vector<FleetIndex::Portion> FleetIndex::spread(std::vector<Portion>& room, std::int32_t tasks) const {
    std::ranges::sort(room, [&](const Portion& a, const Portion& b) {
        if (a.tasks != b.tasks) return a.tasks > b.tasks;
        const NodeRec &x = nodes_[a.node], &y = nodes_[b.node];
        if (x.free != y.free) return x.free < y.free;
        return x.cpu != y.cpu ? x.cpu < y.cpu : a.node < b.node;
    });
    std::vector<Portion> out;
    std::int32_t left = tasks;
    std::size_t next = 0;
    while (left > 0 && next < room.size()) {
        if (room[next].tasks >= left) {
            // The tightest that takes all that is left; of those the first in order.
            std::size_t last = next;
            while (last + 1 < room.size() && room[last + 1].tasks >= left) ++last;
            while (last > next && room[last - 1].tasks == room[last].tasks) --last;
            out.push_back({room[last].node, left});
            return out;
        }
        out.push_back(room[next]);
        left -= room[next++].tasks;
    }
    if (left > 0) out.clear();
    return out;
}

// Tasks in units of `unit`, each unit inside one domain of `level`.
std::vector<FleetIndex::Portion> FleetIndex::in_bins(std::vector<Portion>& room, std::int32_t tasks, std::int32_t unit,
                                                     TopologyLevel level) const {
    sort_by_domain(room, level);
    struct Bin {
        std::size_t first = 0, count = 0;
        std::int64_t room = 0;
    };
    std::vector<Bin> bins;
    std::uint32_t current = nil;
    for (std::size_t i = 0; i < room.size(); ++i) {
        const std::uint32_t its = domain_of(room[i].node, level);
        if (bins.empty() || its != current) bins.push_back({i, 0, 0});
        current = its;
        ++bins.back().count;
        bins.back().room += room[i].tasks;
    }
    for (Bin& bin : bins) bin.room = bin.room / unit * unit;
    std::vector<Portion> out;
    std::int64_t left = tasks;
    while (left > 0) {
        Bin* best = nullptr;
        for (Bin& bin : bins)
            if (bin.room > 0 && (best == nullptr || sooner(bin.room, best->room, left))) best = &bin;
        if (best == nullptr) return {};
        const auto part = static_cast<std::int32_t>(std::min(left, best->room));
        std::vector<Portion> here(room.begin() + static_cast<std::ptrdiff_t>(best->first),
                                  room.begin() + static_cast<std::ptrdiff_t>(best->first + best->count));
        for (const Portion& portion : spread(here, part)) out.push_back(portion);
        best->room = 0;
        left -= part;
    }
    return out;
}

std::vector<FleetIndex::Portion> FleetIndex::arrange(const Job& job, std::int32_t tasks,
                                                     std::vector<Portion>& room) const {
    if (job.group > 1 && job.group_within != TopologyLevel::none)
        return in_bins(room, tasks, job.group, job.group_within);
    if (job.prefer != TopologyLevel::none && job.prefer != job.within) return in_bins(room, tasks, 1, job.prefer);
    return spread(room, tasks);
}

// Every node that takes a task, with how many it takes; of each bucket at most so many nodes. What one node of a bucket
// takes, all of them take.
std::vector<FleetIndex::Portion> FleetIndex::roomy(const Job& job, std::size_t of_each_bucket) const {
    const Shape& shape = shapes_[job.shape];
    std::vector<Portion> room;
    if (!shape.need.excepted.empty()) {
        for (NodeNo node = 0; node < nodes_.size(); ++node)
            if (const auto takes = static_cast<std::int32_t>(capacity(node, job.shape, job.tenant)); takes > 0)
                room.push_back({node, takes});
        return room;
    }
    std::vector<bool> seen(states_.size());  // a bucket may have several audiences
    std::vector<bool> noted(nodes_.size());  // some are twice among the members of a bucket
    std::vector<NodeNo> members;
    for (const Looks::Look& look : looks(shape, job.tenant))
        for (const StateNo state : audiences_[look.audience].live) {
            if (!may_take(briefs_[state], shape) || seen[state]) continue;
            seen[state] = true;
            members.clear();
            for (const NodeNo member : states_[state].members)
                if (nodes_[member].state == state && !noted[member]) {
                    noted[member] = true;
                    members.push_back(member);
                }
            const auto takes = static_cast<std::int32_t>(capacity(members.front(), job.shape, job.tenant));
            if (takes == 0) continue;
            if (members.size() > of_each_bucket) std::ranges::sort(members);
            for (std::size_t i = 0; i < members.size() && i < of_each_bucket; ++i) room.push_back({members[i], takes});
        }
    return room;
}

// The same, one domain of `level` after the other; those of one domain in any order.
void FleetIndex::sort_by_domain(std::vector<Portion>& room, TopologyLevel level) const {
    if (level == TopologyLevel::none || room.empty()) return;
    std::vector<std::uint32_t> domains;
    domains.reserve(room.size());
    for (const Portion& portion : room) domains.push_back(domain_of(portion.node, level));
    const auto [least, most] = std::ranges::minmax(domains);
    // Counted where the domains are near each other, as those of one zone are.
    if (most - least > 1024 + 4 * room.size()) {
        std::ranges::sort(room, {}, [&](const Portion& portion) { return domain_of(portion.node, level); });
        return;
    }
    std::vector<std::uint32_t> next(most - least + 2);
    for (const std::uint32_t domain : domains) ++next[domain - least + 1];
    for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
    std::vector<Portion> sorted(room.size());
    for (std::size_t i = 0; i < room.size(); ++i) sorted[next[domains[i] - least]++] = room[i];
    room = std::move(sorted);
}

std::vector<FleetIndex::Portion> FleetIndex::gang(const Job& job, std::int32_t tasks) {
    const auto enough = [&](std::span<const Portion> room) {
        std::int64_t sum = 0;
        for (const Portion& portion : room) sum += portion.tasks;
        return sum >= tasks ? sum : 0;
    };
    if (job.within == TopologyLevel::none) {
        // No more nodes of one bucket than could ever be used of it.
        const bool any_will_do = job.group <= 1 && job.prefer == TopologyLevel::none;
        std::vector<Portion> room =
            roomy(job, any_will_do ? static_cast<std::size_t>(tasks) : std::numeric_limits<std::size_t>::max());
        return enough(room) == 0 ? std::vector<Portion>{} : arrange(job, tasks, room);
    }
    // Within one domain: the tightest that suffices.
    std::vector<Portion> all = roomy(job, std::numeric_limits<std::size_t>::max());
    sort_by_domain(all, job.within);
    std::vector<Portion> best, here;
    std::int64_t best_room = std::numeric_limits<std::int64_t>::max();
    for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
        const std::uint32_t domain = domain_of(all[first].node, job.within);
        while (last < all.size() && domain_of(all[last].node, job.within) == domain) ++last;
        const std::span nodes = std::span{all}.subspan(first, last - first);
        const std::int64_t room = enough(nodes);
        if (room == 0 || room >= best_room) continue;
        here.assign(nodes.begin(), nodes.end());
        std::vector<Portion> found = arrange(job, tasks, here);
        if (found.empty()) continue;
        best = std::move(found);
        best_room = room;
    }
    return best;
}

// How many empty GPUs a task takes at least.
std::int64_t FleetIndex::whole_gpus_of(const Shape& shape) {
    std::int64_t least = std::numeric_limits<std::int32_t>::max();
    for (const Shape::Option& option : shape.options)
        least = std::min(least, option.want.is_sliced() || option.want.share < 1000 ? 0 : option.want.count);
    return shape.options.empty() ? 0 : least;
}

std::int64_t FleetIndex::most(const Job& job) const {
    // Whole units in each of the smaller domains, then whatever those of one larger domain have together.
    const bool in_units = job.group > 1 && job.group_within != TopologyLevel::none;
    const std::int64_t unit = in_units ? job.group : 1;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> bins;
    for (const Portion& portion : roomy(job, std::numeric_limits<std::size_t>::max())) {
        const std::uint32_t inner = in_units ? domain_of(portion.node, job.group_within) : 0;
        bins[{domain_of(portion.node, job.within), inner}] += portion.tasks;
    }
    std::int64_t best = 0, here = 0;
    std::uint32_t current = nil;
    for (const auto& [key, tasks] : bins) {
        if (key.first != current) here = 0;
        current = key.first;
        here += tasks / unit * unit;
        best = std::max(best, here);
    }
    return best;
}

}  // namespace bulkhead::sched
