#include <utility>

#include "bulkhead/codec/print.hpp"
#include "bulkhead/wire/convert.hpp"

namespace bulkhead::wire {
namespace {

// Ours count from 0; the wire keeps 0 for "not said".
template <class To, Worded From>
To spoken(From value) {
    return static_cast<To>(static_cast<int>(value) + 1);
}

void put_unit(UnitKind kind, unsigned device, std::pair<unsigned, unsigned> slices, proto::Unit& to) {
    to.set_kind(spoken<proto::UnitKind>(kind));
    to.set_device(device);
    to.set_start(slices.first);
    to.set_size(slices.second);
}

void put(UnitId from, proto::Unit& to) { put_unit(from.kind, from.device, {from.slice, 1}, to); }

void put(const std::vector<WipeTask>& from, google::protobuf::RepeatedPtrField<proto::WipeTask>& to) {
    to.Reserve(static_cast<int>(from.size()));
    for (const WipeTask& task : from) {
        proto::WipeTask& made = *to.Add();
        put_unit(task.kind, task.device, {task.start, task.size}, *made.mutable_unit());
        made.set_ticket(task.ticket);
        made.set_lease(task.lease);
        for (const std::string& tenant : task.tenants) made.add_tenants(tenant);
        made.set_burn_in(task.burn_in);
    }
}

void put(const GpuPart& from, proto::GpuPart& to) {
    to.set_gpu(from.gpu);
    to.set_start(from.start);
    to.set_size(from.size);
    to.set_profile(from.profile);
    to.set_share(static_cast<std::uint32_t>(from.share));
}

void put(const FabricPort& from, proto::FabricPort& to) {
    to.set_function(from.function);
    to.set_mac(from.mac);
    to.set_vlan(from.vlan);
    to.set_address(from.address);
    to.set_subnet(from.subnet);
    to.set_rate_mbps(from.rate_mbps);
    to.set_dscp(from.dscp);
    to.set_node_guid(from.node_guid);
    to.set_port_guid(from.port_guid);
    to.set_pkey(from.pkey);
}

void put(const Prepare& from, proto::Order& order) {
    proto::Prepare& to = *order.mutable_prepare();
    to.set_lease(from.lease);
    to.set_tenant(from.tenant);
    to.set_workload(from.workload);
    to.set_mechanism(spoken<proto::Mechanism>(from.mechanism));
    to.set_tier(spoken<proto::Tier>(from.tier));
    for (const GpuPart& part : from.gpus) put(part, *to.add_gpus());
    for (const std::uint16_t drive : from.drives) to.add_drives(drive);
    for (const std::uint16_t function : from.functions) to.add_functions(function);
    for (const FabricPort& port : from.ports) put(port, *to.add_ports());
    if (from.program == Program{}) return;
    proto::Program& program = *to.mutable_program();
    for (const std::string& word : from.program.words) program.add_words(word);
    for (const std::string& variable : from.program.environment) program.add_environment(variable);
    program.set_cpu_thousandths(from.program.cpu_thousandths);
    program.set_memory_bytes(from.program.memory_bytes);
    for (const std::string& word : from.program.checkpoint) program.add_checkpoint(word);
    program.set_checkpoint_within_ms(from.program.checkpoint_within.ms);
}
void put(const Start& from, proto::Order& order) { order.mutable_start()->set_lease(from.lease); }
void put(const Release& from, proto::Order& order) {
    proto::Release& to = *order.mutable_release();
    to.set_lease(from.lease);
    put(from.wipes, *to.mutable_wipes());
    to.set_save(from.save);
}
void put(const Sanitize& from, proto::Order& order) {
    proto::Sanitize& to = *order.mutable_sanitize();
    put(from.wipes, *to.mutable_wipes());
}

void put(const Withdraw& from, proto::Order& order) { put(from.wipes, *order.mutable_withdraw()->mutable_wipes()); }

void put(const TestFabric& from, proto::Order& order) { order.mutable_test_fabric()->set_ticket(from.ticket); }

void put(const evidence::SignedEvidence& from, proto::SignedEvidence& to) {
    to.set_statement(from.statement);
    to.set_key(from.key);
    to.set_signature(from.signature);
}
void put(const LeaseReport& from, proto::Report& report) {
    proto::LeaseReport& to = *report.mutable_lease();
    to.set_lease(from.lease);
    to.set_phase(spoken<proto::PartPhase>(from.phase));
    to.set_why(from.why);
    if (from.exit_status) to.set_exit_status(*from.exit_status);
    to.set_output(from.output);
    to.set_printed_out(from.printed.out);
    to.set_printed_err(from.printed.err);
    to.set_kept_out(from.printed.out_kept);
    if (from.fault != PartFault::none) to.set_fault(spoken<proto::PartFault>(from.fault));
    if (!from.saved) return;
    to.mutable_saved()->set_ok(from.saved->ok);
    to.mutable_saved()->set_words(from.saved->words);
}
void put(const WipeReport& from, proto::Report& report) {
    proto::WipeReport& to = *report.mutable_wipe();
    put_unit(from.kind, from.device, {from.start, from.size}, *to.mutable_unit());
    to.set_ticket(from.ticket);
    to.set_verified(from.verified);
    to.set_stale(from.stale);
    to.set_why(from.why);
    if (from.evidence != decltype(from.evidence){}) put(from.evidence, *to.mutable_evidence());
}
void put(const FabricTestReport& from, proto::Report& report) {
    proto::FabricTestReport& to = *report.mutable_fabric_test();
    to.set_ticket(from.ticket);
    to.set_why(from.why);
    if (from.evidence != decltype(from.evidence){}) put(from.evidence, *to.mutable_evidence());
}
void put(const FaultReport& from, proto::Report& report) {
    proto::FaultReport& to = *report.mutable_fault();
    to.set_kind(spoken<proto::UnitKind>(from.kind));
    to.set_device(from.device);
    to.set_why(from.why);
    to.set_drain(from.drain);
}

void put(const Hello& from, proto::AgentMessage& message) {
    proto::Hello& to = *message.mutable_hello();
    to.set_protocol(from.protocol);
    to.set_epoch_seen(from.epoch_seen);
    to.set_agent_version(from.agent_version);
    to.set_boot_id(from.boot_id);
    JsonWriter inventory{JsonLayout::compact};
    write(inventory, from.inventory);
    to.set_inventory(inventory.take());
    for (const KnownLease& lease : from.leases) {
        proto::KnownLease& known = *to.add_leases();
        known.set_lease(lease.lease);
        known.set_phase(spoken<proto::PartPhase>(lease.phase));
        known.set_tenant(lease.tenant);
        for (const UnitId unit : lease.units) put(unit, *known.add_units());
    }
    for (const KnownUnit& unit : from.units) {
        proto::KnownUnit& known = *to.add_units();
        put(unit.unit, *known.mutable_unit());
        known.set_clean(unit.clean);
        known.set_ticket(unit.ticket);
    }
    for (const KnownPort& port : from.ports) {
        proto::KnownPort& known = *to.add_ports();
        known.set_tenant(port.tenant);
        put(port.port, *known.mutable_port());
    }
}
void put(const Report& from, proto::AgentMessage& message) {
    proto::Report& to = *message.mutable_report();
    to.set_number(from.number);
    std::visit([&](const auto& what) { put(what, to); }, from.what);
}
void put(const std::vector<Measured>& from, google::protobuf::RepeatedPtrField<proto::Measured>& to) {
    for (const Measured& measured : from) {
        proto::Measured& reading = *to.Add();
        reading.set_counter(spoken<proto::Counter>(measured.counter));
        reading.set_value(measured.value);
    }
}
void put(const Heartbeat& from, proto::AgentMessage& message) {
    proto::Heartbeat& heartbeat = *message.mutable_heartbeat();
    if (!from.telemetry) return;
    proto::Telemetry& to = *heartbeat.mutable_telemetry();
    to.set_grade(spoken<proto::Grade>(from.telemetry->grade));
    to.set_age_ms(from.telemetry->age.ms);
    for (const GpuSample& sample : from.telemetry->gpus) {
        proto::GpuSample& gpu = *to.add_gpus();
        gpu.set_gpu(sample.gpu);
        gpu.set_minor(sample.minor);
        gpu.set_uuid(sample.uuid);
        gpu.set_bus(sample.bus);
        gpu.set_name(sample.name);
        put(sample.readings, *gpu.mutable_readings());
        for (const InstanceSample& part : sample.instances) {
            proto::InstanceSample& instance = *gpu.add_instances();
            instance.set_id(part.id);
            instance.set_start(part.start);
            instance.set_profile(part.profile);
            instance.set_uuid(part.uuid);
            put(part.readings, *instance.mutable_readings());
        }
    }
}
void put(const RenewalRequest& from, proto::AgentMessage& message) {
    message.mutable_renewal()->set_request(from.request);
}

void put(const Output& from, proto::AgentMessage& message) {
    proto::Output& to = *message.mutable_output();
    to.set_request(from.request);
    to.set_from(from.piece.from);
    to.set_bytes(from.piece.bytes);
    to.set_why(from.why);
}

void put(const OutputWanted& from, proto::ControlMessage& message) {
    proto::OutputWanted& to = *message.mutable_output_wanted();
    to.set_request(from.request);
    to.set_lease(from.place.lease);
    to.set_errors(from.place.errors);
    to.set_from(from.place.from);
}
void put(const Welcome& from, proto::ControlMessage& message) {
    proto::Welcome& to = *message.mutable_welcome();
    to.set_epoch(from.epoch);
    to.set_session(from.session);
    to.set_heartbeat_every_ms(static_cast<std::uint32_t>(from.heartbeat_every.ms));
}
void put(const NumberedOrder& from, proto::ControlMessage& message) {
    proto::NumberedOrder& to = *message.mutable_order();
    to.set_sequence(from.sequence);
    to.mutable_order()->set_epoch(from.order.epoch);
    std::visit([&](const auto& what) { put(what, *to.mutable_order()); }, from.order.what);
}
void put(const Acknowledged& from, proto::ControlMessage& message) {
    message.mutable_acknowledged()->set_number(from.number);
}
void put(const GoAway& from, proto::ControlMessage& message) { message.mutable_go_away()->set_why(from.why); }
void put(const Renewed& from, proto::ControlMessage& message) {
    message.mutable_renewed()->set_certificate(from.certificate);
}
void put(const NotRenewed& from, proto::ControlMessage& message) { message.mutable_not_renewed()->set_why(from.why); }

}  // namespace

void to_proto(const AgentMessage& from, proto::AgentMessage& to) {
    std::visit([&](const auto& what) { put(what, to); }, from);
}

void to_proto(const ControlMessage& from, proto::ControlMessage& to) {
    std::visit([&](const auto& what) { put(what, to); }, from);
}

}  // namespace bulkhead::wire
