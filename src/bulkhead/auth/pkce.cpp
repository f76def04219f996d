#include "bulkhead/auth/pkce.hpp"

#include <openssl/rand.h>

#include <array>
#include <cstdint>

#include "bulkhead/auth/base64url.hpp"
#include "bulkhead/base/hash.hpp"
#include "bulkhead/base/result.hpp"

namespace bulkhead::auth {

std::string new_nonce() {
    std::array<std::uint8_t, 32> bytes{};
    invariant(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "the operating system gives random bytes");
    return to_base64url(bytes_of(bytes));
}

std::string pkce_challenge(std::string_view verifier) { return to_base64url(bytes_of(sha256(verifier))); }

Pkce new_pkce() {
    Pkce out{.verifier = new_nonce()};  // 43 characters, the least that RFC 7636 takes
    out.challenge = pkce_challenge(out.verifier);
    return out;
}

}  // namespace bulkhead::auth
