// What an identity provider says of itself at a well-known place (OpenID Connect Discovery): where its keys are, and
// where one logs in. It is believed only when it calls itself, to the byte, what our settings call it.
#pragma once

#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"

namespace bulkhead::auth {

// "https://id.example/realms/fleet" becomes "https://id.example/realms/fleet/.well-known/openid-configuration".
std::string discovery_address(std::string_view issuer);

inline constexpr std::size_t discovery_bytes_max = 64 << 10;

struct Discovery {
    std::string issuer, keys;               // jwks_uri
    std::string device, token, revocation;  // empty: it has none
    bool pkce = false;                      // it takes S256
    bool answers_device_grant() const { return !device.empty() && !token.empty(); }
};
Result<Discovery> read_discovery(std::string_view json, std::string_view issuer);

}  // namespace bulkhead::auth
