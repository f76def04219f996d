// Who is put beside whom on one GPU, where both would accept the other.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

struct Domain : Plane {
    Domain() : Plane{1} {  // two GPUs
        std::string all =
            "apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\nspec:\n"
            "  threatModel: internal\n  sites: [{name: fra, jurisdiction: eu}]\n"
            "  versionGate: {shippedAdvisories: false}\n  trustDomains: [{name: lab, members: [vision, speech]}]\n";
        for (const char* name : {"vision", "speech"})
            all += fmt::format(
                "---\napiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {}}}\nspec:\n"
                "  class: research\n  trustDomain: {{name: lab, consent: {{by: head, at: 2026-11-01T00:00:00Z}}}}\n"
                "  accepts: [{{risk: shared-fault-domain, by: head, at: 2026-11-01T00:00:00Z}}]\n",
                name);
        const Answer answer = apply(all);
        EXPECT_TRUE(answer.outcome) << answer.outcome.error().what;
    }
    std::int64_t gpu_of(const std::string& name, const std::string& owner) {
        const Answer answer =
            apply(fmt::format("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {{name: {}}}\n"
                              "spec: {{tenant: {}, gpu: {{fraction: 0.25, mechanism: mps}}, isolation: {{gpu: "
                              "same-domain, node: same-domain}}}}\n",
                              name, owner));
        EXPECT_TRUE(answer.outcome) << answer.outcome.error().what;
        settle();
        if (workload(name).status->phase != WorkloadPhase::running) return -1;
        return find<GpuLease>(workload(name).status->lease).spec.slices.at(0).gpu;
    }
};

// A server serves one user at a time: the second tenant's work would only wait there.
TEST(Sharing, by_mps_a_gpu_is_one_tenants) {
    Domain plane;
    const std::int64_t first = plane.gpu_of("a", "vision");
    ASSERT_GE(first, 0);
    const std::int64_t second = plane.gpu_of("b", "speech");
    EXPECT_EQ(second, 1 - first);
    EXPECT_EQ(plane.gpu_of("c", "vision"), first);
    EXPECT_EQ(plane.gpu_of("d", "speech"), second);
}

TEST(Sharing, a_tenant_limited_to_one_gpu_runs_seven_sevenths_of_it_at_once) {
    Plane plane{1};
    const Answer made = plane.apply(
        "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec:\n"
        "  class: research\n  quota: {guarantee: 1, limit: 1}\n");
    ASSERT_TRUE(made.outcome) << made.outcome.error().what;
    const auto ask = [&](const std::string& name) {
        const Answer answer =
            plane.apply(fmt::format("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {{name: {}}}\n"
                                    "spec: {{tenant: vision, gpu: {{profile: 1g.10gb, mechanism: mig}}}}\n",
                                    name));
        EXPECT_TRUE(answer.outcome) << answer.outcome.error().what;
    };
    for (int i = 0; i < 8; ++i) ask(fmt::format("w{}", i));
    plane.settle();
    int running = 0;
    for (int i = 0; i < 8; ++i) {
        const GpuWorkload work = plane.workload(fmt::format("w{}", i));
        if (work.status->phase != WorkloadPhase::running) continue;
        ++running;
        EXPECT_EQ(print(plane.find<GpuLease>(work.status->lease).status->gpus), "1/7");
    }
    EXPECT_EQ(running, 7) << "seven sevenths are one GPU, and the eighth is beyond the limit";
    plane.restart(2);
    EXPECT_EQ(plane.workload("w0").status->phase, WorkloadPhase::running) << "a stored \"1/7\" is read back";
}

}  // namespace
}  // namespace bulkhead
