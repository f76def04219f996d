// How a machine becomes a node of the fleet, once: it makes its keys, shows a one-time token over HTTPS to a server
// whose CA it was told beforehand, and keeps the certificate it is given. No private key leaves the machine.
#pragma once

#include <string>

#include "bulkhead/auth/ca.hpp"
#include "bulkhead/auth/enrolment.hpp"
#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/model/node.hpp"

namespace bulkhead::agent {

// Who to ask, and how to know that it is them: one of the two.
struct EnrolmentServer {
    std::string address;         // "https://control.example:7443", or without the scheme
    std::string ca;              // PEM of the fleet's CA
    std::string ca_fingerprint;  // or its SHA-256, hex: the server must show that CA in its chain
    Duration within{30'000};     // for the whole exchange
};

struct EnrolOptions {
    EnrolmentServer server;
    std::string name;  // of the node
    std::string token;
    GpuNodeSpec spec;
    std::string folder;  // where the identity is kept; made with mode 0700
};

// What the node is, as it lies in the folder: tls.key, tls.crt, ca.crt, evidence.key, node.json; all with mode 0600.
// After the first renewal tls.pem, which holds key and certificate, stands for the first two: one file, so that both
// change at once.
struct Identity {
    std::string name;
    std::string agents;  // host:port
    std::string ca, certificate, key;
    std::string evidence_seed;  // for evidence::SigningKey::from_seed
};

// `conflict` when the folder holds an identity already: replacing it by accident would orphan the node's journal.
// Keys that a failed attempt left behind are used again, so that trying twice does not change who the node is.
Result<Identity> enrol(const EnrolOptions& options);
// Checks that the parts belong together; whether the certificate has expired shows when it is used.
Result<Identity> load_identity(const std::string& folder);

// The same node from now on with another key and certificate. Durable when it returns; a crash on the way leaves the
// old ones or the new.
Result<> store_renewed(const std::string& folder, const auth::KeyPair& renewed);

// The one HTTPS exchange, without the folder.
Result<auth::EnrolmentAnswer> ask_for_enrolment(const EnrolmentServer& server, const auth::EnrolmentRequest& request);

}  // namespace bulkhead::agent
