#include "bulkhead/auth/validity.hpp"

#include <openssl/asn1.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>

namespace bulkhead::auth {

Result<Instant> good_until(std::string_view certificate) {
    struct Free {
        void operator()(BIO* bio) const { BIO_free(bio); }
        void operator()(X509* read) const { X509_free(read); }
    };
    const std::unique_ptr<BIO, Free> bio{BIO_new_mem_buf(certificate.data(), static_cast<int>(certificate.size()))};
    const std::unique_ptr<X509, Free> read{bio ? PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr) : nullptr};
    std::tm broken_down{};
    if (!read || ASN1_TIME_to_tm(X509_get0_notAfter(read.get()), &broken_down) != 1)
        return fail(Code::invalid, "this is not a certificate in PEM", "");
    return Instant{static_cast<std::int64_t>(::timegm(&broken_down)) * 1000};
}

}  // namespace bulkhead::auth
