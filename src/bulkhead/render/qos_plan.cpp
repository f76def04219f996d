#include "bulkhead/render/qos_plan.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace bulkhead::render {

namespace {

// Congestion notifications must not wait for what they are about.
constexpr unsigned control_priority = 6, control_mark = 48, unmarked_priority = 0;

unsigned unsigned_of(std::int64_t value) { return static_cast<unsigned>(value); }

}  // namespace

Result<std::vector<TrafficClass>> plan_traffic(const FabricPolicy& policy) {
    // The mark with the largest share is RDMA's, and lossless; flow control on more than one priority lets one stall
    // another.
    std::map<unsigned, std::optional<std::int64_t>> marks;
    for (const FabricClass& one : policy.classes) {
        if (one.dscp == 0 || one.dscp == control_mark) continue;
        auto& share = marks[unsigned_of(one.dscp)];
        if (one.sharePercent) share = one.sharePercent;
    }
    const auto lossless = unsigned_of(policy.losslessPriority);
    if (lossless == control_priority || lossless == unmarked_priority)
        return fail(Code::invalid,
                    fmt::format("priority {} is for {}, and cannot be the lossless one", lossless,
                                lossless == control_priority ? "control" : "what is unmarked"),
                    "losslessPriority: 3");
    std::vector<std::pair<std::int64_t, unsigned>> order;  // by share, the largest first
    std::int64_t asked = 0, without = 1;                   // what is unmarked has no share of its own either
    for (const auto& [mark, share] : marks) {
        order.emplace_back(-share.value_or(0), mark);
        asked += share.value_or(0);
        without += share ? 0 : 1;
    }
    std::ranges::sort(order);
    const std::int64_t rest = (100 - asked) / without;
    if (rest < 1)
        return fail(Code::exhausted,
                    fmt::format("shares of {} percent leave less than one for {} others", asked, without),
                    "smaller shares");
    std::vector<unsigned> priorities{lossless};
    for (const unsigned priority : {1u, 2u, 3u, 4u, 5u, 7u})
        if (priority != lossless) priorities.push_back(priority);
    if (order.size() > priorities.size())
        return fail(Code::exhausted,
                    fmt::format("{} marks, and {} priorities for them", order.size(), priorities.size()),
                    "let classes share marks");
    std::vector<TrafficClass> plan;
    std::int64_t given = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::int64_t share = marks[order[i].second].value_or(rest);
        given += share;
        plan.push_back({priorities[i], {order[i].second}, unsigned_of(share), i == 0});
    }
    plan.push_back({unmarked_priority, {0}, unsigned_of(100 - given), false});
    plan.push_back({control_priority, {control_mark}, 0, false});
    std::ranges::sort(plan, {}, &TrafficClass::priority);
    return plan;
}

Result<std::string> qos_plan(const FabricPolicy& policy, std::string_view interface) {
    const auto plan = plan_traffic(policy);
    if (!plan) return std::unexpected(plan.error());
    std::vector<std::string> marks, pause{"all:off"}, kinds, shares, priorities;
    for (const TrafficClass& one : *plan) {
        for (const unsigned mark : one.marks) marks.push_back(fmt::format("{}:{}", mark, one.priority));
        if (one.lossless) pause.push_back(fmt::format("{}:on", one.priority));
        // One traffic class for each priority, under its number.
        kinds.push_back(fmt::format("{}:{}", one.priority, one.share == 0 ? "strict" : "ets"));
        if (one.share != 0) shares.push_back(fmt::format("{}:{}", one.priority, one.share));
        priorities.push_back(fmt::format("{}:{}", one.priority, one.priority));
    }
    std::string out = fmt::format(
        "#!/bin/sh\n# Written by `bulkhead render qos`: how {0} treats packets by their marks. Switches must do the "
        "same.\n"
        "set -e\n"
        "dcb app replace dev {0} dscp-prio {1}\n"
        "dcb pfc set dev {0} prio-pfc {2}\n"
        "dcb ets set dev {0} prio-tc {3} tc-tsa {4} tc-bw {5}\n",
        interface, fmt::join(marks, " "), fmt::join(pause, " "), fmt::join(priorities, " "), fmt::join(kinds, " "),
        fmt::join(shares, " "));
    out += "# With NVIDIA's tool, where dcb cannot say it: mlnx_qos -i " + std::string{interface} + " --trust dscp\n";
    out +=
        "# Ports must trust the mark, not the tag: the priority in a tenant's VLAN tag is the upper three bits of its "
        "mark, and need not be the one above.\n"
        "# Set by each node's agent, on the host's side of each function:\n";
    for (const FabricClass& one : policy.classes)
        out += fmt::format("#   {}: {}, marked {} (NCCL_IB_TC={}); its tag says priority {}\n",
                           one.tenantClass.empty() ? "every other class" : one.tenantClass,
                           one.rateMbps == 0 ? "no limit" : fmt::format("at most {} Mbit/s a function", one.rateMbps),
                           one.dscp, one.dscp << 2, one.dscp >> 3);
    return out;
}

}  // namespace bulkhead::render
