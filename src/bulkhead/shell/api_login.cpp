// Who is asking: whose token it is, and, for those who have none yet, where they get one.
#include <fmt/core.h>

#include "bulkhead/auth/jwt.hpp"
#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/shell/api.hpp"

namespace bulkhead::shell {

namespace {

// Whatever is wrong with a token, a stranger learns only that it is not good here.
Response not_good(bool of_provider) {
    return problem(Error{Code::denied, "this token is not good here",
                         of_provider ? "bulkhead login" : "check BULKHEAD_TOKEN_FILE, or ask for a new token"},
                   401);
}

}  // namespace

std::expected<auth::Caller, Response> Api::holder_of(std::string_view token) {
    if (settings_.oidc == nullptr || !auth::looks_like_jwt(token)) {
        auto known = parts_.tokens.caller(token, now());
        if (!known) return std::unexpected(not_good(false));
        return *std::move(known);
    }
    const auto person = settings_.oidc->identify(token, now());
    if (!person) {
        Response no = person.error().error.code == Code::unavailable || person.error().soon
                          ? problem(Error{Code::unavailable, "the identity provider's keys are not known yet",
                                          "ask again in a moment"})
                          : not_good(true);
        no.ask_again = person.error().soon;
        return std::unexpected(std::move(no));
    }
    auto caller = auth::caller_of(**person, *settings_.people->current());
    if (!caller) return std::unexpected(not_the_role(problem(caller.error())));
    return *std::move(caller);
}

// What was true of somebody when they came in, and may have changed since: their key, their token, their bindings.
bool Api::still_bound(const auth::Caller& caller) const {
    const Oidc::Person person = settings_.oidc == nullptr ? nullptr : settings_.oidc->known(caller.token_id, now());
    if (!person) return false;
    const auto today = auth::caller_of(*person, *settings_.people->current());
    return today && today->rights == caller.rights;
}

// Each token once: the log says who came in, not how often they asked.
void Api::note_login(const auth::Caller& caller) {
    constexpr std::size_t remembered = 4096;
    {
        const std::lock_guard lock{logins_mutex_};
        if (!logins_.insert(caller.token_id).second) return;
        logins_in_order_.push_back(caller.token_id);
        if (logins_in_order_.size() > remembered) {
            logins_.erase(logins_in_order_.front());
            logins_in_order_.pop_front();
        }
    }
    std::map<std::string, std::string> detail{{"token", caller.token_id}, {"role", std::string{word(caller.role)}}};
    if (caller.until) detail["until"] = print(*caller.until);
    const auto noted = parts_.loop.submit(
        Asker{caller.subject},
        command::NoteAccess{
            .what = command::NoteAccess::What::signed_in, .tenant = caller.tenant, .detail = std::move(detail)},
        [](const Answer&) {});
    if (!noted) parts_.log.warning("a login could not be logged", {{"who", caller.subject}});
}

void Api::login_with(const Call&, const Respond& respond) {
    if (settings_.oidc == nullptr)
        return respond(
            problem(Error{Code::not_found, "this server knows no identity provider",
                          "ask an administrator for a token; `bulkhead serve --oidc-issuer` names a provider"}));
    const OidcOptions& options = settings_.oidc->options();
    JsonWriter json{JsonLayout::compact};
    json.begin_object();
    json.member("issuer", options.issuer);
    json.member("clientId", options.client);
    json.member("audience", options.audience);
    json.member("scopes", options.scopes);
    json.end_object();
    respond({.body = json.take()});
}

}  // namespace bulkhead::shell
