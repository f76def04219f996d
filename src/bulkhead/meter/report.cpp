#include "bulkhead/meter/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

namespace bulkhead::meter {

namespace {

bool wanted(const Question& question, const Ledger::Terms& terms) {
    return !question.tenants || question.tenants->contains(terms.tenant);
}

bool is_over(Instant end, Instant now) { return end + grace <= now; }

// A correction is billed when it is posted.
Instant billed_at(const Ledger::Entry& entry) { return entry.correction ? entry.correction->posted : entry.time.from; }

bool falls_into(const Ledger::Entry& entry, Interval window) {
    if (entry.correction) return entry.correction->posted >= window.from && entry.correction->posted < window.to;
    return entry.time.from < window.to && entry.time.to > window.from;
}

bool is_late(const Ledger::Entry& entry) {
    return is_over(next_month(month_of(entry.time.from)), entry.correction->posted);
}

// Calls visit(units' place, piece, span, price or null) for whatever of a lease lies in the window.
template <class Visit>
void for_each_part(const Ledger::Terms& terms, const Ledger::Entry& entry, Interval window, Visit&& visit) {
    for_each_piece(entry.time, terms.rates, entry.covered, window, [&](const Piece& piece) {
        for (std::size_t i = 0; i < terms.units.size(); ++i) {
            const RatedUnits* price = price_in(piece.rate, i);
            visit(i, piece,
                  Span{.ms = piece.time.ms(),
                       .units = terms.units[i].units,
                       .per_hour = price == nullptr ? Money{} : price->perHour},
                  price);
        }
    });
}

using LineKey =
    std::tuple<std::string, std::string, std::string, std::string, std::string, bool, bool, std::string, std::string>;
using MonthKey = std::tuple<std::string, std::string, std::int64_t>;  // tenant, currency, month

class Counting {
public:
    Counting(const Known& known, const Question& question) : known_{known}, question_{question} {}

    void run() {
        count(known_.closed, false);
        count(known_.open, true);
    }

    std::map<LineKey, Line> lines;
    std::map<MonthKey, std::pair<Wide, const Ledger::Terms*>> months;

private:
    // One slot for each kind of unit of each terms: most leases differ in nothing but their time.
    void count(const Ledger& ledger, bool open) {
        std::vector<std::vector<Line>> slots(ledger.terms().size());
        for (const Ledger::Entry& entry : ledger.entries()) {
            const Ledger::Terms& terms = ledger.terms_of(entry);
            if (!falls_into(entry, question_.window) || !wanted(question_, terms)) continue;
            if (open && known_.closed.find(entry.lease, {}, entry.exclusive) != nullptr) continue;
            if (entry.correction) {
                Line& line = line_of(terms, nullptr, entry.lease);
                line.corrections += entry.correction->amount.nano;
                bill(terms, month_of(billed_at(entry)), entry.correction->amount.nano);
                continue;
            }
            std::vector<Line>& slot = slots[entry.terms];
            if (slot.empty()) slot.resize(terms.units.size());
            for (Line& line : slot) ++line.leases;
            for_each_part(terms, entry, question_.window,
                          [&](std::size_t i, const Piece& piece, const Span& span, const RatedUnits* price) {
                              add(slot[i], terms, piece, span, price, open);
                          });
            if (question_.by_lease) flush(terms, slot, entry.lease);
        }
        for (std::size_t i = 0; i < slots.size(); ++i) flush(ledger.terms()[i], slots[i], {});
    }

    void add(Line& line, const Ledger::Terms& terms, const Piece& piece, const Span& span, const RatedUnits* price,
             bool open) {
        line.ms += span.ms;
        line.unit_ms += Wide{span.ms} * span.units.units;
        if (piece.covered) line.covered_ms += span.ms;
        if (terms.compliance != Compliance::off && !piece.covered) line.degraded_ms += span.ms;
        if (open && !is_over({day_of(piece.time.from).ms + ms_per_day}, question_.now)) line.open_ms += span.ms;
        if (price == nullptr) {
            line.unpriced_ms += span.ms;
            return;
        }
        const Wide base = base_cost(span);
        const Wide extra = piece.covered ? surcharge_cost(span, piece.rate->surchargePercent) : 0;
        line.base += base;
        line.surcharge += extra;
        bill(terms, month_of(piece.time.from), base + extra);
    }

    void bill(const Ledger::Terms& terms, Instant month, Wide amount) {
        // Neighbours are mostly of one tenant and month.
        if (last_ == nullptr || last_terms_ != &terms || last_month_ != month) {
            last_ = &months.try_emplace({terms.tenant, terms.currency, month.ms}, 0, &terms).first->second.first;
            last_terms_ = &terms;
            last_month_ = month;
        }
        *last_ += amount;
    }

    Line& line_of(const Ledger::Terms& terms, const MeteredUnits* units, const std::string& lease) {
        const std::string mechanism{terms.known_mechanism ? word(terms.mechanism) : "unknown"};
        const LineKey key{terms.tenant,
                          terms.tenant_class,
                          units == nullptr ? "" : mechanism,
                          units == nullptr ? "" : units->model,
                          units == nullptr ? "" : units->profile,
                          units != nullptr && units->shared,
                          units != nullptr && units->exclusive,
                          question_.by_lease ? lease : "",
                          terms.currency};
        const auto [place, fresh] = lines.try_emplace(key);
        Line& line = place->second;
        if (fresh)
            std::tie(line.tenant, line.tenant_class, line.mechanism, line.model, line.profile, line.shared,
                     line.exclusive, line.lease, line.currency) = key;
        return line;
    }

    void flush(const Ledger::Terms& terms, std::vector<Line>& slot, const std::string& lease) {
        for (std::size_t i = 0; i < slot.size(); ++i) {
            Line& from = slot[i];
            if (from.leases == 0) continue;
            Line& to = line_of(terms, &terms.units[i], lease);
            to.leases += from.leases;
            to.ms += from.ms;
            to.unit_ms += from.unit_ms;
            to.covered_ms += from.covered_ms;
            to.degraded_ms += from.degraded_ms;
            to.unpriced_ms += from.unpriced_ms;
            to.open_ms += from.open_ms;
            to.base += from.base;
            to.surcharge += from.surcharge;
            from = {};
        }
    }

    const Known& known_;
    const Question& question_;
    Wide* last_ = nullptr;
    const Ledger::Terms* last_terms_ = nullptr;
    Instant last_month_;
};

std::vector<std::string> findings_of(const std::vector<Line>& lines) {
    std::vector<std::string> out;
    for (const Line& line : lines) {
        const std::string what = fmt::format("{}: {}{}{}", line.tenant, line.model, line.profile.empty() ? "" : " ",
                                             line.profile.empty() ? "" : line.profile);
        if (line.unpriced_ms != 0 && line.exclusive)
            out.push_back(
                fmt::format("{} was kept from others for {} without an exclusive price, and is not billed for it: add "
                            "one to a price list",
                            what, print(Duration{line.unpriced_ms})));
        else if (line.unpriced_ms != 0)
            out.push_back(fmt::format("{} ran for {} without a price, and is not billed for it: add it to a price list",
                                      what, print(Duration{line.unpriced_ms})));
        if (line.degraded_ms != 0)
            out.push_back(
                fmt::format("{} ran for {} under compliance mode without evidence that it was in force: "
                            "billed at the base price",
                            what, print(Duration{line.degraded_ms})));
    }
    return out;
}

std::string invoice_id(const std::string& tenant, Instant month, const std::string& currency) {
    return fmt::format("{}-{}-{}", tenant, print(month).substr(0, 7), currency);
}

}  // namespace

Result<Interval> parse_window(std::string_view from, std::string_view to) {
    Instant ends[2];
    const std::string_view texts[] = {from, to};
    for (int i = 0; i < 2; ++i) {
        const auto parsed =
            parse_instant(texts[i].size() == 10 ? std::string{texts[i]} + "T00:00:00Z" : std::string{texts[i]});
        if (!parsed || day_of(*parsed) != *parsed)
            return fail(
                Code::invalid,
                fmt::format("{} is \"{}\", which is no UTC day", i == 0 ? "from" : "to", texts[i].substr(0, 64)),
                "a date: 2026-11-01");
        ends[i] = *parsed;
    }
    if (ends[0] >= ends[1])
        return fail(Code::invalid, fmt::format("from {} to {} is no time at all", from, to),
                    "the day of `to` is not part of it: give the day after the last");
    if (ends[1] - ends[0] > Duration::days(3660))
        return fail(Code::invalid, fmt::format("from {} to {} is more than ten years", from, to), "ask for less");
    return Interval{ends[0], ends[1]};
}

Report report(const Known& known, const Question& question, const std::vector<std::string>& contradictions) {
    Report out{.window = question.window, .now = question.now};
    Counting counting{known, question};
    counting.run();
    for (auto& [key, line] : counting.lines) {
        if (line.total() != 0 || !line.currency.empty()) out.totals[line.currency] += line.total();
        out.lines.push_back(std::move(line));
    }
    for (const auto& [key, month] : counting.months) {
        const auto& [tenant, currency, ms] = key;
        const Instant begin{ms}, end = next_month(begin);
        const bool whole = begin >= question.window.from && end <= question.window.to;
        if (!whole || !is_over(end, question.now) || !contradictions.empty() || currency.empty()) continue;
        Invoice invoice{.id = invoice_id(tenant, begin, currency),
                        .tenant = tenant,
                        .account = month.second->account,
                        .currency = currency,
                        .month = begin,
                        .rows = month.first,
                        .payable = rounded_to_minor(month.first, currency)};
        out.totals[currency] += invoice.rounding();
        out.invoices.push_back(std::move(invoice));
    }
    out.findings = findings_of(out.lines);
    for (const std::string& contradiction : contradictions)
        out.findings.push_back("nothing is invoiced: " + contradiction);
    return out;
}

void for_each_charge(const Known& known, const Question& question, const Report& report,
                     const std::function<void(const Charge&)>& visit) {
    std::map<MonthKey, const Invoice*> invoices;
    for (const Invoice& invoice : report.invoices)
        invoices[{invoice.tenant, invoice.currency, invoice.month.ms}] = &invoice;
    struct Place {
        const Ledger* ledger = nullptr;
        const Ledger::Entry* entry = nullptr;
        bool open = false;
    };
    std::vector<Place> places;
    for (const bool open : {false, true}) {
        const Ledger& ledger = open ? known.open : known.closed;
        for (const Ledger::Entry& entry : ledger.entries())
            if (falls_into(entry, question.window) && wanted(question, ledger.terms_of(entry)) &&
                !(open && known.closed.find(entry.lease, {}, entry.exclusive) != nullptr))
                places.push_back({&ledger, &entry, open});
    }
    std::ranges::sort(places, {}, [](const Place& place) {
        const Ledger::Entry& entry = *place.entry;
        return std::tuple<std::string_view, std::int64_t, std::string_view, std::string_view, std::int64_t>{
            place.ledger->terms_of(entry).tenant, billed_at(entry).ms, entry.lease,
            entry.correction ? std::string_view{entry.correction->id} : std::string_view{}, entry.exclusive};
    });
    for (const Place& place : places) {
        const Ledger::Terms& terms = place.ledger->terms_of(*place.entry);
        Charge charge{.terms = &terms, .entry = place.entry};
        const auto say = [&](ChargeKind kind, Wide amount) {
            charge.kind = kind;
            charge.amount = amount;
            const auto invoice = invoices.find({terms.tenant, terms.currency, charge.month.ms});
            charge.invoice = invoice == invoices.end() ? std::string{} : invoice->second->id;
            visit(charge);
        };
        if (place.entry->correction) {
            charge.time = place.entry->time;
            charge.month = month_of(billed_at(*place.entry));
            charge.late = is_late(*place.entry);
            say(ChargeKind::correction, place.entry->correction->amount.nano);
            continue;
        }
        for_each_part(terms, *place.entry, question.window,
                      [&](std::size_t i, const Piece& piece, const Span& span, const RatedUnits* price) {
                          charge.units = &terms.units[i];
                          charge.time = piece.time;
                          charge.month = month_of(piece.time.from);
                          charge.rate = piece.rate;
                          charge.per_hour = price == nullptr ? std::nullopt : std::optional{price->perHour};
                          charge.covered = piece.covered;
                          charge.open = place.open && !is_over({day_of(piece.time.from).ms + ms_per_day}, question.now);
                          say(charge.units->exclusive ? ChargeKind::exclusivity : ChargeKind::usage,
                              price == nullptr ? 0 : base_cost(span));
                          if (piece.covered && price != nullptr)
                              say(ChargeKind::surcharge, surcharge_cost(span, piece.rate->surchargePercent));
                      });
    }
    for (const Invoice& invoice : report.invoices) {
        if (invoice.rounding() == 0) continue;
        const Ledger::Terms terms{.tenant = invoice.tenant, .account = invoice.account, .currency = invoice.currency};
        visit({.kind = ChargeKind::rounding,
               .terms = &terms,
               .time = {invoice.month, next_month(invoice.month)},
               .month = invoice.month,
               .amount = invoice.rounding(),
               .invoice = invoice.id});
    }
}

}  // namespace bulkhead::meter
