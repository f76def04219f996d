// What a node's own attack on its fences found, as the control plane knows it: of one NIC, with one setting of the
// fences. The node's signed statement says it at length (evidence/fabric_statement.hpp); the log holds that.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead {

// Which fences of a function are up. Tenants get all of them; the others are for tests of the fences.
// on: all of it. nic: what the NIC itself does, as for a VM whose kernel is the tenant's. off: nothing, to see that the
// attempts are attempts.
enum class FabricFence : std::uint8_t { on, nic, off };
constexpr auto words(FabricFence) { return std::to_array<Words>({"on", "nic", "off"}); }

// The fences that a tenant of that tier is behind.
constexpr FabricFence fence_of(Tier tier) { return tier < Tier::vm ? FabricFence::on : FabricFence::nic; }

// `unclear`: it did not get through, and neither would anything honest have, or no fence said why.
enum class AttemptEnd : std::uint8_t { not_tried, stopped, got_through, unclear };
constexpr auto words(AttemptEnd) { return std::to_array<Words>({"not-tried", "stopped", "got-through", "unclear"}); }

// What a test comes to.
enum class FabricFound : std::uint8_t { unproven, open, closed };
constexpr auto words(FabricFound) { return std::to_array<Words>({"unproven", "open", "closed"}); }

// The attempt that no tier leaves open: to reach another tenant's port.
inline constexpr std::string_view attempt_on_another_tenant = "foreign-tenant";

// Whether what is sold in that tier is contradicted when this attempt gets through. Behind our own kernel all fences
// are ours; whoever has a kernel of its own is promised its VLAN, and told that addresses in it can be forged.
constexpr bool is_promised_closed(Tier tier, std::string_view attempt) {
    return tier < Tier::vm || attempt == attempt_on_another_tenant;
}

struct NodeFabricTest {
    std::string nic;
    FabricFence fence{};
    FabricFound found{};
    Grade grade = Grade::assumed;
    std::optional<Instant> at;
    std::vector<std::string> stopped, through, unclear, untried;
    std::string why;
    std::string boot;
    std::int64_t ticket = 0;
    std::int64_t record = -1;
    std::string digest;

    static constexpr void describe(auto&& field) {
        field("nic", &NodeFabricTest::nic, "The NIC, by the address of its physical function: 0000:3b:00.0.",
              Rule{.required = true, .format = Format::line});
        field("fence", &NodeFabricTest::fence, "Which fences were up; nic: the NIC's alone, as for a VM.",
              Rule{.required = true});
        field("found", &NodeFabricTest::found, "What it comes to.", Rule{.required = true});
        field("grade", &NodeFabricTest::grade, "How it is known.");
        field("at", &NodeFabricTest::at, "When it ended, by the node's clock.");
        field("stopped", &NodeFabricTest::stopped, "Attempts that a fence stopped.", Rule{.format = Format::line});
        field("through", &NodeFabricTest::through, "Attempts that got through.", Rule{.format = Format::line});
        field("unclear", &NodeFabricTest::unclear, "Attempts that failed by no fence.", Rule{.format = Format::line});
        field("untried", &NodeFabricTest::untried, "Attempts that could not be made.", Rule{.format = Format::line});
        field("why", &NodeFabricTest::why, "Why it proves nothing, where it does not.");
        field("boot", &NodeFabricTest::boot, "Of which boot of the node it speaks.");
        field("ticket", &NodeFabricTest::ticket, "By which request it was made; 0: when the agent started.");
        field("record", &NodeFabricTest::record, "Where the log holds the node's statement.", Rule{.min = -1});
        field("digest", &NodeFabricTest::digest, "SHA-256 of that statement, in hex.");
    }
    friend bool operator==(const NodeFabricTest&, const NodeFabricTest&) = default;
};

// Somebody asked for a test, and what came of asking.
struct FabricTestRequest {
    std::int64_t ticket = 0;
    bool answered = false;
    std::string why;

    static constexpr void describe(auto&& field) {
        field("ticket", &FabricTestRequest::ticket, "Its number.", Rule{.required = true});
        field("answered", &FabricTestRequest::answered, "Whether the node has answered.");
        field("why", &FabricTestRequest::why, "Why no test was made.");
    }
    friend bool operator==(const FabricTestRequest&, const FabricTestRequest&) = default;
};

}  // namespace bulkhead
