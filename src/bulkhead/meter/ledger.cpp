#include "bulkhead/meter/ledger.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

namespace bulkhead::meter {

namespace {

std::size_t name_hash(std::string_view lease, std::string_view correction, std::int64_t exclusive) {
    const std::hash<std::string_view> hash;
    const std::size_t own = hash(lease) + 0x9E3779B97F4A7C15u * static_cast<std::size_t>(exclusive);
    return correction.empty() ? own : own * 31 + hash(correction);
}

std::string_view correction_of(const Ledger::Entry& entry) {
    return entry.correction ? std::string_view{entry.correction->id} : std::string_view{};
}

bool same_content(const Ledger::Entry& a, const Ledger::Entry& b) {
    const bool corrects_alike =
        (a.correction == nullptr) == (b.correction == nullptr) && (!a.correction || *a.correction == *b.correction);
    return a.workload == b.workload && a.time == b.time && a.terms == b.terms && a.leaf == b.leaf &&
           a.covered == b.covered && a.exclusive == b.exclusive && corrects_alike;
}

}  // namespace

Ledger::Ledger() = default;
Ledger::~Ledger() = default;
Ledger::Ledger(Ledger&&) noexcept = default;
Ledger& Ledger::operator=(Ledger&&) noexcept = default;

std::uint32_t Ledger::number_of(Terms terms) {
    text_.clear();
    auto out = std::back_inserter(text_);
    fmt::format_to(out, "{}\n{}\n{}\n{}\n{} {} {}", terms.tenant, terms.account, terms.tenant_class, terms.currency,
                   static_cast<int>(terms.mechanism), terms.known_mechanism, static_cast<int>(terms.compliance));
    for (const MeteredUnits& units : terms.units)
        fmt::format_to(out, "\nu{} {} {} {} {}", units.units.units, units.shared, units.exclusive, units.model,
                       units.profile);
    for (const Rate& rate : terms.rates) {
        fmt::format_to(out, "\nr{} {} {}", rate.from.ms, rate.surchargePercent, rate.list);
        for (const RatedUnits& price : rate.prices) fmt::format_to(out, " {}={}", price.units, price.perHour.nano);
    }
    const auto [place, fresh] = terms_by_text_.try_emplace(text_, static_cast<std::uint32_t>(terms_.size()));
    if (fresh) terms_.push_back(std::move(terms));
    return place->second;
}

Result<bool> Ledger::add(const UsageRow& row) {
    Terms terms{.tenant = row.tenant, .currency = row.currency, .mechanism = row.mechanism, .rates = row.rates};
    Entry entry{.lease = row.lease, .workload = row.workload, .time = {row.from, row.to}};
    entry.exclusive = row.exclusive.value_or(0);
    if (row.metered) {
        terms.account = row.metered->account;
        terms.tenant_class = row.metered->tenantClass;
        terms.compliance = row.metered->compliance;
        terms.units = row.metered->units;
        entry.leaf = row.metered->leaf;
        entry.covered = covered_within(row.metered->covered, entry.time);
    } else {
        terms.known_mechanism = false;
        if (!row.correction) terms.units = {{.model = "unknown", .units = row.gpus}};
    }
    if (terms.account.empty()) terms.account = terms.tenant;
    if (row.correction) entry.correction = std::make_unique<const UsageCorrection>(*row.correction);
    entry.terms = number_of(std::move(terms));
    if (const Entry* known = find(entry.lease, correction_of(entry), entry.exclusive)) {
        if (same_content(*known, entry)) return false;
        return fail(
            Code::conflict,
            fmt::format("there is another usage row for {}{}{} already, from {} to {}; this one is from {} to {}",
                        entry.lease, entry.correction ? ", correction " : "", correction_of(entry),
                        print(known->time.from), print(known->time.to), print(entry.time.from), print(entry.time.to)),
            "usage is never rewritten: post a correction under an id of its own");
    }
    by_name_.emplace(name_hash(entry.lease, correction_of(entry), entry.exclusive),
                     static_cast<std::uint32_t>(entries_.size()));
    entries_.push_back(std::move(entry));
    return true;
}

const Ledger::Entry* Ledger::find(std::string_view lease, std::string_view correction, std::int64_t exclusive) const {
    const auto [first, last] = by_name_.equal_range(name_hash(lease, correction, exclusive));
    for (auto at = first; at != last; ++at)
        if (const Entry& entry = entries_[at->second];
            entry.lease == lease && correction_of(entry) == correction && entry.exclusive == exclusive)
            return &entry;
    return nullptr;
}

}  // namespace bulkhead::meter
