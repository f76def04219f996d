#include "bulkhead/sched/allocate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

#include "bulkhead/sched/neighbours.hpp"
#include "bulkhead/sched/seating.hpp"

namespace bulkhead::sched {

namespace {

enum class Hindrance : std::uint8_t { none, closed, host, reboot, neighbours, nvlink };

class Placer {
public:
    Placer(std::vector<Node>& nodes, const Relations& relations, const Request& request)
        : nodes_{nodes}, relations_{relations}, request_{request}, wants_{wants_of(request)} {
        const Contract& contract = *request.contract;
        self_ = {.lease = request.workload,
                 .tenant = request.tenant,
                 .node = contract.sharing.node,
                 .gpu = contract.sharing.gpu,
                 .instance = contract.sharing.instance,
                 .nvlink = contract.sharing.nvlink,
                 .on_host_kernel = contract.tier < Tier::vm};
        for (const ExceptionInForce& exception : contract.exceptions)
            for (const std::string& tenant : exception.tenants) {
                for (TenantNo number = 0; number < relations.size(); ++number)
                    if (relations.name(number) == tenant) self_.excepted.push_back(number);
            }
    }

    const Resident& self() const { return self_; }

    // All tasks, or nothing and why.
    std::optional<std::vector<TaskSeat>> place(Waiting& waiting, std::vector<std::uint32_t>& reboot) {
        std::map<std::string_view, std::vector<std::uint32_t>> groups;  // by what the tasks must be within
        std::array<std::int64_t, 6> met{};
        for (const std::uint32_t candidate : request_.candidates) {
            const Hindrance obstacle = obstacle_on(nodes_[candidate]);
            ++met[static_cast<std::size_t>(obstacle)];
            if (obstacle == Hindrance::none) groups[group_of(nodes_[candidate])].push_back(candidate);
            if (obstacle == Hindrance::reboot) reboot.push_back(candidate);
        }
        std::int64_t most = 0;
        for (const auto& [name, members] : groups)
            if (auto tasks = place_in(members, most)) {
                reboot.clear();
                return tasks;
            }
        explain(waiting, met, most);
        return std::nullopt;
    }

private:
    bool may_meet(const Resident& other, PeerTrust mine, PeerTrust theirs) const {
        return sched::may_meet(relations_, self_.tenant, mine, other.tenant, theirs);
    }

    Hindrance obstacle_on(const Node& node) const {
        if (!node.open) return Hindrance::closed;
        for (const Resident& other : node.residents)
            if (!may_meet(other, self_.node, other.node) || !kernels_apart(relations_, self_, other))
                return Hindrance::neighbours;
        if (node.board_is_one && !nvlink_free(node)) return Hindrance::nvlink;
        if (node.host_busy) return Hindrance::host;
        for (const TenantNo user : node.host_used_by)
            if (relations_.trust(self_.tenant, user) == PeerTrust::distrusting && !self_.excepts(user))
                return node.can_reboot && node.residents.empty() ? Hindrance::reboot : Hindrance::host;
        return Hindrance::none;
    }

    bool nvlink_free(const Node& node) const {
        const auto is_free = [&](const Node& one) {
            return std::ranges::all_of(
                one.residents, [&](const Resident& other) { return may_meet(other, self_.nvlink, other.nvlink); });
        };
        if (!is_free(node)) return false;
        if (node.nvlink_domain.empty()) return true;
        return std::ranges::all_of(
            nodes_, [&](const Node& one) { return one.nvlink_domain != node.nvlink_domain || is_free(one); });
    }

    std::string_view group_of(const Node& node) const {
        switch (request_.spec->topology.within) {
            case TopologyLevel::none:
                return {};
            case TopologyLevel::nvlink_domain:
                return node.nvlink_domain.empty() ? node.name : node.nvlink_domain;
            case TopologyLevel::node:
                return node.name;
            case TopologyLevel::leaf:
                return known(node.leaf, node);
            case TopologyLevel::rack:
                return known(node.rack, node);
            case TopologyLevel::zone:
                return known(node.zone, node);
            case TopologyLevel::site:
                return known(node.site, node);
        }
        return {};
    }
    // A node that does not say where it stands stands with nobody.
    static std::string_view known(const std::string& label, const Node& node) {
        return label.empty() ? node.name : label;
    }

    std::pair<bool, bool> beside(const Node& node, const Seat& seat) const {
        if (seat.lease == request_.workload) return {true, true};  // a task of the same gang, placed a moment ago
        const auto resident = std::ranges::find(node.residents, seat.lease, &Resident::lease);
        if (resident == node.residents.end()) return {false, false};
        return {may_meet(*resident, self_.gpu, resident->gpu), may_meet(*resident, self_.instance, resident->instance)};
    }

    std::vector<TaskSeat> fill(std::uint32_t index, std::int64_t at_most) const {
        Node node = nodes_[index];
        std::vector<TaskSeat> tasks;
        while (std::ssize(tasks) < at_most) {
            auto task = seat_task(node, request_, wants_, [&](const Seat& seat) { return beside(node, seat); });
            if (!task) break;
            task->node = index;
            for (Seat& seat : task->seats) seat.lease = request_.workload;
            take(node, *task, request_);
            tasks.push_back(std::move(*task));
        }
        return tasks;
    }

    // For tasks that are all alike: whole nodes first, the tightest node that suffices last. Exact, because what one
    // node can take does not depend on the others.
    std::optional<std::vector<TaskSeat>> place_in(const std::vector<std::uint32_t>& members, std::int64_t& most) const {
        const std::int64_t wanted = request_.spec->tasks;
        std::vector<std::vector<TaskSeat>> room;
        std::int64_t total = 0;
        for (const std::uint32_t member : members) {
            room.push_back(fill(member, wanted));
            total += std::ssize(room.back());
        }
        most = std::max(most, total);
        if (total < wanted) return std::nullopt;
        std::vector<TaskSeat> tasks;
        std::vector<bool> used(room.size());
        while (std::ssize(tasks) < wanted) {
            const std::int64_t left = wanted - std::ssize(tasks);
            std::optional<std::size_t> best;
            for (std::size_t i = 0; i < room.size(); ++i) {
                if (used[i] || room[i].empty()) continue;
                if (!best || better(std::ssize(room[i]), std::ssize(room[*best]), left)) best = i;
            }
            used[*best] = true;
            room[*best].resize(static_cast<std::size_t>(std::min<std::int64_t>(left, std::ssize(room[*best]))));
            std::ranges::move(room[*best], std::back_inserter(tasks));
        }
        return tasks;
    }

    static bool better(std::int64_t a, std::int64_t b, std::int64_t left) {
        if ((a >= left) != (b >= left)) return a >= left;
        return a >= left ? a < b : a > b;
    }

    void explain(Waiting& waiting, const std::array<std::int64_t, 6>& met, std::int64_t most) const {
        const auto count = [&](Hindrance obstacle) { return met[static_cast<std::size_t>(obstacle)]; };
        const auto say = [&](std::string_view code, std::int64_t number) {
            if (number > 0) waiting.reasons.push_back({code, {{"count", number}}});
        };
        say("wait.closed", count(Hindrance::closed));
        say("wait.neighbours", count(Hindrance::neighbours));
        say("wait.nvlink", count(Hindrance::nvlink));
        say("wait.host", count(Hindrance::host));
        say("wait.reboot", count(Hindrance::reboot));
        waiting.reasons.push_back(
            {"wait.room", {{"tasks", request_.spec->tasks}, {"most", most}, {"nodes", count(Hindrance::none)}}});
    }

    std::vector<Node>& nodes_;
    const Relations& relations_;
    const Request& request_;
    std::vector<Want> wants_;
    Resident self_;
};

// Which limit would be exceeded, if any: the tenant's own, or that of somebody above it.
bool within_limits(const Relations& relations, const std::vector<Holding>& holdings, const Request& request,
                   Waiting& waiting) {
    const std::int64_t asked = request.contract->gpus.thousandths;
    for (const TenantNo holder : relations.line(request.tenant)) {
        const Holding& holding = holdings[holder];
        if (!holding.limit || holding.held + asked <= *holding.limit) continue;
        waiting.reasons.push_back({holder == request.tenant ? "wait.quota" : "wait.parent-quota",
                                   {{"asked", print(Gpus{asked})},
                                    {"held", print(Gpus{holding.held})},
                                    {"limit", print(Gpus{*holding.limit})}}});
        return false;
    }
    return true;
}

// What hard partitions are owed is never lent: whoever takes beyond its own guarantee, or that of those above it,
// leaves that much.
bool leaves_what_is_owed(const std::vector<Node>& nodes, const Relations& relations,
                         const std::vector<Holding>& holdings, const Request& request, Waiting& waiting) {
    const std::int64_t asked = request.contract->gpus.thousandths;
    std::int64_t own = 0, owed = 0, free = 0;
    for (const Holding& holding : holdings) owed += holding.owed;
    for (const TenantNo holder : relations.line(request.tenant)) own += holdings[holder].owed;
    owed -= own;
    own = std::min(asked, own);
    if (owed == 0 || own == asked) return true;
    for (const Node& node : nodes)
        if (node.open)
            for (const Gpu& gpu : node.gpus) {
                std::int64_t taken = 1000 * std::popcount(gpu.lost) / gpu.slices;
                for (const Seat& seat : gpu.seats)
                    taken += seat.share * (seat.profile.empty() ? 1000 : 1000 * seat.size / gpu.slices) / 1000;
                free += std::max<std::int64_t>(1000 - taken, 0);
            }
    if (free - (asked - own) >= owed) return true;
    waiting.reasons.push_back({"wait.reserved", {{"asked", print(Gpus{asked})}}});
    return false;
}

void settle(std::vector<Node>& nodes, std::vector<Holding>& holdings, const Relations& relations,
            const Request& request, const Resident& self, const std::vector<TaskSeat>& tasks) {
    const Contract& contract = *request.contract;
    for (const TaskSeat& task : tasks) {
        Node& node = nodes[task.node];
        take(node, task, request);
        if (std::ranges::find(node.residents, self.lease, &Resident::lease) == node.residents.end())
            node.residents.push_back(self);
        if (contract.tier < Tier::vm && std::ranges::find(node.host_used_by, request.tenant) == node.host_used_by.end())
            node.host_used_by.push_back(request.tenant);
    }
    for (const TenantNo holder : relations.line(request.tenant)) holdings[holder].held += contract.gpus.thousandths;
    std::int64_t left = contract.gpus.thousandths;
    for (const TenantNo holder : relations.line(request.tenant)) {
        const std::int64_t drawn = std::min(left, holdings[holder].owed);
        holdings[holder].owed -= drawn;
        left -= drawn;
    }
}

}  // namespace

Statement allocate(std::vector<Node>& nodes, const Relations& relations, std::vector<Holding>& holdings,
                   std::span<const Request> requests) {
    Statement statement;
    for (const Request& request : requests) {
        Waiting waiting{.workload = request.workload};
        std::vector<std::uint32_t> reboot;
        if (within_limits(relations, holdings, request, waiting) &&
            leaves_what_is_owed(nodes, relations, holdings, request, waiting)) {
            Placer placer{nodes, relations, request};
            if (auto tasks = placer.place(waiting, reboot)) {
                settle(nodes, holdings, relations, request, placer.self(), *tasks);
                statement.bind.push_back({request.workload, std::move(*tasks)});
                continue;
            }
        }
        // One reboot for one waiting gang: as many empty hosts as it has tasks would do at most.
        for (std::size_t i = 0; i < reboot.size() && std::cmp_less(i, request.spec->tasks); ++i) {
            nodes[reboot[i]].host_busy = true;
            statement.reboot.push_back(reboot[i]);
        }
        statement.waiting.push_back(std::move(waiting));
    }
    return statement;
}

}  // namespace bulkhead::sched
