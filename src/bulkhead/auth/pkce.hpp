// Proof Key for Code Exchange (RFC 7636): who starts a login keeps a secret and shows its hash; who ends it must show
// the secret. S256 alone: `plain` proves nothing to whoever saw the first message.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead::auth {

struct Pkce {
    std::string verifier;   // kept by whoever begins
    std::string challenge;  // S256 of it, sent first
};
inline constexpr std::string_view pkce_method = "S256";

Pkce new_pkce();
std::string pkce_challenge(std::string_view verifier);

// For `state` and `nonce`: 256 random bits, base64url.
std::string new_nonce();

}  // namespace bulkhead::auth
