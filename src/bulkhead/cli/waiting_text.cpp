#include "bulkhead/cli/waiting_text.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bulkhead/cli/client.hpp"
#include "bulkhead/codec/decode.hpp"

namespace bulkhead::cli {

namespace {

bool holds(const std::vector<std::string>& list, const std::string& text) {
    return std::ranges::find(list, text) != list.end();
}

// Nodes on which no work was named, by what is in the way there: "n3, n4 (neighbours); n5 (closed)".
std::string other_nodes(const sched::InTheWay& way) {
    std::map<sched::Obstacle, std::vector<std::string>> by_obstacle;
    for (const sched::NodeInTheWay& node : way.nodes) {
        const bool named = std::ranges::any_of(
            way.mustEnd, [&](const sched::WorkInTheWay& work) { return holds(work.nodes, node.node); });
        if (!node.node.empty() && !named && node.obstacle != sched::Obstacle::none)
            by_obstacle[node.obstacle].push_back(node.node);
    }
    std::vector<std::string> parts;
    parts.reserve(by_obstacle.size());
    for (const auto& [obstacle, nodes] : by_obstacle)
        parts.push_back(fmt::format("{} ({})", fmt::join(nodes, ", "), word(obstacle)));
    return fmt::format("{}", fmt::join(parts, "; "));
}

std::optional<sched::InTheWay> way_in(const Node& answer) {
    const Node* node = answer.find("inTheWay");
    if (node == nullptr) return std::nullopt;
    sched::InTheWay way;
    std::vector<Diagnostic> errors;
    if (!decode(*node, "the answer", way, errors)) return std::nullopt;
    return way;
}

std::vector<std::string> texts_at(const Node& node, std::string_view name) {
    std::vector<std::string> out;
    if (const Node* list = node.find(name))
        for (const Node* each : list->items) out.push_back(each->text);
    return out;
}

void add_changes(std::vector<std::string>& out, const std::vector<std::string>& before,
                 const std::vector<std::string>& after) {
    for (const std::string& each : before)
        if (!holds(after, each)) out.push_back("- " + each);
    for (const std::string& each : after)
        if (!holds(before, each)) out.push_back("+ " + each);
}

}  // namespace

std::vector<std::string> lines_of(const sched::InTheWay& way) {
    std::vector<std::string> lines;
    lines.reserve(way.mustEnd.size() + 3);
    for (const sched::WorkInTheWay& work : way.mustEnd) lines.push_back(work.says);
    if (const std::string nodes = other_nodes(way); !nodes.empty())
        lines.push_back(fmt::format("{}: {}", way.mustEnd.empty() ? "nodes" : "other nodes", nodes));
    if (!way.reservedFor.empty())
        lines.push_back(
            fmt::format("free GPUs are reserved for the guarantees of {}", fmt::join(way.reservedFor, ", ")));
    if (!way.expectedSays.empty()) lines.push_back(way.expectedSays);
    return lines;
}

std::vector<std::string> lines_in_the_way(const Node& answer) {
    const auto way = way_in(answer);
    return way ? lines_of(*way) : std::vector<std::string>{};
}

std::vector<std::string> changes_between(const WaitSeen& before, const WaitSeen& after) {
    std::vector<std::string> out;
    if (before.phase != after.phase) out.push_back(fmt::format("phase: {} (was {})", after.phase, before.phase));
    add_changes(out, before.reasons, after.reasons);
    add_changes(out, before.in_the_way, after.in_the_way);
    const auto or_unknown = [](const std::string& text) { return text.empty() ? std::string{"unknown"} : text; };
    if (before.expected_start != after.expected_start)
        out.push_back(fmt::format("expected start: {} (was {})", or_unknown(after.expected_start),
                                  or_unknown(before.expected_start)));
    return out;
}

QueueSeen queue_seen(const Node& answer) {
    QueueSeen out;
    const Node* items = answer.find("items");
    if (items == nullptr) return out;
    for (const Node* item : items->items) {
        WaitSeen seen{.phase = text_at(*item, "phase"),
                      .reasons = texts_at(*item, "reasons"),
                      .expected_start = text_at(*item, "expectedStart"),
                      .in_the_way = {}};
        if (auto way = way_in(*item)) {
            if (way->expectedStart) seen.expected_start = print(*way->expectedStart);
            // Times that go on by themselves are no change.
            for (sched::WorkInTheWay& work : way->mustEnd)
                seen.in_the_way.push_back(work.workload.empty()
                                              ? work.says
                                              : fmt::format("job {} of tenant {} would have to end ({})", work.workload,
                                                            work.tenant, word(work.stays)));
        }
        out[fmt::format("{}/{}", text_at(*item, "tenant"), text_at(*item, "workload"))] = std::move(seen);
    }
    return out;
}

std::vector<std::string> changes_between(const QueueSeen& before, const QueueSeen& after) {
    std::vector<std::string> out;
    for (const auto& [name, seen] : before)
        if (!after.contains(name)) out.push_back(fmt::format("{} waits no more", name));
    for (const auto& [name, seen] : after) {
        const auto known = before.find(name);
        if (known == before.end()) {
            out.push_back(fmt::format("{} waits ({})", name, seen.phase));
            for (const std::string& line : changes_between(WaitSeen{.phase = seen.phase}, seen))
                out.push_back("  " + line);
            continue;
        }
        if (known->second == seen) continue;
        out.push_back(fmt::format("{} waits for something else", name));
        for (const std::string& line : changes_between(known->second, seen)) out.push_back("  " + line);
    }
    return out;
}

}  // namespace bulkhead::cli
