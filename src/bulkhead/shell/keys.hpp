// What the first start makes and every later one finds: the certificate authority, the server's certificate, the log's
// key and its lab's, the bootstrap token. Files of mode 0600 in one directory; none of them is in the store or its
// backups.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/auth/ca.hpp"
#include "bulkhead/auth/token.hpp"
#include "bulkhead/base/quantity.hpp"
#include "bulkhead/evidence/signing.hpp"

namespace bulkhead::shell {

struct ServerKeys {
    auth::KeyPair ca;
    auth::KeyPair server;  // its certificate followed by the CA's
    evidence::SigningKey log;
    std::string log_origin;
    evidence::SigningKey lab;  // of certificates that are not about hardware (decision 0039)
    // Of the tokens in files: admin.token, security.token, auditor.token. Hand them to three people.
    std::vector<auth::StoredToken> bootstrap;
    std::string token_file, ca_file;  // the first one's
};

struct ServerKeysWish {
    std::string directory;  // made with mode 0700 when it is missing
    auth::ServerNames names;
    std::string log_origin;  // for a new log; empty: a random name
    Instant now;
};
Result<ServerKeys> open_keys(const ServerKeysWish& wish);

// Made with mode 0700, or there already.
Result<> make_directory(const std::string& path);

}  // namespace bulkhead::shell
