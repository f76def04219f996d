// Tokens for people and programs, and the one-time way in for nodes.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "bulkhead/auth/enrolment.hpp"
#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/shell/api.hpp"
#include "bulkhead/shell/body.hpp"

namespace bulkhead::shell {

namespace {

constexpr Duration enrolment_lasts = Duration::hours(1), tokens_last = Duration::days(90);
constexpr Duration glass_lasts = Duration::hours(1);
constexpr std::ptrdiff_t most_of_a_tenant = 256;

std::string without_hash(const auth::StoredToken& token) {
    JsonWriter json{JsonLayout::compact};
    json.begin_object();
    json.member("id", token.id);
    json.member("purpose", word(token.purpose));
    if (!token.name.empty()) json.member("name", token.name);
    json.member("role", word(token.role));
    if (!token.subject.empty()) json.member("subject", token.subject);
    if (!token.tenant.empty()) json.member("tenant", token.tenant);
    if (!token.scope.empty()) {
        json.key("scope");
        json.begin_array();
        for (const Permission permission : token.scope) json.value(word(permission));
        json.end_array();
    }
    if (!token.why.empty()) json.member("why", token.why);
    if (!token.node.empty()) json.member("node", token.node);
    json.member("createdAt", print(token.createdAt));
    if (token.expiresAt) json.member("expiresAt", print(*token.expiresAt));
    if (token.usedAt) json.member("usedAt", print(*token.usedAt));
    if (!token.usedBy.empty()) json.member("usedBy", token.usedBy);
    json.end_object();
    return json.take();
}

void say(Log& log, std::string_view event, const auth::StoredToken& token, const auth::Caller& by) {
    log.info(event, {{"id", token.id},
                     {"purpose", word(token.purpose)},
                     {"role", word(token.role)},
                     {"subject", token.purpose == auth::TokenPurpose::api ? token.subject : token.node},
                     {"by", by.subject},
                     {"by_token", by.token_id}});
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

namespace {

// Nodes that are models take work and run nothing: where all are, a command would never end.
bool some_node_runs_commands(const Catalog& catalog) {
    bool any = false;
    std::string after;
    for (bool more = true; more;) {
        const auto page = catalog.list(ObjectKind::node, {.selector = {}, .limit = 1000, .after = after});
        for (const ObjectPtr& object : page.objects) {
            any = true;
            if (!object->body.contains(R"("runsCommands":false)")) return true;
        }
        more = page.more;
        if (more) after = page.objects.back()->name;
    }
    return !any;
}

}  // namespace

void Api::who_am_i(const Call& call, const Respond& respond) {
    const auth::Caller& caller = call.caller;
    JsonWriter json{JsonLayout::compact};
    const auto permissions = [&](auto&& may) {
        json.begin_array();
        for (const Permission permission : every<Permission>())
            if (may(permission)) json.value(word(permission));
        json.end_array();
    };
    json.begin_object();
    json.member("subject", caller.subject);
    json.member("role", word(caller.role));
    json.key("fleet");
    permissions([&](Permission permission) { return caller.rights.may(permission); });
    json.key("tenants");
    json.begin_object();
    for (const std::string& tenant : caller.rights.tenants()) {
        json.key(tenant);
        permissions([&](Permission permission) { return caller.rights.may(permission, tenant); });
    }
    json.end_object();
    if (caller.until) json.member("until", print(*caller.until));
    json.member("runsCommands", some_node_runs_commands(parts_.catalog));
    json.end_object();
    respond({.body = json.take()});
}

namespace {

// Whose business a token is: the operator's, or its tenant's.
bool reads(const Rights& rights, const auth::StoredToken& token) {
    return token.tenant.empty() ? rights.may(Permission::read_log) : rights.may(Permission::read_log, token.tenant);
}

// Who makes a token may also take it back.
Permission to_make(const auth::StoredToken& token) {
    if (token.purpose == auth::TokenPurpose::enrolment) return Permission::manage_nodes;
    return is_tenants(token.role) ? Permission::manage_tokens : Permission::bind_roles;
}

}  // namespace

void Api::list_tokens(const Call& call, const Respond& respond) {
    std::string body = R"({"items":[)";
    bool first = true;
    for (const auth::StoredToken& token : parts_.tokens.list()) {
        if (token.revokedAt || !reads(call.caller.rights, token)) continue;
        if (!std::exchange(first, false)) body += ',';
        body += without_hash(token);
    }
    respond({.body = body + "]}"});
}

namespace {

// For the log: who may open which door, and who said so.
command::NoteToken note_of(const auth::StoredToken& token, bool minted) {
    return {.id = token.id,
            .role = std::string{word(token.role)},
            .subject = token.purpose == auth::TokenPurpose::enrolment ? "node " + token.node : token.subject,
            .tenant = token.tenant,
            .why = token.why,
            .minted = minted};
}

}  // namespace

void Api::keep_token(const Call& call, const auth::MintedToken& token, const Respond& respond) {
    const auto kept = [this, token, respond, caller = call.caller](const Answer& answer) {
        if (!answer.outcome) return respond(problem(answer.outcome.error()));
        say(parts_.log, "a token was made", token.stored, caller);
        std::string body = without_hash(token.stored);
        const auto ca = auth::fingerprint(settings_.issuer.ca());
        body.back() = ',';
        body += fmt::format(R"("token":"{}","caFingerprint":"{}"}})", token.text, ca ? *ca : std::string{});
        respond({.status = 201, .body = std::move(body)});
    };
    const auto taken = parts_.loop.submit(asker(call), note_of(token.stored, true), kept, {token_row(token.stored)});
    if (!taken) respond(problem(taken.error()));
}

void Api::create_token(const Call& call, const Respond& respond) {
    const auto body = read_body<ApiTokenBody>(call.request);
    if (!body) return respond(problem(body.error()));
    const auto role = from_word<Role>(body->role);
    if (!role || *role == Role::node || *role == Role::break_glass)
        return respond(problem(Error{Code::invalid, fmt::format("there is no role \"{}\" for a token", body->role),
                                     "platform-admin, security-admin, auditor, tenant-admin or tenant-user"}));
    const Rights& rights = call.caller.rights;
    if (is_tenants(*role) && !rights.may(Permission::manage_tokens, body->tenant))
        return respond(problem(Error{Code::not_found, fmt::format("there is no Tenant {}", shortened(body->tenant)),
                                     "GET /v1/tenants lists yours"}));
    const bool operators = rights.may(is_tenants(*role) ? Permission::manage_tokens : Permission::bind_roles);
    if (call.caller.narrowed && (operators || !is_tenants(*role)))
        return respond(problem(Error{Code::denied, "a token of narrowed scope makes none for others",
                                     "ask with one that carries all of its role"}));
    if (is_tenants(*role) && operators) {
        // Somebody has to make a tenant's first key; from then on its admins do, or glass is broken.
        const auto tokens = parts_.tokens.list();
        const bool has_admin = std::ranges::any_of(tokens, [&](const auth::StoredToken& token) {
            return token.tenant == body->tenant && token.role == Role::tenant_admin &&
                   parts_.tokens.in_force(token.id, now());
        });
        if (has_admin)
            return respond(problem(
                Error{Code::denied, fmt::format("Tenant {} has an admin, who makes its tokens", body->tenant),
                      fmt::format("ask them; or, for something urgent: bulkhead break-glass {}", body->tenant)}));
    }
    if (is_tenants(*role) &&
        std::ranges::count(parts_.tokens.list(), body->tenant, &auth::StoredToken::tenant) >= most_of_a_tenant)
        return respond(problem(Error{
            Code::exhausted,
            fmt::format("Tenant {} has {} tokens, which is as many as there may be", body->tenant, most_of_a_tenant),
            "take some back"}));
    if (!is_tenants(*role) && !rights.may(Permission::bind_roles))
        return respond(not_the_role(problem(
            Error{Code::denied,
                  fmt::format("a token of a {} takes the permission {}", word(*role), word(Permission::bind_roles)),
                  "ask a security-admin"})));
    auth::ApiTokenWish wish{.role = *role,
                            .subject = body->subject,
                            .tenant = body->tenant,
                            .expires = now() + body->validFor.value_or(tokens_last),
                            .name = body->name};
    for (const std::string& each : body->scope) {
        const auto permission = from_word<Permission>(each);
        if (!permission)
            return respond(problem(Error{Code::invalid, fmt::format("there is no permission \"{}\"", shortened(each)),
                                         fmt::format("{}", fmt::join(words(Permission{}), ", "))}));
        wish.scope.push_back(*permission);
    }
    // Nobody gives away more than they have, or for longer than they have it.
    if (is_tenants(*role) && !operators) {
        for (const Permission permission : every<Permission>()) {
            const bool wanted = wish.scope.empty() ? permissions_of(*role).contains(permission)
                                                   : std::ranges::find(wish.scope, permission) != wish.scope.end();
            if (wanted && !rights.may(permission, body->tenant))
                return respond(
                    problem(Error{Code::denied, fmt::format("your own token does not carry {}", word(permission)),
                                  "narrow the scope of the new one"}));
        }
        if (call.caller.until && !Oidc::is_name(call.caller.token_id))
            wish.expires = std::min(*wish.expires, *call.caller.until);
    }
    if (is_tenants(*role) && !parts_.catalog.get(ObjectKind::tenant, body->tenant))
        return respond(problem(Error{Code::not_found, fmt::format("there is no Tenant {}", shortened(body->tenant)),
                                     "GET /v1/tenants lists yours"}));
    auto minted = auth::mint_api_token(wish, now());
    if (!minted) return respond(problem(minted.error()));
    keep_token(call, *minted, respond);
}

void Api::break_glass(const Call& call, const Respond& respond) {
    const auto body = read_body<BreakGlassBody>(call.request);
    if (!body) return respond(problem(body.error()));
    const std::string& tenant = call.path("name");
    if (!parts_.catalog.get(ObjectKind::tenant, tenant))
        return respond(problem(
            Error{Code::not_found, fmt::format("there is no Tenant {}", tenant), "GET /v1/tenants lists them"}));
    // To whoever asks, and to nobody else.
    auto minted = auth::mint_api_token({.role = Role::break_glass,
                                        .subject = call.caller.subject,
                                        .tenant = tenant,
                                        .expires = now() + body->validFor.value_or(glass_lasts),
                                        .name = "break-glass",
                                        .why = body->why},
                                       now());
    if (!minted) return respond(problem(minted.error()));
    keep_token(call, *minted, respond);
}

void Api::create_enrolment_token(const Call& call, const Respond& respond) {
    const auto body = read_body<EnrolmentTokenBody>(call.request);
    if (!body) return respond(problem(body.error()));
    auto minted = auth::mint_enrolment_token(body->node, now() + body->validFor.value_or(enrolment_lasts), now());
    if (!minted) return respond(problem(minted.error()));
    keep_token(call, *minted, respond);
}

void Api::delete_token(const Call& call, const Respond& respond) {
    for (const auth::StoredToken& token : parts_.tokens.list()) {
        if (token.id != call.path("id") || token.revokedAt) continue;
        // One's own, or one that one could have made; any other is as if it were not there.
        const Rights& rights = call.caller.rights;
        const bool own = token.id == call.caller.token_id;
        const bool made = token.tenant.empty() ? rights.may(to_make(token)) : rights.may(to_make(token), token.tenant);
        if (!own && !made) {
            if (!reads(rights, token)) break;
            return respond(problem(
                Error{Code::denied,
                      fmt::format("taking back token {} takes the permission {}", token.id, word(to_make(token))),
                      "ask somebody who has it"}));
        }
        Row row = token_row(token);
        if (std::ranges::find(settings_.bootstrap_tokens, token.id) != settings_.bootstrap_tokens.end()) {
            // The next start reads its text from the file again, so that it has to be remembered.
            auth::StoredToken revoked = token;
            revoked.revokedAt = now();
            row = token_row(revoked);
        } else {
            row.body.clear();
            row.erased = true;
        }
        const auto gone = [this, token, respond, caller = call.caller](const Answer& answer) {
            if (!answer.outcome) return respond(problem(answer.outcome.error()));
            say(parts_.log, "a token was taken back", token, caller);
            respond({.body = R"({"result":"deleted"})"});
        };
        const auto taken = parts_.loop.submit(asker(call), note_of(token, false), gone, {std::move(row)});
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
    const auto issued = settings_.issuer.issue(wanted->request, wanted->name, now());
    if (!issued) return no(issued.error());
    const std::string host = settings_.agents_host.empty() ? host_in(call.request.head.host) : settings_.agents_host;
    if (!is_host(host)) return no({Code::invalid, "the request names no host", "send a Host header"});
    const auth::EnrolmentAnswer welcome{.certificate = issued->certificate,
                                        .ca = settings_.issuer.ca(),
                                        .agents = fmt::format("{}:{}", host, settings_.agents_port)};
    const auto taken = parts_.loop.submit(
        "enrolment:" + token->id,
        command::Enrol{.node = wanted->name,
                       .spec = wanted->spec,
                       .evidence_key = wanted->evidenceKey,
                       .certificate = issued->fingerprint},
        [finish, put_back, welcome](const Answer& answer) {
            if (answer.outcome) return finish({.status = 201, .body = print(welcome)});
            put_back();
            finish(problem({.error = answer.outcome.error(), .findings = problem_findings(answer.findings)}));
        },
        {token_row(*token)});
    if (!taken) no(taken.error());
}

}  // namespace bulkhead::shell
