// Figures of tenants: of all of them for operators, and of one of them for itself.
#pragma once

#include <map>
#include <string>

#include "bulkhead/shell/census.hpp"
#include "bulkhead/shell/exposition.hpp"
#include "bulkhead/shell/ledger.hpp"
#include "bulkhead/shell/telemetry_board.hpp"

namespace bulkhead::shell {

struct TenantFigures {
    const Census::Taken& census;
    const Ledger::Books& books;
    const std::map<std::string, Sampled>& samples;
    Instant now;
};

// One set of series for each tenant, by its name.
void tell_tenants(Exposition& out, const TenantFigures& figures);
// Which GPUs are held back by power or heat, and whose work is on them.
void tell_contention(Exposition& out, const TenantFigures& figures);
// What is this tenant's own, and nothing that follows from somebody else's being there.
void tell_tenant(Exposition& out, const std::string& tenant, const TenantFigures& figures);

}  // namespace bulkhead::shell
