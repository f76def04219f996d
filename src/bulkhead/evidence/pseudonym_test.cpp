#include "bulkhead/evidence/pseudonym.hpp"

#include <gtest/gtest.h>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead::evidence {
namespace {

TEST(Pseudonym, is_one_for_each_tenant_of_each_fleet) {
    const TenantOpening acme = opening_of("secret", "acme");
    EXPECT_EQ(opening_of("secret", "acme"), acme);
    EXPECT_EQ(acme.salt.size(), 32u);
    EXPECT_EQ(pseudonym(acme),
              '~' + to_hex(bytes_of(sha256("bulkhead.dev/tenant/v1\n" + acme.salt + "\nacme"))).substr(0, 32))
        << "as the page on certificates says";
    EXPECT_NE(pseudonym(opening_of("secret", "acme2")), pseudonym(acme));
    EXPECT_NE(pseudonym(opening_of("other secret", "acme")), pseudonym(acme)) << "fleets cannot be compared";
    EXPECT_NE(pseudonym({"acme", std::string(32, '0')}), pseudonym(acme)) << "nobody guesses a name without its salt";
}

TEST(Pseudonym, cannot_be_a_tenants_name) {
    const std::string one = pseudonym(opening_of("secret", "acme"));
    EXPECT_TRUE(is_pseudonym(one)) << one;
    EXPECT_FALSE(is_valid(Format::name, one));
    for (const char* name : {"", "~", "acme", "~acme", "~0123456789abcdef0123456789abcdeF",
                             "~0123456789abcdef0123456789abcdef0", "0123456789abcdef0123456789abcdef0"})
        EXPECT_FALSE(is_pseudonym(name)) << name;
}

}  // namespace
}  // namespace bulkhead::evidence
