// Who may do what to whose objects. Each row is asked of a real core; what is refused leaves no trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* document_head = "apiVersion: bulkhead.dev/v1alpha1\n";

std::string declared_tenant(const std::string& name, const std::string& more = {}) {
    return std::string{document_head} + "kind: Tenant\nmetadata: {name: " + name + "}\nspec: {class: batch" + more +
           "}\n";
}
std::string job_of(const std::string& tenant, const std::string& name, const std::string& gpu = "{count: 1}") {
    return std::string{document_head} + "kind: GpuWorkload\nmetadata: {name: " + name + "}\nspec: {tenant: " + tenant +
           ", gpu: " + gpu + "}\n";
}

Rights as_role(Role role, const std::string& tenant = {}) {
    const Grant grant{role, tenant};
    return *Rights::of({&grant, 1});
}

struct Asked {
    bool outcome = false;
    Code code{};
    std::string what, remedy, body, findings;
    friend bool operator==(const Asked&, const Asked&) = default;
};

class Guarded : public testing::Test {
protected:
    Guarded() {
        EXPECT_TRUE(plane.apply(declared_tenant("acme")).outcome);
        EXPECT_TRUE(plane.apply(declared_tenant("beta")).outcome);
        EXPECT_TRUE(plane.apply(job_of("acme", "train")).outcome);
        EXPECT_TRUE(plane.apply(job_of("beta", "secret")).outcome);
        plane.settle();
    }
    Asked as(const Rights& rights, decltype(Command::what) what) {
        plane.rights = rights;
        const std::size_t log = plane.log.size();
        const auto rows = plane.rows;
        const Answer answer = plane.ask(std::move(what));
        plane.rights = Rights::everything();
        Asked asked{.outcome = answer.outcome.has_value(), .body = answer.body};
        if (!answer.outcome) {
            asked.code = answer.outcome.error().code;
            asked.what = answer.outcome.error().what;
            asked.remedy = answer.outcome.error().remedy;
            EXPECT_EQ(plane.log.size(), log) << asked.what << ": a refusal leaves no trace";
            EXPECT_EQ(plane.rows, rows) << asked.what;
        }
        for (const Finding& finding : answer.findings) asked.findings += finding.what + '\n';
        return asked;
    }
    Asked apply_as(const Rights& rights, const std::string& yaml, bool dry_run = false) {
        const SourceText source{"test.yaml", yaml};
        Loaded loaded = load({&source, 1});
        EXPECT_TRUE(loaded.errors.empty()) << (loaded.errors.empty() ? "" : print(loaded.errors.front()));
        command::Apply what{.dry_run = dry_run};
        for_each_kind([&]<class T>() {
            for (T& object : loaded.snapshot.list<T>()) what.objects.emplace_back(std::move(object));
        });
        return as(rights, std::move(what));
    }
    Plane plane{2};
};

TEST_F(Guarded, a_tenants_people_submit_for_it_and_for_nobody_else) {
    EXPECT_TRUE(apply_as(as_role(Role::tenant_user, "acme"), job_of("acme", "more")).outcome);
    EXPECT_TRUE(apply_as(as_role(Role::tenant_admin, "acme"), job_of("acme", "even-more")).outcome);
    const Asked foreign = apply_as(as_role(Role::tenant_user, "acme"), job_of("beta", "more"));
    EXPECT_EQ(foreign.code, Code::not_found);
    Asked nowhere = apply_as(as_role(Role::tenant_user, "acme"), job_of("ghost", "more"));
    nowhere.what.replace(nowhere.what.find("ghost"), 5, "beta");
    EXPECT_EQ(foreign, nowhere) << "whether there is such a tenant does not show";
    for (const Role other : {Role::auditor, Role::security_admin})
        EXPECT_EQ(apply_as(as_role(other), job_of("acme", "x")).code, Code::denied) << word(other);
}

TEST_F(Guarded, two_tenants_use_one_name_and_neither_notices) {
    const Asked taken = apply_as(as_role(Role::tenant_user, "acme"), job_of("acme", "secret"));
    EXPECT_TRUE(taken.outcome) << taken.what << ": beta's work of that name is none of acme's business";
    EXPECT_EQ(taken.body, R"({"items":[{"kind":"GpuWorkload","name":"secret","result":"created"}]})");
    plane.settle();
    EXPECT_TRUE(as(as_role(Role::tenant_user, "acme"), command::Delete{.kind = ObjectKind::workload, .name = "secret"})
                    .outcome);
    plane.settle();
    EXPECT_TRUE(plane.exists("secret")) << "beta's is still there";
    EXPECT_EQ(plane.workload("secret").spec.tenant, "beta");
}

TEST_F(Guarded, an_operator_says_whose_where_a_name_does_not) {
    EXPECT_TRUE(plane.apply(job_of("acme", "secret")).outcome);
    const Rights admin = as_role(Role::platform_admin);
    const Asked which = as(admin, command::Explain{.workload = "secret"});
    EXPECT_EQ(which.code, Code::conflict);
    EXPECT_THAT(which.remedy, HasSubstr("acme/secret, beta/secret"));
    EXPECT_EQ(as(admin, command::Delete{.kind = ObjectKind::workload, .name = "secret"}).code, Code::conflict);
    EXPECT_THAT(as(admin, command::Explain{.workload = "secret", .tenant = "beta"}).body,
                HasSubstr("\"tenant\":\"beta\""));
    EXPECT_THAT(as(as_role(Role::tenant_user, "acme"), command::Explain{.workload = "secret"}).body,
                HasSubstr("\"tenant\":\"acme\""));
}

TEST_F(Guarded, what_is_not_ones_own_is_as_if_it_were_not_there) {
    const Rights user = as_role(Role::tenant_user, "acme");
    const auto same = [](Asked there, Asked nowhere, const std::string& name) {
        EXPECT_FALSE(there.outcome);
        for (std::string* text : {&nowhere.what, &nowhere.remedy})
            if (const std::size_t at = text->find("ghost"); at != text->npos) text->replace(at, 5, name);
        EXPECT_EQ(there, nowhere) << name << "\n" << there.what << "\n" << nowhere.what;
        EXPECT_EQ(there.code, Code::not_found);
    };
    same(as(user, command::Explain{.workload = "secret"}), as(user, command::Explain{.workload = "ghost"}), "secret");
    same(as(user, command::Delete{.kind = ObjectKind::workload, .name = "secret"}),
         as(user, command::Delete{.kind = ObjectKind::workload, .name = "ghost"}), "secret");
    same(as(user, command::Delete{.kind = ObjectKind::tenant, .name = "beta"}),
         as(user, command::Delete{.kind = ObjectKind::tenant, .name = "ghost"}), "beta");
    const std::string lease = plane.workload("secret").status->lease;
    ASSERT_FALSE(lease.empty());
    same(as(user, command::Delete{.kind = ObjectKind::lease, .name = lease}),
         as(user, command::Delete{.kind = ObjectKind::lease, .name = "ghost"}), lease);
    same(apply_as(as_role(Role::tenant_admin, "acme"), declared_tenant("beta")),
         apply_as(as_role(Role::tenant_admin, "acme"), declared_tenant("ghost")), "beta");
    EXPECT_THAT(as(user, command::Queue{}).body, Not(HasSubstr("beta")));
}

TEST_F(Guarded, a_queue_counts_ones_own) {
    for (int i = 0; i < 6; ++i) {
        EXPECT_TRUE(plane.apply(job_of("beta", "b" + std::to_string(i), "{count: 2}")).outcome);
        EXPECT_TRUE(plane.apply(job_of("acme", "a" + std::to_string(i), "{count: 2}")).outcome);
    }
    plane.settle();
    const std::string seen = as(as_role(Role::tenant_user, "acme"), command::Queue{}).body;
    EXPECT_THAT(seen, HasSubstr("\"place\":1,"));
    EXPECT_THAT(seen, Not(HasSubstr("beta")));
    EXPECT_THAT(seen, Not(HasSubstr("\"b")));
    EXPECT_GT(as(as_role(Role::auditor), command::Queue{}).body.size(), seen.size());
}

TEST_F(Guarded, who_operates_does_not_decide_what_is_securitys) {
    const Rights admin = as_role(Role::platform_admin), security = as_role(Role::security_admin);
    struct Row {
        std::string_view says;
        decltype(Command::what) what;
        bool admin, security;
    };
    const Row rows[] = {
        {"lifting a quarantine", command::Repair{.node = "ghost", .why = "x"}, false, true},
        {"a legal hold", command::Hold{.tenant = "ghost", .on = true, .why = "x"}, true, true},
        {"lifting it", command::Hold{.tenant = "ghost", .on = false, .why = "x"}, false, true},
        {"freezing", command::Freeze{.tenant = "ghost", .why = "x"}, true, true},
        {"draining", command::Drain{.node = "ghost"}, true, false},
        {"revoking a node", command::Revoke{.node = "ghost", .why = "x"}, true, true},
    };
    for (const Row& row : rows) {
        // Who may ask learns that there is no such thing; who may not, that they may not.
        EXPECT_EQ(as(admin, row.what).code, row.admin ? Code::not_found : Code::denied) << row.says;
        EXPECT_EQ(as(security, row.what).code, row.security ? Code::not_found : Code::denied) << row.says;
        for (const Role other : {Role::auditor, Role::node})
            EXPECT_EQ(as(as_role(other), row.what).code, Code::denied) << row.says << ' ' << word(other);
        for (const Role other : {Role::tenant_admin, Role::tenant_user, Role::break_glass})
            EXPECT_EQ(as(as_role(other, "acme"), row.what).code, Code::denied) << row.says << ' ' << word(other);
    }
}

TEST_F(Guarded, exceptions_and_bindings_in_a_policy_are_securitys_and_the_rest_is_not) {
    const std::string head = std::string{document_head} + "kind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n" +
                             "  threatModel: internal\n  versionGate: {shippedAdvisories: false}\n";
    const std::string sites = "  sites: [{name: fra, jurisdiction: eu}]\n";
    const std::string exception =
        "  exceptions:\n  - name: shared\n    tenants: [acme, beta]\n    tier: container\n    grantedBy: s\n"
        "    reason: r\n    expires: 2030-01-01T00:00:00Z\n    consents:\n"
        "    - {tenant: acme, by: a, at: 2026-01-01T00:00:00Z}\n    - {tenant: beta, by: b, at: "
        "2026-01-01T00:00:00Z}\n";
    const std::string binding = "  bindings: [{role: auditor, group: /audit}]\n";
    const Rights admin = as_role(Role::platform_admin), security = as_role(Role::security_admin);
    EXPECT_EQ(apply_as(admin, head + sites + exception).code, Code::denied);
    EXPECT_EQ(apply_as(admin, head + sites + binding).code, Code::denied);
    const Asked granted = apply_as(security, head + sites + exception + binding);
    EXPECT_TRUE(granted.outcome) << granted.what << granted.findings;
    EXPECT_EQ(apply_as(security, head + "  sites: [{name: fra, jurisdiction: us}]\n" + exception + binding).code,
              Code::denied)
        << "security does not run the fleet";
    EXPECT_EQ(apply_as(admin, head + sites + binding).code, Code::denied) << "nor does it take an exception away";
    EXPECT_EQ(as(admin, command::Delete{.kind = ObjectKind::policy, .name = "fleet"}).code, Code::denied)
        << "nor all of it at once";
    const Asked more =
        apply_as(admin, head + "  sites: [{name: fra, jurisdiction: eu}, {name: muc, jurisdiction: eu}]\n" + exception +
                            binding);
    EXPECT_TRUE(more.outcome) << more.what;
    EXPECT_EQ(apply_as(as_role(Role::tenant_admin, "acme"), head + sites).code, Code::denied);
}

TEST_F(Guarded, a_tenant_decides_what_it_accepts_who_it_is_and_its_mode) {
    const Rights admin = as_role(Role::tenant_admin, "acme"), user = as_role(Role::tenant_user, "acme");
    const Rights operates = as_role(Role::platform_admin), secures = as_role(Role::security_admin);
    const std::string people = ", bindings: [{role: tenant-user, group: /acme}]";
    const std::string off = declared_tenant("acme", people);
    const std::string on = declared_tenant("acme", people + ", compliance: dedicated");
    EXPECT_TRUE(apply_as(operates, off).outcome) << "its first people are named for it";
    EXPECT_EQ(apply_as(operates, declared_tenant("acme")).code, Code::denied) << "and the next are not";
    EXPECT_TRUE(apply_as(admin, declared_tenant("acme", ", bindings: [{role: tenant-user, group: /a}]")).outcome);
    EXPECT_TRUE(apply_as(admin, off).outcome);
    EXPECT_EQ(apply_as(user, declared_tenant("acme")).code, Code::denied);
    EXPECT_EQ(apply_as(admin, declared_tenant("acme", people + ", quota: {guarantee: 2}")).code, Code::denied);
    EXPECT_EQ(apply_as(admin, declared_tenant("acme", people + ", priorityGrant: 5")).code, Code::denied);
    EXPECT_TRUE(apply_as(operates, on).outcome) << "raised by whoever runs the fleet";
    EXPECT_EQ(apply_as(operates, off).code, Code::denied) << "and not taken away";
    EXPECT_TRUE(apply_as(secures, off).outcome);
    EXPECT_TRUE(apply_as(admin, on).outcome);
    EXPECT_TRUE(apply_as(admin, off).outcome);
    EXPECT_EQ(apply_as(as_role(Role::break_glass, "acme"), on).code, Code::denied);
}

TEST_F(Guarded, the_switch_is_turned_by_whom_it_is_for) {
    const command::SetCompliance on{.tenant = "acme", .mode = Compliance::dedicated, .why = "audit"};
    const command::SetCompliance off{.tenant = "acme", .mode = Compliance::off, .why = "over"};
    EXPECT_EQ(as(as_role(Role::tenant_user, "acme"), on).code, Code::denied);
    EXPECT_EQ(as(as_role(Role::auditor), on).code, Code::denied);
    EXPECT_EQ(as(as_role(Role::tenant_admin, "beta"), on).code, Code::not_found);
    EXPECT_TRUE(as(as_role(Role::platform_admin), on).outcome);
    EXPECT_EQ(as(as_role(Role::platform_admin), off).code, Code::denied);
    const Asked turned = as(as_role(Role::tenant_admin, "acme"), off);
    EXPECT_TRUE(turned.outcome) << turned.what;
    EXPECT_THAT(turned.body, Not(HasSubstr("beta")));
}

// A finding about one's own object may speak of others: then a tenant is told only that there is one.
TEST_F(Guarded, findings_that_name_others_are_not_for_a_tenant) {
    EXPECT_TRUE(plane.apply(declared_tenant("beta", ", quota: {guarantee: 2}")).outcome);
    EXPECT_TRUE(plane.apply(declared_tenant("acme", ", quota: {guarantee: 2}")).outcome);
    const std::string wish = declared_tenant("acme", ", quota: {guarantee: 2}, compliance: confidential");
    const Asked told = apply_as(as_role(Role::tenant_admin, "acme"), wish);
    EXPECT_THAT(told.what + told.remedy + told.body + told.findings, Not(HasSubstr("beta")));
    const Asked domain = apply_as(as_role(Role::tenant_admin, "acme"),
                                  declared_tenant("acme", ", quota: {guarantee: 2}, trustDomain: {name: ghost}"));
    EXPECT_EQ(domain.code, Code::conflict);
    EXPECT_EQ(domain.findings, "");
}

TEST_F(Guarded, a_node_is_not_removed_to_lift_what_security_decided) {
    const std::string node = plane.find<GpuLease>(plane.workload("train").status->lease).spec.slices.at(0).node;
    plane.ask(command::Hold{.tenant = "acme", .on = true, .why = "court"});
    EXPECT_TRUE(plane.remove(ObjectKind::workload, "train").outcome);
    plane.settle();
    plane.nodes[node]->reachable = false;
    plane.pass(Duration::hours(1));
    const command::Delete wish{.kind = ObjectKind::node, .name = node};
    const Asked refused = as(as_role(Role::platform_admin), wish);
    EXPECT_EQ(refused.code, Code::denied);
    EXPECT_THAT(refused.what, HasSubstr("lift-hold"));
}

TEST_F(Guarded, a_policys_refusal_says_nothing_of_what_it_holds) {
    const auto policy = [](const std::string& more) {
        return std::string{document_head} + "kind: FleetPolicy\nmetadata: {name: fleet}\nspec: {threatModel: internal" +
               more + "}\n";
    };
    const Rights user = as_role(Role::tenant_admin, "acme");
    const Asked one = apply_as(user, policy("")),
                other = apply_as(user, policy(", bindings: [{role: auditor, group: /audit}]"));
    EXPECT_EQ(one.code, Code::denied);
    EXPECT_EQ(one, other);
}

TEST_F(Guarded, cutting_gpus_is_a_permission_of_its_own) {
    const Rights user = as_role(Role::tenant_user, "acme");
    const Rights narrow = user.narrowed_to({Permission::submit, Permission::read_tenant});
    EXPECT_EQ(apply_as(narrow, job_of("acme", "cut", "{profile: 1g.10gb}")).code, Code::denied);
    EXPECT_TRUE(apply_as(narrow, job_of("acme", "whole")).outcome);
    const Asked cut = apply_as(user, job_of("acme", "cut", "{profile: 1g.10gb}"));
    EXPECT_TRUE(cut.outcome) << cut.what;
}

TEST_F(Guarded, a_tenant_reads_refusals_in_its_own_words) {
    const Asked refused = apply_as(as_role(Role::tenant_user, "acme"), job_of("acme", "huge", "{count: 64}"));
    EXPECT_EQ(refused.code, Code::denied);
    for (const char* name : {"beta", "secret", "\"n0\"", "\"n1\""})
        EXPECT_THAT(refused.body + refused.what + refused.remedy, Not(HasSubstr(name)));
    const Asked whole = apply_as(as_role(Role::tenant_user, "acme"), job_of("acme", "fits"), true);
    EXPECT_TRUE(whole.outcome);
    EXPECT_THAT(whole.body, Not(HasSubstr("\"nodes\":[\"n"))) << "which nodes there are is the operator's to know";
}

}  // namespace
}  // namespace bulkhead
