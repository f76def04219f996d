#include "bulkhead/auth/jwt.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

#include "bulkhead/auth/base64url.hpp"
#include "bulkhead/auth/jose_json.hpp"
#include "bulkhead/codec/diagnostic.hpp"

namespace bulkhead::auth {

namespace {

constexpr std::size_t signature_text_max = 2 << 10;    // RSA of 8192 bits has 1366
constexpr std::size_t subject_bytes_max = 255;         // OpenID Connect Core, section 2
constexpr std::int64_t last_second = 253'402'300'799;  // of the year 9999

std::unexpected<Error> no(std::string why) { return fail(Code::denied, std::move(why), "log in again"); }
// A member that is not what it should be: the same answer, whoever found out.
std::unexpected<Error> no(const Error& why) { return no(why.what); }

struct Parts {
    std::string_view header, payload, signature;
    std::string_view signed_text;  // header and payload, with the dot between them
};

Result<Parts> cut(std::string_view token) {
    if (token.size() > token_bytes_max)
        return no(fmt::format("a token of {} bytes; at most {} are read", token.size(), token_bytes_max));
    if (!looks_like_jwt(token)) return no("not three parts with dots between them");
    const std::size_t first = token.find('.'), second = token.find('.', first + 1);
    Parts parts{.header = token.substr(0, first),
                .payload = token.substr(first + 1, second - first - 1),
                .signature = token.substr(second + 1),
                .signed_text = token.substr(0, second)};
    if (parts.signature.size() > signature_text_max) return no("its signature is too long");
    return parts;
}

Result<Document> decoded_object(std::string_view what, std::string_view text) {
    const auto bytes = from_base64url(text);
    if (!bytes) return no(fmt::format("{} is not base64url as it should be written", what));
    auto document = read_json_object(what, *bytes, {.bytes = token_bytes_max});
    if (!document) return no(document.error());
    return document;
}

struct Header {
    Algorithm algorithm{};
    std::string key;
    bool says_access_token = false;
};

std::string in_lower_case(std::string_view text) {
    std::string out{text};
    std::ranges::transform(out, out.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return out;
}

Result<Header> read_header(const Node& header, const Expectations& expected) {
    if (header.find("crit") != nullptr) return no("its header demands extensions (crit), and none is known here");
    if (header.find("enc") != nullptr || header.find("zip") != nullptr) return no("it is encrypted or compressed");
    const auto algorithm = required_text(header, "alg");
    if (!algorithm) return no(algorithm.error());
    const auto known = from_word<Algorithm>(*algorithm);
    if (!known || std::ranges::find(expected.algorithms, *known) == expected.algorithms.end())
        return no(fmt::format("the algorithm \"{}\" is not taken here", shortened(*algorithm)));
    auto key = required_text(header, "kid");
    if (!key) return no(key.error());
    if (key->size() > key_name_bytes_max) return no("its key's name (kid) is too long");
    const auto type = text_member(header, "typ");
    if (!type) return no(type.error());
    const std::string said = in_lower_case(type->value_or("jwt"));  // media types have no case
    const bool access = said == "at+jwt" || said == "application/at+jwt";
    if (!access && said != "jwt") return no(fmt::format("it is a \"{}\", not an access token", shortened(said)));
    return Header{*known, *std::move(key), access};
}

// Keycloak says it in a claim (Bearer, ID, Refresh, Logout), RFC 9068 in the header; one of them must.
Result<> check_type(const Node& payload, const Header& header) {
    const auto type = text_member(payload, "typ");
    if (!type) return no(type.error());
    if (*type && **type != "Bearer")
        return no(fmt::format("it is a token of type \"{}\", not Bearer", shortened(**type)));
    if (!*type && !header.says_access_token)
        return no("neither its claim typ (Bearer) nor its header (at+jwt) says that it is an access token");
    // Whoever presents it would have to prove that they hold a key as well; this door does not ask for that.
    if (payload.find("cnf") != nullptr) return no("it is bound to a key (cnf)");
    return {};
}

Result<std::optional<Instant>> moment(const Node& payload, std::string_view name) {
    const auto seconds = whole_number_member(payload, name);
    if (!seconds) return no(seconds.error());
    if (!*seconds) return std::nullopt;
    if (**seconds < 0 || **seconds > last_second) return no(fmt::format("\"{}\" is no moment", name));
    return Instant{**seconds * 1000};
}

Result<Instant> required_moment(const Node& payload, std::string_view name) {
    const auto found = moment(payload, name);
    if (!found) return std::unexpected(found.error());
    if (!*found) return no(fmt::format("\"{}\" is missing", name));
    return **found;
}

Result<> check_times(Claims& claims, const Expectations& expected, Instant now) {
    const Node& payload = *claims.payload.root;
    const auto expires = required_moment(payload, "exp"), issued = required_moment(payload, "iat");
    if (!expires) return std::unexpected(expires.error());
    if (!issued) return std::unexpected(issued.error());
    const auto begins = moment(payload, "nbf");
    if (!begins) return std::unexpected(begins.error());
    if (*expires <= *issued) return no("it ends before it was issued");
    if (*issued > now + expected.skew) return no(fmt::format("it was issued at {}, which is to come", print(*issued)));
    if (*begins && **begins > now + expected.skew) return no(fmt::format("it is not good before {}", print(**begins)));
    claims.issued = *issued;
    claims.expires = std::min(*expires + expected.skew, *issued + expected.age_max);
    if (now >= *expires + expected.skew) return no(fmt::format("it ended at {}", print(*expires)));
    if (now >= claims.expires)
        return no(fmt::format("it was issued at {} and is not believed for longer than {}", print(*issued),
                              print(expected.age_max)));
    return {};
}

Result<> check_addresses(Claims& claims, const Expectations& expected) {
    const Node& payload = *claims.payload.root;
    auto issuer = required_text(payload, "iss");
    if (!issuer) return no(issuer.error());
    if (*issuer != expected.issuer) return no(fmt::format("its issuer is \"{}\"", shortened(*issuer)));
    const auto audience = texts_member(payload, "aud", true);
    if (!audience) return no(audience.error());
    if (!*audience) return no("it is for nobody in particular (no aud)");
    if (std::ranges::find(**audience, expected.audience) == (*audience)->end())
        return no(fmt::format("it is not for \"{}\"", expected.audience));
    auto subject = required_text(payload, "sub");
    if (!subject) return no(subject.error());
    if (subject->size() > subject_bytes_max) return no("its subject is too long");
    // A subject is a key, and stands in the log: what cannot be seen would make two of them look like one.
    if (displayed(*subject) != *subject) return no("its subject has characters that cannot be shown");
    claims.issuer = *std::move(issuer);
    claims.subject = *std::move(subject);
    return {};
}

}  // namespace

std::vector<Algorithm> every_algorithm() {
    constexpr auto all = every<Algorithm>();
    return {all.begin(), all.end()};
}

Result<> check(const Expectations& expected) {
    if (expected.issuer.empty() || expected.audience.empty())
        return fail(Code::invalid, "an issuer and an audience are needed to check tokens",
                    "--oidc-issuer and --oidc-audience");
    if (expected.algorithms.empty()) return fail(Code::invalid, "no algorithm is allowed");
    if (expected.skew.ms < 0 || expected.skew > clock_skew_max)
        return fail(Code::invalid, "clocks may differ by a minute, not by more");
    if (expected.age_max.ms <= 0) return fail(Code::invalid, "a token must be believed for some time");
    return {};
}

bool looks_like_jwt(std::string_view token) {
    return std::ranges::count(token, '.') == 2 && token.front() != '.' && token.back() != '.' &&
           token.find("..") == std::string_view::npos;
}

Result<Claims> verify_token(std::string_view token, const KeySet& keys, const Expectations& expected, Instant now) {
    const auto parts = cut(token);
    if (!parts) return std::unexpected(parts.error());
    const auto head = decoded_object("the token's header", parts->header);
    if (!head) return std::unexpected(head.error());
    const auto header = read_header(*head->root, expected);
    if (!header) return std::unexpected(header.error());
    const VerifyKey* key = keys.find(header->key, header->algorithm);
    if (key == nullptr && keys.knows(header->key))
        return no(fmt::format("its key \"{}\" is not one for {}", shortened(header->key), word(header->algorithm)));
    if (key == nullptr)
        return fail(Code::not_found, fmt::format("its key \"{}\" is not among the issuer's", shortened(header->key)),
                    "log in again");
    const auto signature = from_base64url(parts->signature);
    if (!signature) return no("its signature is not base64url as it should be written");
    if (!verify_signature(*key, header->algorithm, parts->signed_text, *signature))
        return no("its signature is not the issuer's");

    auto payload = decoded_object("the token's payload", parts->payload);
    if (!payload) return std::unexpected(payload.error());
    Claims claims{.payload = *std::move(payload)};
    if (auto typed = check_type(*claims.payload.root, *header); !typed) return std::unexpected(typed.error());
    if (auto meant = check_addresses(claims, expected); !meant) return std::unexpected(meant.error());
    if (auto timely = check_times(claims, expected, now); !timely) return std::unexpected(timely.error());
    return claims;
}

}  // namespace bulkhead::auth
