// What there is of tenants' machines on this node, by the files beside them alone: so it is known while libvirt does
// not answer, too, and nobody takes a machine for gone that nobody can look at.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/hw/vm/machine_files.hpp"
#include "bulkhead/node/operation.hpp"

namespace bulkhead::agent {

class MachineRecords {
public:
    struct Given {
        std::string device, driver;  // the host's, which gets it back; empty: it had none
    };
    explicit MachineRecords(std::string folder) : folder_{std::move(folder)} {}

    const std::string& folder() const { return folder_; }
    vm::MachineFolder folder_of(Key lease) const;
    bool has(Key lease) const;  // what cannot be looked at counts as there
    Result<std::vector<Key>> leases() const;

    // The user that a machine runs as: of `first` and the `count` behind it the lowest that no other has, on record
    // from then on. Two at once must not be asked.
    Result<std::uint32_t> user_of(Key lease, std::uint32_t first, std::uint32_t count) const;

    std::vector<Given> given_to(Key lease) const;
    Result<> keep_given(Key lease, const std::vector<Given>& devices) const;
    // By its PCI address: whose machine it is in, or was meant to be.
    Result<std::optional<Key>> holder_of(const std::string& device) const;
    bool holds(const std::string& device) const;  // what cannot be looked at counts as held

    // By which path a device came back from its last machine: "flr, rebind nvidia". Kept until its memory was wiped.
    std::optional<std::string> returned_by(const std::string& device) const;
    Result<> keep_return(const std::string& device, const std::string& path) const;
    void forget_return(const std::string& device) const;

private:
    std::string return_of(const std::string& device) const { return folder_ + "/returned-" + device; }
    std::string folder_;
};

}  // namespace bulkhead::agent
