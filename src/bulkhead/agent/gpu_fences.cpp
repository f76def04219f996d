// The node attacks its own fences: when the agent starts, and when somebody asks. Between two functions of each NIC
// that nobody has, with all of the fences and with the NIC's alone; beside whatever else goes on, in a thread of its
// own.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "bulkhead/agent/fabric_selftest.hpp"
#include "bulkhead/agent/gpu_hardware.hpp"

namespace bulkhead::agent {

namespace {

Instant node_clock() {
    return {std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
                .count()};
}

}  // namespace

Result<> GpuHardware::test_fabric(const FabricTestOrder& order) {
    if (const auto why = why_no_functions()) return fail(Code::not_found, why->what, why->remedy);
    if (functions() == nullptr) return Hardware::test_fabric(order);
    if (!settings_.test_fabric)
        return fail(Code::denied, "this agent was told not to test its fences",
                    "start it without --no-fabric-selftest");
    const std::scoped_lock lock{mutex_};
    if (testing_) return fail(Code::conflict, "a test of the fences is under way", "wait for its end");
    const Functions::Testable found = functions()->pairs_to_test(order.held, order.clean);
    if (found.pairs.empty())
        return fail(Code::exhausted, fmt::format("{}", fmt::join(found.why_not, "; ")),
                    "ask again when two functions of a NIC are free");
    if (tester_.joinable()) tester_.join();  // it has nothing left to do
    testing_ = true;
    tester_ = std::thread{[this, order, pairs = found.pairs, not_made = found.why_not]() mutable {
        for (const FunctionPair& pair : pairs)
            for (const FabricFence fence : {FabricFence::on, FabricFence::nic})
                if (const auto made = attack(pair, fence, order); !made) not_made.push_back(made.error().what);
        const std::scoped_lock ending{mutex_};
        testing_ = false;
        // Once, and last: whoever asked has heard by then of all that were tested.
        if (not_made.empty()) return;
        not_made.erase(std::unique(not_made.begin(), not_made.end()), not_made.end());
        news_.fabric_given_up.push_back(
            {.ticket = order.ticket, .why = fmt::format("{}", fmt::join(not_made, "; ")), .evidence = {}});
    }};
    return {};
}

// What was tried is stated, whatever came of it; a test that gave way to somebody's lease before anything got through
// is none.
Result<> GpuHardware::attack(FunctionPair pair, FabricFence fence, const FabricTestOrder& order) {
    const auto hold = functions()->hold_for_test(pair);
    if (!hold) return std::unexpected(hold.error());
    NicFacts nic = functions()->nic_of(pair[0]);
    evidence::FabricStatement statement{.node = {},
                                        .nic = std::move(nic.address),
                                        .mac = std::move(nic.mac),
                                        .model = std::move(nic.model),
                                        .driver = std::move(nic.driver),
                                        .firmware = std::move(nic.firmware),
                                        .between = {},
                                        .fence = fence,
                                        .began = node_clock(),
                                        .ended = {},
                                        .attempts = {},
                                        .why = {},
                                        .grade = nic.grade,
                                        .boot = boot_,
                                        .ticket = order.ticket,
                                        .agent_version = {}};
    Result<> made;
    {
        auto rig = make_function_rig(fence, *functions(), pair, settings_.test_vlan);
        FabricReport found;
        made = rig ? agent::test_fabric(
                         **rig, fence, settings_.functions.nft, statement.began,
                         [this] { return functions()->test_should_end(); }, found)
                   : std::unexpected(rig.error());
        statement.between = std::move(found.between);
        statement.honest_passes = found.honest_passes;
        statement.attempts = std::move(found.attempts);
        if (!made) statement.why = made.error().what;
    }
    const bool got_through = std::ranges::find(statement.attempts, AttemptEnd::got_through,
                                               &evidence::FabricAttempt::end) != statement.attempts.end();
    const bool gave_way = !made && !got_through && made.error().code == Code::timeout && functions()->test_should_end();
    const std::vector<std::string> left = functions()->clean_after_test(pair);
    statement.ended = std::max(node_clock(), statement.began);
    const std::scoped_lock lock{mutex_};
    if (!gave_way) news_.fabric.push_back(std::move(statement));
    if (!left.empty())
        for (const std::uint16_t function : pair)
            news_.faults.push_back(
                {.kind = UnitKind::vf,
                 .device = function,
                 .why = fmt::format("a test of its fences left something: {}", fmt::join(left, "; "))});
    return gave_way ? made : Result<>{};
}

// What a test that was killed has left goes before anybody is served.
std::vector<FaultReport> GpuHardware::take_back_tests(Functions& functions) {
    std::vector<FaultReport> faults;
    for (auto& [function, why] : functions.take_back_tests())
        faults.push_back({.kind = UnitKind::vf,
                          .device = function,
                          .why = fmt::format("a test of its fences was cut short, and cannot be taken back: {}", why)});
    return faults;
}

}  // namespace bulkhead::agent
