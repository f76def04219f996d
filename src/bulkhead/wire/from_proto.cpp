#include <fmt/format.h>

#include <limits>
#include <utility>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/wire/check.hpp"
#include "bulkhead/wire/convert.hpp"

namespace bulkhead::wire {
namespace {

// Reads on after a mistake and keeps the first, so that reading stays a list of fields.
class Reading {
public:
    template <class Message>
    const Message& known(const Message& message) {
        if (!message.GetReflection()->GetUnknownFields(message).empty())
            object("{} has a field nobody here knows", message.GetTypeName());
        return message;  // NOLINT(bugprone-return-const-ref-from-parameter): read in the same expression
    }
    template <Worded To>
    To heard(std::string_view what, int value) {
        constexpr int count = static_cast<int>(words(To{}).size());
        if (value < 1 || value > count) object("{} has the unknown value {}", what, value);
        return static_cast<To>(value >= 1 && value <= count ? value - 1 : 0);
    }
    template <std::unsigned_integral To>
    To narrow(std::string_view what, std::uint32_t value) {
        if (value > std::numeric_limits<To>::max())
            object("{} is {}; at most {} is possible", what, value, std::numeric_limits<To>::max());
        return static_cast<To>(value);
    }
    template <class... Args>
    void object(fmt::format_string<Args...> words, Args&&... args) {
        if (first_.empty()) first_ = fmt::format(words, std::forward<Args>(args)...);
    }
    void object(const std::string& words) {
        if (first_.empty()) first_ = words;
    }
    bool failed() const { return !first_.empty(); }
    Error error() && { return {Code::invalid, std::move(first_), ""}; }

private:
    std::string first_;
};

struct Slices {
    UnitKind kind{};
    std::uint16_t device = 0;
    std::uint8_t start = 0, size = 0;
};
Slices get_slices(Reading& in, const proto::Unit& from) {
    in.known(from);
    return {in.heard<UnitKind>("the kind of a unit", from.kind()), in.narrow<std::uint16_t>("a device", from.device()),
            in.narrow<std::uint8_t>("the start of a unit", from.start()),
            in.narrow<std::uint8_t>("the size of a unit", from.size())};
}
UnitId get_unit(Reading& in, const proto::Unit& from) {
    const Slices slices = get_slices(in, from);
    if (slices.size != 1) in.object("a known unit has {} slices; it is one", slices.size);
    return {slices.kind, slices.device, slices.start};
}

std::vector<WipeTask> get(Reading& in, google::protobuf::RepeatedPtrField<proto::WipeTask>& from) {
    std::vector<WipeTask> to;
    to.reserve(static_cast<std::size_t>(from.size()));
    for (proto::WipeTask& task : from) {
        const Slices slices = get_slices(in, in.known(task).unit());
        to.push_back({.kind = slices.kind,
                      .device = slices.device,
                      .start = slices.start,
                      .size = slices.size,
                      .ticket = task.ticket(),
                      .lease = std::move(*task.mutable_lease()),
                      .tenants = {task.tenants().begin(), task.tenants().end()},
                      .burn_in = task.burn_in()});
    }
    return to;
}

std::vector<std::uint16_t> get(Reading& in, const google::protobuf::RepeatedField<std::uint32_t>& from) {
    std::vector<std::uint16_t> to;
    to.reserve(static_cast<std::size_t>(from.size()));
    for (const std::uint32_t device : from) to.push_back(in.narrow<std::uint16_t>("a device", device));
    return to;
}

FabricPort get(Reading& in, proto::FabricPort& from) {
    in.known(from);
    return {.function = in.narrow<std::uint16_t>("a function", from.function()),
            .mac = std::move(*from.mutable_mac()),
            .vlan = in.narrow<std::uint16_t>("a VLAN", from.vlan()),
            .address = std::move(*from.mutable_address()),
            .subnet = std::move(*from.mutable_subnet()),
            .rate_mbps = from.rate_mbps(),
            .dscp = in.narrow<std::uint8_t>("a DSCP", from.dscp()),
            .node_guid = std::move(*from.mutable_node_guid()),
            .port_guid = std::move(*from.mutable_port_guid()),
            .pkey = in.narrow<std::uint16_t>("a partition key", from.pkey())};
}

Prepare get(Reading& in, proto::Prepare& from) {
    in.known(from);
    Prepare to{.lease = from.lease(),
               .tenant = std::move(*from.mutable_tenant()),
               .workload = std::move(*from.mutable_workload()),
               .mechanism = in.heard<Mechanism>("mechanism", from.mechanism()),
               .tier = in.heard<Tier>("tier", from.tier()),
               .gpus = {},
               .drives = get(in, from.drives()),
               .functions = get(in, from.functions()),
               .program = {.words = {},
                           .environment = {},
                           .cpu_thousandths = in.known(from.program()).cpu_thousandths(),
                           .memory_bytes = from.program().memory_bytes(),
                           .checkpoint = {},
                           .checkpoint_within = {from.program().checkpoint_within_ms()}}};
    for (std::string& word : *from.mutable_program()->mutable_words()) to.program.words.push_back(std::move(word));
    for (std::string& variable : *from.mutable_program()->mutable_environment())
        to.program.environment.push_back(std::move(variable));
    for (std::string& word : *from.mutable_program()->mutable_checkpoint())
        to.program.checkpoint.push_back(std::move(word));
    for (proto::FabricPort& port : *from.mutable_ports()) to.ports.push_back(get(in, port));
    to.gpus.reserve(static_cast<std::size_t>(from.gpus_size()));
    for (proto::GpuPart& part : *from.mutable_gpus()) {
        in.known(part);
        to.gpus.push_back({in.narrow<std::uint16_t>("a GPU", part.gpu()),
                           in.narrow<std::uint8_t>("the start of a GPU's part", part.start()),
                           in.narrow<std::uint8_t>("the size of a GPU's part", part.size()),
                           std::move(*part.mutable_profile()), part.share()});
    }
    return to;
}

Order get(Reading& in, proto::Order& from) {
    in.known(from);
    Order to{.epoch = from.epoch(), .what = {}};
    switch (from.what_case()) {
        case proto::Order::kPrepare:
            to.what = get(in, *from.mutable_prepare());
            break;
        case proto::Order::kStart:
            to.what = Start{in.known(from.start()).lease()};
            break;
        case proto::Order::kRelease: {
            proto::Release& release = *from.mutable_release();
            in.known(release);
            to.what = Release{release.lease(), get(in, *release.mutable_wipes()), release.save()};
            break;
        }
        case proto::Order::kSanitize: {
            proto::Sanitize& sanitize = *from.mutable_sanitize();
            in.known(sanitize);
            to.what = Sanitize{get(in, *sanitize.mutable_wipes())};
            break;
        }
        case proto::Order::kWithdraw: {
            proto::Withdraw& withdraw = *from.mutable_withdraw();
            in.known(withdraw);
            to.what = Withdraw{get(in, *withdraw.mutable_wipes())};
            break;
        }
        case proto::Order::kTestFabric:
            to.what = TestFabric{in.known(from.test_fabric()).ticket()};
            break;
        case proto::Order::WHAT_NOT_SET:
            in.object("an order says nothing");
    }
    return to;
}

evidence::SignedEvidence get(Reading& in, proto::SignedEvidence& from) {
    in.known(from);
    return {std::move(*from.mutable_statement()), std::move(*from.mutable_key()), std::move(*from.mutable_signature())};
}

WipeReport get(Reading& in, proto::WipeReport& from) {
    const Slices slices = get_slices(in, in.known(from).unit());
    WipeReport to{.kind = slices.kind,
                  .device = slices.device,
                  .start = slices.start,
                  .size = slices.size,
                  .ticket = from.ticket(),
                  .verified = from.verified(),
                  .stale = from.stale(),
                  .why = std::move(*from.mutable_why()),
                  .evidence = {}};
    if (from.has_evidence()) to.evidence = get(in, *from.mutable_evidence());
    return to;
}

FabricTestReport get(Reading& in, proto::FabricTestReport& from) {
    in.known(from);
    FabricTestReport to{.ticket = from.ticket(), .why = std::move(*from.mutable_why()), .evidence = {}};
    if (from.has_evidence()) to.evidence = get(in, *from.mutable_evidence());
    return to;
}

LeaseReport get(Reading& in, proto::LeaseReport& from) {
    LeaseReport to{in.known(from).lease(), in.heard<PartPhase>("phase", from.phase()), std::move(*from.mutable_why())};
    if (from.has_exit_status()) to.exit_status = from.exit_status();
    to.output = std::move(*from.mutable_output());
    to.printed = {from.printed_out(), from.printed_err(), from.kept_out()};
    if (from.has_fault()) to.fault = in.heard<PartFault>("the fault of a part", from.fault());
    if (from.has_saved())
        to.saved = Saved{in.known(from.saved()).ok(), std::move(*from.mutable_saved()->mutable_words())};
    return to;
}

Report get(Reading& in, proto::Report& from) {
    in.known(from);
    Report to{.number = from.number(), .what = {}};
    switch (from.what_case()) {
        case proto::Report::kLease:
            to.what = get(in, *from.mutable_lease());
            break;
        case proto::Report::kWipe:
            to.what = get(in, *from.mutable_wipe());
            break;
        case proto::Report::kFault:
            to.what = FaultReport{in.heard<UnitKind>("kind", in.known(from.fault()).kind()),
                                  in.narrow<std::uint16_t>("a device", from.fault().device()),
                                  std::move(*from.mutable_fault()->mutable_why()), from.fault().drain()};
            break;
        case proto::Report::kFabricTest:
            to.what = get(in, *from.mutable_fabric_test());
            break;
        case proto::Report::WHAT_NOT_SET:
            in.object("a report says nothing");
    }
    return to;
}

GpuNodeStatus get_inventory(Reading& in, std::string_view json) {
    GpuNodeStatus to;
    if (json.size() > inventory_bytes_max) {
        in.object("the inventory has {} bytes; at most {} are allowed", json.size(), inventory_bytes_max);
        return to;
    }
    if (!json.starts_with('{')) {  // the reader would take YAML as well
        in.object("the inventory is not a JSON object");
        return to;
    }
    ReadText text = read_documents("inventory", json, {.bytes = inventory_bytes_max, .documents = 1, .depth = 16});
    if (text.errors.empty() && text.documents.size() == 1 &&
        decode(*text.documents.front().root, "inventory", to, text.errors))
        return to;
    in.object(text.errors.empty() ? "the inventory is not one JSON object" : presentable(print(text.errors.front())));
    return {};
}

Hello get(Reading& in, proto::Hello& from) {
    in.known(from);
    // Said first: an agent of another age may differ in everything that follows.
    if (from.protocol() < protocol_oldest || from.protocol() > protocol_newest)
        in.object("the agent speaks protocol {}; spoken here are {} to {}", from.protocol(), protocol_oldest,
                  protocol_newest);
    Hello to{.protocol = from.protocol(),
             .epoch_seen = from.epoch_seen(),
             .agent_version = std::move(*from.mutable_agent_version()),
             .boot_id = std::move(*from.mutable_boot_id()),
             .inventory = {},
             .leases = {},
             .units = {}};
    if (!in.failed()) to.inventory = get_inventory(in, from.inventory());
    to.leases.reserve(static_cast<std::size_t>(from.leases_size()));
    for (proto::KnownLease& known : *from.mutable_leases()) {
        in.known(known);
        KnownLease& lease = to.leases.emplace_back(KnownLease{
            known.lease(), in.heard<PartPhase>("phase", known.phase()), std::move(*known.mutable_tenant()), {}});
        lease.units.reserve(static_cast<std::size_t>(known.units_size()));
        for (const proto::Unit& unit : known.units()) lease.units.push_back(get_unit(in, unit));
    }
    to.units.reserve(static_cast<std::size_t>(from.units_size()));
    for (const proto::KnownUnit& known : from.units())
        to.units.push_back({get_unit(in, in.known(known).unit()), known.clean(), known.ticket()});
    for (proto::KnownPort& known : *from.mutable_ports()) {
        in.known(known);
        KnownPort& port = to.ports.emplace_back(KnownPort{std::move(*known.mutable_tenant()), {}});
        port.port = get(in, *known.mutable_port());
    }
    return to;
}

std::vector<Measured> get(Reading& in, const google::protobuf::RepeatedPtrField<proto::Measured>& from) {
    std::vector<Measured> to;
    to.reserve(static_cast<std::size_t>(from.size()));
    for (const proto::Measured& measured : from) {
        in.known(measured);
        to.push_back({in.heard<Counter>("a counter", measured.counter()), measured.value()});
    }
    return to;
}

Heartbeat get(Reading& in, proto::Heartbeat& from) {
    in.known(from);
    if (!from.has_telemetry()) return {};
    proto::Telemetry& telemetry = *from.mutable_telemetry();
    in.known(telemetry);
    Telemetry to{
        .grade = in.heard<Grade>("the grade of a sample", telemetry.grade()), .age = {telemetry.age_ms()}, .gpus = {}};
    for (proto::GpuSample& gpu : *telemetry.mutable_gpus()) {
        in.known(gpu);
        GpuSample& sample = to.gpus.emplace_back();
        sample.gpu = in.narrow<std::uint16_t>("a GPU", gpu.gpu());
        sample.minor = in.narrow<std::uint16_t>("the minor number of a GPU", gpu.minor());
        sample.uuid = std::move(*gpu.mutable_uuid());
        sample.bus = std::move(*gpu.mutable_bus());
        sample.name = std::move(*gpu.mutable_name());
        sample.readings = get(in, gpu.readings());
        for (proto::InstanceSample& instance : *gpu.mutable_instances()) {
            in.known(instance);
            sample.instances.push_back({.id = in.narrow<std::uint16_t>("an instance", instance.id()),
                                        .start = in.narrow<std::uint8_t>("the start of an instance", instance.start()),
                                        .profile = std::move(*instance.mutable_profile()),
                                        .uuid = std::move(*instance.mutable_uuid()),
                                        .readings = get(in, instance.readings())});
        }
    }
    return {std::move(to)};
}

}  // namespace

Result<AgentMessage> from_proto(proto::AgentMessage&& from) {
    Reading in;
    in.known(from);
    AgentMessage to;
    switch (from.what_case()) {
        case proto::AgentMessage::kHello:
            to = get(in, *from.mutable_hello());
            break;
        case proto::AgentMessage::kReport:
            to = get(in, *from.mutable_report());
            break;
        case proto::AgentMessage::kHeartbeat:
            to = get(in, *from.mutable_heartbeat());
            break;
        case proto::AgentMessage::kRenewal:
            in.known(from.renewal());
            to = RenewalRequest{std::move(*from.mutable_renewal()->mutable_request())};
            break;
        case proto::AgentMessage::kOutput: {
            proto::Output& output = *from.mutable_output();
            in.known(output);
            to = Output{output.request(),
                        {output.from(), std::move(*output.mutable_bytes())},
                        std::move(*output.mutable_why())};
            break;
        }
        case proto::AgentMessage::kPiece:
            in.object("a piece stands where a whole message was due");
            break;
        case proto::AgentMessage::WHAT_NOT_SET:
            in.object("a message says nothing");
    }
    if (in.failed()) return std::unexpected(std::move(in).error());
    return to;
}

Result<ControlMessage> from_proto(proto::ControlMessage&& from) {
    Reading in;
    in.known(from);
    ControlMessage to;
    switch (from.what_case()) {
        case proto::ControlMessage::kWelcome:
            to = Welcome{
                in.known(from.welcome()).epoch(), from.welcome().session(), {from.welcome().heartbeat_every_ms()}};
            break;
        case proto::ControlMessage::kOrder:
            to = NumberedOrder{in.known(from.order()).sequence(), get(in, *from.mutable_order()->mutable_order())};
            break;
        case proto::ControlMessage::kAcknowledged:
            to = Acknowledged{in.known(from.acknowledged()).number()};
            break;
        case proto::ControlMessage::kGoAway:
            to = GoAway{std::move(*from.mutable_go_away()->mutable_why())};
            in.known(from.go_away());
            break;
        case proto::ControlMessage::kRenewed:
            in.known(from.renewed());
            to = Renewed{std::move(*from.mutable_renewed()->mutable_certificate())};
            break;
        case proto::ControlMessage::kOutputWanted: {
            const proto::OutputWanted& wanted = in.known(from.output_wanted());
            to = OutputWanted{wanted.request(), {wanted.lease(), wanted.errors(), wanted.from()}};
            break;
        }
        case proto::ControlMessage::kNotRenewed:
            in.known(from.not_renewed());
            to = NotRenewed{std::move(*from.mutable_not_renewed()->mutable_why())};
            break;
        case proto::ControlMessage::kPiece:
            in.object("a piece stands where a whole message was due");
            break;
        case proto::ControlMessage::WHAT_NOT_SET:
            in.object("a message says nothing");
    }
    if (in.failed()) return std::unexpected(std::move(in).error());
    return to;
}

}  // namespace bulkhead::wire
