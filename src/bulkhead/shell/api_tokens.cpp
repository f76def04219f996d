// Tokens for people and programs, and the one-time way in for nodes.
#include <fmt/core.h>

#include <charconv>

#include "bulkhead/auth/enrolment.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/shell/api.hpp"
#include "bulkhead/shell/body.hpp"

namespace bulkhead::shell {

namespace {

constexpr Duration enrolment_lasts = Duration::hours(1), certificate_lasts = Duration::days(365);

std::string without_hash(const auth::StoredToken& token) {
    JsonWriter json{JsonLayout::compact};
    json.begin_object();
    json.member("id", token.id);
    json.member("purpose", word(token.purpose));
    json.member("role", word(token.role));
    if (!token.subject.empty()) json.member("subject", token.subject);
    if (!token.tenant.empty()) json.member("tenant", token.tenant);
    if (!token.node.empty()) json.member("node", token.node);
    json.member("createdAt", print(token.createdAt));
    if (token.expiresAt) json.member("expiresAt", print(*token.expiresAt));
    if (token.usedAt) json.member("usedAt", print(*token.usedAt));
    if (!token.usedBy.empty()) json.member("usedBy", token.usedBy);
    json.end_object();
    return json.take();
}

// The host part of "control.example:7443" or "[::1]:7443".
std::string host_in(std::string_view header) {
    if (header.starts_with('[')) return std::string{header.substr(0, header.find(']') + 1)};
    return std::string{header.substr(0, header.find(':'))};
}

bool is_host(std::string_view host) {
    return !host.empty() && host.size() < 254 &&
           std::ranges::all_of(
               host,
               [](char c) {
                   return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                          c == '-' || c == ':' || c == '[' || c == ']';
               });
}

}  // namespace

Row token_row(const auth::StoredToken& token) {
    std::int64_t key = 0;
    // 60 bits of the hash: what names the token elsewhere names its row.
    std::from_chars(token.id.data(), token.id.data() + std::min<std::size_t>(token.id.size(), 15), key, 16);
    return {Table::token, key, to_compact_json(token), false};
}

void Api::list_tokens(const Call&, const Respond& respond) {
    std::string body = R"({"items":[)";
    bool first = true;
    for (const auth::StoredToken& token : parts_.tokens.list()) {
        if (!std::exchange(first, false)) body += ',';
        body += without_hash(token);
    }
    respond({.body = body + "]}"});
}

void Api::keep_token(const auth::MintedToken& token, const Respond& respond) {
    const auto taken = parts_.loop.write({token_row(token.stored)}, [this, token, respond](const Answer& answer) {
        if (!answer.outcome) return respond(problem(answer.outcome.error()));
        std::string body = without_hash(token.stored);
        const auto ca = auth::fingerprint(settings_.ca.certificate);
        body.back() = ',';
        body += fmt::format(R"("token":"{}","caFingerprint":"{}"}})", token.text, ca ? *ca : std::string{});
        respond({.status = 201, .body = std::move(body)});
    });
    if (!taken) respond(problem(taken.error()));
}

void Api::create_token(const Call& call, const Respond& respond) {
    const auto body = read_body<ApiTokenBody>(call.request);
    if (!body) return respond(problem(body.error()));
    const auto role = from_word<auth::Role>(body->role);
    if (!role || *role == auth::Role::node)
        return respond(problem(Error{Code::invalid, fmt::format("there is no role \"{}\" for a token", body->role),
                                     "platform-admin or auditor"}));
    auth::ApiTokenWish wish{.role = *role, .subject = body->subject, .tenant = body->tenant};
    if (body->validFor) wish.expires = now() + *body->validFor;
    auto minted = auth::mint_api_token(wish, now());
    if (!minted) return respond(problem(minted.error()));
    keep_token(*minted, respond);
}

void Api::create_enrolment_token(const Call& call, const Respond& respond) {
    const auto body = read_body<EnrolmentTokenBody>(call.request);
    if (!body) return respond(problem(body.error()));
    auto minted = auth::mint_enrolment_token(body->node, now() + body->validFor.value_or(enrolment_lasts), now());
    if (!minted) return respond(problem(minted.error()));
    keep_token(*minted, respond);
}

void Api::delete_token(const Call& call, const Respond& respond) {
    for (const auth::StoredToken& token : parts_.tokens.list()) {
        if (token.id != call.path("id")) continue;
        Row row = token_row(token);
        row.body.clear();
        row.erased = true;
        const auto taken = parts_.loop.write({std::move(row)}, [respond](const Answer& answer) {
            if (!answer.outcome) return respond(problem(answer.outcome.error()));
            respond({.body = R"({"result":"deleted"})"});
        });
        if (!taken) respond(problem(taken.error()));
        return;
    }
    respond(problem(
        Error{Code::not_found, fmt::format("there is no token {}", call.path("id")), "GET /v1/tokens lists them"}));
}

void Api::enrol(const Call& call, const Respond& respond) {
    const auto wanted = auth::read_enrolment_request(call.request.body);
    if (!wanted) return respond(problem(wanted.error()));
    {
        // One attempt for a name at a time, so that nobody slips in between the look at the name and the commit.
        const std::lock_guard lock{enrolling_mutex_};
        if (!enrolling_.insert(wanted->name).second)
            return respond(
                problem(Error{Code::conflict, fmt::format("node {} is being enrolled", wanted->name), "wait"}));
    }
    const auto finish = [this, name = wanted->name, respond](Response response) {
        {
            const std::lock_guard lock{enrolling_mutex_};
            enrolling_.erase(name);
        }
        respond(std::move(response));
    };
    auto token = parts_.tokens.redeem(wanted->token, wanted->name, now());
    if (!token) return finish(problem(Error{Code::denied, token.error().what, token.error().remedy}, 401));
    // The list of tokens takes it back when the node was not admitted after all.
    const auto put_back = [this, used = *token] {
        auth::StoredToken unused = used;
        unused.usedAt.reset();
        unused.usedBy.clear();
        static_cast<void>(parts_.tokens.put(std::move(unused)));
    };
    const auto no = [&](const Error& why) {
        put_back();
        finish(problem(why));
    };
    // A token for many names admits new nodes; taking an existing node's name takes a token for exactly that node.
    if (token->node != wanted->name && parts_.catalog.get(ObjectKind::node, wanted->name))
        return no({Code::conflict, fmt::format("there is a node {} already", wanted->name),
                   fmt::format("to give it new keys, mint a token for exactly this name")});
    const auto certificate = auth::sign_request(settings_.ca, wanted->request, wanted->name,
                                                {now() + Duration{-300'000}, now() + certificate_lasts});
    if (!certificate) return no(certificate.error());
    const auto print_of = auth::fingerprint(*certificate);
    if (!print_of) return no(print_of.error());
    const std::string host = settings_.agents_host.empty() ? host_in(call.request.head.host) : settings_.agents_host;
    if (!is_host(host)) return no({Code::invalid, "the request names no host", "send a Host header"});
    const auth::EnrolmentAnswer welcome{.certificate = *certificate,
                                        .ca = settings_.ca.certificate,
                                        .agents = fmt::format("{}:{}", host, settings_.agents_port)};
    const auto taken = parts_.loop.submit(
        "enrolment:" + token->id,
        command::Enrol{
            .node = wanted->name, .spec = wanted->spec, .evidence_key = wanted->evidenceKey, .certificate = *print_of},
        [finish, put_back, welcome](const Answer& answer) {
            if (answer.outcome) return finish({.status = 201, .body = print(welcome)});
            put_back();
            finish(problem({.error = answer.outcome.error(), .findings = problem_findings(answer.findings)}));
        },
        {token_row(*token)});
    if (!taken) no(taken.error());
}

}  // namespace bulkhead::shell
