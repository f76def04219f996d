// Whoever carries out operations on this node: a model in a file, GPUs behind NVML, or a process that has them (the
// hands). It decides nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/evidence/fabric_statement.hpp"
#include "bulkhead/model/node.hpp"
#include "bulkhead/model/telemetry.hpp"
#include "bulkhead/node/operation.hpp"
#include "bulkhead/node/report.hpp"

namespace bulkhead::agent {

// A test of the fences between functions that nobody has, as the journal knows them.
struct FabricTestOrder {
    Key ticket = 0;                    // of whoever asked; 0: the agent has started
    std::vector<std::uint16_t> held;   // functions of leases, or of which a wipe is due: not to be touched
    std::vector<std::uint16_t> clean;  // wiped, and not handed out since
    friend bool operator==(const FabricTestOrder&, const FabricTestOrder&) = default;
};

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
        std::vector<std::string> notes;                 // for the node's log
        bool stock_changed = false;                     // `inventory` says something else than before: say hello again
        std::vector<evidence::FabricStatement> fabric;  // tests that have ended, but for who states it
        std::vector<FabricTestReport> fabric_given_up = {};  // and those that were begun and not made; no evidence
    };
    virtual Result<News> poll(Instant now) = 0;
    // The newest of what it measures of its devices. Nothing: it has nothing to measure, or has not yet.
    virtual Result<std::optional<Telemetry>> telemetry() { return std::nullopt; }
    // Begins to attack this node's own fences, and does not wait. `unavailable` is about the hardware itself; whatever
    // else it says is why no test is made.
    virtual Result<> test_fabric(const FabricTestOrder&) {
        return fail(Code::not_found, "this node has no NIC for tenants to test",
                    "name one on the agent's command line: --tenant-nic");
    }
    // Of what a tenant's command has printed; soon.
    virtual Result<OutputPiece> output(const OutputPlace& place) = 0;
    virtual std::optional<Instant> next_due() const = 0;  // when polling has something to say, where that is known
};

}  // namespace bulkhead::agent
