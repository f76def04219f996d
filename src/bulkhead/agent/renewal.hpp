// Keeps the node's TLS certificate from running out: when a third of its life is left, a new key is made and a
// certificate for it asked for, in the session that the old one opened. Whoever owns the link calls:
//
//     on Welcome, and now and then: if (auto request = renewal.request(now)) link->renew(*request)
//     on Renewed:                   renewal.accept(certificate, now); link->set_identity(...); link->reconnect(...)
//
// Until accept() has returned nothing has changed, on disk or here; a request that is lost or refused is made anew,
// with another key, an hour later.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bulkhead/agent/enrol.hpp"

namespace bulkhead::agent {

class Renewal {
public:
    // The folder is the identity's.
    static Result<Renewal> of(Identity identity, std::string folder);

    // From when on a new certificate is wanted.
    Instant due() const;
    Instant ends() const { return validity_.until; }  // the certificate in use
    // The request to send now (PKCS#10, PEM); nothing: it is too early, or one was made not long ago.
    Result<std::optional<std::string>> request(Instant now);
    // What came for the last request, checked, and durable when this returns: the identity from now on. On an error the
    // old one stands.
    Result<auth::KeyPair> accept(std::string_view certificate, Instant now);

private:
    Renewal(Identity identity, std::string folder, auth::Validity validity)
        : identity_{std::move(identity)}, folder_{std::move(folder)}, validity_{validity} {}
    Duration life() const { return validity_.until - validity_.from; }

    Identity identity_;
    std::string folder_;
    auth::Validity validity_;       // of the certificate in use
    std::string key_;               // of the last request; empty: none waits
    std::optional<Instant> asked_;  // last
};

}  // namespace bulkhead::agent
