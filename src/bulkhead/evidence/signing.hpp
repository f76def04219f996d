// Ed25519 (RFC 8032). The same key and message always give the same signature, so signing is as pure as hashing.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"

struct evp_pkey_st;

namespace bulkhead::evidence {

struct PublicKey {
    std::array<std::uint8_t, 32> bytes{};
    friend auto operator<=>(const PublicKey&, const PublicKey&) = default;
};

std::string print(const PublicKey& key);  // base64 of its 32 bytes
Result<PublicKey> parse_public_key(std::string_view base64);

// A short name for a key in records and messages: 16 hex digits. It identifies among keys one trusts; it proves
// nothing.
std::string key_id(const PublicKey& key);

// A value: copies share the key, and none of them can change it.
class SigningKey {
public:
    static Result<SigningKey> from_seed(std::string_view seed);  // 32 random bytes; whoever has them is the signer

    std::string sign(std::string_view message) const;  // 64 bytes
    const PublicKey& public_key() const { return public_key_; }

private:
    SigningKey() = default;
    std::shared_ptr<evp_pkey_st> key_;
    PublicKey public_key_;
};

// False for anything that is not a valid signature of 64 bytes, never an error.
bool verify(const PublicKey& key, std::string_view message, std::string_view signature);

}  // namespace bulkhead::evidence
