// A tenant's name where others may read it: a salted hash, the same in every statement and certificate, so that a
// tenant can be followed and not known. Who holds the salt, which is the tenant's own and its operator's, can show
// whose it is.
#pragma once

#include <string>
#include <string_view>

#include "bulkhead/model/describe.hpp"

namespace bulkhead::evidence {

// What opens a pseudonym.
struct TenantOpening {
    std::string name;
    std::string salt;  // 32 hex digits

    static constexpr void describe(auto&& field) {
        field("name", &TenantOpening::name, "The tenant.", Rule{.required = true, .format = Format::line});
        field("salt", &TenantOpening::salt, "With which its name was hashed, in hex.",
              Rule{.required = true, .format = Format::line});
    }
    friend bool operator==(const TenantOpening&, const TenantOpening&) = default;
};

// Of a fleet with this secret; the same for a name, always.
TenantOpening opening_of(std::string_view secret, std::string_view tenant);

// '~' and 32 hex digits: the first half of SHA-256("bulkhead.dev/tenant/v1\n", salt in hex, "\n", name). No tenant can
// be called that.
std::string pseudonym(const TenantOpening& opening);
bool is_pseudonym(std::string_view name);

}  // namespace bulkhead::evidence
