// The keys with which an identity provider signs: its JWK set (RFC 7517), read strictly. A key that is not for
// signatures, that is weak, or whose kind and algorithm disagree is left out, and why is said for the log; a provider's
// encryption key never verifies anything.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/terms.hpp"

struct evp_pkey_st;  // OpenSSL's, which nobody outside this room includes

namespace bulkhead::auth {

// Asymmetric ones alone: with a shared secret, whoever can verify can forge.
enum class Algorithm : std::uint8_t { rs256, rs384, rs512, ps256, ps384, ps512, es256, es384, eddsa };
constexpr auto words(Algorithm) {
    return std::to_array<Words>({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"});
}

enum class KeyKind : std::uint8_t { rsa, p256, p384, ed25519 };
KeyKind kind_for(Algorithm algorithm);

struct VerifyKey {
    std::string id;  // kid
    KeyKind kind{};
    std::optional<Algorithm> only;  // the one algorithm it says it is for
    std::shared_ptr<evp_pkey_st> key;
    std::string fingerprint;  // SHA-256 of the public key, hex: whether two are the same
};

class KeySet {
public:
    // The key of that name for that algorithm; null: there is none.
    const VerifyKey* find(std::string_view id, Algorithm algorithm) const;
    bool knows(std::string_view id) const;

    std::vector<VerifyKey> keys;        // at most one of each name and kind
    std::vector<std::string> left_out;  // "key \"x\": it is for encryption"
};

inline constexpr std::size_t key_set_bytes_max = 256 << 10;
inline constexpr std::size_t key_name_bytes_max = 256;

// `invalid` when it is no set, or none of its keys can be used.
Result<KeySet> read_key_set(std::string_view json);

// Whether the bytes carry this key's signature, in the form JOSE gives it: for ECDSA two numbers of fixed length.
bool verify_signature(const VerifyKey& key, Algorithm algorithm, std::string_view signed_text,
                      std::string_view signature);

}  // namespace bulkhead::auth
