// Where things lie of one lease, below the directory of all: what was to run, what became of it, whether it is to stop,
// and a lock that is held for as long as its keeper lives.
#pragma once

#include <optional>
#include <string>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/durable.hpp"
#include "bulkhead/hw/container/record.hpp"
#include "bulkhead/hw/container/spec.hpp"

namespace bulkhead::container {

class LeaseFiles {
public:
    explicit LeaseFiles(std::string directory) : directory_{std::move(directory)} {}

    const std::string& directory() const { return directory_; }
    std::string scratch() const { return directory_ + "/root"; }     // what a tenant's view is built on
    std::string bundle() const { return directory_ + "/bundle"; }    // of the container tier
    std::string runtime() const { return directory_ + "/runtime"; }  // the container runtime's own records
    std::string log() const { return directory_ + "/log"; }

    Result<> make() const;
    Result<> write(const TenantSpec& spec) const { return write_durably(directory_ + "/lease.json", record_of(spec)); }
    Result<> write(const Outcome& outcome) const {
        return write_durably(directory_ + "/outcome.json", record_of(outcome));
    }
    Result<> write(const Checkpoint& checkpoint) const {
        return write_durably(directory_ + "/saved.json", record_of(checkpoint));
    }
    Result<std::optional<Checkpoint>> checkpoint() const;
    Result<std::optional<TenantSpec>> spec() const;
    Result<std::optional<Outcome>> outcome() const;

    // When those that have not ended by themselves are killed, in milliseconds of this boot.
    Result<> write_stop(std::int64_t kill_at_ms) const;
    Result<std::optional<std::int64_t>> stop() const;

    // Nothing: another holds it.
    Result<std::optional<Fd>> lock() const { return lock("lock"); }
    Result<bool> locked() const { return locked("lock"); }
    // Made when saving its work begins, and held for as long as that goes on.
    Result<std::optional<Fd>> lock_saving() const { return lock("saving"); }
    Result<bool> locked_saving() const { return locked("saving"); }
    bool began_saving() const;

private:
    Result<std::optional<Fd>> lock(std::string_view name) const;
    Result<bool> locked(std::string_view name) const;

    std::string directory_;
};

std::int64_t boot_clock_ms();

}  // namespace bulkhead::container
