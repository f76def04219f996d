// Random histories of leases: tenants, silicon, price lists that begin in the middle, evidence that comes and goes.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bulkhead/meter/ledger.hpp"
#include "bulkhead/meter/rates.hpp"

namespace bulkhead::meter {

inline constexpr Instant history_begins{1'798'761'600'000};  // 2027-01-01
inline constexpr std::int64_t history_ms = 70 * ms_per_day;

inline std::int64_t any(std::int64_t least, std::int64_t most) { return *rc::gen::inRange(least, most + 1); }

inline Pricing any_pricing() {
    Pricing pricing{.complianceSurchargePercent = any(0, 30), .currency = *rc::gen::element<std::string>("EUR", "JPY")};
    std::int64_t from = any(-1, 20) * ms_per_day;
    for (std::int64_t i = any(0, 3); i > 0; --i, from += any(1, 20 * ms_per_day)) {
        PriceList list{.name = "list-" + std::to_string(i), .validFrom = {history_begins.ms + from}};
        if (any(0, 1) == 1) list.complianceSurchargePercent = any(0, 1000);
        for (const char* profile : {"", "3g.40gb"})
            for (const bool shared : {false, true})
                for (const char* of_class : {"", "batch"})
                    if (any(0, 2) != 0)
                        list.prices.push_back(
                            {"h100", profile, shared, of_class, Money{any(0, 1) * any(0, 5'000'000'000'000)}});
        pricing.lists.push_back(std::move(list));
    }
    return pricing;
}

inline UsageRow any_lease(const Pricing& pricing, int number) {
    const Instant from{history_begins.ms + any(0, history_ms)};
    UsageRow row{.lease = "lease-" + std::to_string(number),
                 .tenant = *rc::gen::element<std::string>("acme", "beta", "crowd"),
                 .workload = "w" + std::to_string(number),
                 .from = from,
                 .to = {from.ms + *rc::gen::element<std::int64_t>(0, 1, any(0, ms_per_day), any(0, 20 * ms_per_day))},
                 .currency = pricing.currency};
    Metered& metered = row.metered.emplace();
    metered.tenantClass = *rc::gen::element<std::string>("batch", "research");
    metered.compliance = *rc::gen::element(Compliance::off, Compliance::dedicated);
    for (const char* model : {"h100", "h200"})  // each kind of unit once, as the core counts them
        if (any(0, 2) != 0)
            metered.units.push_back(
                {model, *rc::gen::element<std::string>("", "3g.40gb"), any(0, 1) == 1, Gpus{any(1, 16 * gpu_unit)}});
    if (metered.units.empty()) metered.units.push_back({"h100", "", false, Gpus::whole(8)});
    if (metered.compliance != Compliance::off)
        for (std::int64_t i = any(0, 3); i > 0; --i) {  // in any order, overlapping, before and after the lease
            const Instant begin{from.ms + any(-ms_per_day, 10 * ms_per_day)};
            metered.covered.push_back({begin, std::nullopt});
            if (any(0, 3) != 0) metered.covered.back().to = Instant{begin.ms + any(0, 5 * ms_per_day)};
        }
    row.rates = rates_for(pricing, metered, row.from, row.to);
    return row;
}

inline std::vector<UsageRow> any_history(const Pricing& pricing) {
    std::vector<UsageRow> rows;
    for (int i = static_cast<int>(any(0, 12)); i > 0; --i) rows.push_back(any_lease(pricing, i));
    return rows;
}

inline Ledger ledger_of(const std::vector<UsageRow>& rows) {
    Ledger ledger;
    for (const UsageRow& row : rows) RC_ASSERT(ledger.add(row).value());
    return ledger;
}

}  // namespace bulkhead::meter
