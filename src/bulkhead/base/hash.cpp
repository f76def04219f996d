#include "bulkhead/base/hash.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>

#include "bulkhead/base/result.hpp"

namespace bulkhead {

namespace {

// Fetched once: looking the algorithm up costs more than hashing a leaf.
const EVP_MD* algorithm() {
    static EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    invariant(fetched != nullptr, "OpenSSL has SHA-256");
    return fetched;
}

struct Digest {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    Digest() = default;
    Digest(const Digest&) = delete;
    Digest& operator=(const Digest&) = delete;
    ~Digest() { EVP_MD_CTX_free(context); }
};

const std::uint8_t* raw(std::string_view bytes) { return reinterpret_cast<const std::uint8_t*>(bytes.data()); }

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::optional<std::uint32_t> sextet(char c) {
    const std::size_t at = alphabet.find(c);
    return at == std::string_view::npos ? std::nullopt : std::optional{static_cast<std::uint32_t>(at)};
}

std::optional<unsigned> nibble(char c) {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
    return std::nullopt;
}

}  // namespace

Hash sha256(std::string_view bytes) { return sha256({bytes}); }

Hash sha256(std::initializer_list<std::string_view> parts) {
    thread_local Digest digest;
    Hash hash{};
    bool ok = EVP_DigestInit_ex2(digest.context, algorithm(), nullptr) == 1;
    for (const std::string_view part : parts)
        ok = ok && EVP_DigestUpdate(digest.context, part.data(), part.size()) == 1;
    ok = ok && EVP_DigestFinal_ex(digest.context, hash.data(), nullptr) == 1;
    invariant(ok, "hashing bytes in memory cannot fail");
    return hash;
}

Hash hmac_sha256(std::string_view key, std::string_view message) {
    Hash hash{};
    unsigned size = 0;
    const auto* done =
        HMAC(algorithm(), key.data(), static_cast<int>(key.size()), raw(message), message.size(), hash.data(), &size);
    invariant(done != nullptr && size == hash.size(), "authenticating bytes in memory cannot fail");
    return hash;
}

std::optional<Hash> hash_from(std::string_view bytes) {
    Hash hash{};
    if (bytes.size() != hash.size()) return std::nullopt;
    std::ranges::copy(std::span{raw(bytes), bytes.size()}, hash.begin());
    return hash;
}

std::string to_hex(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text(bytes.size() * 2, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto byte = static_cast<std::uint8_t>(bytes[i]);
        text[2 * i] = digits[byte >> 4];
        text[2 * i + 1] = digits[byte & 15];
    }
    return text;
}

std::optional<std::string> from_hex(std::string_view text) {
    if (text.size() % 2 != 0) return std::nullopt;
    std::string bytes;
    bytes.reserve(text.size() / 2);
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const auto high = nibble(text[i]), low = nibble(text[i + 1]);
        if (!high || !low) return std::nullopt;
        bytes += static_cast<char>(*high << 4 | *low);
    }
    return bytes;
}

std::string to_base64(std::string_view bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
        std::uint32_t group = 0;
        for (std::size_t k = 0; k < 3; ++k)
            group = group << 8 | (k < left ? static_cast<std::uint8_t>(bytes[i + k]) : 0u);
        for (std::size_t k = 0; k < 4; ++k) text += k <= left ? alphabet[group >> (18 - 6 * k) & 63] : '=';
    }
    return text;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3);
    for (std::size_t i = 0; i < text.size(); i += 4) {
        const bool last = i + 4 == text.size();
        const std::size_t padding = !last ? 0 : text.substr(i + 2) == "==" ? 2 : text[i + 3] == '=' ? 1 : 0;
        std::uint32_t group = 0;
        for (std::size_t k = 0; k < 4; ++k) {
            const auto value = k < 4 - padding ? sextet(text[i + k]) : std::optional{0u};
            if (!value) return std::nullopt;
            group = group << 6 | *value;
        }
        for (std::size_t k = 0; k < 3 - padding; ++k) bytes += static_cast<char>(group >> (16 - 8 * k) & 255);
        // Bits that no byte took must be zero, or two texts would mean the same bytes.
        if ((padding == 1 && (group & 0xFF) != 0) || (padding == 2 && (group & 0xFFFF) != 0)) return std::nullopt;
    }
    return bytes;
}

}  // namespace bulkhead
