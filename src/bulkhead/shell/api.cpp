#include "bulkhead/shell/api.hpp"

#include <fmt/core.h>

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

// An apply that is only a question stands in line with the questions.
bool asks_only(const Route& route, const Target& target) {
    if (route.lane != Lane::write) return false;
    const auto dry_run = target.query.find("dryRun");
    return dry_run != target.query.end() && dry_run->second == "true";
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

std::expected<Admission, Response> Api::admit(const Head& head) {
    const auto tick = RateLimiter::Clock::now();
    const auto as_stranger = [&](Response otherwise) {
        const auto wait = strangers_.ask(head.peer, tick);
        return std::unexpected(wait ? too_often(*wait) : std::move(otherwise));
    };
    auth::Caller caller;
    const auto bearer = bearer_in(head.authorization);
    const bool has_token = bearer.has_value();
    if (has_token) {
        auto known = parts_.tokens.caller(*bearer, now());
        // Whatever is wrong with a token, a stranger learns only that it is not good here.
        if (!known)
            return as_stranger(problem(
                Error{Code::denied, "this token is not good here", "check BULKHEAD_TOKEN_FILE, or ask for a new token"},
                401));
        caller = *std::move(known);
        if (const auto wait = rate_.ask(caller.token_id, tick)) return std::unexpected(too_often(*wait));
    }
    auto found = match(head.method, head.target);
    if (!found) {
        if (has_token) return std::unexpected(std::move(found.error()));
        return as_stranger(std::move(found.error()));
    }
    const Route& route = routes()[found->route];
    if (route.access == Access::anyone) {
        if (!has_token)
            if (const auto wait = strangers_.ask(head.peer, tick)) return std::unexpected(too_often(*wait));
    } else if (!has_token) {
        return as_stranger(
            problem(Error{Code::denied, "who is asking?", "send Authorization: Bearer and a token"}, 401));
    } else if (!may(caller.role, route.access)) {
        Response no = problem(
            Error{Code::denied, fmt::format("a {} may not {} {}", word(caller.role), word(route.method), route.pattern),
                  "ask a platform-admin"});
        // RFC 6750: it is the token, and not what is asked, that does not do.
        no.headers.emplace_back("WWW-Authenticate", "Bearer error=\"insufficient_scope\"");
        return std::unexpected(std::move(no));
    }
    return Admission{.route = found->route,
                     .parameters = std::move(found->parameters),
                     .caller = std::move(caller),
                     .lane = asks_only(route, head.target) ? Lane::read : route.lane,
                     .body_max = body_max(route.body)};
}

void Api::handle(const Admission& admission, Request request, Respond respond) {
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
    return problem(no);
}

}  // namespace

void Api::ask(const Call& call, What what, const Respond& respond) {
    const auto taken = parts_.loop.submit(call.caller.subject, std::move(what), [respond](Answer answer) {
        if (!answer.outcome) return respond(refused(answer));
        respond({.body = answer.body.empty() ? "{}" : std::move(answer.body)});
    });
    if (!taken) respond(problem(taken.error()));
}

void Api::change(const Call& call, What what, ObjectKind kind, std::string name, const Respond& respond) {
    const std::string if_match = call.request.head.if_match;
    const auto taken = parts_.loop.submit(
        call.caller.subject, std::move(what), [this, respond, kind, name = std::move(name), if_match](Answer answer) {
            if (!answer.outcome) {
                // The condition of the header failed, and not something else that conflicts. A refusal that does not
                // say at which version the object is leaves the catalog to be asked.
                if (answer.version.empty())
                    if (const ObjectPtr object = parts_.catalog.get(kind, name)) answer.version = object->version;
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
            Response response{.status = answer.created ? 201 : 200,
                              .headers = {{"ETag", tag_of(answer.version)}},
                              .body = std::move(answer.object)};
            if (answer.created)
                response.headers.emplace_back("Location", fmt::format("/v1/{}/{}", name_of(kind).plural, name));
            respond(std::move(response));
        });
    if (!taken) respond(problem(taken.error()));
}

}  // namespace bulkhead::shell
