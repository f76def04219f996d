#include "bulkhead/shell/api.hpp"

#include <fmt/core.h>

#include <chrono>

#include "bulkhead/codec/diagnostic.hpp"

namespace bulkhead::shell {

namespace {

constexpr std::size_t small_body = 64 << 10, large_body = 4 << 20;

Instant machine_clock() {
    using namespace std::chrono;
    return {duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

Response too_often(std::int64_t seconds) {
    Response response = problem(Error{Code::exhausted, "too many requests", fmt::format("ask again in {} s", seconds)});
    std::erase_if(response.headers, [](const auto& header) { return header.first == "Retry-After"; });
    response.headers.emplace_back("Retry-After", std::to_string(seconds));
    return response;
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
    constexpr std::string_view scheme = "Bearer ";
    const bool has_token = head.authorization.starts_with(scheme);
    if (has_token) {
        auto known = parts_.tokens.caller(std::string_view{head.authorization}.substr(scheme.size()), now());
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
        return std::unexpected(problem(
            Error{Code::denied, fmt::format("a {} may not {} {}", word(caller.role), word(route.method), route.pattern),
                  "ask a platform-admin"}));
    }
    return Admission{.route = found->route,
                     .parameters = std::move(found->parameters),
                     .caller = std::move(caller),
                     .slow = route.slow,
                     .body_max = body_max(route.body)};
}

void Api::handle(const Admission& admission, Request request, Respond respond) {
    const Route& route = routes()[admission.route];
    const Call call{request, admission.parameters, admission.caller};
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
            const ObjectPtr object = parts_.catalog.get(kind, name);
            const auto tag = [](const ObjectPtr& of) { return fmt::format("\"{}\"", of->version); };
            if (!answer.outcome) {
                Response response = refused(answer);
                // The condition of the header failed, and not something else that conflicts.
                const bool stale = object && !if_match.empty() && if_match != "*" && if_match != tag(object);
                if (response.status == 409 && stale) {
                    Problem no{.error = answer.outcome.error(), .status = 412};
                    response = problem(no);
                }
                return respond(std::move(response));
            }
            if (!object)
                return respond({.body = fmt::format(R"({{"kind":"{}","name":"{}","result":"deleted"}})",
                                                    name_of(kind).type, name)});
            Response response{.status = answer.created ? 201 : 200,
                              .headers = {{"ETag", tag(object)}},
                              .shared = {object, &object->body}};
            if (answer.created)
                response.headers.emplace_back("Location", fmt::format("/v1/{}/{}", name_of(kind).plural, name));
            respond(std::move(response));
        });
    if (!taken) respond(problem(taken.error()));
}

}  // namespace bulkhead::shell
