// The policy compiler: tenant x class x workload x fleet -> contract or refusal. Total and deterministic.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bulkhead/model/snapshot.hpp"
#include "bulkhead/policy/contract.hpp"

namespace bulkhead {

// A fleet made ready to answer many questions: nodes in the same state are one group, advisories are matched once.
class Compiler {
public:
    // The snapshot must be consistent (model/consistency.hpp) and outlive the compiler.
    Compiler(const Snapshot& snapshot, Instant now);
    ~Compiler();
    Compiler(Compiler&&) noexcept;
    Compiler& operator=(Compiler&&) noexcept;

    // The words of reasons are chosen for the reader: a tenant reads no node's name.
    // Of work that has a lease, `placed` are the nodes it is on: what is disclosed of nodes is then of these.
    Decision compile(const GpuWorkload& workload, Audience reader = Audience::fleet_operator,
                     Written written = Written::in_full, std::span<const std::string> placed = {}) const;

    struct Fleet;  // what is known of policy, classes and nodes; internal

private:
    std::unique_ptr<const Fleet> fleet_;
};

// All workloads of the snapshot, in its order.
std::vector<Decision> compile_all(const Snapshot& snapshot, Instant now);

// The moment a snapshot speaks of: the latest time a node was observed; nothing when no node says.
std::optional<Instant> observed_at(const Snapshot& snapshot);

}  // namespace bulkhead
