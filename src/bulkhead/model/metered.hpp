// What metering has to know of a lease, noted while it is known: what it holds of which silicon, for whom, and for what
// time there was evidence that compliance mode was in force.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead {

// So much of one kind of unit: two GPUs, three slices 1g.10gb, a quarter of a GPU.
struct MeteredUnits {
    std::string model;
    std::string profile;
    bool shared = false;
    Gpus units;
    bool exclusive = false;

    static constexpr void describe(auto&& field) {
        field("model", &MeteredUnits::model, "The GPU model.", Rule{.required = true});
        field("profile", &MeteredUnits::profile, "The slice's profile; empty: the whole GPU.");
        field("shared", &MeteredUnits::shared, "They are shares of units that other leases use too.");
        field("units", &MeteredUnits::units, "How many.",
              Rule{.required = true, .min = 0, .max = 1'000'000 * gpu_unit});
        field("exclusive", &MeteredUnits::exclusive,
              "They are not leased: the work keeps them from others by an isolation request beyond the rules.");
    }
    friend auto operator<=>(const MeteredUnits&, const MeteredUnits&) = default;
};

struct CoveredTime {
    Instant from;
    std::optional<Instant> to;

    static constexpr void describe(auto&& field) {
        field("from", &CoveredTime::from, "From here on.", Rule{.required = true});
        field("to", &CoveredTime::to, "Up to here; none: still.");
    }
    friend bool operator==(const CoveredTime&, const CoveredTime&) = default;
};

// Capacity that no lease holds and that the work of one lease keeps from others now, because it asked for more
// isolation than the rules demand. Each change of the amount ends one usage row and begins the next.
struct KeptCapacity {
    Instant since;
    std::vector<MeteredUnits> units;
    std::int64_t rows = 0;

    static constexpr void describe(auto&& field) {
        field("since", &KeptCapacity::since, "From when on it is this much.", Rule{.required = true});
        field("units", &KeptCapacity::units, "How much, by GPU model.");
        field("rows", &KeptCapacity::rows, "So many usage rows of this lease were written for it before.",
              Rule{.min = 0});
    }
    friend bool operator==(const KeptCapacity&, const KeptCapacity&) = default;
};

struct Metered {
    std::string tenantClass;
    std::string account;
    Compliance compliance = Compliance::off;
    std::vector<MeteredUnits> units;
    std::vector<CoveredTime> covered;
    std::string notCovered;
    std::int64_t leaf = -1;

    static constexpr void describe(auto&& field) {
        field("class", &Metered::tenantClass, "The tenant's class when the lease was given.");
        field("account", &Metered::account, "The tenant at the top of its tree then; empty: itself.");
        field("compliance", &Metered::compliance, "Compliance mode by its contract; it keeps it to its end.");
        field("units", &Metered::units, "What it holds.");
        field("covered", &Metered::covered, "Times for which evidence shows that compliance mode was in force.");
        field("notCovered", &Metered::notCovered, "Why it is not in force now, as far as evidence goes.");
        field("leaf", &Metered::leaf, "Where the log records that evidence; -1: nowhere.");
    }
    friend bool operator==(const Metered&, const Metered&) = default;
};

}  // namespace bulkhead
