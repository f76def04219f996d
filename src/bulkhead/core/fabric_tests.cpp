// What nodes find when they attack their own fences: believed by their signature alone, kept with the node and in the
// log, and told to every lease whose functions are behind those fences.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "bulkhead/core/state.hpp"
#include "bulkhead/evidence/fabric_statement.hpp"

namespace bulkhead {

namespace {

// Records of one node's tests in an hour that nobody asked for: some restarts of an agent with eight NICs. Whoever has
// a node's key cannot fill the log with more.
constexpr std::int64_t unasked_records_an_hour = 128;
// What the node says in words of its own, and what is kept of one NIC and fence, and of all of them.
constexpr std::size_t why_bytes_max = 512, older_tests_max = 16, tests_max = 1'024;

bool has_nic(const GpuNodeStatus& status, const std::string& nic) {
    return std::ranges::find(status.functions, nic, &NodeFunction::physical) != status.functions.end();
}

// A function that is away, or whose NIC cannot be reached now, does not say of which NIC it is.
bool may_have_nic(const GpuNodeStatus& status, const std::string& nic) {
    return has_nic(status, nic) || has_nic(status, {});
}

std::string cut_short(std::string why) {
    if (why.size() <= why_bytes_max) return why;
    std::size_t end = why_bytes_max;
    while (end > 0 && (static_cast<unsigned char>(why[end]) & 0xC0U) == 0x80U) --end;  // no half of a letter
    why.resize(end);
    return why;
}

bool is_within_budget(const Turn& turn, NodeRun& node) {
    if (turn.now - node.fabric_hour >= Duration::hours(1) || turn.now < node.fabric_hour) {
        node.fabric_hour = turn.now;
        node.fabric_records = 0;
    }
    return ++node.fabric_records <= unasked_records_an_hour;
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
    if (!may_have_nic(node.object.status, statement->nic))
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

// Of a test that does not speak for the node as it is now, what got through is left: nothing has shown it stopped.
void leave_what_got_through(NodeFabricTest& test) {
    test.found = FabricFound::open;
    test.stopped.clear();
    test.unclear.clear();
    test.untried.clear();
    test.why = "found earlier, and not seen to be stopped since";
}

void strike_out(std::vector<std::string>& through, const std::vector<std::string>& names) {
    std::erase_if(through, [&](const std::string& one) { return std::ranges::find(names, one) != names.end(); });
}

bool is_of_same(const NodeFabricTest& one, const NodeFabricTest& other) {
    return one.nic == other.nic && one.fence == other.fence;
}

// The newest of a NIC and a fence; and of older ones what got through then and was not seen to be stopped since. A test
// of another boot can only add to that.
void keep_test(std::vector<NodeFabricTest>& tests, NodeFabricTest test, bool is_of_this_boot) {
    if (is_of_this_boot) {
        for (NodeFabricTest& older : tests) {
            if (!is_of_same(older, test)) continue;
            if (test.found != FabricFound::unproven) strike_out(older.through, test.stopped);
            strike_out(older.through, test.through);
            leave_what_got_through(older);
        }
        std::erase_if(tests, [&](const NodeFabricTest& one) { return is_of_same(one, test) && one.through.empty(); });
    } else {
        for (const NodeFabricTest& other : tests) {
            if (!is_of_same(other, test)) continue;
            if (other.found != FabricFound::unproven) strike_out(test.through, other.stopped);
            strike_out(test.through, other.through);
        }
        if (test.through.empty()) return;
        leave_what_got_through(test);
    }
    if (std::cmp_greater_equal(std::ranges::count_if(tests, [&](const auto& one) { return is_of_same(one, test); }),
                               older_tests_max))
        tests.erase(std::ranges::find_if(tests, [&](const auto& one) { return is_of_same(one, test); }));
    if (tests.size() >= tests_max) return;
    tests.push_back(std::move(test));
    std::ranges::sort(tests, {}, [](const NodeFabricTest& one) { return std::tuple{one.nic, one.fence, one.record}; });
}

LeasedFence known_fence(const NodeRun& node, const std::string& nic, FabricFence fence) {
    LeasedFence known{.node = node.object.metadata.name, .nic = nic, .fence = fence};
    for (const NodeFabricTest& test : node.object.status.fabricTests) {
        if (test.nic != nic || test.fence != fence) continue;
        known.open.insert(known.open.end(), test.through.begin(), test.through.end());
        // Beside what others of them say: of one that was heard late only what got through is left, and nothing of that
        // was shown by it.
        known.unproven.insert(known.unproven.end(), test.unclear.begin(), test.unclear.end());
        for (const std::string& name : test.untried)  // behind a kernel of its own a tenant may do what it likes there
            if (fence == FabricFence::on || name == attempt_on_another_tenant) known.unproven.push_back(name);
        if (known.found == FabricFound::open && test.found != FabricFound::open) continue;  // that record shows more
        known.found = test.found;
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
        if (nic.empty()) continue;  // it is gone, or nobody can say now of which NIC it is
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
    const bool awaited = is_awaited(node, report.ticket);
    if (report.evidence.statement.empty()) {
        auto& request = node.object.status.fabricTestRequest;
        const std::string why = report.why.empty() ? "the node does not say" : cut_short(report.why);
        // Of several NICs some may be tested and others not: a reason counts after an answer, too, and once.
        if (!request || request->ticket != report.ticket || request->why.contains(why)) return;
        if (!awaited && (request->why.size() > 4 * why_bytes_max || !is_within_budget(turn, node))) return;
        record.detail["why"] = why;
        turn.log(std::move(record));
        request->answered = true;
        request->why += (request->why.empty() ? "" : "; ") + why;
        turn.changed_nodes.insert(node.key);
        return;
    }
    const auto statement = check_statement(turn.state, node, report);
    if (!statement) {  // evidence that does not fit is no evidence
        if (!awaited && !is_within_budget(turn, node)) return;
        record.detail["why"] = "the evidence does not hold";
        record.detail["evidence"] = statement.error().what;
        turn.log(std::move(record));
        return answer_request(turn, node, report.ticket, "the evidence does not hold: " + statement.error().what);
    }
    NodeFabricTest test = evidence::summary_of(*statement, report.evidence.statement);
    std::vector<NodeFabricTest>& tests = node.object.status.fabricTests;
    // What was told before, and whatever the node found before that; but for what somebody waits for: a clock may have
    // been set back.
    const auto is_older = [&](const NodeFabricTest& known) {
        return known.digest == test.digest ||
               (!awaited && is_of_same(known, test) && known.boot == test.boot && test.at < known.at);
    };
    if (std::ranges::any_of(tests, is_older)) return;
    if (!awaited && !is_within_budget(turn, node)) return;
    record.kind = evidence::RecordKind::fabric_tested;
    record.unit = "nic " + statement->nic;
    record.detail = {{"found", std::string{word(test.found)}}, {"fence", std::string{word(test.fence)}}};
    if (!test.through.empty()) record.detail["through"] = fmt::format("{}", fmt::join(test.through, ", "));
    if (!test.why.empty()) record.detail["why"] = test.why;
    record.grade = statement->grade;
    record.evidence = report.evidence;
    test.record = turn.log(std::move(record));
    const bool is_of_this_boot = node.boot.empty() || test.boot == node.boot;
    keep_test(tests, std::move(test), is_of_this_boot);
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

void keep_fabric_tests(const NodeRun& node, GpuNodeStatus& inventory) {
    inventory.fabricTests = node.object.status.fabricTests;
    inventory.fabricTestRequest = node.object.status.fabricTestRequest;
    if (inventory.functions.empty()) inventory.fabricTestRequest.reset();
    const auto is_of_this_boot = [&](const NodeFabricTest& test) {
        return node.boot.empty() || test.boot == node.boot;
    };
    const auto silent = std::ranges::count(inventory.functions, std::string{}, &NodeFunction::physical);
    const bool all_silent = std::cmp_equal(silent, inventory.functions.size());
    std::erase_if(inventory.fabricTests, [&](const NodeFabricTest& test) {
        if (!is_of_this_boot(test) && test.through.empty()) return true;
        return !has_nic(inventory, test.nic) && !all_silent && (silent == 0 || !is_of_this_boot(test));
    });
    for (NodeFabricTest& test : inventory.fabricTests)
        if (!is_of_this_boot(test)) leave_what_got_through(test);
}

void ask_for_tests_again(Turn& turn) {
    for (auto& [key, node] : turn.state.nodes)
        if (const auto& request = node.object.status.fabricTestRequest; request && !request->answered)
            want_test(turn, node);
}

void forget_fabric_tests(Turn& turn) {
    for (auto& [key, node] : turn.state.nodes) {
        std::vector<NodeFabricTest>& tests = node.object.status.fabricTests;
        std::erase_if(tests, [](const NodeFabricTest& test) { return test.through.empty(); });
        std::ranges::for_each(tests, leave_what_got_through);
        want_test(turn, node);
        tell_leases(turn, node);
    }
}

}  // namespace bulkhead
