#include "bulkhead/cli/selftest_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ostream>
#include <set>
#include <thread>
#include <utility>

#include "bulkhead/cli/objects.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/policy/fabric_terms.hpp"

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
        if (!request)
            return fail(Code::unavailable, fmt::format("node {} has no virtual functions any more", name),
                        "see its agent's log");
        if (request->ticket != ticket)
            return fail(Code::conflict, fmt::format("somebody else has asked node {} for a test since", name),
                        "ask again");
        const std::size_t made = tests_of(node->status, ticket);
        // The reason comes last: of its NICs some may have been tested.
        if (!request->why.empty() && made > 0) return node;
        if (!request->why.empty())
            return fail(Code::unavailable, fmt::format("node {} made no test: {}", name, request->why),
                        "ask again when two functions of a NIC are free");
        std::set<std::string_view> nics;
        for (const NodeFunction& function : node->status.functions)
            if (!function.physical.empty()) nics.insert(function.physical);
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

std::string request_why(const GpuNodeStatus& status) {
    const auto& request = status.fabricTestRequest;
    return request && !request->why.empty() ? ": " + request->why : std::string{};
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
    if (is_left_over(test)) text += fmt::format(" ({})", test.why);
    if (test.found == FabricFound::unproven) text += fmt::format(": {}", test.why);
    return fmt::format("{}, {}, log record {}", text, word(test.grade), test.record);
}

std::vector<std::string> untested_nics(const GpuNodeStatus& status, FabricFence fence) {
    std::set<std::string> nics;
    for (const NodeFunction& function : status.functions)
        if (!function.physical.empty()) nics.insert(function.physical);
    for (const NodeFabricTest& test : status.fabricTests)
        if (test.fence == fence && !is_left_over(test)) nics.erase(test.nic);
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
    std::set<std::string> untested;
    for (const NodeFunction& function : node->status.functions)
        if (!function.physical.empty()) untested.insert(function.physical);
    std::set<std::pair<std::string, FabricFence>> made;
    for (const NodeFabricTest& test : node->status.fabricTests) {
        if (test.ticket != ticket && !is_left_over(test)) continue;
        if (test.ticket == ticket) made.emplace(test.nic, test.fence);
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
    std::erase_if(untested, [&](const std::string& nic) {
        return made.contains({nic, FabricFence::on}) && made.contains({nic, FabricFence::nic});
    });
    if (!untested.empty())
        context.err << fmt::format("not tested, or not with both fences: {}{}\n", fmt::join(untested, ", "),
                                   request_why(node->status));
    return open ? refused : unproven || !untested.empty() ? could_not : done;
}

}  // namespace bulkhead::cli
