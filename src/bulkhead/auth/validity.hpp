// Until when a certificate is good, whoever it is for: for monitoring, which wants to know in time.
#pragma once

#include <string_view>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"

namespace bulkhead::auth {

// Of the first certificate in PEM.
Result<Instant> good_until(std::string_view certificate);

}  // namespace bulkhead::auth
