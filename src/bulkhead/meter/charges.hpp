// How the time of a lease is cut: at UTC days, at price lists, and where compliance evidence begins or ends. The cuts
// are the lease's own and nobody's question changes them, so that a charge is the same in every report.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bulkhead/meter/cost.hpp"
#include "bulkhead/meter/usage_row.hpp"

namespace bulkhead::meter {

inline constexpr std::int64_t ms_per_day = 86'400'000;
// A day is closed so long after its end: what a silent node or a late word takes from it is known by then.
inline constexpr Duration grace{3'600'000};

Instant day_of(Instant at);  // its first moment, UTC
Instant month_of(Instant at);
Instant next_month(Instant month);

struct Interval {
    Instant from, to;
    std::int64_t ms() const { return to.ms - from.ms; }
    friend auto operator<=>(const Interval&, const Interval&) = default;
};

// Time of one lease under one price list, covered or not, on one day.
struct Piece {
    Interval time;
    const Rate* rate = nullptr;  // null: no price list was in force
    bool covered = false;
};

// What of the covered time lies in the interval: in order, joined, none of it twice.
std::vector<Interval> covered_within(const std::vector<CoveredTime>& covered, Interval within);

// The pieces of `whole` that lie in `window`, in order. A window cuts nothing: it begins and ends at midnight.
template <class Visit>
void for_each_piece(Interval whole, const std::vector<Rate>& rates, const std::vector<Interval>& covered,
                    Interval window, Visit&& visit) {
    Instant at = std::max(whole.from, window.from);
    const Instant end = std::min(whole.to, window.to);
    auto evidence = covered.begin();
    std::size_t next_rate = 0;
    while (at < end) {
        while (next_rate < rates.size() && rates[next_rate].from <= at) ++next_rate;
        while (evidence != covered.end() && evidence->to <= at) ++evidence;
        Instant until = std::min(end, Instant{day_of(at).ms + ms_per_day});
        if (next_rate < rates.size()) until = std::min(until, rates[next_rate].from);
        const bool is_covered = evidence != covered.end() && evidence->from <= at;
        if (evidence != covered.end()) until = std::min(until, is_covered ? evidence->to : evidence->from);
        visit(Piece{{at, until}, next_rate == 0 ? nullptr : &rates[next_rate - 1], is_covered});
        at = until;
    }
}

// The price of the lease's units at this place; null: none.
const RatedUnits* price_in(const Rate* rate, std::size_t units);

// By which a charge is known to whoever keeps it: the same charge always has the same. `meter` is what is counted:
// "gpu-h100-80gb-sxm5", "gpu-h100-80gb-sxm5-3g40gb-scm"; `revision` is empty but for corrections.
struct ChargeName {
    std::string_view lease, meter;
    Instant from;
    std::string_view revision = {};
};
std::string charge_id(const ChargeName& name);
std::string sku_of(const MeteredUnits& units, bool surcharge);

}  // namespace bulkhead::meter
