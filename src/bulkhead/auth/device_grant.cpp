#include "bulkhead/auth/device_grant.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/auth/jose_json.hpp"
#include "bulkhead/auth/jwt.hpp"
#include "bulkhead/codec/diagnostic.hpp"

namespace bulkhead::auth {

namespace {

constexpr std::int64_t seconds_max = 365LL * 24 * 3600;

// It goes to a terminal, or into a header: letters, digits and signs that do nothing there.
Result<> check_plain(std::string_view name, std::string_view text, std::size_t longest) {
    const bool plain = std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
    if (plain && text.size() <= longest) return {};
    return fail(Code::corrupt, fmt::format("the provider's \"{}\" is too long, or not plain text", name));
}

Result<std::string> plain_text(const Node& answer, std::string_view name, std::size_t longest) {
    auto text = required_text(answer, name);
    if (!text) return text;
    if (auto plain = check_plain(name, *text, longest); !plain) return std::unexpected(plain.error());
    return text;
}

Result<Duration> seconds_member(const Node& answer, std::string_view name, std::int64_t otherwise) {
    const auto seconds = whole_number_member(answer, name);
    if (!seconds) return std::unexpected(seconds.error());
    const std::int64_t said = seconds->value_or(otherwise);
    if (said < 0) return fail(Code::corrupt, fmt::format("the provider's \"{}\" is negative", name));
    return Duration{std::min(said, seconds_max) * 1000};
}

// It is opened in a browser: nothing but https.
Result<std::string> page_member(const Node& answer, std::string_view name) {
    auto page = plain_text(answer, name, 1024);
    if (page && !page->starts_with("https://"))
        return fail(Code::corrupt, fmt::format("the provider's \"{}\" is not an https address", name));
    return page;
}

std::string same_case(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return text;
}

Result<TokenAnswer> read_refusal(const Node& answer) {
    const auto error = required_text(answer, "error");
    if (!error) return std::unexpected(error.error());
    const auto detail = text_member(answer, "error_description");
    const std::string said =
        detail && *detail ? fmt::format("{} ({})", shortened(*error), shortened(**detail)) : shortened(*error);
    using Kind = TokenAnswer::Kind;
    if (*error == "authorization_pending") return TokenAnswer{.kind = Kind::pending};
    if (*error == "slow_down") return TokenAnswer{.kind = Kind::slower};
    const auto no = [](Code code, std::string what, std::string remedy) {
        return TokenAnswer{.kind = Kind::refused, .why = {code, std::move(what), std::move(remedy)}};
    };
    if (*error == "access_denied") return no(Code::denied, "the login was refused on the page", "bulkhead login");
    if (*error == "expired_token") return no(Code::denied, "the code was not entered in time", "bulkhead login");
    if (*error == "invalid_grant")
        return no(Code::denied, "the provider takes this code or login no longer: " + said, "bulkhead login");
    return no(Code::invalid, "the provider refused: " + said,
              "check that the client may use the device grant, and that --oidc-client is its name");
}

}  // namespace

Result<DeviceCode> read_device_code(std::string_view json) {
    const auto document = read_json_object("the provider's answer", json, {.bytes = provider_answer_bytes_max});
    if (!document) return std::unexpected(document.error());
    const Node& answer = *document->root;
    DeviceCode out;
    auto code = plain_text(answer, "device_code", 4096), shown = plain_text(answer, "user_code", 64);
    auto page = page_member(answer, "verification_uri");
    if (!code) return std::unexpected(code.error());
    if (!shown) return std::unexpected(shown.error());
    if (!page) return std::unexpected(page.error());
    out.device_code = *std::move(code);
    out.user_code = *std::move(shown);
    out.page = *std::move(page);
    if (answer.find("verification_uri_complete") != nullptr) {
        auto whole = page_member(answer, "verification_uri_complete");
        if (!whole) return std::unexpected(whole.error());
        out.page_with_code = *std::move(whole);
    }
    const auto lasts = seconds_member(answer, "expires_in", 600), interval = seconds_member(answer, "interval", 5);
    if (!lasts) return std::unexpected(lasts.error());
    if (!interval) return std::unexpected(interval.error());
    out.lasts = *lasts;
    out.interval = std::max(*interval, Duration{1'000});
    return out;
}

Result<TokenAnswer> read_token_answer(int status, std::string_view json) {
    const auto document = read_json_object("the provider's answer", json, {.bytes = provider_answer_bytes_max});
    if (!document) return std::unexpected(document.error());
    const Node& answer = *document->root;
    if (status != 200) return read_refusal(answer);
    auto access = plain_text(answer, "access_token", token_bytes_max), type = plain_text(answer, "token_type", 64);
    if (!access) return std::unexpected(access.error());
    if (!type) return std::unexpected(type.error());
    if (same_case(*type) != "bearer")
        return fail(Code::corrupt, fmt::format("the provider gives tokens of type \"{}\"", shortened(*type)),
                    "this program sends bearer tokens");
    TokenAnswer out{.kind = TokenAnswer::Kind::granted, .access = *std::move(access)};
    if (answer.find("refresh_token") != nullptr) {
        auto refresh = plain_text(answer, "refresh_token", token_bytes_max);
        if (!refresh) return std::unexpected(refresh.error());
        out.refresh = *std::move(refresh);
    }
    const auto lasts = seconds_member(answer, "expires_in", 300);
    if (!lasts) return std::unexpected(lasts.error());
    out.lasts = *lasts;
    return out;
}

}  // namespace bulkhead::auth
