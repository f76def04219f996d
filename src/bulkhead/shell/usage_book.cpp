#include "bulkhead/shell/usage_book.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/meter/rates.hpp"

namespace bulkhead::shell {

namespace {
bool is_usage(const Row& row) { return row.table == Table::usage && !row.erased; }
}  // namespace

void UsageBook::loaded(const Reign& reign) {
    const std::lock_guard lock{arriving_mutex_};
    arrived_.clear();
    anew_ = true;
    std::ranges::copy_if(reign.rows, std::back_inserter(arrived_), is_usage);
}

void UsageBook::committed(const Batch& batch) {
    if (std::ranges::none_of(batch.rows, is_usage)) return;
    const std::lock_guard lock{arriving_mutex_};
    std::ranges::copy_if(batch.rows, std::back_inserter(arrived_), is_usage);
}

void UsageBook::take_in_what_came() {
    std::vector<Row> rows;
    bool anew = false;
    {
        const std::lock_guard lock{arriving_mutex_};
        rows.swap(arrived_);
        anew = std::exchange(anew_, false);
    }
    if (anew) {
        ledger_ = {};
        tenants_.clear();
        contradictions_.clear();
    }
    for (const Row& row : rows) take(row);
}

void UsageBook::take(const Row& row) {
    const auto what = [&] { return fmt::format("usage row {}", row.key); };
    const auto usage = from_json<UsageRow>(what, row.body, own_text);
    const Result<bool> added = usage ? ledger_.add(*usage) : std::unexpected(usage.error());
    if (usage) tenants_.insert(usage->tenant);
    if (!added) contradictions_.push_back(added.error().what);
}

void UsageBook::read(const Read& read) {
    const std::lock_guard lock{reading_};
    take_in_what_came();
    read(ledger_, contradictions_);
}

bool UsageBook::knows(const std::string& tenant) {
    const std::lock_guard lock{reading_};
    take_in_what_came();
    return tenants_.contains(tenant);
}

UsageRow usage_until(const GpuLease& lease, const Pricing& pricing, Instant now) {
    const GpuLeaseStatus status = lease.status.value_or(GpuLeaseStatus{});
    UsageRow row{.lease = lease.metadata.name,
                 .tenant = lease.spec.tenant,
                 .workload = lease.spec.workload,
                 .gpus = status.gpus,
                 .from = status.activeAt.value_or(now),
                 .to = now,
                 .mechanism = lease.spec.mechanism,
                 .metered = status.metered};
    row.to = std::max(row.from, row.to);
    if (row.metered) row.rates = meter::rates_for(pricing, *row.metered, row.from, row.to);
    if (!row.rates.empty()) row.currency = pricing.currency;
    return row;
}

std::optional<UsageRow> kept_until(const GpuLease& lease, const Pricing& pricing, Instant now) {
    if (!lease.status || !lease.status->kept || lease.status->kept->units.empty()) return std::nullopt;
    return meter::kept_row(lease, pricing, now);
}

}  // namespace bulkhead::shell
