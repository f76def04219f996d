// A provider's signing side, for tests: keys of every kind, their JWKs, and tokens with whatever header, payload and
// signature a test wants. Written with OpenSSL alone, so that it shares nothing with what it tries.
#pragma once

#include <fmt/core.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::auth {

inline std::string url_text(std::string_view bytes) {
    std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
    const int size =
        EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                        reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
    text.resize(static_cast<std::size_t>(size));
    while (text.ends_with('=')) text.pop_back();
    for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
    return text;
}

class SigningKey {
public:
    enum class Kind { rsa2048, rsa1024, rsa_e3, p256, p384, ed25519 };

    explicit SigningKey(Kind kind, std::string id = "key-1") : kind_{kind}, id_{std::move(id)} {
        switch (kind) {
            case Kind::rsa2048:
                key_.reset(EVP_RSA_gen(2048), EVP_PKEY_free);
                break;
            case Kind::rsa1024:
                key_.reset(EVP_RSA_gen(1024), EVP_PKEY_free);
                break;
            case Kind::rsa_e3: {
                EVP_PKEY_CTX* context = EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr);
                BIGNUM* three = BN_new();
                BN_set_word(three, 3);
                EVP_PKEY* made = nullptr;
                EVP_PKEY_keygen_init(context);
                EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2048);
                EVP_PKEY_CTX_set1_rsa_keygen_pubexp(context, three);
                EVP_PKEY_generate(context, &made);
                key_.reset(made, EVP_PKEY_free);
                BN_free(three);
                EVP_PKEY_CTX_free(context);
                break;
            }
            case Kind::p256:
                key_.reset(EVP_EC_gen("P-256"), EVP_PKEY_free);
                break;
            case Kind::p384:
                key_.reset(EVP_EC_gen("P-384"), EVP_PKEY_free);
                break;
            case Kind::ed25519:
                key_.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), EVP_PKEY_free);
                break;
        }
        invariant(key_ != nullptr, "a key can be made");
    }

    const std::string& id() const { return id_; }
    EVP_PKEY* key() const { return key_.get(); }
    SigningKey named(std::string id) const {
        SigningKey copy = *this;
        copy.id_ = std::move(id);
        return copy;
    }

    std::string number(const char* name) const {
        BIGNUM* value = nullptr;
        invariant(EVP_PKEY_get_bn_param(key_.get(), name, &value) == 1, "the key has this number");
        std::string bytes(static_cast<std::size_t>(BN_num_bytes(value)), '\0');
        BN_bn2bin(value, reinterpret_cast<unsigned char*>(bytes.data()));
        BN_free(value);
        return bytes;
    }
    std::string coordinate(const char* name) const {
        const std::size_t size = kind_ == Kind::p256 ? 32 : 48;
        std::string bytes = number(name);
        return std::string(size - bytes.size(), '\0') + bytes;
    }
    std::string material() const {
        switch (kind_) {
            case Kind::p256:
            case Kind::p384:
                return fmt::format(
                    R"("kty":"EC","crv":"{}","x":"{}","y":"{}")", kind_ == Kind::p256 ? "P-256" : "P-384",
                    url_text(coordinate(OSSL_PKEY_PARAM_EC_PUB_X)), url_text(coordinate(OSSL_PKEY_PARAM_EC_PUB_Y)));
            case Kind::ed25519: {
                std::string raw(32, '\0');
                std::size_t size = raw.size();
                EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(raw.data()), &size);
                return fmt::format(R"("kty":"OKP","crv":"Ed25519","x":"{}")", url_text(raw));
            }
            default:
                return fmt::format(R"("kty":"RSA","n":"{}","e":"{}")", url_text(number(OSSL_PKEY_PARAM_RSA_N)),
                                   url_text(number(OSSL_PKEY_PARAM_RSA_E)));
        }
    }
    std::string jwk(std::string_view more = R"("use":"sig")") const {
        return fmt::format(R"({{"kid":"{}",{}{}{}}})", id_, material(), more.empty() ? "" : ",", more);
    }

    // Of the text, as JOSE writes it; `der`: as OpenSSL does.
    std::string sign(std::string_view algorithm, std::string_view text, bool der = false) const {
        const EVP_MD* digest = algorithm.ends_with("384")   ? EVP_sha384()
                               : algorithm.ends_with("512") ? EVP_sha512()
                               : algorithm == "EdDSA"       ? nullptr
                                                            : EVP_sha256();
        EVP_MD_CTX* context = EVP_MD_CTX_new();
        EVP_PKEY_CTX* how = nullptr;
        EVP_DigestSignInit(context, &how, digest, nullptr, key_.get());
        if (algorithm.starts_with("PS")) {
            EVP_PKEY_CTX_set_rsa_padding(how, RSA_PKCS1_PSS_PADDING);
            EVP_PKEY_CTX_set_rsa_pss_saltlen(how, RSA_PSS_SALTLEN_DIGEST);
        }
        const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
        std::size_t size = 0;
        EVP_DigestSign(context, nullptr, &size, bytes, text.size());
        std::string out(size, '\0');
        EVP_DigestSign(context, reinterpret_cast<unsigned char*>(out.data()), &size, bytes, text.size());
        EVP_MD_CTX_free(context);
        out.resize(size);
        if ((kind_ != Kind::p256 && kind_ != Kind::p384) || der) return out;
        const auto* at = reinterpret_cast<const unsigned char*>(out.data());
        ECDSA_SIG* both = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(out.size()));
        const int half = kind_ == Kind::p256 ? 32 : 48;
        std::string plain(static_cast<std::size_t>(2 * half), '\0');
        BN_bn2binpad(ECDSA_SIG_get0_r(both), reinterpret_cast<unsigned char*>(plain.data()), half);
        BN_bn2binpad(ECDSA_SIG_get0_s(both), reinterpret_cast<unsigned char*>(plain.data()) + half, half);
        ECDSA_SIG_free(both);
        return plain;
    }

    std::string token_of(std::string_view algorithm, std::string_view header, std::string_view payload) const {
        const std::string text = url_text(header) + '.' + url_text(payload);
        return text + '.' + url_text(sign(algorithm, text));
    }
    // With the header that goes with this key.
    std::string token(std::string_view algorithm, std::string_view payload) const {
        return token_of(algorithm, fmt::format(R"({{"alg":"{}","typ":"JWT","kid":"{}"}})", algorithm, id_), payload);
    }

    std::string public_pem() const {
        BIO* bio = BIO_new(BIO_s_mem());
        PEM_write_bio_PUBKEY(bio, key_.get());
        return drained(bio);
    }
    std::string public_der() const {
        BIO* bio = BIO_new(BIO_s_mem());
        i2d_PUBKEY_bio(bio, key_.get());
        return drained(bio);
    }

private:
    static std::string drained(BIO* bio) {
        char* data = nullptr;
        const long size = BIO_get_mem_data(bio, &data);
        std::string out{data, static_cast<std::size_t>(size)};
        BIO_free(bio);
        return out;
    }
    Kind kind_;
    std::string id_;
    std::shared_ptr<EVP_PKEY> key_;
};

inline std::string key_set_of(const std::vector<std::string>& jwks) {
    std::string out = R"({"keys":[)";
    for (const std::string& jwk : jwks) (out += out.ends_with('[') ? "" : ",") += jwk;
    return out + "]}";
}

// Made once: a key of RSA takes its time.
inline const SigningKey& rsa_signer() {
    static const SigningKey key{SigningKey::Kind::rsa2048, "rsa-1"};
    return key;
}
inline const SigningKey& ec_signer() {
    static const SigningKey key{SigningKey::Kind::p256, "ec-1"};
    return key;
}

}  // namespace bulkhead::auth
