#include "bulkhead/shell/ledger.hpp"

#include <algorithm>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/evidence/statement.hpp"

namespace bulkhead::shell {

namespace {

// Most entries of the log are about something else; they are not read at all. A payload begins with its kind.
bool is_counted(std::string_view payload) {
    constexpr std::string_view begin = R"({"kind":")";
    if (!payload.starts_with(begin)) return false;
    payload.remove_prefix(begin.size());
    const std::string_view kind = payload.substr(0, payload.find('"'));
    return kind == "lease-closed" || kind == "wiped" || kind == "wipe-failed" || kind == "quarantined" ||
           kind == "node-fenced";
}

UnitKind kind_of(std::string_view unit) {
    if (unit.starts_with("gpu")) return UnitKind::memory;
    if (unit.starts_with("drive")) return UnitKind::drive;
    return unit.starts_with("host") ? UnitKind::host : UnitKind::vf;
}

}  // namespace

void Ledger::take(const Row& row) {
    if (row.table != Table::lease) return;
    if (!row.erased) {
        open_[row.key] = row.body;
        return;
    }
    const auto gone = open_.find(row.key);
    if (gone == open_.end()) return;
    if (const auto lease = from_json<GpuLease>("a lease", gone->second, own_text))
        closing_[lease->metadata.name] = std::move(gone->second);
    open_.erase(gone);
}

void Ledger::loaded(const Reign& reign) {
    const std::lock_guard lock{mutex_};
    open_.clear();
    for (const Row& row : reign.rows) take(row);
}

void Ledger::committed(const Batch& batch) {
    const std::lock_guard lock{mutex_};
    for (const Row& row : batch.rows) take(row);
    for (const Leaf& leaf : batch.leaves)
        if (is_counted(leaf.payload))
            if (const auto record = evidence::read_record(leaf.payload)) note(*record);
    closing_.clear();  // both are in one batch, or the log has no word on it
}

void Ledger::note(const evidence::Record& record) {
    switch (record.kind) {
        case evidence::RecordKind::lease_closed:
            return note_closed(record);
        case evidence::RecordKind::wiped:
        case evidence::RecordKind::wipe_failed:
            return note_wipe(record);
        case evidence::RecordKind::quarantined:
            ++books_.quarantined;
            return;
        case evidence::RecordKind::node_fenced:
            ++books_.fenced;
            return;
        default:
            return;
    }
}

void Ledger::note_closed(const evidence::Record& record) {
    const auto body = closing_.find(record.lease);
    if (body == closing_.end()) return;
    const auto lease = from_json<GpuLease>("a lease", body->second, own_text);
    if (!lease || !lease->status) return;
    OfTenant& tenant = books_.tenants[lease->spec.tenant];
    ++tenant.closed;
    std::int64_t lost = 0;
    for (const GpuTime& part : divide_time(*lease->status, record)) {
        tenant.micros[{part.fate, part.kind}] += part.micros();
        if (part.fate == Fate::lost) lost += part.micros();
    }
    if (!record.detail.contains("lost-gpu-ms")) return;
    Interrupted& interrupted = tenant.interrupted[cause_of_end(lease->status->why)];
    ++interrupted.leases;
    interrupted.lost_micros += lost;
}

void Ledger::note_wipe(const evidence::Record& record) {
    ++books_.wipes.ended[{kind_of(record.unit), record.kind == evidence::RecordKind::wiped}];
    if (record.kind != evidence::RecordKind::wiped || !record.evidence) return;
    const auto statement = evidence::read_statement(record.evidence->statement);
    if (!statement) return;
    const std::int64_t took = std::max<std::int64_t>(0, (statement->ended - statement->began).ms);
    const auto* const bound =
        std::ranges::find_if(Wipes::bounds_s, [&](std::int64_t seconds) { return took <= seconds * 1000; });
    ++books_.wipes.took.at(static_cast<std::size_t>(bound - Wipes::bounds_s.begin()));
    books_.wipes.took_ms += took;
}

Ledger::Books Ledger::books(const std::function<bool(const std::string&)>& exists) {
    const std::lock_guard lock{mutex_};
    std::erase_if(books_.tenants, [&](const auto& one) { return !exists(one.first); });
    return books_;
}

}  // namespace bulkhead::shell
