// Tokens: 256 random bits that whoever holds them may use. The control plane keeps only their SHA-256, so a stolen
// database opens no door; the text is shown once, to the person who asked for it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::auth {

// Written to disk by these words: append, never rename.
enum class Role : std::uint8_t { platform_admin, security_admin, auditor, tenant_admin, tenant_user, node };
constexpr auto words(Role) {
    return std::to_array<Words>({"platform-admin", "security-admin", "auditor", "tenant-admin", "tenant-user", "node"});
}

// "bh1_" and 64 hex digits: a form that scanners for leaked secrets can find.
inline constexpr std::string_view token_prefix = "bh1_";
std::string new_token();                             // from the operating system's generator
Result<Hash> hash_of_token(std::string_view token);  // refused unless it has the form

// In a time that does not depend on where they differ.
bool same_secret(std::string_view a, std::string_view b);

enum class TokenPurpose : std::uint8_t {
    api,        // a bearer token: good until it expires or is taken back
    enrolment,  // admits one node, once
};
constexpr auto words(TokenPurpose) { return std::to_array<Words>({"api", "enrolment"}); }

// What is kept of a token; to_json() and codec's decode() make it a row and back.
struct StoredToken {
    std::string id;    // public: the first 16 hex digits of the hash; names the token in lists and logs
    std::string hash;  // SHA-256 of the token's text, hex
    TokenPurpose purpose{};
    Role role{};          // of an api token
    std::string subject;  // of an api token: who is calling
    std::string tenant;   // of a tenant's token
    std::string node;     // of an enrolment token: the node's name, or a beginning of names followed by '*'
    Instant createdAt;
    std::optional<Instant> expiresAt;  // an enrolment token always has one
    std::optional<Instant> usedAt;     // of an enrolment token that was used
    std::string usedBy;
    std::optional<Instant> revokedAt;  // taken back, and remembered: its text is still somewhere that is read again

    static constexpr void describe(auto&& field) {
        field("id", &StoredToken::id, "Names the token without giving it away.",
              Rule{.required = true, .format = Format::line});
        field("hash", &StoredToken::hash, "SHA-256 of the token, in hex.",
              Rule{.required = true, .format = Format::line});
        field("purpose", &StoredToken::purpose, "What it is for.", Rule{.required = true});
        field("role", &StoredToken::role, "What its holder may ask.");
        field("subject", &StoredToken::subject, "Who its holder is.");
        field("tenant", &StoredToken::tenant, "The tenant it belongs to.");
        field("node", &StoredToken::node, "The node it admits, or a beginning of names followed by '*'.");
        field("createdAt", &StoredToken::createdAt, "When it was made.", Rule{.required = true});
        field("expiresAt", &StoredToken::expiresAt, "From when on it is refused.");
        field("usedAt", &StoredToken::usedAt, "When it was used.");
        field("usedBy", &StoredToken::usedBy, "By which node.");
        field("revokedAt", &StoredToken::revokedAt, "When it was taken back.");
    }
    friend bool operator==(const StoredToken&, const StoredToken&) = default;
};

struct MintedToken {
    std::string text;  // to be shown once
    StoredToken stored;
};
struct ApiTokenWish {
    Role role{};
    std::string subject;
    std::string tenant;  // required for the two tenant roles, refused for the others
    std::optional<Instant> expires;
};
Result<MintedToken> mint_api_token(const ApiTokenWish& wish, Instant now);
// `node`: a name, or a beginning of names followed by '*'.
Result<MintedToken> mint_enrolment_token(std::string_view node, Instant expires, Instant now);

// Who a request comes from.
struct Caller {
    Role role{};
    std::string subject;
    std::string tenant;
    std::string token_id;
    friend bool operator==(const Caller&, const Caller&) = default;
};

// The tokens in force. Any thread may ask.
class TokenBook {
public:
    Result<> put(StoredToken token);  // new, or in place of the one with its id
    bool erase(std::string_view id);
    std::vector<StoredToken> list() const;  // by id; also those that are only remembered as taken back

    // The holder of an api token; `denied` for anything else.
    Result<Caller> caller(std::string_view token, Instant now) const;

    // Whether the token that made somebody a caller is still good: for what goes on after the request.
    bool in_force(std::string_view id, Instant now) const;

    // Uses an enrolment token up: whoever asks second, even at the same moment, is refused. The answer must be durable
    // before the node is told anything; when that fails, `put` it back without its usedAt.
    Result<StoredToken> redeem(std::string_view token, std::string_view node, Instant now);

private:
    Result<const StoredToken*> find(std::string_view token, TokenPurpose purpose, Instant now) const;  // locked
    mutable std::mutex mutex_;
    std::map<std::string, StoredToken, std::less<>> by_id_;
};

}  // namespace bulkhead::auth
