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
#include "bulkhead/model/role.hpp"

namespace bulkhead::auth {

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
    std::string name;               // of an api token: what its makers call it
    Role role{};                    // of an api token
    std::string subject;            // of an api token: who is calling
    std::string tenant;             // of a tenant's token
    std::vector<Permission> scope;  // of an api token: no more of its role's permissions than these; empty: all of them
    std::string why;                // of a token that breaks glass
    std::string node;               // of an enrolment token: the node's name, or a beginning of names followed by '*'
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
        field("name", &StoredToken::name, "What it is called.");
        field("role", &StoredToken::role, "What its holder may ask.");
        field("subject", &StoredToken::subject, "Who its holder is.");
        field("tenant", &StoredToken::tenant, "The tenant it belongs to.");
        field("scope", &StoredToken::scope, "The permissions of its role that it carries; none: all.");
        field("why", &StoredToken::why, "Why somebody enters a tenant that is not theirs.");
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
    std::string tenant = {};  // required for a tenant's roles, refused for the others
    std::optional<Instant> expires = {};
    std::string name = {};
    std::vector<Permission> scope = {};  // must be the role's own
    std::string why = {};                // required to break glass, which also needs an end
};
Result<MintedToken> mint_api_token(const ApiTokenWish& wish, Instant now);
// `node`: a name, or a beginning of names followed by '*'.
Result<MintedToken> mint_enrolment_token(std::string_view node, Instant expires, Instant now);

// Who a request comes from, and what they may do.
struct Caller {
    Rights rights;
    Role role{};           // the first of theirs, for words
    std::string subject;   // as the log names them
    std::string tenant;    // of a caller with one tenant's role
    std::string token_id;  // empty: a stranger
    std::optional<Instant> until;
    // For the log. What a tenant calls its own people says whose they are.
    std::string actor() const {
        return is_tenants(role) && !tenant.empty() && subject.find('#') == std::string::npos
                   ? "tenant:" + tenant + '/' + subject
                   : subject;
    }
    bool narrowed = false;  // its token carries less than its role
    bool breaks_glass() const { return role == Role::break_glass; }
    friend bool operator==(const Caller&, const Caller&) = default;
};

Result<Caller> caller_of(const StoredToken& token);

inline constexpr Duration break_glass_at_most = Duration::hours(8);

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
