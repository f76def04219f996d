#include "sim/tenants.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace bulkhead::sim {

namespace {

struct Person {
    std::string name, tenant_class, domain;
    std::uint32_t guarantee_of = 0;  // one in so many GPUs; 0: none
};

const std::array<Person, 8>& people() {
    static const std::array<Person, 8> all{
        Person{"aurora", "frontier-training", "", 8},
        Person{"bank", "slo-serving", "", 16},
        Person{"shop", "slo-serving", "", 16},
        Person{"vision", "research", "lab", 0},
        Person{"speech", "research", "lab", 0},
        Person{"solo", "research", "", 0},
        Person{"nightly", "batch", "", 0},
        Person{"crowd", "batch", "", 0},
    };
    return all;
}

// Tenants that distrust each other need a node each for what they are guaranteed: in a fleet of two nodes the shop has
// no guarantee.
std::int64_t guarantee(const Person& person, std::uint32_t gpus) {
    if (gpus < 24 && person.name == "shop") return 0;
    return person.guarantee_of == 0 ? 0 : std::max<std::int64_t>(gpus / person.guarantee_of, 1);
}

const Instant long_ago{1'700'000'000'000};

}  // namespace

std::vector<TenantFacts> tenant_facts(std::uint32_t gpus) {
    std::vector<TenantFacts> facts;
    for (const Person& person : people())
        facts.push_back({person.name, person.domain, person.guarantee_of == 0 ? -1 : 21'000 * guarantee(person, gpus)});
    return facts;
}

// Of some profiles, and twice: dearer after two hours. What is not here is counted and costs nothing.
std::vector<PriceFacts> price_facts() {
    const std::int64_t begin = 1'799'900'000'000, later = 1'800'007'200'000;
    return {{begin, 12, {{"", 2'499'999'999}, {"1g.10gb", 370'000'001}, {"3g.40gb", 1'111'111'111}}},
            {later, 15, {{"", 2'999'999'999}, {"1g.10gb", 410'000'003}, {"2g.20gb", 800'000'000}}}};
}

std::vector<AnyObject> declared_objects(std::uint32_t) {
    FleetPolicy policy;
    policy.metadata.name = "fleet";
    policy.spec.threatModel = ThreatModel::internal;
    policy.spec.sites = {{"fra", "eu"}};
    policy.spec.versionGate.shippedAdvisories = false;
    policy.spec.pricing.currency = "EUR";
    // Few numbers, so that whoever gets one that is not free is seen.
    policy.spec.fabric =
        FabricPolicy{.pool = "10.128.0.0/16",
                     .tenantPrefix = 20,
                     .vlans = NumberRange{100, 115},
                     .partitionKeys = std::nullopt,
                     .classes = {{.tenantClass = "frontier-training", .rateMbps = 200'000, .dscp = 26}}};
    for (const PriceFacts& facts : price_facts()) {
        PriceList list{.name = fmt::format("list-{}", facts.from),
                       .validFrom = {facts.from},
                       .complianceSurchargePercent = facts.surcharge_percent};
        for (const auto& [profile, nano] : facts.nano_per_hour)
            list.prices.push_back({.model = "h100-80gb-sxm5", .profile = profile, .perHour = {nano}});
        policy.spec.pricing.lists.push_back(std::move(list));
    }
    return {policy};
}

std::vector<AnyObject> declared_tenants(std::uint32_t gpus) {
    std::vector<AnyObject> all;
    FleetPolicy policy = std::get<FleetPolicy>(declared_objects(gpus).front());
    policy.spec.trustDomains = {{"lab", {"vision", "speech"}}};
    for (const Person& person : people()) {
        Tenant tenant;
        tenant.metadata.name = person.name;
        tenant.spec.tenantClass = person.tenant_class;
        tenant.spec.quota.guarantee = Gpus::whole(guarantee(person, gpus));
        tenant.spec.priorityGrant = 100;
        if (!person.domain.empty()) {
            tenant.spec.trustDomain = DomainMembership{person.domain, Consent{"head", long_ago}};
            tenant.spec.accepts = {{Risk::shared_fault_domain, "head", long_ago},
                                   {Risk::shared_nvlink, "head", long_ago}};
        }
        all.emplace_back(tenant);
    }
    all.emplace_back(policy);
    return all;
}

const std::string& tenant_name(Rng& rng) { return people()[rng.below(people().size())].name; }

GpuWorkload random_workload(Rng& rng, std::uint64_t number) {
    const Person& person = people()[rng.below(people().size())];
    GpuWorkload workload;
    workload.metadata.name = fmt::format("w{}", number);
    GpuWorkloadSpec& spec = workload.spec;
    spec.tenant = person.name;
    const auto profile = [&] {
        static constexpr std::array<std::string_view, 5> profiles{"1g.10gb", "2g.20gb", "3g.40gb", "1g.20gb",
                                                                  "4g.40gb"};
        spec.gpu.profile = std::string{profiles[rng.below(profiles.size())]};
    };
    spec.tasks = rng.between(1, 3);
    if (person.tenant_class == "frontier-training") {
        spec.gpu.count = std::int64_t{1} << rng.below(4);
        if (rng.chance(300)) spec.topology.within = TopologyLevel::leaf;
    } else if (person.tenant_class == "slo-serving") {
        profile();
        if (rng.chance(500)) {
            spec.slo.level = Slo::hard;
            spec.cpu = 4;
            spec.network.reserved = true;
        }
    } else if (person.tenant_class == "research") {
        switch (rng.below(3)) {
            case 0:
                spec.gpu.fraction = Gpus{rng.chance(500) ? 250 : 500};
                break;
            case 1:
                profile();
                spec.gpu.mechanism = Mechanism::mig;
                break;
            default:
                spec.gpu.count = 1;
                spec.gpu.mechanism = Mechanism::whole;
        }
    } else {
        spec.tasks = rng.between(1, 6);
        spec.gpu.count = rng.between(1, 2);
        spec.gpu.mechanism = Mechanism::whole;
    }
    if (rng.chance(200)) spec.network.rdma = true;
    if (rng.chance(200)) spec.storage.localNvme = ByteSize{std::int64_t{100} << 30};
    if (rng.chance(50)) {  // what nobody may have
        spec.priority = 1000;
    }
    return workload;
}

GpuNodeSpec node_spec(std::uint32_t index) {
    return {
        .site = "fra", .zone = "a", .rack = fmt::format("r{}", index / 4), .leaf = fmt::format("leaf-{}", index / 8)};
}

NodeModelSpec node_model_spec(std::uint32_t index, std::uint32_t gpus) {
    NodeModelSpec spec;
    spec.node = fmt::format("node-{:02}", index);
    spec.gpu_model = "h100-80gb-sxm5";
    spec.gpus = static_cast<std::uint16_t>(gpus);
    spec.drives = 2;
    spec.functions = 4;
    spec.capabilities = {Capability::mig,
                         Capability::mps,
                         Capability::time_slicing,
                         Capability::virtual_machines,
                         Capability::rdma,
                         Capability::local_nvme,
                         Capability::iommu_groups,
                         Capability::nvlink_partition,
                         Capability::verified_reboot};
    spec.versions = {{Component::driver, "580.159.04"}, {Component::container_toolkit, "1.19.1"}};
    spec.cpu = 192;
    spec.memory = ByteSize{std::int64_t{2} << 40};
    spec.nvlink = NvLink::fabric;
    return spec;
}

}  // namespace bulkhead::sim
