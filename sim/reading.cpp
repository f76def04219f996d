#include "sim/reading.hpp"

#include <openssl/evp.h>

#include <cmath>

namespace bulkhead::sim {

namespace json = boost::json;

std::string text(const json::object& object, std::string_view key) {
    const json::value* found = object.if_contains(key);
    return found != nullptr && found->is_string() ? std::string{found->as_string()} : std::string{};
}

std::int64_t number(const json::object& object, std::string_view key, std::int64_t otherwise) {
    const json::value* found = object.if_contains(key);
    if (found == nullptr) return otherwise;
    if (found->is_int64()) return found->as_int64();
    if (found->is_double()) return static_cast<std::int64_t>(found->as_double());
    return otherwise;
}

std::int64_t gpu_units(const json::object& object, std::string_view key) {
    const json::value* found = object.if_contains(key);
    if (found == nullptr) return 0;
    if (!found->is_string()) return std::llround(found->to_number<double>() * 1000) * 21;
    const std::string fraction{found->as_string()};
    const std::size_t slash = fraction.find('/');
    return std::stoll(fraction.substr(0, slash)) * 21'000 / std::stoll(fraction.substr(slash + 1));
}

std::int64_t instant(const std::string& text) {
    if (text.size() < 20) return -1;
    const auto part = [&](std::size_t at, std::size_t size) { return std::stoll(text.substr(at, size)); };
    const std::int64_t year = part(0, 4), month = part(5, 2), day = part(8, 2);
    const std::int64_t y = month <= 2 ? year - 1 : year, era = y / 400, of_era = y - era * 400;
    const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    const std::int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    std::int64_t ms = (((days * 24 + part(11, 2)) * 60 + part(14, 2)) * 60 + part(17, 2)) * 1000;
    if (text.size() > 20 && text[19] == '.') {
        std::string digits = text.substr(20, text.size() - 21);
        digits.resize(3, '0');
        ms += std::stoll(digits);
    }
    return ms;
}

Hash digest(std::initializer_list<std::string_view> parts) {
    Hash hash{};
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    EVP_DigestInit_ex(context, EVP_sha256(), nullptr);
    for (const std::string_view part : parts) EVP_DigestUpdate(context, part.data(), part.size());
    EVP_DigestFinal_ex(context, hash.data(), nullptr);
    EVP_MD_CTX_free(context);
    return hash;
}

}  // namespace bulkhead::sim
