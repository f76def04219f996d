#include "bulkhead/evidence/pseudonym.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/base/hash.hpp"

namespace bulkhead::evidence {

namespace {

constexpr std::size_t pseudonym_digits = 32;

}  // namespace

TenantOpening opening_of(std::string_view secret, std::string_view tenant) {
    const Hash salt = hmac_sha256(secret, fmt::format("tenant-salt/{}", tenant));
    return {std::string{tenant}, to_hex(bytes_of(salt)).substr(0, pseudonym_digits)};
}

std::string pseudonym(const TenantOpening& opening) {
    const Hash hash = sha256({"bulkhead.dev/tenant/v1\n", opening.salt, "\n", opening.name});
    return '~' + to_hex(bytes_of(hash)).substr(0, pseudonym_digits);
}

bool is_pseudonym(std::string_view name) {
    return name.size() == 1 + pseudonym_digits && name.front() == '~' &&
           std::ranges::all_of(name.substr(1), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace bulkhead::evidence
