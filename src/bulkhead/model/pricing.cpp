#include "bulkhead/model/pricing.hpp"

namespace bulkhead {

const PriceList* Pricing::in_force(Instant at) const {
    const PriceList* newest = nullptr;
    for (const PriceList& list : lists)
        if (list.validFrom <= at && (newest == nullptr || newest->validFrom < list.validFrom)) newest = &list;
    return newest;
}

std::int64_t Pricing::surcharge_percent(Instant at) const {
    const PriceList* list = in_force(at);
    return list == nullptr ? complianceSurchargePercent
                           : list->complianceSurchargePercent.value_or(complianceSurchargePercent);
}

}  // namespace bulkhead
