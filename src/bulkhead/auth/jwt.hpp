// Access tokens that an identity provider signed (JWT, RFC 7519; RFC 8725 is what goes wrong with them). What is
// checked comes from our settings; of the token's own header only two words are believed, the algorithm's and the key's
// name, and only to pick from what we allow. Addresses and keys that a header offers are not even looked at.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/auth/identity.hpp"
#include "bulkhead/auth/jwks.hpp"
#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/codec/document.hpp"

namespace bulkhead::auth {

inline constexpr std::size_t token_bytes_max = 16 << 10;
inline constexpr Duration clock_skew_max{60'000};

std::vector<Algorithm> every_algorithm();

struct Expectations {
    std::string issuer;    // to the byte
    std::string audience;  // must be among the token's
    std::vector<Algorithm> algorithms = every_algorithm();
    Duration skew = clock_skew_max;
    // However long the provider lets a token live, it is not believed for longer after it was issued.
    Duration age_max = Duration::hours(2);
};
Result<> check(const Expectations& expected);

// Three parts with dots between them: what is worth a try as a token of an identity provider. Ours have no dots.
bool looks_like_jwt(std::string_view token);

// What a token says that has passed every check.
struct Claims {
    std::string issuer, subject;
    Instant issued;
    Instant expires;   // from then on it is refused here: skew and age_max are in it
    Document payload;  // all of it
};

// `denied`, with the reason for our own log; `not_found` when only its key is missing, and newer keys might help.
Result<Claims> verify_token(std::string_view token, const KeySet& keys, const Expectations& expected, Instant now);

// Who that is, in the shapes Keycloak gives the claims. `client`: whose roles are ours to read. token_id is the
// caller's.
Result<Identity> read_identity(const Claims& claims, std::string_view client);

// Fit for a line on a terminal: what moves the cursor, hides, or turns the direction of writing is spelled out.
std::string displayed(std::string_view text);

}  // namespace bulkhead::auth
