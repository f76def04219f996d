#include "bulkhead/agent/hands_message.hpp"

#include <fmt/format.h>

#include <utility>

#include "bulkhead/model/describe.hpp"
#include "bulkhead/node/archive_operation.hpp"
#include "bulkhead/wire/check.hpp"

namespace bulkhead::archive {

void fields(auto& a, Of<Error> auto& v) {
    auto code = static_cast<std::uint8_t>(v.code);
    a(code);
    if constexpr (std::same_as<std::remove_cvref_t<decltype(a)>, Reader>) {
        if (code > static_cast<std::uint8_t>(Code::corrupt)) return a.fail();
        v.code = static_cast<Code>(code);
    }
    a(v.what, v.remedy);
}
void fields(auto& a, Of<evidence::FabricAttempt> auto& v) { described(a, v); }
void fields(auto& a, Of<evidence::FabricStatement> auto& v) { described(a, v); }
void fields(auto& a, Of<agent::FabricTestOrder> auto& v) { a(v.ticket, v.held, v.clean); }
void fields(auto& a, Of<agent::hands::AttackFences> auto& v) { a(v.order); }
void fields(auto& a, Of<agent::Hardware::News> auto& v) {
    a(v.results, v.faults, v.exits, v.notes, v.stock_changed, v.fabric, v.fabric_given_up);
}
void fields(auto&, Of<agent::hands::Meet> auto&) {}
void fields(auto&, Of<agent::hands::TakeStock> auto&) {}
void fields(auto& a, Of<agent::hands::Begin> auto& v) { a(v.now, v.operation); }
void fields(auto& a, Of<agent::hands::Poll> auto& v) { a(v.now); }
void fields(auto& a, Of<agent::hands::ReadOutput> auto& v) { a(v.place); }
void fields(auto&, Of<agent::hands::ReadTelemetry> auto&) {}
void fields(auto& a, Of<Measured> auto& v) { a(v.counter, v.value); }
void fields(auto& a, Of<InstanceSample> auto& v) { a(v.id, v.start, v.profile, v.uuid, v.readings); }
void fields(auto& a, Of<GpuSample> auto& v) { a(v.gpu, v.minor, v.uuid, v.bus, v.name, v.readings, v.instances); }
void fields(auto& a, Of<Telemetry> auto& v) { a(v.grade, v.age, v.gpus); }
void fields(auto& a, Of<agent::hands::Measures> auto& v) { a(v.newest); }
void fields(auto& a, Of<agent::hands::Met> auto& v) { a(v.grade, v.boot, v.has_network); }
void fields(auto&, Of<agent::hands::Begun> auto&) {}
void fields(auto& a, Of<agent::hands::Polled> auto& v) { a(v.news, v.boot, v.due); }

}  // namespace bulkhead::archive

namespace bulkhead::agent::hands {

namespace {

constexpr unsigned slices_max = 64;

Result<> refuse(std::string what) {
    return fail(Code::invalid, std::move(what), "see the order it comes from in the agent's log");
}

Result<> check_slices(unsigned start, unsigned size) {
    if (size >= 1 && start + size <= slices_max) return {};
    return refuse(fmt::format("{} slices from {} on are on no GPU", size, start));
}
Result<> check_lease(Key lease) {
    if (lease >= 0) return {};
    return refuse(fmt::format("{} is the key of no lease", lease));
}
// It becomes a word in a file of ours and the name of folders.
Result<> check_tenant(const std::string& tenant) {
    if (tenant.empty() || is_valid(Format::dotted, tenant)) return {};
    return refuse(fmt::format("a tenant's name is {}", explanation(Format::dotted)));
}

Result<> check_limits(const CreateInstance& what) {
    if (!is_valid(Format::line, what.profile) || what.profile.size() > wire::name_bytes_max)
        return refuse("a profile is a short line");
    return check_slices(what.start, 1);
}
Result<> check_limits(const DestroyInstance& what) { return check_slices(what.start, 1); }
Result<> check_limits(const AttachDrive& what) { return check_lease(what.lease); }
Result<> check_limits(const DetachDrive&) { return {}; }
Result<> check_limits(const AttachFunction& what) {
    if (auto lease = check_lease(what.lease); !lease) return lease;
    if (auto tenant = check_tenant(what.tenant); !tenant) return tenant;
    if (what.port == FabricPort{.function = what.port.function}) return {};
    if (what.port.function != what.function) return refuse("a function is set as itself");
    return wire::check(wire::ControlMessage{
        wire::NumberedOrder{1, {0, Prepare{.lease = what.lease, .functions = {what.function}, .ports = {what.port}}}}});
}
Result<> check_limits(const DetachFunction&) { return {}; }
// The limits of the order it came from.
Result<> check_limits(const StartTenant& what) {
    if (auto tenant = check_tenant(what.tenant); !tenant) return tenant;
    if (what.tenant.empty() && !what.program.words.empty()) return refuse("a command is some tenant's");
    return wire::check(wire::ControlMessage{wire::NumberedOrder{1,
                                                                {0, Prepare{what.lease,
                                                                            what.tenant,
                                                                            {},
                                                                            what.mechanism,
                                                                            what.tier,
                                                                            what.gpus,
                                                                            what.drives,
                                                                            what.functions,
                                                                            what.program,
                                                                            what.ports}}}});
}
Result<> check_limits(const StopTenant& what) {
    if (what.save.ms < 0 || what.save.ms > wire::save_ms_max)
        return refuse(
            fmt::format("saving a tenant's work may take 0 to {} ms, not {}", wire::save_ms_max, what.save.ms));
    return check_lease(what.lease);
}
Result<> check_limits(const Wipe& what) { return check_slices(what.start, what.size); }
Result<> check_limits(const Verify& what) { return check_slices(what.start, what.size); }
Result<> check_limits(const ResetGpu&) {
    return {};
}  // whether it is done at all, the hands were told when they were started

template <class Message>
Result<Message> read(std::string_view bytes, std::size_t at_most, std::string_view what) {
    Message message;
    if (bytes.size() <= at_most) {
        archive::Reader reader{bytes};
        reader(message);
        if (!reader.failed() && reader.at_end()) return message;
    }
    return fail(Code::invalid, fmt::format("{} bytes came that are no {}", bytes.size(), what),
                "this is a fault of the agent: keep its log, and start it again");
}

template <class Message>
std::string written(const Message& message) {
    archive::Writer writer;
    writer(message);
    return writer.take();
}

}  // namespace

std::string to_bytes(const Request& request) { return written(request); }
std::string to_bytes(const Answer& answer) { return written(answer); }

Result<Request> read_request(std::string_view bytes) { return read<Request>(bytes, request_bytes_max, "request"); }

Result<> check(const ReadOutput& output) {
    if (output.place.from < 0) return refuse("output is read from below its first byte");
    return check_lease(output.place.lease);
}

Result<> check(const AttackFences& attack) {
    if (attack.order.ticket < 0) return refuse("the ticket of a test is negative");
    if (attack.order.held.size() > wire::devices_max || attack.order.clean.size() > wire::devices_max)
        return refuse(fmt::format("no node has more than {} functions", wire::devices_max));
    return {};
}

Result<> check(const Begin& begin) {
    if (begin.operation.number < 0) return refuse("an operation's number is negative");
    return std::visit([](const auto& what) { return check_limits(what); }, begin.operation.what);
}

Result<Answer> read_answer(std::string_view bytes) { return read<Answer>(bytes, answer_bytes_max, "answer"); }

}  // namespace bulkhead::agent::hands
