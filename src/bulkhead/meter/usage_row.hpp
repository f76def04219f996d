// What is kept of a lease for ever: who held what from when to when, what compliance evidence there was, and at what
// prices. A row is never changed; what is found out later is another row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/model/metered.hpp"
#include "bulkhead/model/pricing.hpp"

namespace bulkhead {

struct RatedUnits {
    std::int64_t units = 0;
    Money perHour;

    static constexpr void describe(auto&& field) {
        field("units", &RatedUnits::units, "Which of the lease's units, by their place.", Rule{.min = 0});
        field("perHour", &RatedUnits::perHour, "The price of one for an hour.",
              Rule{.required = true, .min = 0, .max = most_per_hour_nano});
    }
    friend bool operator==(const RatedUnits&, const RatedUnits&) = default;
};

// A price list as far as it concerns one lease. Units that are not in it are not billed.
struct Rate {
    Instant from;
    std::string list;
    std::int64_t surchargePercent = 0;
    std::vector<RatedUnits> prices;

    static constexpr void describe(auto&& field) {
        field("from", &Rate::from, "When the list began.", Rule{.required = true});
        field("list", &Rate::list, "The list's name.", Rule{.required = true});
        field("surchargePercent", &Rate::surchargePercent, "For time that compliance evidence covers.",
              Rule{.min = 0, .max = 1000});
        field("prices", &Rate::prices, "What each of the lease's units costs.");
    }
    friend bool operator==(const Rate&, const Rate&) = default;
};

// An amount that an operator posts about time that was counted before.
struct UsageCorrection {
    std::string id;
    Money amount;
    Instant posted;
    std::string by, why;

    static constexpr void describe(auto&& field) {
        field("id", &UsageCorrection::id, "By which whoever posts it knows it: the same again changes nothing.",
              Rule{.required = true, .format = Format::name});
        field("amount", &UsageCorrection::amount, "Added to the bill; negative: taken off it.", Rule{.required = true});
        field("posted", &UsageCorrection::posted, "When.", Rule{.required = true});
        field("by", &UsageCorrection::by, "Who.");
        field("why", &UsageCorrection::why, "Why.");
    }
    friend bool operator==(const UsageCorrection&, const UsageCorrection&) = default;
};

// Table usage: one lease's time, closed; or a correction of it; or a time for which it kept so much capacity from
// others without leasing it. Rows from before there were prices end after `to`.
struct UsageRow {
    std::string lease, tenant, workload;
    Gpus gpus;
    Instant from, to;
    Mechanism mechanism{};
    std::optional<Metered> metered;
    std::string currency;
    std::vector<Rate> rates;
    std::optional<UsageCorrection> correction;
    std::optional<std::int64_t> exclusive;

    static constexpr void describe(auto&& field) {
        field("lease", &UsageRow::lease, "The lease.", Rule{.required = true});
        field("tenant", &UsageRow::tenant, "Who held it.", Rule{.required = true});
        field("workload", &UsageRow::workload, "For which work.", Rule{.required = true});
        field("gpus", &UsageRow::gpus, "How much of GPUs.", Rule{.required = true});
        field("from", &UsageRow::from, "When every node had verified its part.", Rule{.required = true});
        field("to", &UsageRow::to, "When it was asked to end.", Rule{.required = true});
        field("mechanism", &UsageRow::mechanism, "How the silicon was divided.");
        field("metered", &UsageRow::metered, "What was held, and which of the time compliance evidence covers.");
        field("currency", &UsageRow::currency, "Of the prices.");
        field("rates", &UsageRow::rates, "The price lists that were in force, in order.");
        field("correction", &UsageRow::correction, "Of a correction: what is added.");
        field("exclusive", &UsageRow::exclusive,
              "Of capacity that the work kept from others without leasing it: which such row of the lease, from 1.",
              Rule{.min = 1});
    }
    friend bool operator==(const UsageRow&, const UsageRow&) = default;
};

}  // namespace bulkhead
