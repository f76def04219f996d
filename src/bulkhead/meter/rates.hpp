// Which prices hold for a lease.
#pragma once

#include <vector>

#include "bulkhead/meter/usage_row.hpp"
#include "bulkhead/model/lease.hpp"
#include "bulkhead/model/pricing.hpp"

namespace bulkhead::meter {

// The price lists that were in force at some time of [from, to), in order, as far as they concern what is metered. The
// price of a unit is that of its class before that of everybody, and of shares before that of the unit itself.
std::vector<Rate> rates_for(const Pricing& pricing, const Metered& metered, Instant from, Instant to);

// The usage row of capacity that the lease's work keeps from others now without leasing it, up to a moment.
UsageRow kept_row(const GpuLease& lease, const Pricing& pricing, Instant to);

// What of the past another pricing would change: nothing, or why not. `now`: what has begun by then is past.
Result<> keeps_the_past(const Pricing& before, const Pricing& after, Instant now);

}  // namespace bulkhead::meter
