#include "bulkhead/policy/shipped_classes.hpp"

#include <array>

namespace bulkhead {

namespace {

TenantClass named(const char* name, TenantClassSpec spec) {
    TenantClass made;
    made.metadata.name = name;
    made.spec = std::move(spec);
    return made;
}

TenantClass frontier_training() {
    return named("frontier-training",
                 {.description = "Tightly coupled training: whole GPUs and nodes, NVLink, nobody beside it.",
                  .mechanisms = {Mechanism::whole},
                  .quota = QuotaModel::hard,
                  .slo = Slo::hard,
                  .tier = Tier::container,
                  .sharing = {PeerTrust::same_tenant, PeerTrust::same_tenant},
                  .preemption = Preemption::never,
                  .priority = {.usual = 50, .highest = 100}});
}

TenantClass slo_serving() {
    return named("slo-serving",
                 {.description = "Inference owed a latency: hardware partitions, guaranteed quota, never preempted.",
                  .mechanisms = {Mechanism::mig, Mechanism::mig_vgpu, Mechanism::whole},
                  .fractions = true,
                  .quota = QuotaModel::hard,
                  .slo = Slo::hard,
                  .tier = Tier::container,
                  .sharing = {PeerTrust::distrusting, PeerTrust::distrusting},
                  .preemption = Preemption::never,
                  .priority = {.usual = 80, .highest = 100}});
}

TenantClass research() {
    return named("research",
                 {.description = "Notebooks, experiments, CI: packed tightly, idle GPUs lent and reclaimed.",
                  .mechanisms = {Mechanism::mps, Mechanism::time_slicing, Mechanism::mig, Mechanism::mps_in_mig,
                                 Mechanism::amd_partition, Mechanism::vgpu, Mechanism::whole},
                  .fractions = true,
                  .quota = QuotaModel::fair_share,
                  .slo = Slo::soft,
                  .tier = Tier::process,
                  .sharing = {PeerTrust::same_domain, PeerTrust::same_domain},
                  .preemption = Preemption::allowed,
                  .priority = {.usual = 20, .highest = 50}});
}

TenantClass batch() {
    return named("batch",
                 {.description = "Preemptible batch: whatever packs tightest, lowest priority, instant reclaim.",
                  .mechanisms = {Mechanism::time_slicing, Mechanism::mps, Mechanism::mig, Mechanism::mps_in_mig,
                                 Mechanism::amd_partition, Mechanism::vgpu, Mechanism::mig_vgpu, Mechanism::whole},
                  .fractions = true,
                  .quota = QuotaModel::fair_share,
                  .slo = Slo::soft,
                  .tier = Tier::container,
                  .sharing = {PeerTrust::distrusting, PeerTrust::distrusting},
                  .preemption = Preemption::always,
                  .priority = {.usual = 0, .highest = 10},
                  .reclaimBound = Duration{30'000}});
}

}  // namespace

std::span<const TenantClass> shipped_tenant_classes() {
    static const std::array classes{frontier_training(), slo_serving(), research(), batch()};
    return classes;
}

}  // namespace bulkhead
