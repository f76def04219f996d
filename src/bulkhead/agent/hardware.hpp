// Whoever carries out operations on this node: a model in a file, GPUs behind NVML, or a process that has them (the
// hands). It decides nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/model/telemetry.hpp"
#include "bulkhead/node/operation.hpp"
#include "bulkhead/node/report.hpp"

namespace bulkhead::agent {

class Hardware {
public:
    virtual ~Hardware() = default;
    virtual Result<GpuNodeStatus> inventory() = 0;
    virtual std::string boot_id() = 0;
    virtual Grade grade() const = 0;  // how its results are known
    // Takes any time; never waits. `invalid` and `exhausted` are about this one operation, which was not begun; any
    // other error is about the hardware.
    virtual Result<> begin(Instant now, const Operation& operation) = 0;
    struct News {
        std::vector<OperationResult> results;
        std::vector<FaultReport> faults;
        std::vector<TenantExit> exits;
        std::vector<std::string> notes;  // for the node's log
        bool stock_changed = false;      // `inventory` says something else than before: say hello again
    };
    virtual Result<News> poll(Instant now) = 0;
    // The newest of what it measures of its devices. Nothing: it has nothing to measure, or has not yet.
    virtual Result<std::optional<Telemetry>> telemetry() { return std::nullopt; }
    // Of what a tenant's command has printed; soon.
    virtual Result<OutputPiece> output(const OutputPlace& place) = 0;
    virtual std::optional<Instant> next_due() const = 0;  // when polling has something to say, where that is known
};

}  // namespace bulkhead::agent
