// Which nodes the tasks of a gang go to.
#include <algorithm>
#include <limits>
#include <unordered_map>

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
    std::ranges::sort(room, {},
                      [&](const Portion& portion) { return std::pair{domain_of(portion.node, level), portion.node}; });
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

std::vector<FleetIndex::Portion> FleetIndex::gang(const Job& job, std::int32_t tasks) {
    const Shape& shape = shapes_[job.shape];
    const std::int32_t unit = job.group > 1 && job.group_within != TopologyLevel::none ? job.group : 1;
    const bool anywhere = job.within == TopologyLevel::none;
    memo_.assign(states_.size(), -1);
    const auto room_on = [&](NodeNo node) {
        return static_cast<std::int32_t>(memo_capacity(node, job.shape, job.tenant));
    };
    if (anywhere) {
        std::vector<Portion> room;
        if (!shape.need.excepted.empty()) {
            for (NodeNo node = 0; node < nodes_.size(); ++node)
                if (const std::int32_t takes = room_on(node); takes > 0) room.push_back({node, takes});
        } else {
            std::vector<NodeNo> members;
            for (const Looks::Look& look : looks(shape, job.tenant))
                for (const StateNo state : audiences_[look.audience].live) {
                    if (memo_[state] >= 0) continue;
                    const NodeNo first = first_member(state);
                    const std::int32_t takes = room_on(first);
                    if (takes == 0) continue;
                    // No more nodes of one bucket than could ever be used of it.
                    members.clear();
                    for (const NodeNo member : states_[state].members)
                        if (nodes_[member].state == state) members.push_back(member);
                    std::ranges::sort(members);
                    const auto [dup, last] = std::ranges::unique(members);
                    members.erase(dup, last);
                    const std::size_t useful =
                        unit > 1 || job.prefer != TopologyLevel::none
                            ? members.size()
                            : std::min<std::size_t>(members.size(), static_cast<std::size_t>(tasks));
                    for (std::size_t i = 0; i < useful; ++i) room.push_back({members[i], takes});
                }
        }
        std::int64_t sum = 0;
        for (const Portion& portion : room) sum += portion.tasks;
        return sum < tasks ? std::vector<Portion>{} : arrange(job, tasks, room);
    }
    // Within one domain: the tightest that suffices.
    std::vector<Portion> best;
    std::int64_t best_room = std::numeric_limits<std::int64_t>::max();
    std::vector<Portion> room;
    const auto consider = [&](std::span<const NodeNo> nodes) {
        room.clear();
        std::int64_t sum = 0;
        for (const NodeNo node : nodes)
            if (const std::int32_t takes = room_on(node); takes > 0) {
                room.push_back({node, takes});
                sum += takes;
            }
        if (sum < tasks || sum >= best_room) return;
        std::vector<Portion> found = arrange(job, tasks, room);
        if (found.empty()) return;
        best = std::move(found);
        best_room = sum;
    };
    if (job.within == TopologyLevel::node) {
        for (NodeNo node = 0; node < nodes_.size(); ++node) consider({&node, 1});
        return best;
    }
    const std::int64_t whole_gpus = whole_gpus_of(shape) * tasks;
    for (const TopologyDomain& domain : domains(job.within))
        if (domain.whole >= whole_gpus) consider(domain.nodes);
    return best;
}

// How many empty GPUs a task takes at least.
std::int64_t FleetIndex::whole_gpus_of(const Shape& shape) {
    std::int64_t least = std::numeric_limits<std::int32_t>::max();
    for (const Shape::Option& option : shape.options)
        least = std::min(least, option.want.is_sliced() || option.want.share < 1000 ? 0 : option.want.count);
    return shape.options.empty() ? 0 : least;
}

// What one node of a bucket takes, all of them take. The caller has cleared the memory.
std::int64_t FleetIndex::memo_capacity(NodeNo node, ShapeNo number, TenantNo tenant) const {
    const Shape& shape = shapes_[number];
    if (!shape.need.excepted.empty()) return capacity(node, number, tenant);
    std::int32_t& known = memo_[nodes_[node].state];
    if (known < 0)
        known = may_take(briefs_[nodes_[node].state], shape) ? static_cast<std::int32_t>(capacity(node, number, tenant))
                                                             : 0;
    return known;
}

std::int64_t FleetIndex::most(const Job& job) const {
    memo_.assign(states_.size(), -1);
    std::int64_t best = 0;
    const std::int64_t unit = job.group > 1 && job.group_within != TopologyLevel::none ? job.group : 1;
    const auto sum = [&](std::span<const NodeNo> nodes) {
        std::int64_t room = 0;
        if (unit == 1) {
            for (const NodeNo node : nodes) room += memo_capacity(node, job.shape, job.tenant);
            return room;
        }
        std::unordered_map<std::uint32_t, std::int64_t> bins;
        for (const NodeNo node : nodes)
            bins[domain_of(node, job.group_within)] += memo_capacity(node, job.shape, job.tenant);
        for (const auto& [bin, here] : bins) room += here / unit * unit;
        return room;
    };
    if (job.within == TopologyLevel::none || job.within == TopologyLevel::node) {
        std::vector<NodeNo> all(nodes_.size());
        for (NodeNo node = 0; node < nodes_.size(); ++node) {
            all[node] = node;
            if (job.within == TopologyLevel::node) best = std::max(best, sum({&node, 1}));
        }
        return job.within == TopologyLevel::node ? best : sum(all);
    }
    for (const TopologyDomain& domain : domains(job.within)) best = std::max(best, sum(domain.nodes));
    return best;
}

}  // namespace bulkhead::sched
