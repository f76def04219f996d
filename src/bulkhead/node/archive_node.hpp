// How the messages of this room lie in bytes. The order of fields is the format: append only, under a new version.
#pragma once

#include "bulkhead/node/archive.hpp"
#include "bulkhead/node/ledger.hpp"
#include "bulkhead/node/order.hpp"
#include "bulkhead/node/report.hpp"

namespace bulkhead::archive {

void fields(auto& a, Of<UnitId> auto& v) { a(v.kind, v.device, v.slice); }
void fields(auto& a, Of<DeviceId> auto& v) { a(v.kind, v.device); }
void fields(auto& a, Of<GpuPart> auto& v) { a(v.gpu, v.start, v.size, v.profile, v.share); }
void fields(auto& a, Of<Prepare> auto& v) {
    a(v.lease, v.tenant, v.workload, v.mechanism, v.tier, v.gpus, v.drives, v.functions);
}
void fields(auto& a, Of<WipeTask> auto& v) { a(v.kind, v.device, v.start, v.size, v.ticket, v.lease, v.tenants); }
void fields(auto& a, Of<Release> auto& v) { a(v.lease, v.wipes); }
void fields(auto& a, Of<evidence::SignedEvidence> auto& v) { a(v.statement, v.key, v.signature); }
void fields(auto& a, Of<LeaseReport> auto& v) { a(v.lease, v.phase, v.why); }
void fields(auto& a, Of<WipeReport> auto& v) {
    a(v.kind, v.device, v.start, v.size, v.ticket, v.verified, v.stale, v.why, v.evidence);
}
void fields(auto& a, Of<FaultReport> auto& v) { a(v.kind, v.device, v.why); }
void fields(auto& a, Of<Report> auto& v) { a(v.number, v.what); }
void fields(auto& a, Of<Ledger::Lease> auto& v) { a(v.order, v.phase, v.why, v.starting, v.release); }
void fields(auto& a, Of<Ledger::Unit> auto& v) { a(v.clean, v.ticket); }
void fields(auto& a, Of<Ledger::Wipe> auto& v) { a(v.task, v.begun, v.began, v.boot, v.second_pass); }
void fields(auto& a, Of<Ledger> auto& v) {
    a(v.epoch, v.lives, v.boot, v.reports, v.leases, v.units, v.wipes, v.answered, v.faulty, v.host_tenants,
      v.unacknowledged, v.closed, v.closed_up_to);
}

}  // namespace bulkhead::archive
