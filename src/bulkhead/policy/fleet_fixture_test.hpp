// Fleets to try policy on: eight machines that differ in what they can do, a tenant to ask, neighbours to fear, and
// every request worth telling apart. Plain data, built by hand; nothing here knows a rule.
#pragma once

#include <fmt/core.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/model/snapshot.hpp"

// Sanitized and unoptimised builds try a sample; each test that does says so.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
#define BULKHEAD_SLOW_BUILD
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define BULKHEAD_SLOW_BUILD
#endif
#endif

namespace bulkhead::fixture {

inline constexpr Instant now{1'794'733'200'000};  // 2026-11-15T09:00:00Z
inline constexpr Instant an_hour_ago{now.ms - 3'600'000};
inline constexpr Instant two_days_ago{now.ms - 2 * 86'400'000};
inline constexpr std::int64_t gpus_per_node = 8;

inline GpuNode machine(std::string name, std::string model, NvLink nvlink, ConfidentialMode mode,
                       std::vector<Capability> can, Instant verified = an_hour_ago) {
    GpuNode node;
    node.metadata.name = std::move(name);
    node.spec.site = "frankfurt";
    node.status.observedAt = now;
    node.status.gpus = {NodeGpus{.model = std::move(model), .count = gpus_per_node}};
    node.status.cpu = 128;
    node.status.memory = {std::int64_t{1} << 40};
    node.status.nvlink = nvlink;
    node.status.confidentialMode = mode;
    for (const Capability capability : can) node.status.capabilities.push_back({capability, Grade::silicon, verified});
    return node;
}

// The eight machines. What is not named here is not there.
inline std::vector<GpuNode> machines() {
    using enum Capability;
    const char* const sxm = "h100-80gb-sxm5";
    const char* const pcie = "h100-80gb-pcie";
    const auto off = ConfidentialMode::off, on = ConfidentialMode::on;
    const std::vector<Capability> walls{mig,  mps,       time_slicing, virtual_machines, iommu_groups, nvlink_partition,
                                        rdma, local_nvme};
    std::vector<Capability> walls_and_boot = walls;
    walls_and_boot.push_back(verified_reboot);
    return {
        machine("hgx-bare", sxm, NvLink::fabric, off, {mig, mps, time_slicing, rdma, local_nvme}),
        machine("hgx-walls", sxm, NvLink::fabric, off, walls),
        machine("hgx-stale", sxm, NvLink::fabric, off, walls_and_boot, two_days_ago),
        machine("vgpu-host", pcie, NvLink::none, off,
                {mig, mps, time_slicing, vgpu, mig_vgpu, virtual_machines, iommu_groups, rdma, local_nvme}),
        machine("cc-single", pcie, NvLink::none, on,
                {mig, mps, time_slicing, virtual_machines, iommu_groups, confidential_cpu, confidential_gpu, rdma,
                 local_nvme}),
        machine("cc-board", sxm, NvLink::fabric, on,
                {mig, mps, time_slicing, virtual_machines, iommu_groups, confidential_cpu, confidential_board, rdma,
                 local_nvme}),
        machine("amd-host", "mi300x", NvLink::none, off,
                {amd_partition, time_slicing, virtual_machines, iommu_groups, verified_reboot, rdma, local_nvme}),
        machine("hgx-everything", sxm, NvLink::fabric, off,
                {mig, mps, time_slicing, vgpu, mig_vgpu, virtual_machines, iommu_groups, nvlink_partition,
                 verified_reboot, confidential_cpu, confidential_gpu, confidential_board, rdma, local_nvme}),
    };
}

// One fleet: a policy without advisories, a trust domain, the tenant under test, a friend in its domain, a rival
// outside.
inline Snapshot fleet(ThreatModel threat, std::vector<GpuNode> nodes, TenantSpec subject) {
    Snapshot made;
    FleetPolicy policy;
    policy.metadata.name = "fleet";
    policy.spec.threatModel = threat;
    policy.spec.sites = {{"frankfurt", "eu"}, {"ashburn", "us"}};
    policy.spec.trustDomains = {{"lab", {"subject", "friend"}}};
    policy.spec.versionGate.shippedAdvisories = false;  // advisories have their own tests
    made.policies = {policy};

    const DomainMembership member{"lab", Consent{"ciso@example.org", two_days_ago}};
    Tenant tenant;
    tenant.metadata.name = "subject";
    tenant.spec = std::move(subject);
    tenant.spec.trustDomain = member;
    made.tenants.push_back(tenant);

    Tenant other;
    other.metadata.name = "friend";
    other.spec.tenantClass = "batch";
    other.spec.trustDomain = member;
    made.tenants.push_back(other);
    other.metadata.name = "rival";
    other.spec.trustDomain = std::nullopt;
    made.tenants.push_back(other);
    made.nodes = std::move(nodes);
    return made;
}

inline std::vector<AcceptedRisk> every_risk() {
    std::vector<AcceptedRisk> all;
    for (const Risk risk : every<Risk>()) all.push_back({risk, "ciso@example.org", two_days_ago});
    return all;
}

// The guarantee is what one machine has, so that rule 8 has nothing to say.
inline TenantSpec subject(std::string tenant_class, OperatorTrust trust, Compliance compliance, bool accepts) {
    TenantSpec spec;
    spec.tenantClass = std::move(tenant_class);
    spec.operatorTrust = trust;
    spec.compliance = compliance;
    spec.quota.guarantee = Gpus::whole(gpus_per_node);
    spec.priorityGrant = 100;
    if (accepts) spec.accepts = every_risk();
    return spec;
}

// --- every request worth telling apart ---

enum class Form : std::uint8_t { count, board, profile, fraction };
struct Shape {
    Mechanism mechanism;
    Form form;
};
// The eight mechanisms, a fraction over each that can back one, and a whole board at once.
inline constexpr auto shapes = [] {
    using enum Mechanism;
    return std::to_array<Shape>({
        {whole, Form::count},
        {mig, Form::profile},
        {mps, Form::count},
        {time_slicing, Form::count},
        {vgpu, Form::profile},
        {mig_vgpu, Form::profile},
        {mps_in_mig, Form::profile},
        {amd_partition, Form::profile},
        {mig, Form::fraction},
        {mps, Form::fraction},
        {time_slicing, Form::fraction},
        {vgpu, Form::fraction},
        {mig_vgpu, Form::fraction},
        {mps_in_mig, Form::fraction},
        {amd_partition, Form::fraction},
        {whole, Form::board},
    });
}();

struct Peers {
    PeerTrust node, gpu;
};
inline constexpr auto peers = [] {
    using enum PeerTrust;
    return std::to_array<Peers>({{same_tenant, same_tenant},
                                 {same_domain, same_tenant},
                                 {same_domain, same_domain},
                                 {distrusting, same_tenant},
                                 {distrusting, same_domain},
                                 {distrusting, distrusting}});
}();

// A hard level with what it needs beside the GPU, and without.
enum class Level : std::uint8_t { soft, hard_reserved, hard_bare };
inline constexpr std::array levels{Level::soft, Level::hard_reserved};  // of the cross product

inline const char* slice_of(Mechanism mechanism) {
    if (mechanism == Mechanism::amd_partition) return "cpx_nps4";
    return mechanism == Mechanism::vgpu ? "H100-10C" : "1g.10gb";
}

inline GpuWorkload request(Shape shape, Tier tier, Peers beside, Level level) {
    GpuWorkload made;
    made.metadata.name = "work";
    made.spec.tenant = "subject";
    GpuRequest& gpu = made.spec.gpu;
    gpu.mechanism = shape.mechanism;
    switch (shape.form) {
        case Form::count:
            gpu.count = 1;
            break;
        case Form::board:
            gpu.count = gpus_per_node;
            break;
        case Form::profile:
            gpu.profile = slice_of(shape.mechanism);
            break;
        case Form::fraction:
            gpu.fraction = Gpus::of_thousandths(125);
            break;  // an eighth: a slice of either vendor's holds it
    }
    made.spec.isolation = {tier, beside.node, beside.gpu};
    if (level != Level::soft) made.spec.slo.level = Slo::hard;
    if (level == Level::hard_reserved) {
        made.spec.cpu = 4;
        made.spec.network.reserved = true;
    }
    return made;
}

// One request in one line, for whoever reads a failure.
inline std::string in_one_line(const GpuWorkload& work) {
    const GpuWorkloadSpec& spec = work.spec;
    const auto or_open = [](const auto& value) { return value ? word(*value) : std::string_view{"(open)"}; };
    std::string amount = spec.gpu.count      ? fmt::format("count {}", *spec.gpu.count)
                         : spec.gpu.fraction ? fmt::format("fraction {}", print(*spec.gpu.fraction))
                         : spec.gpu.memory   ? fmt::format("memory {}", spec.gpu.memory->bytes)
                                             : fmt::format("profile {}", spec.gpu.profile);
    return fmt::format("{} {} x{}, tier {}, node {}, gpu {}, slo {}{}{}{}{}{}", or_open(spec.gpu.mechanism), amount,
                       spec.tasks, or_open(spec.isolation.tier), or_open(spec.isolation.node),
                       or_open(spec.isolation.gpu), word(spec.slo.level), spec.cpu ? " cpu" : "",
                       spec.network.reserved ? " nic" : "", spec.gpu.nvlink ? " nvlink" : "",
                       spec.network.rdma ? (spec.network.encrypted ? " rdma-encrypted" : " rdma") : "",
                       spec.storage.localNvme ? (spec.storage.encrypted ? " nvme-encrypted" : " nvme") : "");
}

}  // namespace bulkhead::fixture
