#include "bulkhead/auth/token.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

namespace bulkhead::auth {
namespace {

constexpr std::size_t id_digits = 16;

// The same words whether a token was never made, was taken back, or is for something else: who guesses learns nothing.
std::unexpected<Error> not_known() {
    return fail(Code::denied, "this token is not known here", "ask an administrator of the fleet for a new one");
}

// A name, or the beginning of names and '*'.
bool is_node_pattern(std::string_view text) {
    if (!text.ends_with('*')) return is_valid(Format::name, text);
    text.remove_suffix(1);
    // Whatever follows the beginning is checked with the name: here a digit stands for it.
    return text.empty() || is_valid(Format::name, fmt::format("{}0", text));
}

bool admits(std::string_view pattern, std::string_view node) {
    if (!pattern.ends_with('*')) return pattern == node;
    return node.starts_with(pattern.substr(0, pattern.size() - 1));
}

MintedToken minted(StoredToken stored, Instant now) {
    MintedToken made{new_token(), std::move(stored)};
    const Hash hash = sha256(made.text);
    made.stored.hash = to_hex(bytes_of(hash));
    made.stored.id = made.stored.hash.substr(0, id_digits);
    made.stored.createdAt = now;
    return made;
}

Result<> check_expiry(std::optional<Instant> expires, Instant now) {
    if (!expires || *expires > now) return {};
    return fail(Code::invalid, fmt::format("a token that ends at {} is over before it begins", print(*expires)));
}

}  // namespace

std::string new_token() {
    std::array<std::uint8_t, 32> bytes{};
    // Without randomness there are no secrets, and nothing good can come of going on.
    invariant(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "the operating system gives random bytes");
    std::string text = std::string{token_prefix} + to_hex(bytes_of(bytes));
    OPENSSL_cleanse(bytes.data(), bytes.size());
    return text;
}

Result<Hash> hash_of_token(std::string_view token) {
    const std::string_view digits = token.starts_with(token_prefix) ? token.substr(token_prefix.size()) : "";
    if (digits.size() != 64 || digits.find_first_not_of("0123456789abcdef") != std::string_view::npos)
        return fail(Code::invalid, "this is not a token", "a token is bh1_ and 64 lower-case hex digits");
    return sha256(token);
}

bool same_secret(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Result<Caller> caller_of(const StoredToken& token) {
    const Grant grant{token.role, token.tenant};
    auto rights = Rights::of({&grant, 1});
    if (!rights) return std::unexpected(rights.error());
    const bool narrowed = !token.scope.empty();
    if (narrowed) {
        Permissions scope;
        for (const Permission permission : token.scope) scope.insert(permission);
        rights = rights->narrowed_to(scope);
    }
    return Caller{.rights = *std::move(rights),
                  .role = token.role,
                  .subject = token.subject,
                  .tenant = token.tenant,
                  .token_id = token.id,
                  .until = token.expiresAt,
                  .narrowed = narrowed};
}

Result<MintedToken> mint_api_token(const ApiTokenWish& wish, Instant now) {
    if (!is_valid(Format::line, wish.subject))
        return fail(Code::invalid, "a token needs a subject: who holds it", "name a person or a program");
    if (wish.subject.find('#') != std::string::npos)
        return fail(Code::invalid,
                    "a token's subject has no '#': that is how an identity provider's people are written",
                    "name a person or a program");
    if (is_tenants(wish.role) != !wish.tenant.empty())
        return fail(Code::invalid, is_tenants(wish.role)
                                       ? fmt::format("a {} belongs to a tenant, and none is given", word(wish.role))
                                       : fmt::format("a {} belongs to no tenant, and {} is given", word(wish.role),
                                                     wish.tenant.substr(0, 64)));
    if (!wish.tenant.empty() && !is_valid(Format::name, wish.tenant))
        return fail(Code::invalid, fmt::format("\"{}\" is not a tenant's name", wish.tenant.substr(0, 64)),
                    std::string{explanation(Format::name)});
    if (wish.role == Role::node)
        return fail(Code::invalid, "a node proves itself by its certificate, not by a token",
                    "mint an enrolment token");
    for (const Permission permission : wish.scope)
        if (!permissions_of(wish.role).contains(permission))
            return fail(Code::invalid, fmt::format("a {} may not {}", word(wish.role), word(permission)),
                        "a scope narrows what a role may do, and adds nothing");
    if (wish.role == Role::break_glass && (!wish.expires || *wish.expires > now + break_glass_at_most))
        return fail(Code::invalid, fmt::format("glass is broken for at most {}", print(break_glass_at_most)),
                    "ask for less; it can be asked for again");
    if ((wish.role == Role::break_glass) != is_valid(Format::line, wish.why))
        return fail(Code::invalid,
                    wish.role == Role::break_glass ? "a reason is needed, which the tenant will read"
                                                   : "only who enters another's tenant says why",
                    "");
    if (auto valid = check_expiry(wish.expires, now); !valid) return std::unexpected(valid.error());
    return minted({.purpose = TokenPurpose::api,
                   .name = wish.name,
                   .role = wish.role,
                   .subject = wish.subject,
                   .tenant = wish.tenant,
                   .scope = wish.scope,
                   .why = wish.why,
                   .expiresAt = wish.expires},
                  now);
}

Result<MintedToken> mint_enrolment_token(std::string_view node, Instant expires, Instant now) {
    if (!is_node_pattern(node))
        return fail(
            Code::invalid,
            fmt::format("\"{}\" is neither a node's name nor the beginning of names and '*'", node.substr(0, 64)),
            std::string{explanation(Format::name)});
    if (auto valid = check_expiry(expires, now); !valid) return std::unexpected(valid.error());
    return minted(
        {.purpose = TokenPurpose::enrolment, .role = Role::node, .node = std::string{node}, .expiresAt = expires}, now);
}

Result<> TokenBook::put(StoredToken token) {
    const auto hash = from_hex(token.hash);
    if (!hash || hash->size() != sizeof(Hash) || token.id != token.hash.substr(0, id_digits))
        return fail(Code::corrupt, fmt::format("token {} has no proper hash", token.id.substr(0, 64)));
    if (token.purpose == TokenPurpose::enrolment && !token.expiresAt)
        return fail(Code::corrupt, fmt::format("enrolment token {} never expires", token.id));
    const std::lock_guard lock{mutex_};
    std::string id = token.id;
    by_id_.insert_or_assign(std::move(id), std::move(token));
    return {};
}

bool TokenBook::erase(std::string_view id) {
    const std::lock_guard lock{mutex_};
    const auto found = by_id_.find(id);
    if (found == by_id_.end()) return false;
    by_id_.erase(found);
    return true;
}

std::vector<StoredToken> TokenBook::list() const {
    const std::lock_guard lock{mutex_};
    std::vector<StoredToken> all;
    all.reserve(by_id_.size());
    for (const auto& [id, token] : by_id_) all.push_back(token);
    return all;
}

Result<const StoredToken*> TokenBook::find(std::string_view token, TokenPurpose purpose, Instant now) const {
    const auto hash = hash_of_token(token);
    if (!hash) return std::unexpected(hash.error());
    const std::string digits = to_hex(bytes_of(*hash));
    const auto found = by_id_.find(digits.substr(0, id_digits));
    if (found == by_id_.end() || !same_secret(found->second.hash, digits) || found->second.purpose != purpose)
        return not_known();
    const StoredToken& stored = found->second;
    if (stored.revokedAt) return not_known();
    if (stored.expiresAt && *stored.expiresAt <= now)
        return fail(Code::denied, fmt::format("token {} ended at {}", stored.id, print(*stored.expiresAt)),
                    "ask an administrator of the fleet for a new one");
    return &stored;
}

Result<Caller> TokenBook::caller(std::string_view token, Instant now) const {
    const std::lock_guard lock{mutex_};
    const auto found = find(token, TokenPurpose::api, now);
    if (!found) return std::unexpected(found.error());
    return caller_of(**found);
}

bool TokenBook::in_force(std::string_view id, Instant now) const {
    const std::lock_guard lock{mutex_};
    const auto found = by_id_.find(id);
    return found != by_id_.end() && !found->second.revokedAt &&
           (!found->second.expiresAt || *found->second.expiresAt > now);
}

Result<StoredToken> TokenBook::redeem(std::string_view token, std::string_view node, Instant now) {
    const std::lock_guard lock{mutex_};
    const auto found = find(token, TokenPurpose::enrolment, now);
    if (!found) return std::unexpected(found.error());
    if ((*found)->usedAt)
        return fail(Code::denied, fmt::format("token {} was used at {}", (*found)->id, print(*(*found)->usedAt)),
                    "a token admits one node once: mint another, and find out who used this one");
    if (!is_valid(Format::name, node) || !admits((*found)->node, node))
        return fail(Code::denied,
                    fmt::format("token {} does not admit a node of the name \"{}\"", (*found)->id, node.substr(0, 64)));
    StoredToken& used = by_id_.find((*found)->id)->second;
    used.usedAt = now;
    used.usedBy = node;
    return used;
}

}  // namespace bulkhead::auth
