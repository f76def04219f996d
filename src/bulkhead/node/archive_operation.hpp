// How operations, what came of them and what a node has lie in bytes: for two processes of one program, one of which
// asks and the other does. Nothing of it is kept, so the order of fields may change.
#pragma once

#include "bulkhead/model/node.hpp"
#include "bulkhead/node/archive_node.hpp"
#include "bulkhead/node/operation.hpp"

namespace bulkhead::archive {

void fields(auto& a, Of<CreateInstance> auto& v) { a(v.gpu, v.profile, v.start); }
void fields(auto& a, Of<DestroyInstance> auto& v) { a(v.gpu, v.start); }
void fields(auto& a, Of<AttachDrive> auto& v) { a(v.drive, v.lease); }
void fields(auto& a, Of<DetachDrive> auto& v) { a(v.drive); }
void fields(auto& a, Of<AttachFunction> auto& v) { a(v.function, v.lease, v.tenant, v.port); }
void fields(auto& a, Of<DetachFunction> auto& v) { a(v.function); }
void fields(auto& a, Of<StartTenant> auto& v) {
    a(v.lease, v.tier, v.gpus, v.drives, v.functions, v.tenant, v.mechanism, v.program, v.ports);
}
void fields(auto& a, Of<StopTenant> auto& v) { a(v.lease, v.save); }
void fields(auto& a, Of<Wipe> auto& v) { a(v.kind, v.device, v.start, v.size, v.burn_in); }
void fields(auto& a, Of<Verify> auto& v) { a(v.kind, v.device, v.start, v.size, v.sample_seed); }
void fields(auto& a, Of<ResetGpu> auto& v) { a(v.gpu); }
void fields(auto& a, Of<Operation> auto& v) { a(v.number, v.what); }
void fields(auto& a, Of<OperationResult> auto& v) {
    a(v.number, v.ok, v.why, v.untouched, v.device_identity, v.model, v.board, v.serial, v.driver, v.vbios, v.method,
      v.bytes, v.bytes_residue, v.bytes_found, v.bytes_unreachable, v.unreachable, v.digest, v.saved, v.grade,
      v.firmware, v.command, v.status, v.skipped, v.samples, v.claim, v.fault);
}
void fields(auto& a, Of<TenantExit> auto& v) { a(v.lease, v.status, v.output, v.printed); }
void fields(auto& a, Of<OutputPlace> auto& v) { a(v.lease, v.errors, v.from); }
void fields(auto& a, Of<OutputPiece> auto& v) { a(v.from, v.bytes); }

// What describes itself lies in the order in which it does.
template <class V>
void described(auto& a, V& v) {
    std::remove_const_t<V>::describe([&](std::string_view, auto member, const auto&...) { a(v.*member); });
}
void fields(auto& a, Of<GpuSlice> auto& v) { described(a, v); }
void fields(auto& a, Of<NodeGpus> auto& v) { described(a, v); }
void fields(auto& a, Of<DetectedCapability> auto& v) { described(a, v); }
void fields(auto& a, Of<InstalledVersion> auto& v) { described(a, v); }
void fields(auto& a, Of<NodeDrive> auto& v) { a(v.serial, v.size, v.state, v.lease); }  // `why` is the control plane's
void fields(auto& a, Of<NodeFunction> auto& v) { described(a, v); }
void fields(auto& a, Of<NodeHost> auto& v) { described(a, v); }
void fields(auto& a, Of<NodeFabricTest> auto& v) { described(a, v); }
void fields(auto& a, Of<FabricTestRequest> auto& v) { described(a, v); }
void fields(auto& a, Of<NvLinkPeer> auto& v) { described(a, v); }
void fields(auto& a, Of<GpuPosition> auto& v) { described(a, v); }
void fields(auto& a, Of<GpuNodeStatus> auto& v) { described(a, v); }

}  // namespace bulkhead::archive
