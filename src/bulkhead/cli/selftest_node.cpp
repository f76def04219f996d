#include "bulkhead/cli/selftest_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ostream>
#include <set>
#include <thread>

#include "bulkhead/cli/objects.hpp"
#include "bulkhead/codec/print.hpp"

namespace bulkhead::cli {

namespace {

using std::chrono::steady_clock;

// A NIC's links take seconds to come up, several times in each test.
constexpr std::chrono::seconds answer_patience{180}, rest_patience{90};

Result<GpuNode> node_of(Client& client, const std::string& name) {
    const auto reply = client.get(target_of("nodes", name));
    if (!reply) return std::unexpected(reply.error());
    auto object = read_object(reply->body);
    if (!object) return std::unexpected(object.error());
    if (GpuNode* node = std::get_if<GpuNode>(&*object)) return std::move(*node);
    return fail(Code::corrupt, "the server answers with something that is no node",
                "see that its version is this one's");
}

std::size_t tests_of(const GpuNodeStatus& status, std::int64_t ticket) {
    return static_cast<std::size_t>(std::ranges::count(status.fabricTests, ticket, &NodeFabricTest::ticket));
}

// Each NIC is tested with all of the fences and with its own alone; one whose functions are all held is not.
Result<GpuNode> wait_for_tests(Client& client, const std::string& name, std::int64_t ticket) {
    const auto until = steady_clock::now() + answer_patience;
    auto rest_until = until;
    std::size_t seen = 0;
    for (;;) {
        auto node = node_of(client, name);
        if (!node) return node;
        const auto& request = node->status.fabricTestRequest;
        if (!request || request->ticket != ticket)
            return fail(Code::conflict, fmt::format("somebody else has asked node {} for a test since", name),
                        "ask again");
        if (!request->why.empty())
            return fail(Code::unavailable, fmt::format("node {} made no test: {}", name, request->why),
                        "ask again when two functions of a NIC are free");
        std::set<std::string_view> nics;
        for (const NodeFunction& function : node->status.functions) nics.insert(function.physical);
        const std::size_t made = tests_of(node->status, ticket);
        if (made >= 2 * nics.size() && made > 0) return node;
        if (made > seen) rest_until = steady_clock::now() + rest_patience;
        seen = made;
        if (seen > 0 && steady_clock::now() > rest_until) return node;
        if (seen == 0 && steady_clock::now() > until)
            return fail(Code::timeout, fmt::format("node {} has not answered", name),
                        fmt::format("`bulkhead get node {} -o yaml` shows it when it has", name));
        std::this_thread::sleep_for(std::chrono::milliseconds{250});
    }
}

std::string joined_names(const std::vector<std::string>& names) {
    return names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string_view paint_of(FabricFound found) {
    return found == FabricFound::closed ? green : found == FabricFound::open ? red : yellow;
}

std::string fence_text(const NodeFabricTest& test) {
    std::string text{word(test.found)};
    if (test.found == FabricFound::closed) text += fmt::format(" ({} stopped)", test.stopped.size());
    if (test.found == FabricFound::open) text += fmt::format(" to {}", joined_names(test.through));
    if (test.found == FabricFound::unproven) text += fmt::format(": {}", test.why);
    return fmt::format("{}, {}, log record {}", text, word(test.grade), test.record);
}

std::vector<std::string> untested_nics(const GpuNodeStatus& status, FabricFence fence) {
    std::set<std::string> nics;
    for (const NodeFunction& function : status.functions)
        if (!function.physical.empty()) nics.insert(function.physical);
    for (const NodeFabricTest& test : status.fabricTests)
        if (test.fence == fence) nics.erase(test.nic);
    return {nics.begin(), nics.end()};
}

int test_node_fences(const NodeTestOptions& options, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto reply = client->post(target_of("nodes", options.node) + "/test-fabric", "{}");
    if (!reply) return report(context, reply.error());
    const auto asked = node_of(*client, options.node);
    if (!asked) return report(context, asked.error());
    if (!asked->status.fabricTestRequest)
        return report(context, {Code::corrupt, "the server knows nothing of what it was asked", "ask again"});
    const std::int64_t ticket = asked->status.fabricTestRequest->ticket;
    const auto node = wait_for_tests(*client, options.node, ticket);
    if (!node) return report(context, node.error());
    std::vector<Row> rows{{{"NIC"}, {"FENCE"}, {"FOUND"}, {"GOT THROUGH"}, {"NOT SHOWN"}, {"GRADE"}, {"RECORD"}}};
    bool open = false, unproven = false;
    for (const NodeFabricTest& test : node->status.fabricTests) {
        if (test.ticket != ticket) continue;
        std::vector<std::string> not_shown = test.unclear;
        not_shown.insert(not_shown.end(), test.untried.begin(), test.untried.end());
        if (!test.why.empty()) not_shown.push_back(test.why);
        open = open || (test.fence == FabricFence::on && test.found == FabricFound::open);
        unproven = unproven || test.found == FabricFound::unproven;
        rows.push_back({{test.nic},
                        {std::string{word(test.fence)}},
                        {std::string{word(test.found)}, paint_of(test.found)},
                        {joined_names(test.through)},
                        {joined_names(not_shown)},
                        {std::string{word(test.grade)}},
                        {std::to_string(test.record)}});
        if (options.output == "json") context.out << to_compact_json(test) << '\n';
    }
    if (options.output != "json") print_table(context.out, rows, 2, context.colour);
    return open ? refused : unproven ? could_not : done;
}

}  // namespace bulkhead::cli
