// Fleets, classes, tenants and requests that nobody would think of, from one seed each, through the real compiler, with
// the independent checker beside it. A failure prints its seed, and the seed replays it.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "bulkhead/model/consistency.hpp"
#include "bulkhead/policy/checker_test.hpp"
#include "bulkhead/policy/compile.hpp"
#include "bulkhead/policy/fleet_fixture_test.hpp"

namespace bulkhead {

namespace {

class Chance {
public:
    explicit Chance(std::uint64_t seed) : rng_(seed) {}

    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(rng_() % static_cast<std::uint64_t>(n)); }
    bool one_in(std::int64_t n) { return below(n) == 0; }
    template <class E>
    E any() {
        return static_cast<E>(below(static_cast<std::int64_t>(words(E{}).size())));
    }
    template <class E>
    std::optional<E> maybe(std::int64_t out_of = 3) {
        return one_in(out_of) ? std::nullopt : std::optional(any<E>());
    }
    template <class T>
    T of(std::initializer_list<T> choices) {
        return choices.begin()[below(static_cast<std::int64_t>(choices.size()))];
    }

private:
    std::mt19937_64 rng_;
};

Whereabouts somewhere(Chance& chance) {
    Whereabouts where;
    if (chance.one_in(8)) where.sites = {chance.of({"frankfurt", "ashburn"})};
    if (chance.one_in(8)) where.jurisdictions = {chance.of({"eu", "us"})};
    return where;
}

GpuNode some_machine(Chance& chance, std::size_t number) {
    const auto model = chance.of<const char*>(
        {"h100-80gb-sxm5", "h100-80gb-sxm5", "h100-80gb-pcie", "h200-141gb", "a100-40gb", "mi300x"});
    GpuNode node = fixture::machine(
        fmt::format("machine-{}", number), model, chance.any<NvLink>(),
        chance.of({ConfidentialMode::off, ConfidentialMode::off, ConfidentialMode::on, ConfidentialMode::devtools}),
        {});
    node.spec.site = chance.of({"frankfurt", "frankfurt", "ashburn"});
    node.spec.unschedulable = chance.one_in(10);
    node.status.gpus[0].count = 1 + chance.below(8);
    node.status.cpu = chance.of<std::int64_t>({2, 64, 128});
    for (const Capability capability : every<Capability>()) {
        if (chance.one_in(5)) continue;
        DetectedCapability detected{capability, chance.any<Grade>(), fixture::an_hour_ago};
        if (chance.one_in(8))
            detected.verifiedAt =
                chance.of<std::optional<Instant>>({std::nullopt, fixture::two_days_ago, Instant{fixture::now.ms + 1}});
        node.status.capabilities.push_back(detected);
    }
    for (const FabricFence fence : {FabricFence::on, FabricFence::nic})
        if (chance.one_in(4)) {
            NodeFabricTest& test = node.status.fabricTests.emplace_back();
            test.fence = fence;
            for (const char* attempt : {"forged-mac", "foreign-tenant"})
                if (chance.one_in(3)) test.through.emplace_back(attempt);
        }
    if (chance.one_in(2))
        node.status.versions = {{Component::container_toolkit, chance.of<const char*>({"1.17.7", "1.17.8", "1.9.1"})}};
    return node;
}

TenantClass some_class(Chance& chance) {
    TenantClass made;
    made.metadata.name = "odd";
    TenantClassSpec& spec = made.spec;
    for (const Mechanism mechanism : every<Mechanism>())
        if (!chance.one_in(4)) spec.mechanisms.push_back(mechanism);
    if (spec.mechanisms.empty()) spec.mechanisms = {Mechanism::whole};
    if (chance.one_in(2)) std::ranges::reverse(spec.mechanisms);
    spec.fractions = !chance.one_in(4);
    spec.quota = chance.any<QuotaModel>();
    spec.slo = chance.any<Slo>();
    spec.tier = chance.of({Tier::process, Tier::process, Tier::container, Tier::vm, Tier::confidential_vm});
    spec.sharing.node = chance.of({PeerTrust::distrusting, chance.any<PeerTrust>()});
    spec.sharing.gpu = std::min(spec.sharing.node, chance.of({PeerTrust::distrusting, chance.any<PeerTrust>()}));
    spec.preemption =
        spec.slo == Slo::hard ? chance.of({Preemption::never, Preemption::allowed}) : chance.any<Preemption>();
    spec.priority.highest = 10 * chance.below(10);
    spec.priority.usual = spec.priority.highest / 2;
    return made;
}

TenantSpec some_tenant(Chance& chance) {
    TenantSpec spec = fixture::subject(
        chance.of<const char*>({"frontier-training", "slo-serving", "research", "batch", "odd", "odd", "odd", "odd"}),
        chance.of({OperatorTrust::trusted, OperatorTrust::trusted, OperatorTrust::untrusted}),
        chance.of({Compliance::off, Compliance::off, chance.any<Compliance>()}), false);
    spec.quota.guarantee = Gpus::of_thousandths(500 * chance.below(17));
    if (chance.one_in(3)) spec.quota.limit = spec.quota.guarantee + Gpus::of_thousandths(500 * chance.below(5));
    spec.priorityGrant = 10 * chance.below(10);
    for (const AcceptedRisk& risk : fixture::every_risk())
        if (chance.one_in(2)) spec.accepts.push_back(risk);
    spec.placement = somewhere(chance);
    return spec;
}

Snapshot some_fleet(Chance& chance) {
    std::vector<GpuNode> nodes;
    const auto count = static_cast<std::size_t>(1 + chance.below(4));
    while (nodes.size() < count) nodes.push_back(some_machine(chance, nodes.size()));
    Snapshot fleet = fixture::fleet(chance.any<ThreatModel>(), nodes, some_tenant(chance));
    fleet.classes = {some_class(chance)};
    FleetPolicySpec& policy = fleet.policies[0].spec;
    policy.pricing.complianceSurchargePercent = chance.below(30);
    const Instant soon{fixture::now.ms + 3'600'000};
    if (chance.one_in(2)) {
        const std::string first = chance.of({"subject", "subject", "friend"});
        policy.exceptions = {
            {.name = "migration-week",
             .tenants = {first, "rival"},
             .tier = chance.of({Tier::process, Tier::container}),
             .grantedBy = "security-admin",
             .consents = {{first, "ciso", fixture::two_days_ago}, {"rival", "ciso", fixture::two_days_ago}},
             .expires = chance.of({soon, soon, fixture::an_hour_ago}),
             .reason = "moving house"}};
    }
    if (chance.one_in(2)) {
        Advisory flaw{.id = "CVE-0000-0001",
                      .component = Component::container_toolkit,
                      .fixed = {{"", "1.17.8"}},
                      .severity = chance.any<Severity>(),
                      .escape = chance.one_in(2),
                      .published = fixture::two_days_ago,
                      .due = chance.of<std::optional<Instant>>({std::nullopt, soon, fixture::an_hour_ago}),
                      .source = "a story"};
        if (chance.one_in(2)) flaw.closesTiers = {chance.any<Tier>()};
        if (chance.one_in(3)) flaw.closesMechanisms = {chance.any<Mechanism>()};
        policy.versionGate.advisories = {flaw};
    }
    return fleet;
}

GpuWorkload some_request(Chance& chance) {
    const fixture::Shape shape = fixture::shapes[static_cast<std::size_t>(chance.below(fixture::shapes.size()))];
    const fixture::Peers beside = fixture::peers[static_cast<std::size_t>(chance.below(fixture::peers.size()))];
    GpuWorkload work = fixture::request(shape, chance.any<Tier>(), beside,
                                        chance.of({fixture::Level::soft, fixture::Level::soft,
                                                   fixture::Level::hard_reserved, fixture::Level::hard_bare}));
    GpuWorkloadSpec& spec = work.spec;
    if (spec.gpu.count) spec.gpu.count = chance.of<std::int64_t>({1, 1, 2, 8});
    if (spec.gpu.fraction) spec.gpu.fraction = Gpus{chance.of<std::int64_t>({21, 2625, 3000, 10'500, 20'979})};
    if (spec.gpu.fraction && chance.one_in(4)) {
        spec.gpu.fraction.reset();
        spec.gpu.memory = ByteSize{chance.of<std::int64_t>({1, 10, 60, 500}) << 30};
    }
    if (!spec.gpu.profile.empty() && chance.one_in(4))
        spec.gpu.profile = chance.of<const char*>({"3g.40gb", "1g.18gb", "7g.80gb", "cpx_nps1"});
    if (chance.one_in(5)) spec.gpu.mechanism.reset();
    if (chance.one_in(12)) spec.gpu.models = {chance.of<const char*>({"h100-80gb-sxm5", "mi300x"})};
    spec.gpu.nvlink = chance.one_in(10);
    spec.tasks = chance.of<std::int64_t>({1, 1, 1, 2, 9});
    if (chance.one_in(5)) spec.isolation.tier.reset();
    if (chance.one_in(8)) spec.isolation.node.reset();
    if (chance.one_in(8)) spec.isolation.gpu.reset();
    if (chance.one_in(8)) spec.isolation.gpu = chance.any<PeerTrust>();  // perhaps wider than its node
    if (spec.slo.level == Slo::hard && chance.one_in(3)) spec.slo.resources = {chance.any<Aspect>()};
    if (chance.one_in(4)) spec.network.rdma = true;
    if (chance.one_in(6)) spec.storage.localNvme = ByteSize{1};
    spec.network.encrypted = chance.one_in(2);
    spec.storage.encrypted = chance.one_in(2);
    if (chance.one_in(4)) spec.priority = 10 * chance.below(10);
    if (chance.one_in(4)) spec.preemptible = chance.one_in(2);
    if (chance.one_in(6)) spec.placement = somewhere(chance);
    return work;
}

bool leaves_nothing_open(const GpuWorkloadSpec& spec) {
    return spec.gpu.mechanism && spec.isolation.tier && spec.isolation.node && spec.isolation.gpu;
}

#if defined(BULKHEAD_SLOW_BUILD)
constexpr std::uint64_t seeds = 100;
#else
constexpr std::uint64_t seeds = 1'000;
#endif

TEST(PolicyStory, no_fleet_and_no_request_makes_the_compiler_break_a_rule) {
    std::map<std::string, std::size_t> seen;  // each kind of failure is shown once
    std::size_t asked = 0, contracts = 0, proposals = 0, failures = 0, inconsistent = 0;
    for (std::uint64_t seed = 1; seed <= seeds && failures < 20; ++seed) {
        Chance chance(seed);
        const Snapshot fleet = some_fleet(chance);
        if (!inconsistencies(fleet).empty()) {
            ++inconsistent;
            continue;
        }
        const Compiler compiler(fleet, fixture::now);
        const checker::Checker checker(fleet, fixture::now);
        for (int i = 0; i < 20; ++i) {
            const GpuWorkload work = some_request(chance);
            const checker::Answer answer = ask(compiler, checker, work);
            ++asked;
            contracts += answer.contract() != nullptr;
            proposals += answer.refusal() != nullptr && answer.refusal()->proposal;
            std::string wrong = answer.wrong;
            if (answer.contract() != nullptr && leaves_nothing_open(work.spec))
                wrong += print(checker.expected(work).surely);
            if (!wrong.empty() && seen[wrong]++ == 0 && ++failures <= 20)
                ADD_FAILURE() << "seed " << seed << ", request " << i << ": " << fixture::in_one_line(work) << "\n"
                              << wrong << in_words(work, answer);
        }
    }
    fmt::print("policy story: {} requests to {} fleets, {} contracts, {} proposals\n", asked, seeds - inconsistent,
               contracts, proposals);
    EXPECT_EQ(inconsistent, 0U);
    EXPECT_GT(contracts, asked / 250) << "too little is accepted to show anything of what is";
}

}  // namespace

}  // namespace bulkhead
