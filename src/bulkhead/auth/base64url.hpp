// The spelling of bytes in JOSE (RFC 7515): base64 for addresses, without padding. One text for each sequence of bytes:
// padding, blanks, the other alphabet, and bits left over that are not zero are refused, because what has two spellings
// has two hashes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bulkhead::auth {

std::string to_base64url(std::string_view bytes);
std::optional<std::string> from_base64url(std::string_view text);

}  // namespace bulkhead::auth
