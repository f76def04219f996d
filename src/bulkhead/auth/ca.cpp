#include "bulkhead/auth/ca.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>

#include "bulkhead/auth/x509.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead::auth {
namespace {

struct Authority {
    PrivateKey key;
    Certificate certificate;
    Instant until;
};

Result<Authority> open_authority(const KeyPair& ca) {
    auto key = read_private_key(ca.key);
    if (!key) return std::unexpected(key.error());
    auto certificate = read_certificate(ca.certificate);
    if (!certificate) return std::unexpected(certificate.error());
    if (auto pair = check_pair(ca); !pair) return std::unexpected(pair.error());
    if (X509_check_ca(certificate->get()) != 1) return fail(Code::invalid, "this certificate is not a CA's");
    const auto until = instant_of(X509_get0_notAfter(certificate->get()));
    if (!until) return std::unexpected(until.error());
    return Authority{std::move(*key), std::move(*certificate), *until};
}

Result<> out_of_memory() {
    return fail(Code::exhausted, fmt::format("no certificate could be made: {}", openssl_says()));
}

Result<> set_name(X509_NAME* to, std::string_view common_name) {
    const auto* text = reinterpret_cast<const unsigned char*>(common_name.data());
    if (X509_NAME_add_entry_by_NID(to, NID_commonName, MBSTRING_UTF8, text, static_cast<int>(common_name.size()), -1,
                                   0) != 1)
        return fail(Code::invalid,
                    fmt::format("\"{}\" cannot be a certificate's name: {}", common_name, openssl_says()));
    return {};
}

Result<> set_validity(X509* to, Validity validity) {
    if (validity.until <= validity.from)
        return fail(Code::invalid, fmt::format("a certificate valid from {} until {} would never be valid",
                                               print(validity.from), print(validity.until)));
    if (ASN1_TIME_set(X509_getm_notBefore(to), validity.from.ms / 1000) == nullptr ||
        ASN1_TIME_set(X509_getm_notAfter(to), validity.until.ms / 1000) == nullptr)
        return fail(Code::invalid, "a certificate's dates lie before the year 10000");
    return {};
}

// 127 random bits: nobody can foresee the bytes of the next certificate, and no counter has to be kept.
Result<> set_serial(X509* to) {
    std::array<unsigned char, 16> bytes{};
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return out_of_memory();
    bytes[0] &= 0x7F;
    const Owned<BIGNUM, BN_free> number{BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr)};
    if (!number || BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(to)) == nullptr) return out_of_memory();
    return {};
}

// The value is ours, never a caller's: in this syntax a comma would begin another value.
Result<> extend(X509* certificate, X509* issuer, int extension, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    const Owned<X509_EXTENSION, X509_EXTENSION_free> made{X509V3_EXT_conf_nid(nullptr, &context, extension, value)};
    if (!made || X509_add_ext(certificate, made.get(), -1) != 1) return out_of_memory();
    return {};
}

Result<> extend_all(X509* certificate, X509* issuer, std::initializer_list<std::pair<int, const char*>> extensions) {
    for (const auto& [extension, value] : extensions)
        if (auto done = extend(certificate, issuer, extension, value); !done) return done;
    return {};
}

Result<> add_name(GENERAL_NAMES* to, int type, std::string_view bytes) {
    Owned<ASN1_STRING, ASN1_STRING_free> text{
        ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING)};
    Owned<GENERAL_NAME, GENERAL_NAME_free> name{GENERAL_NAME_new()};
    if (!text || !name || ASN1_STRING_set(text.get(), bytes.data(), static_cast<int>(bytes.size())) != 1)
        return out_of_memory();
    GENERAL_NAME_set0_value(name.get(), type, text.release());
    if (sk_GENERAL_NAME_push(to, name.get()) == 0) return out_of_memory();
    (void)name.release();
    return {};
}

Result<std::string> address_bytes(const std::string& text) {
    std::array<char, 16> bytes{};
    if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return std::string{bytes.data(), 4};
    if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return std::string{bytes.data(), 16};
    return fail(Code::invalid, fmt::format("\"{}\" is not an IP address", text), "write 10.0.0.1 or fd00::1");
}

Result<NodeNames> alternative_names(const ServerNames& names) {
    NodeNames all{GENERAL_NAMES_new()};
    for (const std::string& name : names.dns) {
        if (!is_valid(Format::dotted, name))
            return fail(Code::invalid, fmt::format("\"{}\" is not a host name", name),
                        std::string{explanation(Format::dotted)});
        if (auto done = add_name(all.get(), GEN_DNS, name); !done) return std::unexpected(done.error());
    }
    for (const std::string& address : names.addresses) {
        const auto bytes = address_bytes(address);
        if (!bytes) return std::unexpected(bytes.error());
        if (auto done = add_name(all.get(), GEN_IPADD, *bytes); !done) return std::unexpected(done.error());
    }
    return all;
}

// A certificate without extensions and signature, under the CA's name.
Result<Certificate> begin(const Authority& ca, std::string_view common_name, EVP_PKEY* key, Validity validity) {
    if (ca.until <= validity.from)
        return fail(Code::invalid, fmt::format("the CA's certificate ends at {}", print(ca.until)), "make a new CA");
    validity.until = std::min(validity.until, ca.until);  // nothing outlives its CA
    Certificate made{X509_new()};
    if (!made || X509_set_version(made.get(), X509_VERSION_3) != 1 || X509_set_pubkey(made.get(), key) != 1 ||
        X509_set_issuer_name(made.get(), X509_get_subject_name(ca.certificate.get())) != 1)
        return std::unexpected(out_of_memory().error());
    if (auto done = set_serial(made.get()); !done) return std::unexpected(done.error());
    if (auto done = set_validity(made.get(), validity); !done) return std::unexpected(done.error());
    if (auto done = set_name(X509_get_subject_name(made.get()), common_name); !done)
        return std::unexpected(done.error());
    return made;
}

Result<std::string> finish(const Authority& ca, X509* certificate, const char* purpose, const GENERAL_NAMES* names) {
    const auto done = extend_all(certificate, ca.certificate.get(),
                                 {{NID_basic_constraints, "critical,CA:FALSE"},
                                  {NID_key_usage, "critical,digitalSignature"},
                                  {NID_ext_key_usage, purpose},
                                  {NID_subject_key_identifier, "hash"},
                                  {NID_authority_key_identifier, "keyid:always"}});
    if (!done) return std::unexpected(done.error());
    // i2d takes its argument without const and leaves it as it is.
    if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, const_cast<GENERAL_NAMES*>(names), 0, 0) != 1 ||
        X509_sign(certificate, ca.key.get(), EVP_sha256()) == 0)
        return std::unexpected(out_of_memory().error());
    return print_pem(*certificate);
}

Result<> check_node_name(std::string_view node) {
    if (is_valid(Format::name, node)) return {};
    return fail(Code::invalid, fmt::format("\"{}\" cannot be a node's name", node.substr(0, 64)),
                std::string{explanation(Format::name)});
}

}  // namespace

Result<> check_pair(const KeyPair& pair) {
    const auto key = read_private_key(pair.key);
    if (!key) return std::unexpected(key.error());
    const auto certificate = read_certificate(pair.certificate);
    if (!certificate) return std::unexpected(certificate.error());
    if (X509_check_private_key(certificate->get(), key->get()) == 1) return {};
    (void)openssl_says();
    return fail(Code::invalid, "the key does not belong to the certificate");
}

Result<KeyPair> create_ca(std::string_view name, Validity validity) {
    auto key = new_private_key();
    if (!key) return std::unexpected(key.error());
    const Certificate made{X509_new()};
    if (!made || X509_set_version(made.get(), X509_VERSION_3) != 1 || X509_set_pubkey(made.get(), key->get()) != 1)
        return std::unexpected(out_of_memory().error());
    if (auto done = set_serial(made.get()); !done) return std::unexpected(done.error());
    if (auto done = set_validity(made.get(), validity); !done) return std::unexpected(done.error());
    if (auto done = set_name(X509_get_subject_name(made.get()), name); !done) return std::unexpected(done.error());
    if (X509_set_issuer_name(made.get(), X509_get_subject_name(made.get())) != 1)
        return std::unexpected(out_of_memory().error());
    const auto done = extend_all(made.get(), made.get(),
                                 {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                  {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                  {NID_subject_key_identifier, "hash"}});
    if (!done) return std::unexpected(done.error());
    if (X509_sign(made.get(), key->get(), EVP_sha256()) == 0) return std::unexpected(out_of_memory().error());
    auto key_text = print_pem(**key);
    if (!key_text) return std::unexpected(key_text.error());
    auto certificate_text = print_pem(*made);
    if (!certificate_text) return std::unexpected(certificate_text.error());
    return KeyPair{std::move(*key_text), std::move(*certificate_text)};
}

Result<KeyPair> issue_server(const KeyPair& ca, const ServerNames& names, Validity validity) {
    if (names.dns.empty() && names.addresses.empty())
        return fail(Code::invalid, "a server certificate without a name would be believed by nobody",
                    "give at least one host name or address");
    const auto authority = open_authority(ca);
    if (!authority) return std::unexpected(authority.error());
    const auto alternatives = alternative_names(names);
    if (!alternatives) return std::unexpected(alternatives.error());
    const auto key = new_private_key();
    if (!key) return std::unexpected(key.error());
    const auto made = begin(*authority, "bulkhead control plane", key->get(), validity);
    if (!made) return std::unexpected(made.error());
    auto certificate = finish(*authority, made->get(), "serverAuth", alternatives->get());
    if (!certificate) return std::unexpected(certificate.error());
    auto key_text = print_pem(**key);
    if (!key_text) return std::unexpected(key_text.error());
    return KeyPair{std::move(*key_text), std::move(*certificate)};
}

Result<std::string> make_request(std::string_view node, std::string_view key) {
    if (auto valid = check_node_name(node); !valid) return std::unexpected(valid.error());
    const auto signer = read_private_key(key);
    if (!signer) return std::unexpected(signer.error());
    const Request request{X509_REQ_new()};
    if (!request || X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) != 1 ||
        X509_REQ_set_pubkey(request.get(), signer->get()) != 1)
        return std::unexpected(out_of_memory().error());
    if (auto done = set_name(X509_REQ_get_subject_name(request.get()), node); !done)
        return std::unexpected(done.error());
    if (X509_REQ_sign(request.get(), signer->get(), EVP_sha256()) == 0) return std::unexpected(out_of_memory().error());
    return print_pem(*request);
}

Result<KeyAndRequest> make_request(std::string_view node) {
    const auto made = new_private_key();
    if (!made) return std::unexpected(made.error());
    auto key = print_pem(**made);
    if (!key) return std::unexpected(key.error());
    auto request = make_request(node, *key);
    if (!request) return std::unexpected(request.error());
    return KeyAndRequest{std::move(*key), std::move(*request)};
}

Result<std::string> sign_request(const KeyPair& ca, std::string_view request, std::string_view node,
                                 Validity validity) {
    if (auto valid = check_node_name(node); !valid) return std::unexpected(valid.error());
    const auto asked = read_request(request);
    if (!asked) return std::unexpected(asked.error());
    EVP_PKEY* key = X509_REQ_get0_pubkey(asked->get());
    if (!is_p256(key)) return fail(Code::invalid, "the request's key is not of the curve P-256");
    if (X509_REQ_verify(asked->get(), key) != 1) {
        (void)openssl_says();
        return fail(Code::denied, "the request is not signed by the key it asks to have certified",
                    "make a new request; this one was changed on its way");
    }
    const std::string named = only_common_name(X509_REQ_get_subject_name(asked->get()));
    if (named != node)
        return fail(Code::denied,
                    fmt::format("the request names \"{}\", but \"{}\" was admitted", named.substr(0, 64), node));
    const auto authority = open_authority(ca);
    if (!authority) return std::unexpected(authority.error());
    const auto made = begin(*authority, node, key, validity);
    if (!made) return std::unexpected(made.error());
    const NodeNames names{GENERAL_NAMES_new()};
    if (auto done = add_name(names.get(), GEN_URI, fmt::format("{}{}", node_uri, node)); !done)
        return std::unexpected(done.error());
    return finish(*authority, made->get(), "clientAuth", names.get());
}

}  // namespace bulkhead::auth
