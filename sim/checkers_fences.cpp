// What nodes found at their own fences. That something got through is what a node said and the control plane
// acknowledged; it stays with the node, in whatever was made durable, until the node has said that it was stopped.
#include <fmt/core.h>

#include <algorithm>

#include "sim/checkers.hpp"
#include "sim/reading.hpp"

namespace bulkhead::sim {

namespace json = boost::json;

namespace {

bool shows_something_open(const std::string& node_row) {
    if (!node_row.contains("\"fabricTests\"")) return false;
    const json::value parsed = json::parse(node_row);
    const json::array& tests = parsed.at("status").at("fabricTests").as_array();
    return std::ranges::any_of(tests, [](const json::value& test) {
        const json::value* through = test.as_object().if_contains("through");
        return through != nullptr && !through->as_array().empty();
    });
}

}  // namespace

// A statement that nothing got through counts from when it was made: it may be durable long before it is acknowledged,
// also where the agent died over it. One that something got through counts when it is acknowledged.
void Checkers::fences_tested(const std::string& node, std::int64_t report, FabricFound found) {
    unasked_since_restore_.erase(node);
    probe(fmt::format("fences were tested: {}", word(found)));
    if (found != FabricFound::unproven) fences_[node].said.emplace_back(report, found == FabricFound::open);
}

// The last that the node said is that something gets through, and that was acknowledged.
bool Checkers::is_known_open(const std::string& node) const {
    const auto fences = fences_.find(node);
    if (fences == fences_.end() || fences->second.said.empty()) return false;
    const auto& [report, open] = fences->second.said.back();
    return open && report <= fences->second.acknowledged;
}

void Checkers::check_fences(const std::string& node) {
    if (!is_known_open(node)) return;
    probe("a node was kept away for its fences");
    if (!fences_[node].shown)
        violate(13, fmt::format("{} said that something gets through its fences, and nobody remembers", node));
}

void Checkers::read_fences(const Row& row) {
    const std::string node = node_named(row.key);
    fences_[node].shown = shows_something_open(row.body);
    check_fences(node);
}

void Checkers::acknowledged_fences(const std::string& node, std::int64_t report) {
    Fences& fences = fences_[node];
    fences.acknowledged = std::max(fences.acknowledged, report);
    check_fences(node);
}

// What was acknowledged may be forgotten now: whoever has fences must be asked.
void Checkers::restored_fences() {
    for (auto& [node, fences] : fences_)
        std::erase_if(fences.said, [&](const auto& one) { return one.first <= fences.acknowledged; });
    unasked_since_restore_.clear();
    for (const auto& [key, body] : rows_)
        if (key.first == Table::node) {
            const std::string node = node_named(key.second);
            fences_[node].shown = shows_something_open(body);
            unasked_since_restore_.insert(node);
        }
}

void Checkers::check_fences_at_rest() {
    for (const std::string& node : unasked_since_restore_)
        violate(13, fmt::format("{} was never asked for its fences after a restore", node));
}

}  // namespace bulkhead::sim
