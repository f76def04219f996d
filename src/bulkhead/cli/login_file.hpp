// What `bulkhead login` leaves behind: the tokens of one person for one server, in a file that nobody else may read. A
// token that is about to end is exchanged for the next one on the way out of here.
#pragma once

#include <optional>
#include <string>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead::cli {

struct Login {
    std::string server, ca;          // to which its tokens are shown, and who vouches for it
    std::string issuer, providerCa;  // who gave them
    std::string clientId, tokenEndpoint, revocationEndpoint;
    std::string accessToken, refreshToken;
    Instant expiresAt;  // of the access token, by this machine's clock

    static constexpr void describe(auto&& field) {
        field("server", &Login::server, "The server that is shown the token.", Rule{.required = true});
        field("ca", &Login::ca, "The certificate that vouches for it.");
        field("issuer", &Login::issuer, "The identity provider.", Rule{.required = true});
        field("providerCa", &Login::providerCa, "The certificates that vouch for that.");
        field("clientId", &Login::clientId, "The client that asked.", Rule{.required = true});
        field("tokenEndpoint", &Login::tokenEndpoint, "Where tokens are exchanged.", Rule{.required = true});
        field("revocationEndpoint", &Login::revocationEndpoint, "Where they are taken back.");
        field("accessToken", &Login::accessToken, "Shown to the server.", Rule{.required = true});
        field("refreshToken", &Login::refreshToken, "Exchanged for the next one.");
        field("expiresAt", &Login::expiresAt, "When the access token ends.", Rule{.required = true});
    }
    friend bool operator==(const Login&, const Login&) = default;
};

// $BULKHEAD_LOGIN, or `login` beside the context.
std::string login_path();
// Nothing when nobody is logged in. Refused: a file that others could read.
Result<std::optional<Login>> read_login();
Result<> write_login(const Login& login);
// Whether there was one.
Result<bool> remove_login();

// Its access token, exchanged first when less than half a minute is left of it.
Result<std::string> fresh_token(const Login& login);

}  // namespace bulkhead::cli
