// What is billed, counted once more from outside: time from the leases themselves, prices from the world's own table,
// and compliance from the tenants' switches and the silence of nodes. Only the last function asks the meter, to hold
// its answer against all that.
#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/meter/report.hpp"
#include "sim/checkers.hpp"
#include "sim/reading.hpp"
#include "sim/tenants.hpp"

namespace bulkhead::sim {

namespace json = boost::json;

namespace {

__extension__ using Wide = __int128;

std::string compliance_in(const json::object& holder) {
    const std::string said = text(holder, "compliance");
    return said.empty() ? "off" : said;  // the default is not written
}

const json::object* part_of(const json::object& object, std::string_view key) {
    const json::value* found = object.if_contains(key);
    return found != nullptr && found->is_object() ? &found->as_object() : nullptr;
}

std::int64_t overlap(std::int64_t a_from, std::int64_t a_to, std::int64_t b_from, std::int64_t b_to) {
    return std::max<std::int64_t>(0, std::min(a_to, b_to) - std::max(a_from, b_from));
}

}  // namespace

// Which way each tenant's switch stands, as far as it is durable.
void Checkers::read_switch(const Row& row) {
    const json::value parsed = json::parse(row.body);
    const json::object& tenant = parsed.as_object();
    switches_[text(tenant.at("metadata").as_object(), "name")] = compliance_in(tenant.at("spec").as_object());
}

void Checkers::read_silence(const json::object& record) {
    const std::string node = text(record, "node");
    const std::int64_t at = instant(text(record, "at"));
    if (text(record, "kind") == "node-fenced")
        silences_[node].push_back({at - std::stoll(text(record.at("detail").as_object(), "silent-ms")), -1});
    else if (!silences_[node].empty() && silences_[node].back().second < 0)
        silences_[node].back().second = at;
}

// A lease is given under the mode its tenant is in, and keeps it.
void Checkers::check_mode(const LeaseSeen& lease) {
    if (lease.compliance != switches_[lease.tenant])
        violate(11, fmt::format("{} was given under compliance {}, and {} is in mode {}", lease.name, lease.compliance,
                                lease.tenant, switches_[lease.tenant]));
    if (lease.compliance != "off") probe("a lease under compliance mode");
}

void Checkers::check_usage(const json::object& usage) {
    if (part_of(usage, "correction") != nullptr) return;
    const std::string name = text(usage, "lease");
    const std::int64_t from = instant(text(usage, "from")), to = instant(text(usage, "to"));
    usage_seen_[name] += gpu_units(usage, "gpus") * (to - from);
    const auto held = std::ranges::find(leases_, name, [](const auto& entry) { return entry.second.name; });
    const json::object* metered = part_of(usage, "metered");
    if (metered == nullptr || held == leases_.end())
        return violate(8, fmt::format("usage of {} says nothing of what was held, or nobody holds it", name));
    const LeaseSeen& lease = held->second;
    std::map<std::string, std::int64_t> pieces, units;
    for (const LeaseSeen::Piece& piece : lease.pieces)
        pieces[piece.profile] += piece.share * 21;  // a share is counted in thousandths
    for (const json::value& unit : metered->at("units").as_array())
        units[text(unit.as_object(), "profile")] += gpu_units(unit.as_object(), "units");
    if (pieces != units) violate(8, fmt::format("usage of {} counts other units than it held", name));
    if (compliance_in(*metered) != lease.compliance)
        violate(11, fmt::format("usage of {} says compliance {}", name, compliance_in(*metered)));
    Billed& billed = billed_[name];
    billed = {.from = from, .to = to, .units = units, .covered = {}};
    const json::value* covered = metered->if_contains("covered");
    std::int64_t before = from;
    if (covered != nullptr)
        for (const json::value& value : covered->as_array()) {
            const std::int64_t begin = instant(text(value.as_object(), "from")),
                               end = instant(text(value.as_object(), "to"));
            if (begin < before || end <= begin || end > to)
                violate(11, fmt::format("the evidence of {} is not in order, or not of its time", name));
            before = end;
            billed.covered.emplace_back(begin, end);
            for (const std::string& node : lease.nodes)
                for (const auto& [silent, heard] : silences_[node])
                    if (overlap(begin, end, silent, heard < 0 ? INT64_MAX : heard) > 0)
                        violate(11, fmt::format("{} is billed as covered while {} was silent", name, node));
        }
    if (!billed.covered.empty() && lease.compliance == "off")
        violate(11, fmt::format("{} is billed for a mode it was not in", name));
    if (!billed.covered.empty()) probe("covered time was billed");
    if (lease.compliance != "off" && (billed.covered.size() != 1 || billed.covered[0] != std::pair{from, to}))
        probe("time under compliance mode was not covered");
}

// The meter's report of everything, against time and prices as they are counted here. Amounts are compared as
// fractions: each row may be off by half of the last unit, and no more.
void Checkers::check_bill(const std::map<std::pair<Table, std::int64_t>, std::string>& rows) {
    meter::Ledger closed;
    const meter::Ledger open;
    for (const auto& [key, body] : rows) {
        if (key.first != Table::usage) continue;
        const auto row = from_json<UsageRow>("a usage row", body);
        const auto added = row ? closed.add(*row) : std::unexpected(row.error());
        if (!added) violate(8, "the meter does not take a row: " + added.error().what);
    }
    const meter::Question all{.window = {{0}, {4'000'000'000'000 / meter::ms_per_day * meter::ms_per_day}},
                              .now = {4'100'000'000'000},
                              .by_lease = true};
    const meter::Report report = meter::report({closed, open}, all);
    struct Sums {
        std::int64_t ms = 0;
        Wide base = 0, surcharge = 0;
    };
    std::map<std::string, Sums> reported;
    Wide lines = 0, roundings = 0, totals = 0, rows_sum = 0;
    for (const meter::Line& line : report.lines) {
        Sums& sums = reported[line.lease];
        sums.ms = std::max(sums.ms, line.ms);
        sums.base += line.base;
        sums.surcharge += line.surcharge;
        lines += line.total();
    }
    for (const meter::Invoice& invoice : report.invoices) roundings += invoice.rounding();
    for (const auto& [currency, total] : report.totals) totals += total;
    meter::for_each_charge({closed, open}, all, report,
                           [&](const meter::Charge& charge) { rows_sum += charge.amount; });
    if (totals != lines + roundings || totals != rows_sum) violate(8, "the rows of the bill do not sum to its total");
    for (const auto& [lease, expected] : usage_expected_) {
        const Billed& billed = billed_[lease];
        if (reported[lease].ms != billed.to - billed.from)
            violate(8, fmt::format("the meter says {} ms of {}, which was held for {}", reported[lease].ms, lease,
                                   billed.to - billed.from));
        Wide base = 0, surcharge = 0;
        const std::vector<PriceFacts> facts = price_facts();
        for (std::size_t i = 0; i < facts.size(); ++i) {
            const std::int64_t until = i + 1 < facts.size() ? facts[i + 1].from : INT64_MAX;
            for (const auto& [profile, units] : billed.units) {
                const auto price = facts[i].nano_per_hour.find(profile);
                if (price == facts[i].nano_per_hour.end()) continue;
                const Wide each = Wide{units} * price->second;
                base += each * overlap(billed.from, billed.to, facts[i].from, until);
                for (const auto& [begin, end] : billed.covered)
                    surcharge += each * facts[i].surcharge_percent * overlap(begin, end, facts[i].from, until);
            }
        }
        const Wide most_rows = Wide{(billed.to - billed.from) / 86'400'000 + 4 + 2 * std::ssize(billed.covered)} *
                               std::max<Wide>(1, std::ssize(billed.units));
        const Wide under = Wide{3'600'000} * 21'000;  // hours in milliseconds, GPUs in 1/21,000
        const auto off = [&](Wide counted, Wide exact, Wide denominator) {
            const Wide difference = 2 * (counted * denominator - exact);
            return difference > most_rows * denominator || -difference > most_rows * denominator;
        };
        if (off(reported[lease].base, base, under) || off(reported[lease].surcharge, surcharge, 100 * under))
            violate(8, fmt::format("the meter bills {} with other amounts than its time and the prices make", lease));
    }
    probe("a bill was checked");
}

}  // namespace bulkhead::sim
