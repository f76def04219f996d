// What nodes find when they attack their own fences: believed by their signature alone, kept with the node and in the
// log, and told to every lease whose functions are behind those fences.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bulkhead/core/state.hpp"
#include "bulkhead/evidence/fabric_statement.hpp"

namespace bulkhead {

namespace {

bool has_nic(const GpuNodeStatus& status, const std::string& nic) {
    return std::ranges::find(status.functions, nic, &NodeFunction::physical) != status.functions.end();
}

Result<evidence::FabricStatement> check_statement(const Core::State& state, const NodeRun& node,
                                                  const FabricTestReport& report) {
    if (!node.public_key) return fail(Code::denied, "the node has no evidence key on record", "enrol it again");
    if (auto genuine = evidence::verify_statement(*node.public_key, report.evidence); !genuine)
        return std::unexpected(genuine.error());
    auto statement = evidence::read_fabric_statement(report.evidence.statement);
    if (!statement) return statement;
    if (statement->node != node.object.metadata.name)
        return fail(Code::invalid, fmt::format("the statement is about node {}", statement->node.substr(0, 64)));
    if (statement->ticket != report.ticket)
        return fail(Code::invalid, "the statement is about another test, under another ticket");
    if (!has_nic(node.object.status, statement->nic))
        return fail(Code::invalid, fmt::format("the node has no functions of NIC {}", statement->nic.substr(0, 64)));
    if (statement->fence == FabricFence::off)
        return fail(Code::invalid, "a test with the fences off says nothing of them");
    if (state.settings.simulated_fleet && statement->grade != Grade::simulated && statement->grade != Grade::emulated)
        return fail(Code::invalid, "a simulated node cannot show more than a simulation");
    return statement;
}

bool is_awaited(const NodeRun& node, Key ticket) {
    const auto& request = node.object.status.fabricTestRequest;
    return request && request->ticket == ticket && !request->answered;
}

void answer_request(Turn& turn, NodeRun& node, Key ticket, std::string why) {
    if (!is_awaited(node, ticket)) return;
    auto& request = node.object.status.fabricTestRequest;
    request->answered = true;
    request->why = std::move(why);
    turn.changed_nodes.insert(node.key);
}

void want_test(Turn& turn, NodeRun& node) {
    node.object.status.fabricTestRequest =
        FabricTestRequest{.ticket = key_of(turn.state.epoch, ++node.tickets), .answered = false, .why = {}};
    turn.changed_nodes.insert(node.key);
}

LeasedFence known_fence(const NodeRun& node, const std::string& nic, FabricFence fence) {
    LeasedFence known{.node = node.object.metadata.name, .nic = nic, .fence = fence};
    for (const NodeFabricTest& test : node.object.status.fabricTests) {
        if (test.nic != nic || test.fence != fence) continue;
        known.found = test.found;
        known.open = test.through;
        known.unproven = test.unclear;
        if (fence == FabricFence::on)  // behind a kernel of its own a tenant may do there what it likes
            known.unproven.insert(known.unproven.end(), test.untried.begin(), test.untried.end());
        known.grade = test.grade;
        known.record = test.record;
        known.digest = test.digest;
    }
    return known;
}

}  // namespace

void disclose_fences(Turn& turn, LeaseRun& lease) {
    const GpuLeaseSpec& spec = lease.object.spec;
    std::vector<LeasedFence> fences;
    for (const LeasedDevice& function : spec.functions) {
        const NodeRun* node = turn.state.find_node(function.node);
        if (node == nullptr) continue;
        const std::vector<NodeFunction>& all = node->object.status.functions;
        const auto index = static_cast<std::size_t>(function.index);
        const std::string nic = index < all.size() ? all[index].physical : std::string{};
        const auto same = [&](const LeasedFence& one) { return one.node == function.node && one.nic == nic; };
        if (std::ranges::none_of(fences, same)) fences.push_back(known_fence(*node, nic, fence_of(spec.tier)));
    }
    if (lease.object.status->fences == fences) return;
    lease.object.status->fences = std::move(fences);
    turn.changed_leases.insert(lease.key);
}

namespace {

void tell_leases(Turn& turn, NodeRun& node) {
    for (const Key key : node.leases)
        if (const auto lease = turn.state.leases.find(key); lease != turn.state.leases.end())
            disclose_fences(turn, lease->second);
    turn.changed_nodes.insert(node.key);
    turn.state.declared_stale = true;  // contracts say what was found, and some are refused by it
    turn.state.cycle_wanted = true;
}

}  // namespace

void on_fabric_report(Turn& turn, NodeRun& node, const FabricTestReport& report) {
    const std::string& name = node.object.metadata.name;
    evidence::Record record{
        .kind = evidence::RecordKind::refused, .actor = "node:" + name, .object = "GpuNode/" + name, .node = name};
    record.detail["what"] = "fabric-selftest";
    if (report.evidence.statement.empty()) {
        if (!is_awaited(node, report.ticket)) return;  // nobody asked, or it was told before
        record.detail["why"] = report.why;
        turn.log(std::move(record));
        return answer_request(turn, node, report.ticket, report.why.empty() ? "the node does not say" : report.why);
    }
    const auto statement = check_statement(turn.state, node, report);
    if (!statement) {  // evidence that does not fit is no evidence
        record.detail["why"] = "the evidence does not hold";
        record.detail["evidence"] = statement.error().what;
        turn.log(std::move(record));
        return answer_request(turn, node, report.ticket, "the evidence does not hold: " + statement.error().what);
    }
    NodeFabricTest test = evidence::summary_of(*statement, report.evidence.statement);
    std::vector<NodeFabricTest>& tests = node.object.status.fabricTests;
    if (std::ranges::find(tests, test.digest, &NodeFabricTest::digest) != tests.end()) return;  // told before
    record.kind = evidence::RecordKind::fabric_tested;
    record.unit = "nic " + statement->nic;
    record.detail = {{"found", std::string{word(test.found)}}, {"fence", std::string{word(test.fence)}}};
    if (!test.through.empty()) record.detail["through"] = fmt::format("{}", fmt::join(test.through, ", "));
    if (!test.why.empty()) record.detail["why"] = test.why;
    record.grade = statement->grade;
    record.evidence = report.evidence;
    test.record = turn.log(std::move(record));
    std::erase_if(tests, [&](const NodeFabricTest& one) { return one.nic == test.nic && one.fence == test.fence; });
    tests.push_back(std::move(test));
    std::ranges::sort(tests, {}, [](const NodeFabricTest& one) { return std::pair{one.nic, one.fence}; });
    answer_request(turn, node, report.ticket, {});
    tell_leases(turn, node);
}

void on_test_fabric(Turn& turn, const command::TestFabric& wanted, Answer& answer) {
    const auto refuse = [&](Code code, std::string what, std::string remedy) {
        answer.outcome = fail(code, std::move(what), std::move(remedy));
    };
    NodeRun* node = turn.state.find_node(wanted.node);
    if (node == nullptr) {
        answer.outcome = there_is_no("GpuNode", wanted.node);
        return;
    }
    if (node->session == 0)
        return refuse(Code::unavailable, fmt::format("node {} is not connected", wanted.node),
                      "see its agent; it tests its fences by itself when it starts");
    if (node->protocol < agent_protocol_fabric_test)
        return refuse(Code::unavailable, fmt::format("the agent of node {} is too old to test its fences", wanted.node),
                      "update it");
    if (node->object.status.functions.empty())
        return refuse(Code::not_found, fmt::format("node {} has no virtual functions", wanted.node),
                      "name its NIC on its agent's command line: --tenant-nic");
    want_test(turn, *node);
    send_orders(turn, *node);
}

void keep_fabric_tests(const NodeRun& node, GpuNodeStatus& inventory, const std::string& boot) {
    inventory.fabricTests = node.object.status.fabricTests;
    inventory.fabricTestRequest = node.object.status.fabricTestRequest;
    std::erase_if(inventory.fabricTests, [&](const NodeFabricTest& test) {
        return !has_nic(inventory, test.nic) || (!boot.empty() && test.boot != boot);
    });
}

void forget_fabric_tests(Turn& turn) {
    for (auto& [key, node] : turn.state.nodes) {
        if (node.object.status.functions.empty()) continue;
        const bool knew = !std::exchange(node.object.status.fabricTests, {}).empty();
        if (!knew) continue;
        want_test(turn, node);
        tell_leases(turn, node);
    }
}

}  // namespace bulkhead
