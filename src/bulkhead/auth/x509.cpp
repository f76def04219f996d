#include "bulkhead/auth/x509.hpp"

#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/obj_mac.h>
#include <openssl/pem.h>

#include <ctime>

namespace bulkhead::auth {
namespace {

constexpr std::size_t pem_bytes_max = 16 << 10;

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blank = " \t\r\n";
    const std::size_t first = text.find_first_not_of(blank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

// OpenSSL skips whatever stands before the first block and ignores what follows it; a key or request that was cut,
// joined or swapped would be half believed.
Result<Bio> one_block(std::string_view pem, std::string_view label) {
    if (pem.size() > pem_bytes_max)
        return fail(Code::invalid, fmt::format("PEM of {} bytes; at most {} are read", pem.size(), pem_bytes_max));
    const std::string begin = fmt::format("-----BEGIN {}-----", label), end = fmt::format("-----END {}-----", label);
    const std::string_view block = trimmed(pem);
    if (!block.starts_with(begin) || !block.ends_with(end) || block.find("-----BEGIN", 1) != std::string_view::npos)
        return fail(Code::invalid, fmt::format("this is not one PEM block of the kind {}", label),
                    fmt::format("it begins with {} and ends with {}, with nothing around it", begin, end));
    ERR_clear_error();
    return Bio{BIO_new_mem_buf(block.data(), static_cast<int>(block.size()))};
}

// Without it OpenSSL asks at the terminal for the password of an encrypted key.
int no_password(char*, int, int, void*) { return -1; }

template <class T, class Write>
Result<std::string> printed(T& object, Write&& write) {
    const Bio bio{BIO_new(BIO_s_mem())};
    if (!bio || write(bio.get(), &object) != 1)
        return fail(Code::exhausted, fmt::format("PEM could not be written: {}", openssl_says()));
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return std::string{data, static_cast<std::size_t>(size)};
}

}  // namespace

std::string openssl_says() {
    const unsigned long error = ERR_get_error();
    ERR_clear_error();
    if (error == 0) return "no further detail";
    char text[256];
    ERR_error_string_n(error, text, sizeof text);
    return text;
}

Result<Certificate> read_certificate(std::string_view pem) {
    const auto bio = one_block(pem, "CERTIFICATE");
    if (!bio) return std::unexpected(bio.error());
    Certificate certificate{PEM_read_bio_X509(bio->get(), nullptr, no_password, nullptr)};
    if (!certificate) return fail(Code::invalid, fmt::format("this certificate is damaged: {}", openssl_says()));
    return certificate;
}

Result<Request> read_request(std::string_view pem) {
    const auto bio = one_block(pem, "CERTIFICATE REQUEST");
    if (!bio) return std::unexpected(bio.error());
    Request request{PEM_read_bio_X509_REQ(bio->get(), nullptr, no_password, nullptr)};
    if (!request) return fail(Code::invalid, fmt::format("this certificate request is damaged: {}", openssl_says()));
    return request;
}

Result<PrivateKey> read_private_key(std::string_view pem) {
    const auto bio = one_block(pem, "PRIVATE KEY");
    if (!bio) return std::unexpected(bio.error());
    PrivateKey key{PEM_read_bio_PrivateKey(bio->get(), nullptr, no_password, nullptr)};
    if (!key) return fail(Code::invalid, fmt::format("this private key is damaged: {}", openssl_says()));
    if (!is_p256(key.get())) return fail(Code::invalid, "this private key is not of the curve P-256");
    return key;
}

Result<std::string> print_pem(X509& certificate) {
    return printed(certificate, [](BIO* to, X509* what) { return PEM_write_bio_X509(to, what); });
}

Result<std::string> print_pem(X509_REQ& request) {
    return printed(request, [](BIO* to, X509_REQ* what) { return PEM_write_bio_X509_REQ(to, what); });
}

Result<std::string> print_pem(EVP_PKEY& key) {
    return printed(key, [](BIO* to, EVP_PKEY* what) {
        return PEM_write_bio_PKCS8PrivateKey(to, what, nullptr, nullptr, 0, nullptr, nullptr);
    });
}

Result<PrivateKey> new_private_key() {
    PrivateKey key{EVP_EC_gen("P-256")};
    if (!key) return fail(Code::unavailable, fmt::format("no key could be made: {}", openssl_says()));
    return key;
}

bool is_p256(const EVP_PKEY* key) {
    char group[32]{};
    return key != nullptr && EVP_PKEY_is_a(key, "EC") == 1 &&
           EVP_PKEY_get_group_name(key, group, sizeof group, nullptr) == 1 &&
           std::string_view{group} == SN_X9_62_prime256v1;
}

std::string only_common_name(const X509_NAME* name) {
    if (X509_NAME_entry_count(name) != 1) return {};
    const X509_NAME_ENTRY* entry = X509_NAME_get_entry(name, 0);
    if (OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry)) != NID_commonName) return {};
    const ASN1_STRING* value = X509_NAME_ENTRY_get_data(entry);
    if (ASN1_STRING_type(value) != V_ASN1_UTF8STRING && ASN1_STRING_type(value) != V_ASN1_PRINTABLESTRING) return {};
    return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
            static_cast<std::size_t>(ASN1_STRING_length(value))};
}

Result<Instant> instant_of(const ASN1_TIME* time) {
    std::tm parts{};
    if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1)
        return fail(Code::invalid, "a certificate's date cannot be read");
    return Instant{static_cast<std::int64_t>(::timegm(&parts)) * 1000};
}

}  // namespace bulkhead::auth
