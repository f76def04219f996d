// The verbs: what an operator does to a node or a tenant, and what people ask about waiting work.
#include <fmt/core.h>

#include <charconv>

#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/shell/api.hpp"
#include "bulkhead/shell/body.hpp"

namespace bulkhead::shell {

namespace {

struct NamedDevice {
    UnitKind kind{};
    std::int64_t index = 0;
};

// "gpu3", "drive0", "vf12", "host": as the fleet and the log call them.
Result<NamedDevice> parse_device(std::string_view text) {
    if (text == "host") return NamedDevice{UnitKind::host, 0};
    struct Prefix {
        std::string_view text;
        UnitKind kind{};
    };
    for (const Prefix& prefix :
         {Prefix{"gpu", UnitKind::memory}, Prefix{"drive", UnitKind::drive}, Prefix{"vf", UnitKind::vf}}) {
        if (!text.starts_with(prefix.text)) continue;
        const std::string_view digits = text.substr(prefix.text.size());
        std::int64_t index = 0;
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), index);
        if (read.ec == std::errc{} && read.ptr == digits.data() + digits.size() && index >= 0 && index < 65'536)
            return NamedDevice{prefix.kind, index};
    }
    return fail(Code::invalid, fmt::format("\"{}\" is not a device", shortened(text)), "gpu3, drive0, vf12 or host");
}

}  // namespace

void Api::explain(const Call& call, const Respond& respond) {
    auto tenant = whose(call, Permission::read_tenant);
    if (!tenant) return respond(problem(tenant.error()));
    ask(call, command::Explain{.workload = call.path("name"), .tenant = *std::move(tenant)}, respond);
}

void Api::queue(const Call& call, const Respond& respond) {
    const auto in_the_way = truth_of(call, "inTheWay");
    if (!in_the_way) return respond(problem(in_the_way.error()));
    ask(call, command::Queue{.in_the_way = *in_the_way}, respond);
}

void Api::drain(const Call& call, const Respond& respond) {
    if (const auto body = read_body<MaybeWhyBody>(call.request); !body) return respond(problem(body.error()));
    change(call, command::Drain{.node = call.path("name"), .on = true}, ObjectKind::node, call.path("name"), respond);
}

void Api::undrain(const Call& call, const Respond& respond) {
    if (const auto body = read_body<MaybeWhyBody>(call.request); !body) return respond(problem(body.error()));
    change(call, command::Drain{.node = call.path("name"), .on = false}, ObjectKind::node, call.path("name"), respond);
}

void Api::repair(const Call& call, const Respond& respond) {
    const auto body = read_body<RepairBody>(call.request);
    if (!body) return respond(problem(body.error()));
    const auto device = parse_device(body->device);
    if (!device) return respond(problem(device.error()));
    change(call,
           command::Repair{.node = call.path("name"), .kind = device->kind, .device = device->index, .why = body->why},
           ObjectKind::node, call.path("name"), respond);
}

void Api::test_fabric(const Call& call, const Respond& respond) {
    if (const auto body = read_body<MaybeWhyBody>(call.request); !body) return respond(problem(body.error()));
    change(call, command::TestFabric{.node = call.path("name")}, ObjectKind::node, call.path("name"), respond);
}

void Api::revoke(const Call& call, const Respond& respond) {
    const auto body = read_body<WhyBody>(call.request);
    if (!body) return respond(problem(body.error()));
    change(call, command::Revoke{.node = call.path("name"), .why = body->why}, ObjectKind::node, call.path("name"),
           respond);
}

void Api::freeze(const Call& call, const Respond& respond) {
    const auto body = read_body<WhyBody>(call.request);
    if (!body) return respond(problem(body.error()));
    change(call, command::Freeze{.tenant = call.path("name"), .on = true, .why = body->why}, ObjectKind::tenant,
           call.path("name"), respond);
}

void Api::thaw(const Call& call, const Respond& respond) {
    const auto body = read_body<WhyBody>(call.request);
    if (!body) return respond(problem(body.error()));
    change(call, command::Freeze{.tenant = call.path("name"), .on = false, .why = body->why}, ObjectKind::tenant,
           call.path("name"), respond);
}

void Api::hold(const Call& call, const Respond& respond) {
    const auto body = read_body<WhyBody>(call.request);
    if (!body) return respond(problem(body.error()));
    change(call, command::Hold{.tenant = call.path("name"), .on = true, .why = body->why}, ObjectKind::tenant,
           call.path("name"), respond);
}

void Api::unhold(const Call& call, const Respond& respond) {
    const auto body = read_body<WhyBody>(call.request);
    if (!body) return respond(problem(body.error()));
    change(call, command::Hold{.tenant = call.path("name"), .on = false, .why = body->why}, ObjectKind::tenant,
           call.path("name"), respond);
}

}  // namespace bulkhead::shell
