// Who an identity provider says is calling: what a verified token says of its holder, and nothing of what that allows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"

namespace bulkhead::auth {

struct Identity {
    std::string issuer, subject;           // together, and only together, the person
    std::string name;                      // to be shown: people change it, so it decides nothing
    std::string client;                    // that asked for the token: azp
    std::vector<std::string> groups;       // as the claim writes them
    std::vector<std::string> roles;        // of our own client: resource_access.<client>.roles
    std::vector<std::string> realm_roles;  // of the realm; other clients' roles are nobody's business here
    std::optional<std::string> acr;        // how well the person was authenticated
    Instant issued, expires;
    std::string token_id;  // names the token in logs without giving it away
    friend bool operator==(const Identity&, const Identity&) = default;
};

}  // namespace bulkhead::auth
