// What a window of days comes to: lines by tenant, class, mechanism and silicon, invoices of the months that are over,
// and what a reader must know beside the numbers. Every number is an integer; whatever is added up here is exact.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bulkhead/meter/ledger.hpp"

namespace bulkhead::meter {

struct Question {
    Interval window;  // whole days
    Instant now;
    std::optional<std::set<std::string>> tenants;  // whom alone whoever asks may and wants to see; none: everybody
    bool by_lease = false;
};
// "2026-11-01", or the same as a time. `from` before `to`, at most ten years apart.
Result<Interval> parse_window(std::string_view from, std::string_view to);

// What is known: the rows of leases that have ended, and running leases as if they ended now. A lease that is in both
// has ended meanwhile.
struct Known {
    const Ledger& closed;
    const Ledger& open;
};

// Exclusivity: capacity that work kept from others by an isolation request beyond the rules, and did not lease.
enum class ChargeKind : std::uint8_t { usage, surcharge, correction, rounding, exclusivity };
constexpr auto words(ChargeKind) {
    return std::to_array<std::string_view>({"usage", "surcharge", "correction", "rounding", "exclusivity"});
}

// One row of a bill.
struct Charge {
    ChargeKind kind{};
    const Ledger::Terms* terms = nullptr;
    const Ledger::Entry* entry = nullptr;  // null: of a rounding
    const MeteredUnits* units = nullptr;   // null: of a rounding or a correction
    Interval time;
    Instant month;                  // in which it is billed
    const Rate* rate = nullptr;     // null: none was in force
    std::optional<Money> per_hour;  // of one unit, without surcharge; none: it has no price
    bool covered = false;
    bool open = false;  // the day is not over for this lease: it will be more
    bool late = false;  // corrects a month that was over
    Wide amount = 0;
    std::string invoice;  // empty: not invoiced yet
};

struct Line {
    std::string tenant, tenant_class, mechanism, model, profile, lease, currency;
    bool shared = false;
    bool exclusive = false;                        // kept from others, not leased
    std::int64_t leases = 0, ms = 0;               // of lease time; of exclusive lines: usage rows
    Wide unit_ms = 0;                              // Gpus::units times milliseconds
    std::int64_t covered_ms = 0, degraded_ms = 0;  // under compliance mode: with evidence, and without
    std::int64_t unpriced_ms = 0, open_ms = 0;
    Wide base = 0, surcharge = 0, corrections = 0;
    Wide total() const { return base + surcharge + corrections; }
};

// A month of a tenant that is over.
struct Invoice {
    std::string id, tenant, account, currency;
    Instant month;
    Wide rows = 0;     // what its charges add up to
    Wide payable = 0;  // the same in coins
    Wide rounding() const { return payable - rows; }
};

struct Report {
    Interval window;
    Instant now;
    std::vector<Line> lines;  // by all their names
    std::vector<Invoice> invoices;
    std::map<std::string, Wide> totals;  // by currency: lines and roundings
    std::vector<std::string> findings;
};

// `known` is sound: no two rows contradict each other. Where they do, nothing is invoiced.
Report report(const Known& known, const Question& question, const std::vector<std::string>& contradictions = {});

// Every charge of the window, by tenant and time, and the roundings at the end. `report` is of the same question.
void for_each_charge(const Known& known, const Question& question, const Report& report,
                     const std::function<void(const Charge&)>& visit);

std::string report_json(const Report& report);
std::string report_csv(const Report& report);

}  // namespace bulkhead::meter
