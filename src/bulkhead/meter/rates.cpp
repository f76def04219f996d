#include "bulkhead/meter/rates.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace bulkhead::meter {

namespace {

const UnitPrice* price_of(const PriceList& list, const MeteredUnits& units, const std::string& tenant_class) {
    const UnitPrice* best = nullptr;
    int best_fit = -1;
    for (const UnitPrice& price : list.prices) {
        const bool its = price.model == units.model && price.profile == units.profile &&
                         (price.tenantClass.empty() || price.tenantClass == tenant_class) &&
                         (!price.shared || units.shared) && price.exclusive == units.exclusive;
        const int fit = (price.tenantClass.empty() ? 0 : 2) + (price.shared ? 1 : 0);
        if (its && fit > best_fit) best = &price, best_fit = fit;
    }
    return best;
}

std::vector<const PriceList*> by_time(const Pricing& pricing) {
    std::vector<const PriceList*> all;
    all.reserve(pricing.lists.size());
    for (const PriceList& list : pricing.lists) all.push_back(&list);
    std::ranges::sort(all, {}, &PriceList::validFrom);
    return all;
}

}  // namespace

std::vector<Rate> rates_for(const Pricing& pricing, const Metered& metered, Instant from, Instant to) {
    std::vector<Rate> out;
    for (const PriceList* list : by_time(pricing)) {
        if (list->validFrom >= to) break;
        if (list->validFrom <= from) out.clear();  // it replaces whatever was in force before
        Rate rate{.from = list->validFrom,
                  .list = list->name,
                  .surchargePercent = list->complianceSurchargePercent.value_or(pricing.complianceSurchargePercent)};
        for (std::size_t i = 0; i < metered.units.size(); ++i)
            if (const UnitPrice* price = price_of(*list, metered.units[i], metered.tenantClass))
                rate.prices.push_back({static_cast<std::int64_t>(i), price->perHour});
        out.push_back(std::move(rate));
    }
    return out;
}

UsageRow kept_row(const GpuLease& lease, const Pricing& pricing, Instant to) {
    const KeptCapacity& kept = *lease.status->kept;
    UsageRow row{.lease = lease.metadata.name,
                 .tenant = lease.spec.tenant,
                 .workload = lease.spec.workload,
                 .from = kept.since,
                 .to = std::max(kept.since, to),
                 .mechanism = lease.spec.mechanism,
                 .metered = Metered{},
                 .exclusive = kept.rows + 1};
    if (lease.status->metered) {
        row.metered->tenantClass = lease.status->metered->tenantClass;
        row.metered->account = lease.status->metered->account;
    }
    row.metered->units = kept.units;
    for (const MeteredUnits& units : kept.units) row.gpus.units += units.units.units;
    row.rates = rates_for(pricing, *row.metered, row.from, row.to);
    if (!row.rates.empty()) row.currency = pricing.currency;
    return row;
}

Result<> keeps_the_past(const Pricing& before, const Pricing& after, Instant now) {
    if (before.lists.empty()) return {};  // nothing has been priced yet
    std::vector<PriceList> past[2];
    for (const bool later : {false, true}) {
        const Pricing& pricing = later ? after : before;
        for (const PriceList* list : by_time(pricing))
            if (list->validFrom <= now) {
                past[later].push_back(*list);
                auto& percent = past[later].back().complianceSurchargePercent;
                percent = percent.value_or(pricing.complianceSurchargePercent);
            }
    }
    const std::string remedy =
        "keep it as it is, and add a list that begins later; a bill is put right by a correction";
    if (!past[0].empty() && before.currency != after.currency)
        return fail(Code::conflict,
                    fmt::format("price list {} is in force since {} in {}; the currency cannot become {}",
                                past[0].back().name, print(past[0].back().validFrom), before.currency,
                                after.currency.empty() ? "none" : after.currency),
                    "bill another currency from another fleet");
    for (std::size_t i = 0; i < std::max(past[0].size(), past[1].size()); ++i) {
        const PriceList* old = i < past[0].size() ? &past[0][i] : nullptr;
        const PriceList* fresh = i < past[1].size() ? &past[1][i] : nullptr;
        if (old != nullptr && fresh != nullptr && *old == *fresh) continue;
        const PriceList& one = old != nullptr ? *old : *fresh;
        return fail(Code::conflict,
                    fmt::format("price list {} began at {}, and it is {}: what was used is billed at what was in force "
                                "then, so it cannot be {}",
                                one.name, print(one.validFrom), print(now),
                                old == nullptr     ? "added now"
                                : fresh == nullptr ? "removed"
                                                   : "changed, nor what it costs to be compliant"),
                    remedy);
    }
    return {};
}

}  // namespace bulkhead::meter
