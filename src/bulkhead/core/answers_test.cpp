// What the control plane answers about work that waits, and to whom.
#include <gmock/gmock.h>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string job_of(const std::string& tenant, const std::string& name, const std::string& more = {}) {
    return "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: " + name +
           "}\nspec: {tenant: " + tenant + ", gpu: {count: 2}" + more + "}\n";
}

// early and owner hold a node each; one more job of early's waits.
class Answers : public testing::Test {
protected:
    void fill(const std::string& more = {}) {
        plane.apply_a_lab();
        ASSERT_TRUE(plane.apply(job_of("early", "first", more)).outcome);
        plane.settle();
        ASSERT_TRUE(plane.apply(job_of("owner", "zebra", more)).outcome);
        plane.settle();
        ASSERT_EQ(plane.workload("zebra").status->phase, WorkloadPhase::running);
        ASSERT_TRUE(plane.apply(job_of("early", "second")).outcome);
        plane.settle(3);
        ASSERT_EQ(plane.workload("second").status->phase, WorkloadPhase::pending);
    }
    std::string asked_by_tenant(const decltype(Command::what)& what) {
        const Grant grant{Role::tenant_admin, "early"};
        plane.rights = *Rights::of({&grant, 1});
        std::string body = plane.ask(what).body;
        plane.rights = Rights::everything();
        return body;
    }
    Plane plane;
};

TEST_F(Answers, an_operator_reads_which_node_and_whose_work_is_in_the_way) {
    fill();
    const std::string node = plane.find<GpuLease>(plane.workload("zebra").status->lease).spec.slices.front().node;
    for (const std::string& body :
         {plane.ask(command::Explain{.workload = "second"}).body, plane.ask(command::Queue{.in_the_way = true}).body}) {
        EXPECT_THAT(body, HasSubstr("job zebra of tenant owner leases 2 GPUs")) << body;
        EXPECT_THAT(body, HasSubstr("\"stays\":\"guarantee\""));
        EXPECT_THAT(body, HasSubstr("\"node\":\"" + node + "\""));
        EXPECT_THAT(body, HasSubstr("the run time of zebra is not declared"));
    }
    EXPECT_THAT(plane.ask(command::Queue{}).body, Not(HasSubstr("inTheWay"))) << "only for those who ask";
}

TEST_F(Answers, a_tenant_reads_the_same_without_names_and_counts) {
    fill();
    for (const std::string& body : {asked_by_tenant(command::Explain{.workload = "second"}),
                                    asked_by_tenant(command::Queue{.in_the_way = true})}) {
        EXPECT_THAT(body, HasSubstr("other work would have to end, and a guarantee protects it")) << body;
        EXPECT_THAT(body, HasSubstr("the run time of work in its way is not declared"));
        for (const char* theirs : {"zebra", "\"owner\"", "tenant owner", "\"n0\"", "\"n1\"", "node n"})
            EXPECT_THAT(body, Not(HasSubstr(theirs)));
    }
}

TEST_F(Answers, an_estimate_is_kept_with_the_workload_while_it_waits) {
    fill(", duration: 1h");
    EXPECT_THAT(plane.workload("second").status->reasons, Contains(HasSubstr("expected to start at ")));
    EXPECT_THAT(asked_by_tenant(command::Queue{}), HasSubstr("\"expectedStart\":\"2027-01-15T"));
    EXPECT_TRUE(plane.remove(ObjectKind::workload, "zebra").outcome);
    plane.settle(30);
    EXPECT_EQ(plane.workload("second").status->phase, WorkloadPhase::running);
    EXPECT_THAT(plane.workload("second").status->reasons, IsEmpty()) << "it runs: there is nothing to expect";
}

TEST_F(Answers, work_that_does_not_wait_for_the_scheduler_has_nothing_in_its_way) {
    fill();
    EXPECT_THAT(plane.ask(command::Explain{.workload = "zebra"}).body, Not(HasSubstr("inTheWay")));
    plane.ask(command::Freeze{.tenant = "early", .on = true, .why = "drill"});
    plane.settle(3);
    EXPECT_THAT(plane.ask(command::Explain{.workload = "second"}).body, Not(HasSubstr("inTheWay")));
}

}  // namespace
}  // namespace bulkhead
