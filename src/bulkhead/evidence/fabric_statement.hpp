// What a node states about its attack on its own fences, and signs with its own key: which NIC, what was tried between
// two of its functions, and what stopped each attempt. Made once, on the node; what it comes to is never stated, but
// follows from the attempts by the same rule for whoever reads them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/fences.hpp"

namespace bulkhead::evidence {

struct FabricAttempt {
    std::string name;  // "forged-mac"
    std::string tried;
    AttemptEnd end{};
    std::string by;  // the fence that stopped it, or why it was not tried
    static constexpr void describe(auto&& field) {
        field("name", &FabricAttempt::name, "The attempt.", Rule{.required = true, .format = Format::line});
        field("tried", &FabricAttempt::tried, "What was done.", Rule{.required = true, .format = Format::line});
        field("end", &FabricAttempt::end, "Whether it was stopped.", Rule{.required = true});
        field("by", &FabricAttempt::by, "By which fence; or why it was not tried.", Rule{.format = Format::line});
    }
    friend bool operator==(const FabricAttempt&, const FabricAttempt&) = default;
};

struct FabricStatement {
    std::string node;
    std::string nic;     // PCI address of its physical function
    std::string mac;     // of that function: the thing itself, wherever it is plugged in later
    std::string model;   // PCI ids: "0x15b3:0x1021"
    std::string driver;  // of the physical function, with its version
    std::string firmware;
    std::string between;  // "the functions 0000:3b:00.2 and 0000:3b:00.3"
    FabricFence fence{};
    Instant began, ended;  // by the node's clock, which nobody else has to believe
    bool honest_passes = false;
    std::vector<FabricAttempt> attempts;
    std::string why;  // it was not carried through
    Grade grade = Grade::assumed;
    std::string boot;
    std::int64_t ticket = 0;  // of whoever asked for it; 0: nobody did, the agent started
    std::string agent_version;

    static constexpr void describe(auto&& field) {
        field("node", &FabricStatement::node, "The node that states this.",
              Rule{.required = true, .format = Format::line});
        field("nic", &FabricStatement::nic, "PCI address of the NIC's physical function.",
              Rule{.required = true, .format = Format::line});
        field("mac", &FabricStatement::mac, "MAC of that function.", Rule{.format = Format::line});
        field("model", &FabricStatement::model, "The NIC's model, by its PCI ids.", Rule{.format = Format::line});
        field("driver", &FabricStatement::driver, "The driver of the NIC.", Rule{.format = Format::line});
        field("firmware", &FabricStatement::firmware, "The NIC's firmware, as its driver names it.",
              Rule{.format = Format::line});
        field("between", &FabricStatement::between, "Which two ends.", Rule{.format = Format::line});
        field("fence", &FabricStatement::fence, "Which fences were up.", Rule{.required = true});
        field("began", &FabricStatement::began, "When it began, by the node's clock.", Rule{.required = true});
        field("ended", &FabricStatement::ended, "When it ended, by the node's clock.", Rule{.required = true});
        field("honestPasses", &FabricStatement::honest_passes,
              "Whether honest traffic arrives; else nothing is proven.");
        field("attempts", &FabricStatement::attempts, "What was tried.");
        field("why", &FabricStatement::why, "Why it was not carried through.", Rule{.format = Format::line});
        field("grade", &FabricStatement::grade, "How it is known.", Rule{.required = true});
        field("boot", &FabricStatement::boot, "The boot of the node.", Rule{.format = Format::line});
        field("ticket", &FabricStatement::ticket, "By which request; 0: when the agent started.", Rule{.min = 0});
        field("agentVersion", &FabricStatement::agent_version, "The software that did it.",
              Rule{.format = Format::line});
    }
    friend bool operator==(const FabricStatement&, const FabricStatement&) = default;
};

std::string fabric_statement_text(const FabricStatement& statement);  // compact JSON
// Strict, and within what any test of ours has: attempts with names of their own, and none without an end.
Result<FabricStatement> read_fabric_statement(std::string_view text);

// What a test with these fences comes to, and why. With the fence off, `closed` means that everything got through.
struct FabricVerdict {
    FabricFound found{};
    std::string why;
};
FabricVerdict verdict_on(FabricFence fence, bool honest_passes, const std::vector<FabricAttempt>& attempts);

// What the control plane keeps of it; where the log holds it is for the caller to say.
NodeFabricTest summary_of(const FabricStatement& statement, std::string_view text);

}  // namespace bulkhead::evidence
