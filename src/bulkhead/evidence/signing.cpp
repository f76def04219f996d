#include "bulkhead/evidence/signing.hpp"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <algorithm>

#include "bulkhead/base/hash.hpp"

namespace bulkhead::evidence {

namespace {

constexpr std::size_t key_size = 32, signature_size = 64;

const std::uint8_t* raw(std::string_view bytes) { return reinterpret_cast<const std::uint8_t*>(bytes.data()); }

struct FreeContext {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

struct FreeKey {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

}  // namespace

std::string print(const PublicKey& key) { return to_base64(bytes_of(key.bytes)); }

Result<PublicKey> parse_public_key(std::string_view base64) {
    const auto bytes = from_base64(base64);
    const auto hash = bytes ? hash_from(*bytes) : std::nullopt;
    if (!hash)
        return fail(Code::invalid, "a public key is 32 bytes in base64, and this is not",
                    "44 characters, the last of them '='");
    return PublicKey{*hash};
}

std::string key_id(const PublicKey& key) { return to_hex(bytes_of(sha256(bytes_of(key.bytes)))).substr(0, 16); }

Result<SigningKey> SigningKey::from_seed(std::string_view seed) {
    if (seed.size() != key_size)
        return fail(Code::invalid, fmt::format("a signing key is made from 32 bytes, and here are {}", seed.size()),
                    "take 32 bytes from a source of randomness");
    SigningKey made;
    made.key_ = {EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, raw(seed), seed.size()), EVP_PKEY_free};
    std::size_t size = made.public_key_.bytes.size();
    const bool ok = made.key_ != nullptr &&
                    EVP_PKEY_get_raw_public_key(made.key_.get(), made.public_key_.bytes.data(), &size) == 1 &&
                    size == made.public_key_.bytes.size();
    if (!ok) return fail(Code::unavailable, "OpenSSL has no Ed25519 here", "use OpenSSL 3 with its default provider");
    return made;
}

std::string SigningKey::sign(std::string_view message) const {
    const Context context{EVP_MD_CTX_new()};
    std::array<std::uint8_t, signature_size> signature{};
    std::size_t size = signature.size();
    const bool ok = context != nullptr &&
                    EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
                    EVP_DigestSign(context.get(), signature.data(), &size, raw(message), message.size()) == 1;
    invariant(ok && size == signature.size(), "signing bytes in memory cannot fail");
    return std::string{bytes_of(signature)};
}

bool verify(const PublicKey& key, std::string_view message, std::string_view signature) {
    if (signature.size() != signature_size) return false;
    const std::unique_ptr<EVP_PKEY, FreeKey> pkey{
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.bytes.data(), key.bytes.size())};
    const Context context{EVP_MD_CTX_new()};
    return pkey != nullptr && context != nullptr &&
           EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, pkey.get()) == 1 &&
           EVP_DigestVerify(context.get(), raw(signature), signature.size(), raw(message), message.size()) == 1;
}

}  // namespace bulkhead::evidence
