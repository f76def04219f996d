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
void fields(auto& a, Of<Program> auto& v) {
    a(v.words, v.environment, v.cpu_thousandths, v.memory_bytes);
    a.since(4, v.checkpoint, v.checkpoint_within);
}
void fields(auto& a, Of<FabricPort> auto& v) {
    a(v.function, v.mac, v.vlan, v.address, v.subnet, v.rate_mbps, v.dscp, v.node_guid, v.port_guid, v.pkey);
}
void fields(auto& a, Of<KnownPort> auto& v) { a(v.tenant, v.port); }
void fields(auto& a, Of<Saved> auto& v) { a(v.ok, v.words); }
void fields(auto& a, Of<Prepare> auto& v) {
    a(v.lease, v.tenant, v.workload, v.mechanism, v.tier, v.gpus, v.drives, v.functions, v.program);
    a.since(5, v.ports);
}
void fields(auto& a, Of<WipeTask> auto& v) {
    a(v.kind, v.device, v.start, v.size, v.ticket, v.lease, v.tenants);
    a.since(3, v.burn_in);
}
void fields(auto& a, Of<Release> auto& v) {
    a(v.lease, v.wipes);
    a.since(4, v.save);
}
void fields(auto& a, Of<evidence::SignedEvidence> auto& v) { a(v.statement, v.key, v.signature); }
void fields(auto& a, Of<Printed> auto& v) { a(v.out, v.err, v.out_kept); }
void fields(auto& a, Of<LeaseReport> auto& v) {
    a(v.lease, v.phase, v.why, v.exit_status, v.output);
    a.since(4, v.printed, v.saved);
    a.since(7, v.fault);
}
void fields(auto& a, Of<WipeReport> auto& v) {
    a(v.kind, v.device, v.start, v.size, v.ticket, v.verified, v.stale, v.why, v.evidence);
}
void fields(auto& a, Of<FaultReport> auto& v) {
    a(v.kind, v.device, v.why);
    a.since(3, v.drain);
}
void fields(auto& a, Of<FabricTestReport> auto& v) { a(v.ticket, v.why, v.evidence); }
void fields(auto& a, Of<Report> auto& v) { a(v.number, v.what); }
void fields(auto& a, Of<Ledger::Lease> auto& v) {
    a(v.order, v.phase, v.why, v.starting, v.release);
    a.since(4, v.saved);
    a.since(7, v.fault);
}
void fields(auto& a, Of<Ledger::Unit> auto& v) { a(v.clean, v.ticket); }
void fields(auto& a, Of<Ledger::Wipe> auto& v) {
    a(v.task, v.begun, v.began, v.boot, v.second_pass);
    a.since(3, v.reset);
}
void fields(auto& a, Of<Ledger> auto& v) {
    a(v.epoch, v.lives, v.boot, v.reports, v.leases, v.units, v.wipes, v.answered, v.faulty, v.host_tenants,
      v.unacknowledged, v.closed, v.closed_up_to);
    a.since(3, v.draining);
    a.since(5, v.ports);
}

}  // namespace bulkhead::archive
