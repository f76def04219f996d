#include "bulkhead/cli/device_login.hpp"

#include <fmt/core.h>

#include <optional>

#include "bulkhead/auth/pkce.hpp"

namespace bulkhead::cli {

namespace {

using shell::add_to_form;

Result<auth::Discovery> discover(const std::string& issuer, shell::HttpsFetch& fetch) {
    const auto said = fetch.json({.url = auth::discovery_address(issuer), .bytes_max = auth::discovery_bytes_max});
    if (!said) return std::unexpected(said.error());
    auto provider = auth::read_discovery(*said, issuer);
    if (provider && !provider->answers_device_grant())
        return fail(Code::unavailable, fmt::format("{} offers no login by device code", issuer),
                    "an administrator of the provider can allow it for the client; or ask for a token of the fleet");
    return provider;
}

Result<auth::DeviceCode> begin(const DeviceLogin& login, const auth::Discovery& provider,
                               const std::optional<auth::Pkce>& pkce, shell::HttpsFetch& fetch) {
    shell::Question question{.url = provider.device, .bytes_max = auth::provider_answer_bytes_max};
    add_to_form(question.form, "client_id", login.client);
    add_to_form(question.form, "scope", login.scopes);
    if (pkce) {
        add_to_form(question.form, "code_challenge", pkce->challenge);
        add_to_form(question.form, "code_challenge_method", auth::pkce_method);
    }
    const auto said = fetch.ask(question);
    if (!said) return std::unexpected(said.error());
    if (said->status == 200) return auth::read_device_code(said->body);
    const auto answer = auth::read_token_answer(said->status, said->body);
    if (answer && answer->kind == auth::TokenAnswer::Kind::refused) return std::unexpected(answer->why);
    return fail(Code::unavailable, fmt::format("{} answered {}", provider.device, said->status),
                "is the client known there, and allowed the device grant?");
}

}  // namespace

Result<LoggedIn> log_in(const DeviceLogin& login, shell::HttpsFetch& fetch) {
    auto provider = discover(login.issuer, fetch);
    if (!provider) return std::unexpected(provider.error());
    // Who takes it then knows that whoever asks for the tokens also asked for the code.
    const std::optional<auth::Pkce> pkce = provider->pkce ? std::optional{auth::new_pkce()} : std::nullopt;
    const auto code = begin(login, *provider, pkce, fetch);
    if (!code) return std::unexpected(code.error());
    login.show(*code);

    shell::Question question{.url = provider->token, .bytes_max = auth::provider_answer_bytes_max};
    add_to_form(question.form, "grant_type", auth::device_grant_type);
    add_to_form(question.form, "device_code", code->device_code);
    add_to_form(question.form, "client_id", login.client);
    if (pkce) add_to_form(question.form, "code_verifier", pkce->verifier);
    Duration interval = code->interval, waited{};
    constexpr Duration slower{5'000};
    while (waited < code->lasts) {
        login.pause(interval);
        waited = Duration{waited.ms + interval.ms};
        const auto said = fetch.ask(question);
        if (!said) {
            // RFC 8628, 3.5: a connection that takes too long is asked less often, and not given up.
            interval = Duration{interval.ms * 2};
            continue;
        }
        auto answer = auth::read_token_answer(said->status, said->body);
        if (!answer) return std::unexpected(answer.error());
        using Kind = auth::TokenAnswer::Kind;
        if (answer->kind == Kind::slower) interval = Duration{interval.ms + slower.ms};
        if (answer->kind == Kind::refused) return std::unexpected(answer->why);
        if (answer->kind == Kind::granted) return LoggedIn{*std::move(provider), *std::move(answer)};
    }
    return fail(Code::denied, "the code was not entered in time", "bulkhead login");
}

}  // namespace bulkhead::cli
