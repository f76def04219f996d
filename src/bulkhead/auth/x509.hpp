// OpenSSL's objects with owners, and PEM read strictly: one block, of the kind that is due, and nothing around it.
#pragma once

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"

namespace bulkhead::auth {

template <auto release>
struct ReleasedBy {
    template <class T>
    void operator()(T* object) const {
        release(object);
    }
};
template <class T, auto release>
using Owned = std::unique_ptr<T, ReleasedBy<release>>;

using Bio = Owned<BIO, BIO_free_all>;
using PrivateKey = Owned<EVP_PKEY, EVP_PKEY_free>;
using Certificate = Owned<X509, X509_free>;
using Request = Owned<X509_REQ, X509_REQ_free>;
using NodeNames = Owned<GENERAL_NAMES, GENERAL_NAMES_free>;

// What OpenSSL has to say of its last failure; and its queue is empty again.
std::string openssl_says();

Result<Certificate> read_certificate(std::string_view pem);
Result<Request> read_request(std::string_view pem);
Result<PrivateKey> read_private_key(std::string_view pem);  // unencrypted PKCS#8, P-256

Result<std::string> print_pem(X509& certificate);
Result<std::string> print_pem(X509_REQ& request);
Result<std::string> print_pem(EVP_PKEY& key);

Result<PrivateKey> new_private_key();  // P-256
bool is_p256(const EVP_PKEY* key);

// What a node's certificate calls it, before its name.
inline constexpr std::string_view node_uri = "bulkhead:node:";

// The one common name of a subject; nothing when it says anything else, or that twice.
std::string only_common_name(const X509_NAME* name);
Result<Instant> instant_of(const ASN1_TIME* time);

}  // namespace bulkhead::auth
