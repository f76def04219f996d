// SHA-256, and the two spellings in which hashes and keys travel: hex and base64.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace bulkhead {

using Hash = std::array<std::uint8_t, 32>;

Hash sha256(std::string_view bytes);
// Of the parts one after another, without joining them first.
Hash sha256(std::initializer_list<std::string_view> parts);
Hash hmac_sha256(std::string_view key, std::string_view message);

// The bytes of a hash, key or signature, to pass on as text.
inline std::string_view bytes_of(std::span<const std::uint8_t> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::optional<Hash> hash_from(std::string_view bytes);  // nothing unless it is 32 bytes

std::string to_hex(std::string_view bytes);  // lower case
std::optional<std::string> from_hex(std::string_view text);

// RFC 4648 with padding; reading refuses what writing would not have written.
std::string to_base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);

}  // namespace bulkhead
