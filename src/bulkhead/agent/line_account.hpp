// Who the half of an agent is that speaks to a network, and where its files are. Below the agent's folder, which is
// root's, it has one of its own: keys, certificate, journal. So it can rename nothing and put nothing in the way of
// what root reads and writes there (which number a GPU has, which users a tenant has).
#pragma once

#include <string>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/confine.hpp"

namespace bulkhead::agent {

struct LineAccount {
    container::UserAndGroup ids;
    std::string name;  // as the log says it
};

// By name or by number; empty: the user "bulkhead" where there is one, otherwise the number below every tenant's, which
// is nobody's. `first_tenant` is that of GpuHardwareSettings. Refused: root, and users of tenants.
Result<LineAccount> line_account(const std::string& name, std::uint32_t first_tenant);

// Where an agent with hands keeps its identity and its journal.
std::string line_folder(const std::string& folder);

// Makes both folders, where nobody but root and us can put another in their place. What an older agent, which was all
// root, kept in the upper one moves to the lower; an owner is changed only while everything is root's, so that nobody
// else can have put a link there.
Result<> make_line_folder(const std::string& folder, container::UserAndGroup owner);

}  // namespace bulkhead::agent
