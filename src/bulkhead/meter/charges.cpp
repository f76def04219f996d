#include "bulkhead/meter/charges.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "bulkhead/base/hash.hpp"

namespace bulkhead::meter {

namespace {

std::chrono::year_month_day date_of(Instant at) {
    return std::chrono::floor<std::chrono::days>(
        std::chrono::sys_time<std::chrono::milliseconds>{std::chrono::milliseconds{at.ms}});
}

Instant first_of(std::chrono::year_month month) {
    const std::chrono::sys_days day{month / 1};
    return {std::int64_t{day.time_since_epoch().count()} * ms_per_day};
}

}  // namespace

Instant day_of(Instant at) {
    std::int64_t rest = at.ms % ms_per_day;
    if (rest < 0) rest += ms_per_day;
    return {at.ms - rest};
}

Instant month_of(Instant at) {
    const auto date = date_of(at);
    return first_of(date.year() / date.month());
}

Instant next_month(Instant month) {
    const auto date = date_of(month);
    return first_of(date.year() / date.month() + std::chrono::months{1});
}

std::vector<Interval> covered_within(const std::vector<CoveredTime>& covered, Interval within) {
    std::vector<Interval> out;
    for (const CoveredTime& time : covered) {
        const Interval part{std::max(time.from, within.from), std::min(time.to.value_or(within.to), within.to)};
        if (part.from < part.to) out.push_back(part);
    }
    std::ranges::sort(out);
    std::vector<Interval> joined;
    for (const Interval& part : out)
        if (!joined.empty() && part.from <= joined.back().to)
            joined.back().to = std::max(joined.back().to, part.to);
        else
            joined.push_back(part);
    return joined;
}

const RatedUnits* price_in(const Rate* rate, std::size_t units) {
    if (rate == nullptr) return nullptr;
    const auto found = std::ranges::find(rate->prices, static_cast<std::int64_t>(units), &RatedUnits::units);
    return found == rate->prices.end() ? nullptr : &*found;
}

std::string charge_id(const ChargeName& name) {
    const std::string from = std::to_string(name.from.ms);
    return to_hex(
        bytes_of(sha256({"bulkhead/charge/1\n", name.lease, "\n", name.meter, "\n", from, "\n", name.revision}))
            .substr(0, 16));
}

std::string sku_of(const MeteredUnits& units, bool surcharge) {
    std::string sku = "gpu-" + units.model;
    if (!units.profile.empty()) {
        sku += '-';
        for (const char c : units.profile)
            if (c != '.') sku += c;
    }
    if (units.shared) sku += "-shared";
    if (units.exclusive) sku += "-exclusive";
    if (surcharge) sku += "-scm";
    return sku;
}

}  // namespace bulkhead::meter
