#include "bulkhead/auth/bindings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bulkhead::auth {
namespace {

Identity person(std::vector<std::string> groups, std::vector<std::string> roles = {}) {
    return {.issuer = "https://idp.example/realms/gpu",
            .subject = "f6a1",
            .groups = std::move(groups),
            .roles = std::move(roles),
            .token_id = "t"};
}

Bindings declared() {
    Bindings bindings;
    FleetPolicySpec policy;
    policy.bindings = {{.role = Role::auditor, .group = "/audit"},
                       {.role = Role::platform_admin, .clientRole = "operator"}};
    bindings.add(policy);
    TenantSpec acme, beta;
    acme.bindings = {{.role = Role::tenant_user, .group = "/acme"}, {.role = Role::tenant_admin, .subject = "boss"}};
    beta.bindings = {{.role = Role::tenant_user, .group = "/beta"}};
    bindings.add("acme", acme);
    bindings.add("beta", beta);
    return bindings;
}

TEST(Bindings, give_what_is_declared) {
    const Bindings bindings = declared();
    const auto user = caller_of(person({"/acme"}), bindings);
    ASSERT_TRUE(user) << user.error().what;
    EXPECT_EQ(user->role, Role::tenant_user);
    EXPECT_EQ(user->tenant, "acme");
    EXPECT_TRUE(user->rights.may(Permission::submit, "acme"));
    EXPECT_FALSE(user->rights.may(Permission::submit, "beta"));
    const auto both = caller_of(person({"/acme", "/beta"}), bindings);
    ASSERT_TRUE(both);
    EXPECT_TRUE(both->rights.may(Permission::submit, "beta"));
    EXPECT_EQ(both->tenant, "") << "no one tenant speaks for the other";
    EXPECT_TRUE(caller_of(person({}, {"operator"}), bindings)->rights.may(Permission::manage_fleet));
}

// Checklist, item 22.
TEST(Bindings, compare_to_the_letter) {
    const Bindings bindings = declared();
    for (const std::string& near : std::vector<std::string>{"/ACME", "acme", "/acme/", "/acme-evil", "/acme/ml",
                                                            "/аcme", "/acme ", " /acme", std::string{"/acme\0", 6}})
        EXPECT_FALSE(caller_of(person({near}), bindings)) << near;
    EXPECT_FALSE(caller_of(person({}, {"/acme"}), bindings)) << "a role is not a group of the same name";
    EXPECT_FALSE(caller_of(person({"operator"}), bindings)) << "nor a group a role";
    EXPECT_FALSE(caller_of(person({"boss"}), bindings)) << "nor a subject";
    Identity realm = person({});
    realm.realm_roles = {"operator"};
    EXPECT_FALSE(caller_of(realm, bindings)) << "a realm's role is not our client's";
}

TEST(Bindings, nobody_is_somebody_by_default) {
    const auto nobody = caller_of(person({"/other"}), declared());
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().code, Code::denied);
}

TEST(Bindings, of_duties_that_exclude_each_other_let_nobody_in) {
    const auto two = caller_of(person({"/audit"}, {"operator"}), declared());
    ASSERT_FALSE(two);
    EXPECT_EQ(two.error().code, Code::denied);
    EXPECT_THAT(two.error().what, testing::HasSubstr("auditor"));
}

// Checklist, item 28.
TEST(Bindings, one_subject_of_two_issuers_is_two_people) {
    Identity one = person({"/acme"}), other = one;
    other.issuer = "https://idp.example/realms/other";
    EXPECT_NE(caller_of(one, declared())->subject, caller_of(other, declared())->subject);
}

TEST(Bindings, a_tenant_cannot_bind_an_operators_role) {
    Bindings bindings;
    TenantSpec sly;
    sly.bindings = {{.role = Role::platform_admin, .group = "/sly"}, {.role = Role::break_glass, .group = "/sly"}};
    bindings.add("sly", sly);
    EXPECT_FALSE(caller_of(person({"/sly"}), bindings));
    FleetPolicySpec policy;
    policy.bindings = {{.role = Role::tenant_admin, .group = "/ops"}};
    bindings.add(policy);
    EXPECT_FALSE(caller_of(person({"/ops"}), bindings)) << "and a policy none of a tenant's";
}

}  // namespace
}  // namespace bulkhead::auth
