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

}  // namespace
}  // namespace bulkhead
