#include "bulkhead/model/role.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

Rights rights_of(std::initializer_list<Grant> grants) {
    const auto rights = Rights::of({grants.begin(), grants.size()});
    EXPECT_TRUE(rights) << rights.error().what;
    return rights.value_or(Rights{});
}

TEST(Rights, a_fresh_one_may_do_nothing) {
    for (const Permission permission : every<Permission>()) {
        EXPECT_FALSE(Rights{}.may(permission)) << word(permission);
        EXPECT_FALSE(Rights{}.may(permission, "acme")) << word(permission);
        EXPECT_FALSE(Rights{}.may_somewhere(permission)) << word(permission);
    }
}

TEST(Rights, a_tenants_role_ends_at_its_tenant) {
    const Rights rights = rights_of({{Role::tenant_admin, "acme"}});
    EXPECT_TRUE(rights.may(Permission::submit, "acme"));
    for (const std::string_view other : {"beta", "acm", "acme-evil", "ACME", "acme ", ""})
        for (const Permission permission : every<Permission>())
            EXPECT_FALSE(rights.may(permission, other)) << word(permission) << " in \"" << other << '"';
    for (const Permission permission : every<Permission>()) EXPECT_FALSE(rights.may(permission)) << word(permission);
    EXPECT_TRUE(rights.is_a_tenants());
}

TEST(Rights, roles_in_two_tenants_do_not_add_up) {
    const Rights rights = rights_of({{Role::tenant_admin, "acme"}, {Role::tenant_user, "beta"}});
    EXPECT_TRUE(rights.may(Permission::manage_tenant, "acme"));
    EXPECT_FALSE(rights.may(Permission::manage_tenant, "beta"));
    EXPECT_EQ(rights.where(Permission::submit), (std::vector<std::string_view>{"acme", "beta"}));
    EXPECT_EQ(rights.where(Permission::manage_tenant), std::vector<std::string_view>{"acme"});
}

TEST(Rights, duties_that_exclude_each_other_are_not_given_to_one) {
    struct Row {
        std::string_view says;
        std::vector<Grant> grants;
        bool accepted;
    };
    const Row rows[] = {
        {"who operates does not secure", {{Role::platform_admin, ""}, {Role::security_admin, ""}}, false},
        {"who operates does not audit", {{Role::auditor, ""}, {Role::platform_admin, ""}}, false},
        {"who secures does not audit", {{Role::security_admin, ""}, {Role::auditor, ""}}, false},
        {"who audits is nobody's tenant", {{Role::tenant_user, "acme"}, {Role::auditor, ""}}, false},
        {"the same twice is one", {{Role::auditor, ""}, {Role::auditor, ""}}, true},
        {"an operator may also have work", {{Role::platform_admin, ""}, {Role::tenant_user, "acme"}}, true},
        {"two tenants are fine", {{Role::tenant_user, "acme"}, {Role::tenant_admin, "beta"}}, true},
    };
    for (const Row& row : rows) EXPECT_EQ(Rights::of(row.grants).has_value(), row.accepted) << row.says;
}

TEST(Rights, content_is_nobodys_of_the_operators) {
    for (const Role role : {Role::platform_admin, Role::security_admin, Role::auditor})
        EXPECT_FALSE(permissions_of(role).contains(Permission::read_output)) << word(role);
}

TEST(Rights, only_security_lifts_grants_and_binds) {
    for (const Permission permission : {Permission::grant_exceptions, Permission::lift_quarantine,
                                        Permission::lift_hold, Permission::bind_roles, Permission::rotate_log_keys})
        for (const Role role : every<Role>())
            EXPECT_EQ(permissions_of(role).contains(permission), role == Role::security_admin)
                << word(role) << ' ' << word(permission);
}

TEST(Rights, narrowing_takes_away_and_adds_nothing) {
    const Rights whole = rights_of({{Role::tenant_user, "acme"}});
    const Rights narrow = whole.narrowed_to({Permission::submit, Permission::manage_fleet});
    EXPECT_TRUE(narrow.may(Permission::submit, "acme"));
    EXPECT_FALSE(narrow.may(Permission::read_tenant, "acme"));
    EXPECT_FALSE(narrow.may(Permission::manage_fleet, "acme"));
    EXPECT_FALSE(narrow.may(Permission::manage_fleet));
}

TEST(Rights, a_node_has_no_door_here) { EXPECT_TRUE(permissions_of(Role::node).empty()); }

}  // namespace
}  // namespace bulkhead
