// The other end of ca.cpp: who a certificate names.
#include <fmt/format.h>

#include <array>

#include "bulkhead/auth/ca.hpp"
#include "bulkhead/auth/x509.hpp"
#include "bulkhead/base/hash.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead::auth {
namespace {

std::string fingerprint_of(const X509* certificate) {
    std::array<unsigned char, 32> digest{};
    unsigned size = 0;
    invariant(X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1 && size == digest.size(),
              "SHA-256 of a certificate has 32 bytes");
    return to_hex(bytes_of(digest));
}

Result<std::string> node_named_by(const X509* certificate) {
    const NodeNames names{
        static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr))};
    const Error foreign{Code::denied, "this certificate does not name a node of the fleet",
                        "enrol the node: its certificate comes from the control plane"};
    if (!names || sk_GENERAL_NAME_num(names.get()) != 1) return std::unexpected(foreign);
    int type = 0;
    const auto* text =
        static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), 0), &type));
    if (type != GEN_URI) return std::unexpected(foreign);
    const std::string_view uri{reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                               static_cast<std::size_t>(ASN1_STRING_length(text))};
    if (!uri.starts_with(node_uri)) return std::unexpected(foreign);
    std::string node{uri.substr(node_uri.size())};
    if (!is_valid(Format::name, node) || only_common_name(X509_get_subject_name(certificate)) != node)
        return std::unexpected(foreign);
    return node;
}

Result<PeerIdentity> identity_in(const X509* certificate) {
    auto node = node_named_by(certificate);
    if (!node) return std::unexpected(node.error());
    const auto from = instant_of(X509_get0_notBefore(certificate)), until = instant_of(X509_get0_notAfter(certificate));
    if (!from) return std::unexpected(from.error());
    if (!until) return std::unexpected(until.error());
    const ASN1_INTEGER* serial = X509_get0_serialNumber(certificate);
    return PeerIdentity{std::move(*node),
                        to_hex({reinterpret_cast<const char*>(ASN1_STRING_get0_data(serial)),
                                static_cast<std::size_t>(ASN1_STRING_length(serial))}),
                        fingerprint_of(certificate),
                        {*from, *until}};
}

}  // namespace

Result<PeerIdentity> read_peer(std::string_view certificate) {
    const auto read = read_certificate(certificate);
    if (!read) return std::unexpected(read.error());
    return identity_in(read->get());
}

Result<PeerIdentity> verify_peer(std::string_view ca_certificate, std::string_view certificate, Instant now) {
    const auto ca = read_certificate(ca_certificate), peer = read_certificate(certificate);
    if (!ca) return std::unexpected(ca.error());
    if (!peer) return std::unexpected(peer.error());
    const Owned<X509_STORE, X509_STORE_free> store{X509_STORE_new()};
    const Owned<X509_STORE_CTX, X509_STORE_CTX_free> context{X509_STORE_CTX_new()};
    if (!store || !context || X509_STORE_add_cert(store.get(), ca->get()) != 1 ||
        X509_STORE_CTX_init(context.get(), store.get(), peer->get(), nullptr) != 1)
        return fail(Code::exhausted, fmt::format("no certificate can be verified: {}", openssl_says()));
    X509_STORE_CTX_set_time(context.get(), 0, now.ms / 1000);
    X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_SSL_CLIENT);
    if (X509_verify_cert(context.get()) != 1)
        return fail(Code::denied,
                    fmt::format("this certificate is not good at {}: {}", print(now),
                                X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()))),
                    "enrol the node again");
    return identity_in(peer->get());
}

Result<> check_issued(std::string_view ca_certificate, std::string_view certificate) {
    const auto ca = read_certificate(ca_certificate), issued = read_certificate(certificate);
    if (!ca) return std::unexpected(ca.error());
    if (!issued) return std::unexpected(issued.error());
    if (X509_verify(issued->get(), X509_get0_pubkey(ca->get())) == 1) return {};
    openssl_says();
    return fail(Code::denied, "this certificate was not issued by this authority", "issue it anew");
}

Result<std::string> fingerprint(std::string_view certificate) {
    const auto read = read_certificate(certificate);
    if (!read) return std::unexpected(read.error());
    return fingerprint_of(read->get());
}

}  // namespace bulkhead::auth
