// Plays the attacker between two ends of our own, and says of each attempt what stopped it, or that it got through.
// Frames are sent as somebody would who is root in a VM or has found a way to a raw queue pair: only what stands
// outside of the tenant can stop them. The rest is tried as a process of the tenant, with what such a process has.
//
// Whether a forged frame arrived is known by an honest one sent after it: who hears the second and not the first has
// lost the first on the way. A test in which the honest one does not arrive proves nothing, and says so.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bulkhead/agent/fabric_rig.hpp"
#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead::agent {

struct FabricReport {
    std::string test = "fabric";
    std::string host;
    std::string between;
    FabricFence fence{};
    Instant at;
    Grade grade = Grade::assumed;
    bool honest_passes = false;
    std::vector<FabricAttempt> attempts;
    static constexpr void describe(auto&& field) {
        field("test", &FabricReport::test, "Which test.", Rule{.required = true, .format = Format::line});
        field("host", &FabricReport::host, "The machine.", Rule{.format = Format::line});
        field("between", &FabricReport::between, "Which two ends.", Rule{.required = true, .format = Format::line});
        field("fence", &FabricReport::fence, "Which fences were up.", Rule{.required = true});
        field("at", &FabricReport::at, "When, by the machine's clock.");
        field("grade", &FabricReport::grade, "How it is known.", Rule{.required = true});
        field("honestPasses", &FabricReport::honest_passes, "Whether honest traffic arrives; else nothing is proven.");
        field("attempts", &FabricReport::attempts, "What was tried.");
    }
    friend bool operator==(const FabricReport&, const FabricReport&) = default;
};

// Asked between two attempts; true: whoever wanted it does not any more, or somebody else needs the ends.
using TestGivenUp = std::function<bool()>;

// `timeout`: it was given up.
Result<FabricReport> test_fabric(FabricRig& rig, FabricFence fence, const std::string& nft, Instant now,
                                 const TestGivenUp& given_up = {});
// The same, for whoever wants to know also of a test that broke off how far it came: what got through got through.
Result<> test_fabric(FabricRig& rig, FabricFence fence, const std::string& nft, Instant now,
                     const TestGivenUp& given_up, FabricReport& report);

// What it comes to: nothing open, something open, or nothing proven (and why).
using evidence::FabricVerdict;
FabricVerdict verdict_of(const FabricReport& report);

std::string fabric_report_text(const FabricReport& report);  // compact JSON
Result<FabricReport> read_fabric_report(std::string_view text);

}  // namespace bulkhead::agent
