#include "sim/tenants.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

namespace bulkhead::sim {

namespace {

struct Person {
    std::string name, tenant_class, domain;
    std::uint32_t guarantee_of = 0;  // one in so many GPUs; 0: none
    bool crumbs = false;             // asks for small parts of GPUs only
};

const std::array<Person, 10>& people() {
    static const std::array<Person, 10> all{
        Person{"aurora", "frontier-training", "", 8},
        Person{"bank", "slo-serving", "", 16},
        Person{"shop", "slo-serving", "", 16},
        Person{"vision", "research", "lab", 0},
        Person{"speech", "research", "lab", 16},
        Person{"solo", "research", "", 0},
        Person{"nightly", "batch", "", 0},
        Person{"crowd", "batch", "", 0},
        Person{"ant", "batch", "", 0, true},
        Person{"bee", "batch", "", 0, true},
    };
    return all;
}

bool is_hard(const Person& person) {
    return person.tenant_class == "frontier-training" || person.tenant_class == "slo-serving";
}

// What four nodes or more can keep at once: a node for each trust domain that is guaranteed anything. On fewer, the
// bank and the shop trust each other, and the laboratory is guaranteed nothing.
std::string domain_of(const Person& person, std::uint32_t nodes) {
    return nodes < 4 && person.tenant_class == "slo-serving" ? "trade" : person.domain;
}

std::int64_t guarantee(const Person& person, std::uint32_t nodes, std::uint32_t gpus) {
    if (person.guarantee_of == 0 || (nodes < 4 && !is_hard(person))) return 0;
    const std::int64_t least = person.tenant_class == "frontier-training" ? gpus : 1;
    return std::max<std::int64_t>(nodes * gpus / person.guarantee_of, least);
}

constexpr std::int64_t unit = gpu_unit;  // one GPU, as quota counts it

const Instant long_ago{1'700'000'000'000};

}  // namespace

std::vector<TenantFacts> tenant_facts(std::uint32_t nodes, std::uint32_t gpus) {
    std::vector<TenantFacts> facts;
    for (const Person& person : people()) {
        const std::int64_t guaranteed = unit * guarantee(person, nodes, gpus);
        const std::string domain = domain_of(person, nodes);
        std::int64_t together = 0;
        for (const Person& other : people())
            if (&other == &person || (!domain.empty() && domain_of(other, nodes) == domain))
                together += guarantee(other, nodes, gpus);
        facts.push_back({.name = person.name,
                         .domain = domain,
                         .hard_limit = is_hard(person) ? guaranteed : -1,
                         .guarantee = guaranteed,
                         .nodes = (together + gpus - 1) / gpus,
                         .gives_way = guaranteed == 0,
                         .never_gives_way = is_hard(person)});
    }
    return facts;
}

// Of some profiles, and twice: dearer after two hours. What is not here is counted and costs nothing.
std::vector<PriceFacts> price_facts() {
    const std::int64_t begin = 1'799'900'000'000, later = 1'800'007'200'000;
    return {{begin, 12, {{"", 2'499'999'999}, {"1g.10gb", 370'000'001}, {"3g.40gb", 1'111'111'111}}},
            {later, 15, {{"", 2'999'999'999}, {"1g.10gb", 410'000'003}, {"2g.20gb", 800'000'000}}}};
}

std::vector<AnyObject> declared_objects() {
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

namespace {

Tenant declared(const Person& person, std::uint32_t nodes, std::uint32_t gpus) {
    Tenant tenant;
    tenant.metadata.name = person.name;
    tenant.spec.tenantClass = person.tenant_class;
    tenant.spec.quota.guarantee = Gpus::whole(guarantee(person, nodes, gpus));
    tenant.spec.priorityGrant = 100;
    // What is lent to it may run for a while.
    if (person.name == "nightly") tenant.spec.quota.reclaimMinRuntime = Duration{120'000};
    if (const std::string domain = domain_of(person, nodes); !domain.empty()) {
        tenant.spec.trustDomain = DomainMembership{domain, Consent{"head", long_ago}};
        tenant.spec.accepts = {{Risk::shared_fault_domain, "head", long_ago}, {Risk::shared_nvlink, "head", long_ago}};
    }
    return tenant;
}

}  // namespace

std::vector<AnyObject> declared_tenants(std::uint32_t nodes, std::uint32_t gpus) {
    std::vector<AnyObject> all;
    FleetPolicy policy = std::get<FleetPolicy>(declared_objects().front());
    std::map<std::string, std::vector<std::string>> domains;
    for (const Person& person : people()) {
        if (const std::string domain = domain_of(person, nodes); !domain.empty())
            domains[domain].push_back(person.name);
        all.emplace_back(declared(person, nodes, gpus));
    }
    for (const auto& [name, members] : domains) policy.spec.trustDomains.push_back({name, members});
    all.emplace_back(policy);
    return all;
}

Tenant limited_tenant(const std::string& name, std::optional<Gpus> limit) {
    Tenant tenant = declared(*std::ranges::find(people(), name, &Person::name), 0, 0);
    tenant.spec.quota.limit = limit;
    return tenant;
}

const std::string& tenant_name(Rng& rng) { return people()[rng.below(people().size())].name; }

GpuWorkload random_claim(Rng& rng, std::uint64_t number, std::uint32_t nodes, std::uint32_t gpus) {
    const Person* person = nullptr;
    while (person == nullptr || guarantee(*person, nodes, gpus) == 0) person = &people()[rng.below(people().size())];
    GpuWorkload workload;
    workload.metadata.name = fmt::format("w{}", number);
    workload.spec.tenant = person->name;
    const std::int64_t whole = guarantee(*person, nodes, gpus);
    if (person->tenant_class == "slo-serving") {  // sevenths of GPUs
        workload.spec.gpu.profile = "1g.10gb";
        workload.spec.tasks = 7 * whole;
    } else {
        workload.spec.gpu.count = whole;
        if (person->tenant_class == "research") workload.spec.gpu.mechanism = Mechanism::whole;
    }
    return workload;
}

GpuWorkload elastic_gang(const std::string& tenant, std::uint64_t number, std::int64_t tasks) {
    GpuWorkload workload;
    workload.metadata.name = fmt::format("w{}", number);
    workload.spec.tenant = tenant;
    workload.spec.tasks = tasks;
    workload.spec.minTasks = 1;
    workload.spec.checkpointInterval = Duration{600'000};
    workload.spec.gpu.count = 1;
    workload.spec.gpu.mechanism = Mechanism::whole;
    return workload;
}

GpuWorkload random_workload(Rng& rng, std::uint64_t number, std::uint32_t gpus, bool without_guarantee) {
    std::size_t drawn = rng.below(people().size());
    while (without_guarantee && people()[drawn].guarantee_of != 0) drawn = rng.below(people().size());
    const Person& person = people()[drawn];
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
        // Guaranteed work that one node can hold: what invariant 6 follows to its start.
        if (rng.chance(500)) {
            spec.tasks = 1;
            spec.gpu.count = std::min<std::int64_t>(spec.gpu.count.value_or(1), gpus);
        }
        if (rng.chance(300)) spec.topology.within = TopologyLevel::leaf;
    } else if (person.tenant_class == "slo-serving") {
        profile();
        if (rng.chance(500)) {
            spec.slo.level = Slo::hard;
            spec.cpu = 4;
            spec.network.reserved = true;
        }
    } else if (person.tenant_class == "research") {
        spec.preemptible = rng.chance(700);
        switch (rng.below(3)) {
            case 0:
                spec.gpu.fraction = Gpus::of_thousandths(rng.chance(500) ? 250 : 500);
                break;
            case 1:
                profile();
                spec.gpu.mechanism = Mechanism::mig;
                break;
            default:
                spec.gpu.count = 1;
                spec.gpu.mechanism = Mechanism::whole;
        }
    } else if (person.crumbs) {
        spec.gpu.fraction = Gpus::of_thousandths(100);
        // Half as many clients as one MPS server takes.
        if (rng.chance(200)) {
            spec.gpu.fraction = Gpus::of_thousandths(10);
            spec.gpu.mechanism = Mechanism::mps;
            spec.tasks = 24 + rng.between(0, 6);
        } else {
            spec.tasks = 1;
        }
    } else {
        spec.tasks = rng.between(1, 6);
        if (rng.chance(without_guarantee ? 800 : 400)) spec.minTasks = rng.between(1, spec.tasks);
        // Only a gang that saves its work gives up single tasks.
        if (spec.minTasks && number % 4 != 0) spec.checkpointInterval = Duration{600'000};
        spec.gpu.count = rng.between(1, 2);
        spec.gpu.mechanism = Mechanism::whole;
    }
    if (rng.chance(person.crumbs ? 20 : 200)) spec.network.rdma = true;
    if (rng.chance(person.crumbs ? 20 : 200)) spec.storage.localNvme = ByteSize{std::int64_t{100} << 30};
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
