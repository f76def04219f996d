#include "bulkhead/auth/jwks.hpp"

#include <fmt/core.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include <algorithm>

#include "bulkhead/auth/base64url.hpp"
#include "bulkhead/auth/jose_json.hpp"
#include "bulkhead/auth/x509.hpp"
#include "bulkhead/base/hash.hpp"
#include "bulkhead/codec/diagnostic.hpp"

namespace bulkhead::auth {

namespace {

using PublicKey = PrivateKey;  // to OpenSSL it is one type
using Number = Owned<BIGNUM, BN_free>;
using ParameterBuilder = Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>;
using Parameters = Owned<OSSL_PARAM, OSSL_PARAM_free>;
using KeyContext = Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;
using DigestContext = Owned<EVP_MD_CTX, EVP_MD_CTX_free>;
using EcSignature = Owned<ECDSA_SIG, ECDSA_SIG_free>;

constexpr std::size_t keys_max = 64;
constexpr int rsa_bits_min = 2048, rsa_bits_max = 8192;  // the most: verifying must stay cheap
constexpr std::uint64_t rsa_exponent_min = 65537, rsa_exponent_max = 0xffff'ffff;

const unsigned char* raw_bytes(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

std::unexpected<Error> unusable(std::string why) { return fail(Code::invalid, std::move(why)); }

// Bytes in base64url, of a member that must be there.
Result<std::string> bytes_member(const Node& jwk, std::string_view name) {
    const auto text = required_text(jwk, name);
    if (!text) return std::unexpected(text.error());
    auto bytes = from_base64url(*text);
    if (!bytes || bytes->empty()) return unusable(fmt::format("\"{}\" is not base64url", name));
    return *std::move(bytes);
}

// A positive number, without zeros in front.
Result<Number> number_member(const Node& jwk, std::string_view name) {
    const auto bytes = bytes_member(jwk, name);
    if (!bytes) return std::unexpected(bytes.error());
    if (bytes->front() == '\0') return unusable(fmt::format("\"{}\" begins with zeros", name));
    if (bytes->size() > rsa_bits_max / 8) return unusable(fmt::format("\"{}\" is too long", name));
    return Number{BN_bin2bn(raw_bytes(*bytes), static_cast<int>(bytes->size()), nullptr)};
}

Result<PublicKey> key_from(const char* type, OSSL_PARAM* parameters) {
    const KeyContext context{EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr)};
    EVP_PKEY* made = nullptr;
    if (!context || parameters == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
        EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_PUBLIC_KEY, parameters) != 1)
        return unusable(fmt::format("it is no public key: {}", openssl_says()));
    return PublicKey{made};
}

Result<PublicKey> rsa_key(const Node& jwk) {
    const auto modulus = number_member(jwk, "n");
    if (!modulus) return std::unexpected(modulus.error());
    const auto exponent = number_member(jwk, "e");
    if (!exponent) return std::unexpected(exponent.error());
    const int bits = BN_num_bits(modulus->get());
    if (bits < rsa_bits_min || bits > rsa_bits_max)
        return unusable(fmt::format("RSA of {} bits; {} to {} are taken", bits, rsa_bits_min, rsa_bits_max));
    const BN_ULONG e = BN_num_bits(exponent->get()) <= 32 ? BN_get_word(exponent->get()) : 0;
    if (e < rsa_exponent_min || e > rsa_exponent_max || BN_is_odd(exponent->get()) == 0 ||
        BN_is_odd(modulus->get()) == 0)
        return unusable("RSA with a public exponent that is not odd and at least 65537, or an even modulus");
    const ParameterBuilder builder{OSSL_PARAM_BLD_new()};
    if (!builder || OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus->get()) != 1 ||
        OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent->get()) != 1)
        return unusable(openssl_says());
    const Parameters parameters{OSSL_PARAM_BLD_to_param(builder.get())};
    return key_from("RSA", parameters.get());
}

struct Curve {
    std::string_view crv;
    KeyKind kind{};
    std::size_t bytes = 0;
    const char* group = nullptr;
};
constexpr Curve curves[] = {{"P-256", KeyKind::p256, 32, "P-256"}, {"P-384", KeyKind::p384, 48, "P-384"}};

Result<PublicKey> ec_key(const Node& jwk, const Curve& curve) {
    const auto x = bytes_member(jwk, "x");
    if (!x) return std::unexpected(x.error());
    const auto y = bytes_member(jwk, "y");
    if (!y) return std::unexpected(y.error());
    if (x->size() != curve.bytes || y->size() != curve.bytes)
        return unusable(fmt::format("a point of {} has two numbers of {} bytes", curve.crv, curve.bytes));
    const std::string point = '\4' + *x + *y;
    const ParameterBuilder builder{OSSL_PARAM_BLD_new()};
    if (!builder || OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, curve.group, 0) != 1 ||
        OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) != 1)
        return unusable(openssl_says());
    const Parameters parameters{OSSL_PARAM_BLD_to_param(builder.get())};
    auto key = key_from("EC", parameters.get());
    if (!key) return key;
    const KeyContext checking{EVP_PKEY_CTX_new(key->get(), nullptr)};
    if (!checking || EVP_PKEY_public_check(checking.get()) != 1)
        return unusable(fmt::format("it is no point of {}", curve.crv));
    return key;
}

Result<PublicKey> ed25519_key(const Node& jwk) {
    const auto x = bytes_member(jwk, "x");
    if (!x) return std::unexpected(x.error());
    PublicKey key{x->size() == 32 ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw_bytes(*x), x->size())
                                  : nullptr};
    if (!key) return unusable("it is no public key of Ed25519");
    return key;
}

Result<> check_purpose(const Node& jwk) {
    // A private half that everybody has read signs for everybody.
    for (const char* const secret : {"d", "k", "p", "q"})
        if (jwk.find(secret) != nullptr) return unusable("its secret half is published with it");
    const auto use = text_member(jwk, "use");
    if (!use) return std::unexpected(use.error());
    if (*use != "sig") return unusable("it is not for signatures (use)");
    const auto operations = texts_member(jwk, "key_ops");
    if (!operations) return std::unexpected(operations.error());
    if (*operations && std::ranges::find(**operations, "verify") == (*operations)->end())
        return unusable("it is not for verifying (key_ops)");
    return {};
}

Result<PublicKey> public_key(const Node& jwk, KeyKind& kind) {
    const auto type = required_text(jwk, "kty");
    if (!type) return std::unexpected(type.error());
    if (*type == "RSA") {
        kind = KeyKind::rsa;
        return rsa_key(jwk);
    }
    if (*type != "EC" && *type != "OKP")
        return unusable(fmt::format("keys of type \"{}\" are not taken", shortened(*type)));
    const auto crv = required_text(jwk, "crv");
    if (!crv) return std::unexpected(crv.error());
    if (*type == "OKP" && *crv == "Ed25519") {
        kind = KeyKind::ed25519;
        return ed25519_key(jwk);
    }
    const auto curve = std::ranges::find(curves, *crv, &Curve::crv);
    if (*type != "EC" || curve == std::end(curves))
        return unusable(fmt::format("the curve \"{}\" is not taken", shortened(*crv)));
    kind = curve->kind;
    return ec_key(jwk, *curve);
}

Result<VerifyKey> read_key(const Node& jwk, std::string id) {
    if (auto meant = check_purpose(jwk); !meant) return std::unexpected(meant.error());
    VerifyKey out{.id = std::move(id)};
    if (out.id.size() > key_name_bytes_max) return unusable("its name is too long");
    auto key = public_key(jwk, out.kind);
    if (!key) return std::unexpected(key.error());
    const auto algorithm = text_member(jwk, "alg");
    if (!algorithm) return std::unexpected(algorithm.error());
    if (*algorithm) {
        out.only = from_word<Algorithm>(**algorithm);
        if (!out.only || kind_for(*out.only) != out.kind)
            return unusable(
                fmt::format("it is for \"{}\", which is not taken or not of its type", shortened(**algorithm)));
    }
    unsigned char* der = nullptr;
    const int size = i2d_PUBKEY(key->get(), &der);
    if (size <= 0) return unusable(openssl_says());
    out.fingerprint = to_hex(bytes_of(sha256({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)})));
    OPENSSL_free(der);
    out.key = std::shared_ptr<evp_pkey_st>{key->release(), EVP_PKEY_free};
    return out;
}

const EVP_MD* digest_of(Algorithm algorithm) {
    switch (algorithm) {
        case Algorithm::rs256:
        case Algorithm::ps256:
        case Algorithm::es256:
            return EVP_sha256();
        case Algorithm::rs384:
        case Algorithm::ps384:
        case Algorithm::es384:
            return EVP_sha384();
        case Algorithm::rs512:
        case Algorithm::ps512:
            return EVP_sha512();
        case Algorithm::eddsa:
            return nullptr;  // it hashes by itself
    }
    return nullptr;
}

bool is_pss(Algorithm algorithm) {
    return algorithm == Algorithm::ps256 || algorithm == Algorithm::ps384 || algorithm == Algorithm::ps512;
}

// JOSE writes r and s one after the other, each as long as the curve; OpenSSL wants DER.
std::string ecdsa_der(std::string_view signature, std::size_t bytes) {
    if (signature.size() != 2 * bytes) return {};
    const auto number = [&](std::size_t at) {
        return Number{BN_bin2bn(raw_bytes(signature.substr(at, bytes)), static_cast<int>(bytes), nullptr)};
    };
    Number r = number(0), s = number(bytes);
    const EcSignature both{ECDSA_SIG_new()};
    if (!r || !s || !both || BN_is_zero(r.get()) || BN_is_zero(s.get())) return {};
    if (ECDSA_SIG_set0(both.get(), r.get(), s.get()) != 1) return {};
    static_cast<void>(r.release());  // theirs now
    static_cast<void>(s.release());
    unsigned char* der = nullptr;
    const int size = i2d_ECDSA_SIG(both.get(), &der);
    std::string out{reinterpret_cast<const char*>(der), static_cast<std::size_t>(std::max(size, 0))};
    OPENSSL_free(der);
    return out;
}

}  // namespace

KeyKind kind_for(Algorithm algorithm) {
    switch (algorithm) {
        case Algorithm::es256:
            return KeyKind::p256;
        case Algorithm::es384:
            return KeyKind::p384;
        case Algorithm::eddsa:
            return KeyKind::ed25519;
        default:
            return KeyKind::rsa;
    }
}

const VerifyKey* KeySet::find(std::string_view id, Algorithm algorithm) const {
    const auto fits = [&](const VerifyKey& key) {
        return key.id == id && key.kind == kind_for(algorithm) && (!key.only || *key.only == algorithm);
    };
    const auto found = std::ranges::find_if(keys, fits);
    return found == keys.end() ? nullptr : &*found;
}

bool KeySet::knows(std::string_view id) const {
    return std::ranges::any_of(keys, [&](const VerifyKey& key) { return key.id == id; });
}

Result<KeySet> read_key_set(std::string_view json) {
    const auto document = read_json_object("the key set", json, {.bytes = key_set_bytes_max, .nodes = 4'000});
    if (!document) return std::unexpected(document.error());
    const Node* list = document->root->find("keys");
    if (list == nullptr || list->type != Node::Type::list)
        return fail(Code::invalid, "the key set has no list \"keys\"");
    if (list->items.size() > keys_max)
        return fail(Code::invalid,
                    fmt::format("the key set has {} keys; at most {} are read", list->items.size(), keys_max));
    KeySet set;
    const auto leave_out = [&](const std::string& id, const std::string& why) {
        set.left_out.push_back(fmt::format("key \"{}\": {}", shortened(id), why));
    };
    for (const Node* jwk : list->items) {
        if (jwk->type != Node::Type::map) return fail(Code::invalid, "the key set has a key that is no object");
        auto id = required_text(*jwk, "kid");
        if (!id) {
            leave_out({}, id.error().what);
            continue;
        }
        auto key = read_key(*jwk, *id);
        if (key)
            set.keys.push_back(*std::move(key));
        else
            leave_out(*id, key.error().what);
    }
    // Which of two is meant cannot be told, so neither is.
    for (std::size_t i = 0; i < set.keys.size();) {
        const VerifyKey one = set.keys[i];
        const auto same = [&](const VerifyKey& key) { return key.id == one.id && key.kind == one.kind; };
        if (std::ranges::count_if(set.keys, same) == 1) {
            ++i;
            continue;
        }
        std::erase_if(set.keys, same);
        leave_out(one.id, "there are several of this name and type");
    }
    if (set.keys.empty())
        return fail(Code::invalid,
                    fmt::format("the key set has no key to verify with{}{}", set.left_out.empty() ? "" : "; ",
                                set.left_out.empty() ? "" : set.left_out.front()),
                    "the provider must publish a signing key (use: sig) of RSA, P-256, P-384 or Ed25519");
    return set;
}

bool verify_signature(const VerifyKey& key, Algorithm algorithm, std::string_view signed_text,
                      std::string_view signature) {
    if (key.kind != kind_for(algorithm) || (key.only && *key.only != algorithm)) return false;
    std::string der;
    if (key.kind == KeyKind::p256 || key.kind == KeyKind::p384) {
        der = ecdsa_der(signature, key.kind == KeyKind::p256 ? 32 : 48);
        if (der.empty()) return false;
        signature = der;
    }
    const DigestContext context{EVP_MD_CTX_new()};
    EVP_PKEY_CTX* how = nullptr;  // the context's
    bool ready =
        context && EVP_DigestVerifyInit(context.get(), &how, digest_of(algorithm), nullptr, key.key.get()) == 1;
    if (ready && key.kind == KeyKind::rsa)
        ready = EVP_PKEY_CTX_set_rsa_padding(how, is_pss(algorithm) ? RSA_PKCS1_PSS_PADDING : RSA_PKCS1_PADDING) == 1;
    if (ready && is_pss(algorithm))  // RFC 7518: a salt as long as the hash, and the same hash in the mask
        ready = EVP_PKEY_CTX_set_rsa_pss_saltlen(how, RSA_PSS_SALTLEN_DIGEST) == 1;
    const bool good = ready && EVP_DigestVerify(context.get(), raw_bytes(signature), signature.size(),
                                                raw_bytes(signed_text), signed_text.size()) == 1;
    ERR_clear_error();
    return good;
}

}  // namespace bulkhead::auth
