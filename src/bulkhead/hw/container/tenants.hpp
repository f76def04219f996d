// Tenants' commands on this node, in the process and container tiers: start, look, stop, log, remove, by lease. The
// truth is the lease's control group and its directory; this object holds nothing, so that a new one, in a new process,
// knows as much as the one before. Every call is safe to repeat, and to be killed in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/cgroup.hpp"
#include "bulkhead/hw/container/hierarchies.hpp"
#include "bulkhead/hw/container/lease_files.hpp"
#include "bulkhead/hw/container/log_files.hpp"
#include "bulkhead/hw/container/record.hpp"
#include "bulkhead/hw/container/spec.hpp"

namespace bulkhead::container {

struct Look {
    enum class State : std::uint8_t {
        unknown,   // nothing of it runs, and nothing of it ever ran
        starting,  // its keeper is at work; none of the tenant's code runs yet
        running,
        exited,  // `exit` says how
        failed,  // `error` says why; none of the tenant's code ran. `exit.code` is 126 or 127 where it is the program
        lost,    // it ran, nothing of it is left, and nobody saw how it ended: its keeper was killed, or the node
    };
    State state = State::unknown;
    Exit exit;
    Error error;
};

struct Places {
    std::string directory;                  // of all leases: on a disk of the node, root's alone
    std::string program;                    // bulkhead-tenant
    std::string cgroup_parent;              // "bulkhead": below every tree; for nobody else's processes
    std::string runtime = "/usr/bin/crun";  // of the container tier
    std::string cdi = "/var/run/cdi";       // where other container runtimes look for leased devices
};

class Tenants {
public:
    static Result<Tenants> open(Places places);

    // Returns when the keeper is on its way; `look` says how that goes. A lease that was started is not started again.
    Result<> begin_start(const TenantSpec& spec);
    // Waits until it runs or has failed, which it then says.
    Result<> start(const TenantSpec& spec);

    Result<Look> look(LeaseKey lease) const;
    Result<std::vector<LeaseKey>> leases() const;  // those there is a record of, in order
    Result<std::optional<TenantSpec>> spec(LeaseKey lease) const;

    // Runs its checkpoint command beside it, once, for at most so long. Nothing: that goes on; ask again. A lease that
    // has none, or does not run, says so.
    Result<std::optional<Checkpoint>> save(LeaseKey lease, Duration within);
    // SIGTERM to everybody; who is left after the grace is killed, whoever asks `stopped` then.
    Result<> begin_stop(LeaseKey lease, Duration grace);
    // True: no process of the lease is left, the keeper among them. A lease nobody knows is stopped.
    Result<bool> hears(LeaseKey lease, int signal) const { return group(lease).hears(Room::tenant, signal); }
    Result<std::vector<pid_t>> processes(LeaseKey lease) const { return group(lease).processes(Room::tenant); }
    Result<bool> stopped(LeaseKey lease);

    Result<LogPiece> log(LeaseKey lease, Stream stream, std::int64_t offset, std::size_t bytes_max) const;
    // Of a lease that is stopped: its record, its log, its control group. Not being there is fine.
    Result<> remove(LeaseKey lease);

private:
    Tenants(Places places, Hierarchies trees) : places_{std::move(places)}, trees_{std::move(trees)} {}
    LeaseFiles files(LeaseKey lease) const;
    LeaseCgroup group(LeaseKey lease) const { return {trees_, places_.cgroup_parent, lease}; }
    Result<Fd> launch(const TenantSpec& spec);  // an empty one: it was started before

    Places places_;
    Hierarchies trees_;
};

}  // namespace bulkhead::container
