// Certificates of nodes, as enrolment and renewal give them: for how long, and under which CA.
#pragma once

#include <string>
#include <string_view>

#include "bulkhead/auth/ca.hpp"

namespace bulkhead::shell {

// Shorter ones would end before a node has had time to ask for the next; longer ones outlive most CAs.
inline constexpr Duration node_certificate_lasts_min{60'000}, node_certificate_lasts_max = Duration::days(3650);

class Issuer {
public:
    // `invalid` outside of these bounds.
    static Result<Issuer> make(auth::KeyPair ca, Duration lasts);

    struct Issued {
        std::string certificate;  // PEM
        std::string fingerprint;
    };
    // What the request must be: auth::sign_request.
    Result<Issued> issue(std::string_view request, std::string_view node, Instant now) const;

    const std::string& ca() const { return ca_.certificate; }  // PEM
    // How long a node waits between two requests for renewal: an hour, or less where a third of the certificate's life
    // has no room for several attempts.
    Duration between_renewals() const;

private:
    Issuer(auth::KeyPair ca, Duration lasts) : ca_{std::move(ca)}, lasts_{lasts} {}
    auth::KeyPair ca_;
    Duration lasts_;
};

}  // namespace bulkhead::shell
