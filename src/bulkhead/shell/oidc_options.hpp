// Which identity provider a server believes, and how long.
#pragma once

#include <cstddef>
#include <string>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"

namespace bulkhead::shell {

struct OidcOptions {
    std::string issuer;                   // empty: there is no provider, and its tokens are not taken
    std::string audience = "bulkhead";    // that a token must be for; also the client whose roles are read
    std::string client = "bulkhead-cli";  // that people log in with
    std::string scopes = "openid";        // that people ask for, with blanks between them
    std::string ca_file;                  // who vouches for the provider; empty: the machine's authorities
    Duration refresh{300'000};
    Duration keys_last{3'600'000};
    Duration cool_down{30'000};  // between fetches that a token asked for
    Duration retry{10'000};      // after a fetch that failed
    Duration fetch_within{10'000};
    std::size_t remembered_max = 4096;  // tokens that were verified
};
Result<> check(const OidcOptions& options);

}  // namespace bulkhead::shell
