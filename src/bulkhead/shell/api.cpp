#include "bulkhead/shell/api.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/shell/etag.hpp"
#include "bulkhead/shell/machine_clock.hpp"

namespace bulkhead::shell {

namespace {

constexpr std::size_t small_body = 64 << 10, large_body = 4 << 20;

Response too_often(std::int64_t seconds) {
    Response response = problem(Error{Code::exhausted, "too many requests", fmt::format("ask again in {} s", seconds)});
    std::erase_if(response.headers, [](const auto& header) { return header.first == "Retry-After"; });
    response.headers.emplace_back("Retry-After", std::to_string(seconds));
    return response;
}

// "Bearer TOKEN"; the scheme is written as one likes.
std::optional<std::string_view> bearer_in(std::string_view authorization) {
    constexpr std::string_view scheme = "bearer ";
    const std::string_view said = authorization.substr(0, scheme.size());
    if (!std::ranges::equal(said, scheme, {},
                            [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }))
        return std::nullopt;
    return authorization.substr(scheme.size());
}

Error there_is_no_tenant(std::string_view name) {
    return {Code::not_found, fmt::format("there is no Tenant {}", shortened(name)), "GET /v1/tenants lists yours"};
}

// An apply that is only a question stands in line with the questions.
bool asks_only(const Route& route, const Target& target) {
    if (route.lane != Lane::write) return false;
    const auto dry_run = target.query.find("dryRun");
    return dry_run != target.query.end() && dry_run->second == "true";
}

Lane lane_of(const Route& route, const Target& target, bool breaks_glass) {
    if (asks_only(route, target)) return Lane::read;
    // Waits for the log first, which the threads that read requests must not.
    return breaks_glass && route.lane == Lane::quick ? Lane::read : route.lane;
}

std::size_t body_max(Body body) {
    switch (body) {
        case Body::none:
        case Body::json:
            return small_body;
        case Body::object:
        case Body::objects:
            return large_body;
    }
    return small_body;
}

}  // namespace

Api::Api(Parts parts, Settings settings)
    : parts_{parts},
      settings_{std::move(settings)},
      rate_{settings_.rate},
      strangers_{settings_.stranger_rate},
      openapi_{shell::openapi()} {
    if (!settings_.clock) settings_.clock = machine_clock;
}
Api::~Api() = default;

// RFC 6750: it is the token, and not what is asked, that does not do.
Response not_the_role(Response no) {
    no.headers.emplace_back("WWW-Authenticate", "Bearer error=\"insufficient_scope\"");
    return no;
}

std::expected<Admission, Response> Api::admit(const Head& head) {
    const auto tick = RateLimiter::Clock::now();
    const auto as_stranger = [&](Response otherwise) {
        const auto wait = strangers_.ask(head.peer, tick);
        return std::unexpected(wait ? too_often(*wait) : std::move(otherwise));
    };
    // Whoever reads addresses along the way reads it, too.
    if (head.target.query.contains("access_token"))
        return as_stranger(problem(Error{Code::invalid, "a token does not belong into an address",
                                         "send it as Authorization: Bearer; and ask for another, this one was seen"}));
    auth::Caller caller;
    const auto bearer = bearer_in(head.authorization);
    const bool has_token = bearer.has_value();
    if (has_token) {
        auto known = holder_of(*bearer);
        if (!known && known.error().ask_again) return std::unexpected(std::move(known.error()));
        if (!known) return as_stranger(std::move(known.error()));
        caller = *std::move(known);
        // Whoever gets a new token every minute from their provider is still one caller.
        const std::string& counted = Oidc::is_name(caller.token_id) ? caller.subject : caller.token_id;
        if (const auto wait = rate_.ask(counted, tick)) return std::unexpected(too_often(*wait));
        if (Oidc::is_name(caller.token_id)) note_login(caller);
    }
    auto found = match(head.method, head.target);
    if (!found) {
        if (has_token) return std::unexpected(std::move(found.error()));
        return as_stranger(std::move(found.error()));
    }
    const Route& route = routes()[found->route];
    if (route.access.reach == Access::Reach::anyone) {
        if (!has_token)
            if (const auto wait = strangers_.ask(head.peer, tick)) return std::unexpected(too_often(*wait));
    } else if (!has_token) {
        return as_stranger(
            problem(Error{Code::denied, "who is asking?", "send Authorization: Bearer and a token"}, 401));
    } else if (auto refusal = not_through(caller, route, found->parameters)) {
        if (!denials_.ask(caller.token_id, tick)) note_denial(caller, route);
        return std::unexpected(*std::move(refusal));
    }
    const bool breaks_glass = caller.breaks_glass();
    return Admission{.route = found->route,
                     .parameters = std::move(found->parameters),
                     .caller = std::move(caller),
                     .lane = lane_of(route, head.target, breaks_glass),
                     .body_max = body_max(route.body)};
}

// What keeps a caller from going through, if anything does. Of another tenant than their own they are told what they
// would be told of one that does not exist.
std::optional<Response> Api::not_through(const auth::Caller& caller, const Route& route, const Parameters& parameters) {
    if (route.pattern.starts_with("/v1/tenants/{name}/")) {
        const std::string& tenant = parameters.find("name")->second;
        if (!caller.rights.may(Permission::read_tenant, tenant)) return problem(there_is_no_tenant(tenant));
        if (route.access.reach == Access::Reach::own && caller.rights.may(route.access.permission, tenant))
            return std::nullopt;
        if (route.access.reach == Access::Reach::fleet && caller.rights.may(route.access.permission))
            return std::nullopt;
    } else if (may(caller.rights, route.access)) {
        return std::nullopt;
    }
    std::vector<std::string_view> roles;
    for (const Role role : every<Role>())
        if (permissions_of(role).contains(route.access.permission) &&
            (route.access.reach == Access::Reach::own || !is_tenants(role)))
            roles.push_back(word(role));
    return not_the_role(problem(Error{Code::denied,
                                      fmt::format("a {} may not {} {}: it takes the permission {}", word(caller.role),
                                                  word(route.method), route.pattern, word(route.access.permission)),
                                      fmt::format("ask a {}", fmt::join(roles, " or a "))}));
}

// Not more often than somebody could read it: who is refused in a loop does not fill the log.
void Api::note_denial(const auth::Caller& caller, const Route& route) {
    const auto noted = parts_.loop.submit(Asker{caller.actor()},
                                          command::NoteAccess{.what = command::NoteAccess::What::denied,
                                                              .tenant = caller.tenant,
                                                              .detail = {{"method", std::string{word(route.method)}},
                                                                         {"path", std::string{route.pattern}},
                                                                         {"role", std::string{word(caller.role)}},
                                                                         {"token", caller.token_id}}},
                                          [](const Answer&) {});
    if (!noted) parts_.log.warning("a refusal could not be logged", {{"by", caller.subject}});
}

bool Api::still(const auth::Caller& caller) const {
    if (caller.until && *caller.until <= now()) return false;
    return Oidc::is_name(caller.token_id) ? still_bound(caller) : parts_.tokens.in_force(caller.token_id, now());
}

Result<std::string> Api::whose(const Call& call, Permission permission) const {
    const Rights& rights = call.caller.rights;
    std::string tenant{call.query("tenant")};
    if (!tenant.empty()) {
        if (rights.may(permission, tenant) && is_valid(Format::name, tenant)) return tenant;
        return std::unexpected(there_is_no_tenant(tenant));
    }
    if (rights.may(permission)) return std::string{};
    const auto tenants = rights.where(permission);
    if (tenants.size() == 1) return std::string{tenants.front()};
    if (tenants.empty())
        return fail(Code::denied, fmt::format("this takes the permission {}", word(permission)),
                    "ask somebody who has it");
    return fail(Code::invalid, "you belong to several tenants",
                fmt::format("tenant={}", fmt::join(tenants, " or tenant=")));
}

Result<ObjectPtr> Api::readable(const Call& call, ObjectKind kind, const std::string& name,
                                Permission permission) const {
    const auto missing = [&] {
        return fail(Code::not_found, fmt::format("there is no {} {}", name_of(kind).type, name),
                    fmt::format("GET /v1/{} lists them", name_of(kind).plural));
    };
    // A tenant's name says whose it is.
    const bool names_itself = kind == ObjectKind::tenant && call.query("tenant").empty() &&
                              !call.caller.rights.may(permission) && call.caller.rights.may(permission, name);
    const auto tenant = names_itself ? Result<std::string>{name} : whose(call, permission);
    if (!tenant) return std::unexpected(tenant.error());
    if (!tenant->empty()) {
        ObjectPtr object = parts_.catalog.get(kind, name, *tenant);
        if (!object) return missing();
        return object;
    }
    const std::vector<ObjectPtr> all = parts_.catalog.named(kind, name);
    if (all.empty()) return missing();
    if (all.size() == 1) return all.front();
    std::vector<std::string> tenants;
    tenants.reserve(all.size());
    for (const ObjectPtr& each : all) tenants.push_back("tenant=" + each->tenant);
    return fail(Code::conflict, fmt::format("{} tenants have a {} {}", all.size(), name_of(kind).type, name),
                fmt::format("{}", fmt::join(tenants, " or ")));
}

void Api::handle(const Admission& admission, Request request, Respond respond) {
    // Between a head and the end of its body a token may be taken back.
    if (!admission.caller.token_id.empty() && !still(admission.caller))
        return respond(problem(Error{Code::denied, "this token is good no longer", "ask for a new one"}, 401));
    if (admission.caller.breaks_glass()) {
        // Whoever enters a tenant is on record before they see anything of it.
        const Answer noted = parts_.loop.ask(
            Asker{admission.caller.actor()},
            command::NoteAccess{.what = command::NoteAccess::What::entered,
                                .tenant = admission.caller.tenant,
                                .detail = {{"method", std::string{word(routes()[admission.route].method)}},
                                           {"path", request.head.target.path},
                                           {"token", admission.caller.token_id}}});
        if (!noted.outcome) return respond(problem(noted.outcome.error()));
    }
    proceed(admission, request, respond);
}

void Api::proceed(const Admission& admission, const Request& request, const Respond& respond) {
    const Route& route = routes()[admission.route];
    const Call call{request, admission.parameters, admission.caller};
    // A condition that nobody would look at must not be taken for one that held.
    const std::string& if_match = request.head.if_match;
    const bool conditional = route.operation == "replace" || route.operation == "delete";
    if (!if_match.empty() && if_match != "*" && route.method != Method::get && !conditional)
        return respond(problem(Error{Code::invalid, fmt::format("{} takes no If-Match", route.operation),
                                     "leave it out; PUT and DELETE of the object itself know versions"}));
    (this->*route.handler)(call, respond);
}

void Api::note(const Admission* admission, int status, std::int64_t microseconds) {
    parts_.metrics.note_request(admission ? routes()[admission->route].pattern : "refused", status, microseconds);
}

namespace {

Response refused(const Answer& answer) {
    Problem no{.error = answer.outcome.error(), .findings = problem_findings(answer.findings)};
    if (no.error.code == Code::denied) no.refusal = answer.body;
    return answer.forbidden ? not_the_role(problem(no)) : problem(no);
}

}  // namespace

void Api::ask(const Call& call, What what, const Respond& respond) {
    const auto taken = parts_.loop.submit(asker(call), std::move(what), [respond](Answer answer) {
        if (!answer.outcome) return respond(refused(answer));
        respond({.body = answer.body.empty() ? "{}" : std::move(answer.body)});
    });
    if (!taken) respond(problem(taken.error()));
}

void Api::change(const Call& call, What what, ObjectKind kind, std::string name, const Respond& respond,
                 std::string tenant) {
    const std::string if_match = call.request.head.if_match;
    const bool content = reads_content(call, tenant);
    const auto taken = parts_.loop.submit(
        asker(call), std::move(what),
        [this, respond, kind, name = std::move(name), tenant = std::move(tenant), if_match, content](Answer answer) {
            if (!answer.outcome) {
                // The condition of the header failed, and not something else that conflicts. A refusal that does not
                // say at which version the object is leaves the catalog to be asked.
                if (answer.version.empty() && answer.outcome.error().code == Code::conflict)
                    if (const ObjectPtr object = parts_.catalog.get(kind, name, tenant))
                        answer.version = object->version;
                const bool stale = !if_match.empty() && if_match != "*" && !answer.version.empty() &&
                                   if_match != tag_of(answer.version);
                const bool conflict = answer.outcome.error().code == Code::conflict;
                if (conflict && stale) return respond(problem(answer.outcome.error(), 412));
                return respond(refused(answer));
            }
            // Not from the catalog: others whose commands shared the transaction may have written since.
            if (answer.object.empty())
                return respond({.body = fmt::format(R"({{"kind":"{}","name":"{}","result":"deleted"}})",
                                                    name_of(kind).type, name)});
            if (kind == ObjectKind::workload && !content)
                if (std::string shown = without_output(answer.object); !shown.empty()) answer.object = std::move(shown);
            Response response{.status = answer.created ? 201 : 200,
                              .headers = {{"ETag", tag_of(answer.version)}},
                              .body = std::move(answer.object)};
            if (!answer.note.empty()) response.headers.emplace_back("Bulkhead-Note", std::move(answer.note));
            if (answer.created)
                response.headers.emplace_back("Location", fmt::format("/v1/{}/{}", name_of(kind).plural, name));
            respond(std::move(response));
        });
    if (!taken) respond(problem(taken.error()));
}

}  // namespace bulkhead::shell
