// A tenant: active, frozen in an incident, or leaving.
#pragma once

#include <array>

#include "bulkhead/lifecycle/table.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::lifecycle {

using bulkhead::TenantPhase;

enum class TenantEvent : std::uint8_t { freeze, thaw, remove };
constexpr auto words(TenantEvent) { return std::to_array<Words>({"freeze", "thaw", "remove"}); }

using TenantEdge = Edge<TenantPhase, TenantEvent>;
inline constexpr std::array tenant_edges{
    TenantEdge{TenantPhase::active, TenantEvent::freeze, TenantPhase::frozen},
    TenantEdge{TenantPhase::frozen, TenantEvent::thaw, TenantPhase::active},
    TenantEdge{TenantPhase::active, TenantEvent::remove, TenantPhase::leaving},
    TenantEdge{TenantPhase::frozen, TenantEvent::remove, TenantPhase::leaving},
};
static_assert(deterministic(tenant_edges));
static_assert(only_entered_on(tenant_edges, TenantPhase::active, TenantEvent::thaw));

}  // namespace bulkhead::lifecycle
