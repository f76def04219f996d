// A second reading of the rules, from the text of the design alone, to hold the compiler against. It shares no code
// with it: no catalogue, no presets, no rules, no version gate. It judges a contract, a refusal, and a request nobody
// has answered yet.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "bulkhead/model/snapshot.hpp"
#include "bulkhead/policy/compile.hpp"
#include "bulkhead/policy/contract.hpp"
#include "bulkhead/policy/objection.hpp"

namespace bulkhead::checker {

// One sentence of the design that something breaks.
struct Breach {
    std::string_view rule;  // "rule 1", "P4", "class"
    std::string_view says;
    Objections heard_as;     // in a refusal, at least one of these says it
    std::string_view where;  // the machine or the claim it is about, if it is about one
};
using Breaches = std::vector<Breach>;

std::string print(const Breaches& breaches);
bool names(const Breaches& breaches, std::string_view rule);

// The fields in which two requests differ, by their path in the manifest: "gpu.mechanism".
std::vector<std::string_view> differences(const GpuWorkloadSpec& a, const GpuWorkloadSpec& b);

// What is promised, or would be: the part of a contract that rules look at.
struct Terms {
    Mechanism mechanism{};
    bool fraction = false;
    Tier tier{};
    PeerTrust node{}, gpu{}, instance{};
    Slo slo{};
    EnumSet<Aspect> resources;
    bool preemptible = false;
    std::int64_t priority = 0;
    Gpus gpus;
    std::int64_t gpus_per_task = 1;
    bool at_its_word = false;  // a request read literally: sharing it merely tolerates counts as asked for
};

// What an honest reader concludes about a request that leaves nothing open.
struct Expected {
    Breaches surely;     // broken even when sharing that the mechanism does not need is given up
    Breaches literally;  // broken when every word asked is meant; empty: nothing at all speaks against it
};

class Checker {
public:
    Checker(const Snapshot& snapshot, Instant now);  // the snapshot must outlive it

    Breaches of(const GpuWorkload& asked, const Contract& contract) const;
    Breaches of(const GpuWorkload& asked, const Refusal& refusal) const;
    Expected expected(const GpuWorkload& asked) const;

private:
    struct Facts {  // one machine, counting only what is shown
        const GpuNode* node;
        EnumSet<Capability> has, stale;
        bool amd = false, escape_open = false;
        std::int64_t gpus = 0;
        std::string_view jurisdiction;
        std::vector<const Advisory*> overdue;
    };
    struct Who {
        const GpuWorkloadSpec& asked;
        const TenantSpec& tenant;
        const TenantClassSpec& tenant_class;
        std::string_view name;
    };

    Who who(const GpuWorkload& asked) const;
    Terms terms_of(const Who& who, bool at_its_word) const;
    const TierException* exception_for(const Who& who, Tier tier, bool all_of_them = false) const;
    bool relies_on_exception(const Terms& terms) const;
    Gpus ceiling(const Who& who) const;

    void request_rules(const Terms& terms, const Who& who, Breaches& out) const;
    void tier_rules(const Terms& terms, const Who& who, Breaches& out) const;
    void sharing_rules(const Terms& terms, const Who& who, Breaches& out) const;
    void slo_rules(const Terms& terms, const Who& who, Breaches& out) const;
    void node_rules(const Terms& terms, const Who& who, const Facts& facts, Breaches& out) const;
    void wall_rules(const Terms& terms, const Who& who, const Facts& facts, Breaches& out) const;
    void capacity_rule(const Terms& terms, const Who& who, const std::vector<const Facts*>& nodes, Breaches& out) const;

    void proposal_in(const GpuWorkload& asked, const Proposal& proposal, Breaches& out) const;
    void fidelity(const Who& who, const GpuWorkload& asked, const Contract& contract, Breaches& out) const;
    void exceptions_in(const Contract& contract, const Who& who, const std::vector<const Facts*>& nodes,
                       Breaches& out) const;
    void host_rules(const Contract& contract, const Who& who, const std::vector<const Facts*>& nodes,
                    Breaches& out) const;
    void disclosure(const Contract& contract, const Who& who, Breaches& out) const;

    bool fresh(const DetectedCapability& capability) const;
    bool open(const Advisory& advisory, const GpuNode& node) const;
    bool overdue(const Advisory& advisory) const;

    const Snapshot& snapshot_;
    const FleetPolicySpec& policy_;
    Instant now_;
    std::vector<Facts> facts_;
};

// What the compiler answers to a request and, where it proposes another, to that one; and all that is wrong with it.
struct Answer {
    Decision decision;
    std::string wrong;  // empty: nothing

    const Contract* contract() const { return std::get_if<Contract>(&decision); }
    const Refusal* refusal() const { return std::get_if<Refusal>(&decision); }
};
// A refusal as whoever reads a failed test wants it: codes, what is offered, what that really changes.
std::string in_words(const GpuWorkload& asked, const Answer& answer);

// `proven` remembers proposals that were found good, for who asks this compiler often.
Answer ask(const Compiler& compiler, const Checker& checker, const GpuWorkload& asked,
           std::vector<GpuWorkload>* proven = nullptr);

}  // namespace bulkhead::checker
