#include "bulkhead/cli/schedule_text.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "bulkhead/cli/ruled.hpp"
#include "bulkhead/cli/waiting_text.hpp"

namespace bulkhead::cli {

namespace {

using sched::Seat;
using sched::TaskSeat;

const sched::SceneJob& job_of(const ScheduleAnswer& answer, std::int64_t key) {
    return answer.scene.jobs[static_cast<std::size_t>(key - 1)];
}

const std::string& tenant_of(const ScheduleAnswer& answer, std::int64_t key) {
    return answer.scene.tenants[job_of(answer, key).job.tenant].name;
}

// Indexes as people write them: 0-3,6.
std::string ranges(const std::set<std::uint16_t>& indexes) {
    std::string text;
    for (auto at = indexes.begin(); at != indexes.end();) {
        auto last = at;
        while (std::next(last) != indexes.end() && *std::next(last) == *last + 1) ++last;
        if (!text.empty()) text += ',';
        text += at == last ? fmt::format("{}", *at) : fmt::format("{}-{}", *at, *last);
        at = std::next(last);
    }
    return text;
}

// A slice or a share; whole GPUs are told together.
std::string part_of(const Seat& seat) {
    std::string text;
    if (!seat.profile.empty()) text += fmt::format("{}@{}", seat.profile, seat.start);
    if (seat.share < 1000)
        text += fmt::format("{}{}", seat.profile.empty() ? "" : " ", print(Gpus::of_thousandths(seat.share)));
    return text;
}

bool is_whole(const Seat& seat) { return seat.profile.empty() && seat.share >= 1000; }

// "n1[0-7] n2[0,1:3g.40gb@4,2:3x0.25]", with the nodes in the order of the tasks.
std::string places(const ScheduleAnswer& answer, const std::vector<TaskSeat>& tasks) {
    std::vector<std::uint32_t> nodes;
    for (const TaskSeat& task : tasks)
        if (std::ranges::find(nodes, task.node) == nodes.end()) nodes.push_back(task.node);
    std::vector<std::string> words;
    for (const std::uint32_t node : nodes) {
        std::set<std::uint16_t> whole;
        std::map<std::pair<std::uint16_t, std::string>, int> shared;
        for (const TaskSeat& task : tasks) {
            if (task.node != node) continue;
            for (std::size_t i = 0; i < task.gpus.size(); ++i)
                if (is_whole(task.seats[i]))
                    whole.insert(task.gpus[i]);
                else
                    ++shared[{task.gpus[i], part_of(task.seats[i])}];
        }
        std::vector<std::string> parts;
        if (!whole.empty()) parts.push_back(ranges(whole));
        for (const auto& [part, count] : shared)
            parts.push_back(
                fmt::format("{}:{}{}", part.first, count == 1 ? "" : fmt::format("{}x", count), part.second));
        words.push_back(answer.scene.nodes[node].name);
        if (!parts.empty()) words.back() += fmt::format("[{}]", fmt::join(parts, ","));
    }
    return fmt::format("{}", fmt::join(words, " "));
}

std::string node_names(const ScheduleAnswer& answer, const std::vector<std::uint32_t>& nodes) {
    std::vector<std::string_view> names;
    for (const std::uint32_t node : nodes)
        if (std::ranges::find(names, answer.scene.nodes[node].name) == names.end())
            names.push_back(answer.scene.nodes[node].name);
    return fmt::format("{}", fmt::join(names, " "));
}

std::string since(const ScheduleAnswer& answer, std::int64_t key) {
    std::string text = "before";
    for (const auto& bound : answer.played.bindings)
        if (bound.what.workload == key)
            text = fmt::format("cycle {}{}", bound.cycle, bound.what.backfilled ? ", backfilled" : "");
    return text;
}

void print_running(std::ostream& out, const ScheduleAnswer& answer) {
    Ruled table{{"Job", "Tenant", "Tasks", "Started", "Where"}, 5};
    for (const sched::Binding& each : answer.played.running)
        table.add({job_of(answer, each.workload).name, tenant_of(answer, each.workload),
                   fmt::format("{} of {}", each.tasks.size(), job_of(answer, each.workload).job.tasks),
                   since(answer, each.workload), places(answer, each.tasks)});
    if (table.empty())
        out << "nothing runs\n";
    else
        table.print(out);
}

void print_evictions(std::ostream& out, const ScheduleAnswer& answer) {
    if (answer.played.evictions.empty()) return;
    out << '\n';
    Ruled table{{"Evicted", "Tenant", "Action", "For", "Cycle", "Tasks", "GPU-seconds lost", "From"}, 4};
    for (const auto& [cycle, each] : answer.played.evictions)
        table.add({job_of(answer, each.workload).name, tenant_of(answer, each.workload), std::string{word(each.action)},
                   each.claimant == 0 ? "-" : job_of(answer, each.claimant).name, fmt::format("{}", cycle),
                   each.whole ? fmt::format("all {}", each.tasks) : fmt::format("{}", each.tasks),
                   print(Gpus::of_thousandths(each.lost_gpu_ms)), node_names(answer, each.nodes)});
    table.print(out);
    for (const auto& [cycle, each] : answer.played.evictions)
        for (const Reason& reason : each.reasons)
            out << fmt::format("  {}: {}\n", job_of(answer, each.workload).name, says(reason));
}

void print_moves(std::ostream& out, const ScheduleAnswer& answer) {
    if (answer.played.moves.empty()) return;
    out << '\n';
    Ruled table{{"Moved", "Tenant", "For", "From", "To"}, 5};
    for (const auto& [cycle, each] : answer.played.moves)
        table.add({job_of(answer, each.workload).name, tenant_of(answer, each.workload),
                   job_of(answer, each.claimant).name, node_names(answer, each.from), places(answer, each.to)});
    table.print(out);
}

void print_waiting(std::ostream& out, const ScheduleAnswer& answer) {
    if (!answer.played.waiting.empty()) out << "\nWaiting:\n";
    for (const sched::Waiting& each : answer.played.waiting) {
        const sched::SceneJob& job = job_of(answer, each.workload);
        out << fmt::format("  {} ({}, {} task{})\n", job.name, tenant_of(answer, each.workload), job.job.tasks,
                           job.job.tasks == 1 ? "" : "s");
        for (const Reason& reason : each.reasons) out << fmt::format("    - {}\n", says(reason));
        if (each.blocking) {
            const std::vector<std::string> lines = lines_of(in_the_way(answer, *each.blocking));
            if (!lines.empty()) out << "    in the way:\n";
            for (const std::string& line : lines) out << fmt::format("    - {}\n", line);
        }
    }
}

void print_refused(std::ostream& out, const ScheduleAnswer& answer) {
    if (!answer.scene.refused.empty()) out << "\nRefused by policy:\n";
    for (const Refusal& each : answer.scene.refused) {
        out << fmt::format("  {} ({})\n", each.workload, each.tenant);
        for (const Objected& objection : each.objections) out << fmt::format("    - {}\n", objection.says);
    }
}

void print_tenants(std::ostream& out, const ScheduleAnswer& answer) {
    std::vector<std::string> words;
    words.reserve(answer.scene.tenants.size());
    for (std::size_t i = 0; i < answer.scene.tenants.size(); ++i) {
        const std::string held = print(answer.played.tenants[i].held), due = print(answer.played.tenants[i].due);
        const bool fraction = held.find('/') != std::string::npos || due.find('/') != std::string::npos;
        words.push_back(fmt::format("{} {}{}{}", answer.scene.tenants[i].name, held, fraction ? " of " : "/", due));
    }
    if (!words.empty()) out << fmt::format("\nGPUs held/due: {}\n", fmt::join(words, ", "));
}

void print_over_limit(std::ostream& out, const ScheduleAnswer& answer) {
    if (!answer.played.over_limit.empty()) out << "\nOver their limit:\n";
    for (const sched::OverLimit& each : answer.played.over_limit) {
        const std::string kept =
            each.kept > Gpus{} ? fmt::format(" and keeps {} closed to others", print(each.kept)) : "";
        const std::string fixed =
            each.fixed > Gpus{} ? fmt::format("; work that may not be preempted leases {}", print(each.fixed)) : "";
        const bool waits = each.fixed < each.held;
        out << fmt::format("  {} leases {} GPUs{}, and its limit is {}{}{}\n", answer.scene.tenants[each.tenant].name,
                           print(each.held), kept, print(each.limit), fixed,
                           waits ? "; other work of it has not run its minimum time" : "");
    }
}

}  // namespace

sched::InTheWay in_the_way(const ScheduleAnswer& answer, const sched::Blocking& blocking) {
    const sched::BlockingNames names{
        .node = [&](std::uint32_t node) { return answer.scene.nodes[node].name; },
        .workload = [&](std::int64_t key) { return job_of(answer, key).name; },
        .tenant = [&](sched::TenantNo tenant) { return answer.scene.tenants[tenant].name; },
        .is_own = [](sched::TenantNo) { return true; },
    };
    return sched::in_the_way(blocking, names, Audience::fleet_operator);
}

std::string says(const Reason& reason) {
    const std::string_view words = sched::words_of(reason.code);
    if (words == "{code}") return std::string{reason.code};
    return fill(words, reason.arguments, Audience::fleet_operator);
}

void print_schedule(std::ostream& out, const ScheduleAnswer& answer) {
    const sched::Played& played = answer.played;
    out << fmt::format("{} after {} cycle{}, at {}\n\n", played.settled ? "settled" : "not settled", played.cycles,
                       played.cycles == 1 ? "" : "s", print(answer.scene.now));
    print_running(out, answer);
    print_evictions(out, answer);
    print_moves(out, answer);
    for (const auto& [cycle, node] : played.reboots)
        out << fmt::format("\nrebooted in cycle {}: {}\n", cycle, answer.scene.nodes[node].name);
    print_waiting(out, answer);
    print_refused(out, answer);
    print_tenants(out, answer);
    print_over_limit(out, answer);
}

}  // namespace bulkhead::cli
