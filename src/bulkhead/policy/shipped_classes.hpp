// The four classes that ship with Bulkhead; a fleet may declare others, or one of the same name instead.
#pragma once

#include <span>

#include "bulkhead/model/tenant_class.hpp"

namespace bulkhead {

std::span<const TenantClass> shipped_tenant_classes();

}  // namespace bulkhead
