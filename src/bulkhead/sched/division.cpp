#include "bulkhead/sched/division.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "bulkhead/base/result.hpp"
#include "bulkhead/sched/water_fill.hpp"

namespace bulkhead::sched {

namespace {

constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

// A queue, or the own work of one, among which a share is divided. Amounts are in steps of the divider.
struct Member {
    std::int64_t guarantee = 0;
    std::int64_t most = 0;  // what it asks, its limit allows, and those below it may take: whole units
    std::int64_t weight = 1;
    std::int64_t over_quota_priority = 0;
    std::int64_t seniority = std::numeric_limits<std::int64_t>::min();
    std::string_view name = {};
    bool hard = false;

    std::int64_t owed() const { return std::min(guarantee, most); }
    Claim claim(std::int64_t of_weight, std::int64_t bound) const { return {of_weight, bound, seniority, name}; }
};

// Less is there than is guaranteed: whole guarantees in their order, and the rest to the first that does not fit. A
// gang that needs its whole guarantee can run on it, and could not on a part.
std::vector<std::int64_t> honour_in_order(std::int64_t amount, std::span<const Member> members, std::int64_t whole) {
    std::vector<std::size_t> order(members.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) {
        const Member& member = members[i];
        return std::tuple{!member.hard, -member.over_quota_priority, member.seniority, member.name};
    });
    std::vector<std::int64_t> out(members.size());
    for (const std::size_t i : order) {
        out[i] = std::min(amount, (members[i].owed() + whole - 1) / whole * whole);
        amount -= out[i];
    }
    return out;
}

// Adds to what each was owed, and takes from what is left.
void divide_surplus(std::int64_t& left, std::span<const Member> members, std::span<const std::size_t> of_one_priority,
                    std::vector<std::int64_t>& out) {
    std::vector<Claim> claims;
    claims.reserve(of_one_priority.size());
    for (const std::size_t i : of_one_priority)
        claims.push_back(members[i].claim(members[i].weight, members[i].most - members[i].owed()));
    const std::vector<std::int64_t> given = water_fill(left, claims);
    for (std::size_t i = 0; i < given.size(); ++i) {
        out[of_one_priority[i]] += given[i];
        left -= given[i];
    }
}

// The rule, for one level. Guarantees that are honoured in order come out in multiples of `whole`.
std::vector<std::int64_t> divide_level(std::int64_t amount, std::span<const Member> members, std::int64_t whole) {
    std::vector<std::int64_t> out;
    std::int64_t left = amount;
    std::map<std::int64_t, std::vector<std::size_t>, std::greater<>> by_priority;
    for (std::size_t i = 0; i < members.size(); ++i) {
        out.push_back(members[i].owed());
        left -= out.back();
        by_priority[members[i].over_quota_priority].push_back(i);
    }
    if (left < 0) return honour_in_order(amount, members, whole);
    for (const auto& [priority, indexes] : by_priority) divide_surplus(left, members, indexes, out);
    return out;
}

// Floors, then one unit each by largest remainder, as far as the amount goes. Bounds are whole, so nobody passes its
// own.
void make_whole(std::vector<std::int64_t>& given, std::span<const Member> members, std::int64_t amount,
                std::int64_t unit) {
    std::vector<std::size_t> order(given.size());
    std::int64_t left = amount;
    for (std::size_t i = 0; i < given.size(); ++i) {
        order[i] = i;
        left -= given[i] / unit * unit;
    }
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
        return std::tuple{-(given[a] % unit), members[a].seniority, members[a].name} <
               std::tuple{-(given[b] % unit), members[b].seniority, members[b].name};
    });
    std::vector<std::int64_t> whole(given.size());
    for (const std::size_t i : order) {
        const bool one_more = left >= unit && given[i] % unit != 0;
        if (one_more) left -= unit;
        whole[i] = (given[i] / unit + (one_more ? 1 : 0)) * unit;
    }
    given = std::move(whole);
}

class Divider {
public:
    Divider(std::span<const Queue> queues, Gpus total, Grain grain)
        : queues_{queues},
          step_{grain == Grain::fine ? finest_step(queues, total) : 1},
          whole_{grain == Grain::whole ? gpu_unit : 1},
          forest_{forest_of(queues)} {
        ask();
    }

    Division divide(Gpus total) {
        hand_out(down(total), forest_.roots, nullptr);
        for (const std::size_t at : forest_.down) {
            QueueShare& queue = out_.queues[at];
            if (forest_.is_leaf(at))
                queue.own = queue.share;
            else
                hand_out(queue.share.units / step_, forest_.children[at], &at);
        }
        out_.unallocated = total;
        for (const std::size_t root : forest_.roots) out_.unallocated.units -= out_.queues[root].share.units;
        return std::move(out_);
    }

private:
    // Thousandths of a GPU where every number is one, else the units of Gpus.
    static std::int64_t finest_step(std::span<const Queue> queues, Gpus total) {
        const bool decimal = total.is_decimal() && std::ranges::all_of(queues, [](const Queue& queue) {
                                 return queue.guarantee.is_decimal() && queue.request.is_decimal() &&
                                        queue.limit.value_or(Gpus{}).is_decimal();
                             });
        return decimal ? gpu_unit / 1000 : 1;
    }

    std::int64_t down(Gpus amount) const { return amount.units / step_ / whole_ * whole_; }
    std::int64_t up(Gpus amount) const { return (amount.units / step_ + whole_ - 1) / whole_ * whole_; }

    // From the leaves up: what each asks, and what those at and below it may take.
    void ask() {
        out_.queues.resize(queues_.size());
        takes_.resize(queues_.size());
        for (std::size_t i = forest_.down.size(); i-- > 0;) {
            const std::size_t at = forest_.down[i];
            const Queue& queue = queues_[at];
            invariant(queue.guarantee >= Gpus{} && queue.request >= Gpus{} && queue.weight >= 0 &&
                          queue.limit.value_or(Gpus{}) >= Gpus{},
                      "no number of a queue is negative");
            out_.queues[at].request = out_.queues[at].request + queue.request;
            takes_[at] += up(queue.request);
            if (!queue.parent) continue;
            QueueShare& above = out_.queues[*queue.parent];
            above.request = above.request + std::min(out_.queues[at].request, queue.limit.value_or(Gpus{unbounded}));
            takes_[*queue.parent] += member(at).most;
        }
    }

    Member member(std::size_t at) const {
        const Queue& queue = queues_[at];
        Member out{queue.guarantee.units / step_,
                   std::min(takes_[at], queue.limit ? down(*queue.limit) : unbounded),
                   queue.weight,
                   queue.over_quota_priority,
                   queue.seniority,
                   queue.name,
                   queue.hard};
        if (queue.weight == 0) out.most = (out.owed() + whole_ - 1) / whole_ * whole_;
        return out;
    }

    void hand_out(std::int64_t amount, const std::vector<std::size_t>& among, const std::size_t* parent) {
        std::vector<Member> members;
        members.reserve(among.size() + 1);
        for (const std::size_t at : among) members.push_back(member(at));
        if (parent) {
            const Queue& queue = queues_[*parent];
            Gpus own = queue.guarantee;  // beyond what its children are guaranteed
            for (const std::size_t at : among)
                own.units = std::max<std::int64_t>(own.units - queues_[at].guarantee.units, 0);
            members.push_back({.guarantee = own.units / step_, .most = up(queue.request), .name = queue.name});
        }
        std::vector<std::int64_t> given = divide_level(amount, members, whole_);
        if (whole_ > 1) make_whole(given, members, amount, whole_);
        for (std::size_t i = 0; i < among.size(); ++i) out_.queues[among[i]].share = {given[i] * step_};
        if (parent) out_.queues[*parent].own = {given.back() * step_};
    }

    std::span<const Queue> queues_;
    std::int64_t step_;   // Gpus::units in the smallest amount that is handed out
    std::int64_t whole_;  // shares are multiples of so many steps
    Forest forest_;
    std::vector<std::int64_t> takes_;  // by queue, before its own limit
    Division out_;
};

}  // namespace

Division divide(std::span<const Queue> queues, Gpus total, Grain grain) {
    invariant(total >= Gpus{}, "a total to divide is not negative");
    return Divider{queues, total, grain}.divide(total);
}

}  // namespace bulkhead::sched
