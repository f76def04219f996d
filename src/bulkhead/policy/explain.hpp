// Objections in words: the arguments of every text, filled in for whoever is asking.
#pragma once

#include <span>
#include <vector>

#include "bulkhead/policy/contract.hpp"
#include "bulkhead/policy/verdict.hpp"

namespace bulkhead {

class Explainer {
public:
    Explainer(const GpuWorkloadSpec& spec, const Asker& asker, const FleetView& fleet, const Verdict& verdict,
              Audience reader)
        : spec_(spec),
          asker_(asker),
          fleet_(fleet),
          verdict_(verdict),
          reader_(reader),
          request_(request_arguments()) {}

    // What stands in the way, in the order people read objections; those about nodes say how many nodes.
    std::vector<Objected> objections() const;
    // The pools that object, with everything each objects to: for the operator alone.
    std::vector<ExcludedNodes> excluded() const;

private:
    std::vector<Argument> request_arguments() const;
    std::vector<Argument> node_arguments(const Pool& pool) const;
    Objected put(Objection objection, std::span<const Argument> node = {}) const;

    const GpuWorkloadSpec& spec_;
    const Asker& asker_;
    const FleetView& fleet_;
    const Verdict& verdict_;
    Audience reader_;
    std::vector<Argument> request_;  // the same for every objection
};

// "8 whole GPUs", "profile 3g.40gb", "a fraction of 0.5", "10Gi of GPU memory"
std::string describe_request(const GpuRequest& gpu);

}  // namespace bulkhead
