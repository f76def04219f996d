// The fleet's own certificate authority: X.509 over ECDSA P-256. A node's certificate says one thing, which node it is,
// in a URI that no web certificate carries; what the node may do is decided elsewhere. Everything goes in and out as
// PEM text; where it is kept is the caller's business.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"

namespace bulkhead::auth {

struct Validity {
    Instant from, until;
    friend bool operator==(const Validity&, const Validity&) = default;
};

struct KeyPair {
    std::string key;          // PEM, PKCS#8, not encrypted: keep it in a secret_file
    std::string certificate;  // PEM
};

// That the key is the certificate's.
Result<> check_pair(const KeyPair& pair);

Result<KeyPair> create_ca(std::string_view name, Validity validity);

// What clients may call the server by.
struct ServerNames {
    std::vector<std::string> dns;        // "control.example", "localhost"
    std::vector<std::string> addresses;  // "10.0.0.1", "::1"
};
Result<KeyPair> issue_server(const KeyPair& ca, const ServerNames& names, Validity validity);

// On the node: a new key, and the request to certify it. The key never leaves the node.
struct KeyAndRequest {
    std::string key;      // PEM, PKCS#8
    std::string request;  // PEM, PKCS#10
};
Result<KeyAndRequest> make_request(std::string_view node);
// The same for a key that exists: for renewal.
Result<std::string> make_request(std::string_view node, std::string_view key);

// Certifies that whoever holds the request's key is that node. The request must be signed by its own key and name
// exactly that node; whatever else it asks for is ignored.
Result<std::string> sign_request(const KeyPair& ca, std::string_view request, std::string_view node, Validity validity);

// Who a certificate names. It must have been verified against the fleet's CA (by TLS, or by verify_peer).
struct PeerIdentity {
    std::string node;
    std::string serial;       // hex
    std::string fingerprint;  // SHA-256 of the certificate, hex: what revocation looks up
    Validity validity;
    friend bool operator==(const PeerIdentity&, const PeerIdentity&) = default;
};
Result<PeerIdentity> read_peer(std::string_view certificate);
Result<PeerIdentity> verify_peer(std::string_view ca_certificate, std::string_view certificate, Instant now);

// That the CA's key has signed the certificate, whoever and whenever it is for.
Result<> check_issued(std::string_view ca_certificate, std::string_view certificate);

// SHA-256 of a certificate, hex: of the CA's, it is what a person can copy beside an enrolment token.
Result<std::string> fingerprint(std::string_view certificate);

}  // namespace bulkhead::auth
