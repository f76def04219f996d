#include "bulkhead/shell/issuer.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace bulkhead::shell {

namespace {

constexpr Duration node_skew{-300'000};  // nodes whose clocks are a little behind

}  // namespace

Result<Issuer> Issuer::make(auth::KeyPair ca, Duration lasts) {
    if (lasts < node_certificate_lasts_min || lasts > node_certificate_lasts_max)
        return fail(Code::invalid,
                    fmt::format("a node's certificate cannot last {}: at least {}, at most {}", print(lasts),
                                print(node_certificate_lasts_min), print(node_certificate_lasts_max)),
                    "a few weeks to a year are usual");
    return Issuer{std::move(ca), lasts};
}

Result<Issuer::Issued> Issuer::issue(std::string_view request, std::string_view node, Instant now) const {
    auto certificate = auth::sign_request(ca_, request, node, {now + node_skew, now + lasts_});
    if (!certificate) return std::unexpected(certificate.error());
    auto fingerprint = auth::fingerprint(*certificate);
    if (!fingerprint) return std::unexpected(fingerprint.error());
    return Issued{*std::move(certificate), *std::move(fingerprint)};
}

Duration Issuer::between_renewals() const { return std::min(Duration::hours(1), Duration{lasts_.ms / 12}); }

}  // namespace bulkhead::shell
