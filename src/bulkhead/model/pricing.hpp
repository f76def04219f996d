// What time on GPUs costs: price lists, each in force from its own moment until the next one begins. A list that has
// begun is never changed: what was used is billed at what was in force then.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead {

// A million an hour: then a row of one day stays far inside 128 bits, whatever the lease holds.
inline constexpr std::int64_t most_per_hour_nano = 1'000'000'000'000'000;

// The price of one unit for an hour. A unit is a whole GPU or one named slice; of a share, its part of the price.
struct UnitPrice {
    std::string model;
    std::string profile;
    bool shared = false;
    std::string tenantClass;
    Money perHour;
    bool exclusive = false;

    static constexpr void describe(auto&& field) {
        field("model", &UnitPrice::model, "The GPU model.", Rule{.required = true, .format = Format::name});
        field("profile", &UnitPrice::profile, "The slice: 3g.40gb; empty: the whole GPU.");
        field("shared", &UnitPrice::shared,
              "For shares of it (MPS, time-slicing), at their part of this price. Default: as the unit itself.");
        field("class", &UnitPrice::tenantClass, "Only for tenants of this class. Default: for all others.");
        field("perHour", &UnitPrice::perHour, "For one hour, at most nine decimals: 2.40.",
              Rule{.required = true, .min = 0, .max = most_per_hour_nano});
        field("exclusive", &UnitPrice::exclusive,
              "For a whole GPU that work keeps from others by its isolation request and does not lease. Without such a "
              "price that is counted and not billed.");
    }
    friend bool operator==(const UnitPrice&, const UnitPrice&) = default;
};

struct PriceList {
    std::string name;
    Instant validFrom;
    std::optional<std::int64_t> complianceSurchargePercent;
    std::vector<UnitPrice> prices;

    static constexpr void describe(auto&& field) {
        field("name", &PriceList::name, "By which bills name it.", Rule{.required = true, .format = Format::name});
        field("validFrom", &PriceList::validFrom, "From when on, until the next list begins.", Rule{.required = true});
        field("complianceSurchargePercent", &PriceList::complianceSurchargePercent,
              "While it is in force. Default: that of the pricing itself.", Rule{.min = 0, .max = 1000});
        field("prices", &PriceList::prices, "What costs something; what is not here is counted and not billed.");
    }
    friend bool operator==(const PriceList&, const PriceList&) = default;
};

struct Pricing {
    std::int64_t complianceSurchargePercent = 12;
    std::string currency;
    std::vector<PriceList> lists;

    static constexpr void describe(auto&& field) {
        field("complianceSurchargePercent", &Pricing::complianceSurchargePercent,
              "Added to the price of time for which compliance mode was evidenced.", Rule{.min = 0, .max = 1000});
        field("currency", &Pricing::currency, "Of every price, as ISO 4217 writes it: EUR.");
        field("lists", &Pricing::lists, "Price lists, each from its own moment on.");
    }
    // The list in force at a moment; null: none is.
    const PriceList* in_force(Instant at) const;
    std::int64_t surcharge_percent(Instant at) const;

    friend bool operator==(const Pricing&, const Pricing&) = default;
};

}  // namespace bulkhead
