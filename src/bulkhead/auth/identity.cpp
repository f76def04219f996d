// From the claims of a verified token to who that is.
#include "bulkhead/auth/identity.hpp"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "bulkhead/auth/jose_json.hpp"
#include "bulkhead/auth/jwt.hpp"
#include "bulkhead/codec/unicode.hpp"

namespace bulkhead::auth {

namespace {

constexpr std::size_t memberships_max = 500, membership_bytes_max = 256, name_bytes_max = 128;

// {"roles": ["a", "b"]} under that name; none when it is not there.
Result<std::vector<std::string>> roles_in(const Node* holder) {
    if (holder == nullptr) return std::vector<std::string>{};
    auto roles = texts_member(*holder, "roles");
    if (!roles) return std::unexpected(std::move(roles.error()));
    return std::move(*roles).value_or(std::vector<std::string>{});
}

Result<> check_memberships(std::string_view claim, const std::vector<std::string>& list) {
    if (list.size() > memberships_max)
        return fail(Code::denied, fmt::format("{} {}; at most {} are read", list.size(), claim, memberships_max),
                    "let the provider put only those in the token that this service needs");
    for (const std::string& one : list)
        if (one.empty() || one.size() > membership_bytes_max)
            return fail(Code::denied, fmt::format("one of the {} is empty or too long", claim));
    return {};
}

// Characters that are not seen, or that change how others are seen.
constexpr std::array<std::pair<char32_t, char32_t>, 14> unseen{{
    {0x0000, 0x001f},    // control characters: line breaks, escape sequences
    {0x007f, 0x009f},    // and those of the second set, which terminals obey as well
    {0x00ad, 0x00ad},    // soft hyphen
    {0x034f, 0x034f},    // grapheme joiner
    {0x061c, 0x061c},    // Arabic letter mark
    {0x115f, 0x1160},    // Hangul fillers
    {0x17b4, 0x17b5},    // Khmer inherent vowels
    {0x180b, 0x180f},    // Mongolian selectors
    {0x200b, 0x200f},    // zero width, direction marks
    {0x2028, 0x202e},    // separators, direction overrides
    {0x2060, 0x206f},    // joiners, isolates
    {0xfe00, 0xfe0f},    // variation selectors
    {0xfeff, 0xfeff},    // byte order mark
    {0xe0000, 0xe0fff},  // tags
}};

bool is_seen(char32_t rune) {
    for (const auto& [first, last] : unseen)
        if (rune >= first && rune <= last) return false;
    return (rune & 0xfffe) != 0xfffe;  // no characters at all
}

}  // namespace

std::string displayed(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const auto rune = front_rune(text);
        if (!rune) {
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
            text.remove_prefix(1);
            continue;
        }
        if (is_seen(rune->value))
            out += text.substr(0, rune->bytes);
        else
            out += fmt::format("\\u{{{:x}}}", static_cast<std::uint32_t>(rune->value));
        text.remove_prefix(rune->bytes);
    }
    return out;
}

Result<Identity> read_identity(const Claims& claims, std::string_view client) {
    const Node& payload = *claims.payload.root;
    const auto refuse = [](const Error& why) { return fail(Code::denied, why.what, why.remedy); };
    Identity out{
        .issuer = claims.issuer, .subject = claims.subject, .issued = claims.issued, .expires = claims.expires};
    const auto name = text_member(payload, "preferred_username");
    if (!name) return refuse(name.error());
    out.name = displayed(std::string_view{name->value_or("")}.substr(0, name_bytes_max));
    // RFC 9068 calls client_id what OpenID Connect calls azp.
    auto asked_by = text_member(payload, "azp");
    if (asked_by && !*asked_by) asked_by = text_member(payload, "client_id");
    if (!asked_by) return refuse(asked_by.error());
    out.client = displayed(std::string_view{asked_by->value_or("")}.substr(0, name_bytes_max));
    auto acr = text_member(payload, "acr");
    if (!acr) return refuse(acr.error());
    out.acr = *std::move(acr);

    auto groups = texts_member(payload, "groups");
    if (!groups) return refuse(groups.error());
    out.groups = std::move(*groups).value_or(std::vector<std::string>{});
    const auto realm = object_member(payload, "realm_access"), clients = object_member(payload, "resource_access");
    if (!realm) return refuse(realm.error());
    if (!clients) return refuse(clients.error());
    auto realm_roles = roles_in(*realm);
    if (!realm_roles) return refuse(realm_roles.error());
    out.realm_roles = *std::move(realm_roles);
    if (*clients != nullptr) {
        const auto ours = object_member(**clients, client);
        if (!ours) return refuse(ours.error());
        auto roles = roles_in(*ours);
        if (!roles) return refuse(roles.error());
        out.roles = *std::move(roles);
    }
    using Claim = std::pair<std::string_view, const std::vector<std::string>&>;
    for (const auto& [claim, list] :
         {Claim{"groups", out.groups}, Claim{"roles", out.roles}, Claim{"realm roles", out.realm_roles}})
        if (auto few = check_memberships(claim, list); !few) return std::unexpected(few.error());
    return out;
}

}  // namespace bulkhead::auth
