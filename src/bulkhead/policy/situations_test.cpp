// What the cross product holds still: places, advisories, exceptions, slices by name, amounts.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bulkhead/gpu/board.hpp"
#include "bulkhead/policy/capacity.hpp"
#include "bulkhead/policy/checker_test.hpp"
#include "bulkhead/policy/compile.hpp"
#include "bulkhead/policy/fabric_terms.hpp"
#include "bulkhead/policy/fleet_fixture_test.hpp"
#include "bulkhead/policy/slice.hpp"

namespace bulkhead::situations {

namespace {

using checker::Answer;
using checker::Checker;
using fixture::in_one_line;
using fixture::Level;

const auto same_tenant = PeerTrust::same_tenant, same_domain = PeerTrust::same_domain,
           distrusting = PeerTrust::distrusting;

GpuNode named(std::string_view name) {
    for (const GpuNode& node : fixture::machines())
        if (node.metadata.name == name) return node;
    return {};
}

// Asks, and holds the answer against the checker, whatever it is.
Answer ask(const Snapshot& snapshot, const GpuWorkload& work, Instant at = fixture::now) {
    Answer answer = ask(Compiler(snapshot, at), Checker(snapshot, at), work);
    EXPECT_EQ(answer.wrong, "") << in_one_line(work);
    return answer;
}

bool accepted(const Snapshot& snapshot, const GpuWorkload& work, Instant at = fixture::now) {
    return ask(snapshot, work, at).contract() != nullptr;
}

std::vector<std::string> nodes_of(const Answer& answer) {
    return answer.contract() != nullptr ? answer.contract()->nodes : std::vector<std::string>{};
}

Snapshot batch_fleet(ThreatModel threat, std::vector<GpuNode> nodes) {
    return fixture::fleet(threat, std::move(nodes),
                          fixture::subject("batch", OperatorTrust::trusted, Compliance::off, true));
}

GpuWorkload one_gpu(Tier tier, PeerTrust node) {
    return fixture::request({Mechanism::whole, fixture::Form::count}, tier, {node, same_tenant}, Level::soft);
}

TEST(PolicySituations, the_fleets_of_these_tests_are_consistent) {
    for (const ThreatModel threat : every<ThreatModel>())
        for (const char* const tenant_class : {"frontier-training", "slo-serving", "research", "batch"}) {
            const Snapshot snapshot =
                fixture::fleet(threat, fixture::machines(),
                               fixture::subject(tenant_class, OperatorTrust::untrusted, Compliance::dedicated, true));
            for (const Finding& finding : inconsistencies(snapshot))
                ADD_FAILURE() << finding.path << ": " << finding.what;
        }
}

// --- P6: places ---

TEST(PolicySituations, work_stays_where_its_tenant_and_the_request_say) {
    GpuNode here = named("hgx-walls"), there = named("hgx-walls");
    there.metadata.name = "hgx-abroad";
    there.spec.site = "ashburn";
    struct Row {
        std::string_view says;
        Whereabouts tenant, work;
        std::vector<std::string> nodes;
    };
    const Row rows[] = {
        {"no wish, anywhere", {}, {}, {"hgx-walls", "hgx-abroad"}},
        {"the tenant's site", {{"frankfurt"}, {}}, {}, {"hgx-walls"}},
        {"the tenant's jurisdiction", {{}, {"us"}}, {}, {"hgx-abroad"}},
        {"the request's site", {}, {{"ashburn"}, {}}, {"hgx-abroad"}},
        {"the request's jurisdiction", {}, {{}, {"eu"}}, {"hgx-walls"}},
        {"both, and they agree", {{}, {"eu"}}, {{"frankfurt"}, {}}, {"hgx-walls"}},
        {"both, and they do not", {{}, {"eu"}}, {{"ashburn"}, {}}, {}},
        {"a request cannot leave what its tenant allows", {{"frankfurt"}, {}}, {{}, {"us"}}, {}},
        {"either of two", {}, {{"frankfurt", "ashburn"}, {}}, {"hgx-walls", "hgx-abroad"}},
    };
    for (const Row& row : rows) {
        Snapshot snapshot = batch_fleet(ThreatModel::cloud, {here, there});
        snapshot.tenants[0].spec.placement = row.tenant;
        GpuWorkload work = one_gpu(Tier::container, same_tenant);
        work.spec.placement = row.work;
        EXPECT_EQ(nodes_of(ask(snapshot, work)), row.nodes) << row.says;
    }
}

// --- I10: the version gate ---

Advisory flaw(Instant due, bool escape = false) {
    return {.id = "CVE-0000-0001",
            .component = Component::container_toolkit,
            .fixed = {{"", "1.17.8"}},
            .severity = Severity::critical,
            .escape = escape,
            .closesTiers = {Tier::process, Tier::container},
            .published = {fixture::now.ms - 8 * 86'400'000},
            .due = due,
            .source = "a test"};
}

TEST(PolicySituations, an_overdue_advisory_closes_the_tiers_it_names_and_no_others) {
    const Instant later{fixture::now.ms + 3'600'000};
    struct Row {
        std::string_view says, installed;
        std::optional<Instant> due;
        std::vector<Mechanism> mechanisms;
        Tier tier;
        bool open;
    };
    const Row rows[] = {
        {"vulnerable, not yet due", "1.17.7", later, {}, Tier::container, true},
        {"vulnerable and overdue", "1.17.7", fixture::an_hour_ago, {}, Tier::container, false},
        {"numbers, not letters: 1.9 is older than 1.17", "1.9.12", fixture::an_hour_ago, {}, Tier::container, false},
        {"fixed", "1.17.8", fixture::an_hour_ago, {}, Tier::container, true},
        {"newer than the fix", "1.18.0", fixture::an_hour_ago, {}, Tier::container, true},
        {"a tier the flaw does not open", "1.17.7", fixture::an_hour_ago, {}, Tier::vm, true},
        {"a mechanism it does not concern", "1.17.7", fixture::an_hour_ago, {Mechanism::mig}, Tier::container, true},
        {"a mechanism it concerns", "1.17.7", fixture::an_hour_ago, {Mechanism::whole}, Tier::container, false},
        {"due by severity: seven days for a critical one, eight have passed", "1.17.7", {}, {}, Tier::container, false},
        {"not named, and the container tier stands on it", "", fixture::an_hour_ago, {}, Tier::container, false},
        {"not named, and no other tier does", "", fixture::an_hour_ago, {}, Tier::vm, true},
    };
    for (const Row& row : rows) {
        GpuNode node = named("hgx-walls");
        if (!row.installed.empty()) node.status.versions = {{Component::container_toolkit, std::string(row.installed)}};
        Snapshot snapshot = batch_fleet(ThreatModel::cloud, {node});
        Advisory advisory = flaw(fixture::now);
        advisory.due = row.due;
        advisory.closesMechanisms = row.mechanisms;
        snapshot.policies[0].spec.versionGate.advisories = {advisory};
        EXPECT_EQ(accepted(snapshot, one_gpu(row.tier, same_tenant)), row.open) << row.says;
    }
}

TEST(PolicySituations, advisories_that_ship_are_held_against_nodes_unless_switched_off) {
    GpuNode node = named("hgx-walls");
    node.status.versions = {{Component::container_toolkit, "1.16.1"}};  // below every fix of CVE-2024-0132 and later
    Snapshot snapshot = batch_fleet(ThreatModel::cloud, {node});
    const GpuWorkload work = one_gpu(Tier::container, same_tenant);
    EXPECT_TRUE(accepted(snapshot, work));
    snapshot.policies[0].spec.versionGate.shippedAdvisories = true;
    const Decision decision =
        Compiler(snapshot, fixture::now).compile(work);  // the checker does not know these advisories
    EXPECT_TRUE(std::holds_alternative<Refusal>(decision));
}

// --- rule 1: exceptions ---

Snapshot excepted(ThreatModel threat) {
    Snapshot snapshot = batch_fleet(threat, {named("hgx-everything")});
    snapshot.policies[0].spec.exceptions = {
        {.name = "migration-week",
         .tenants = {"subject", "rival"},
         .tier = Tier::container,
         .grantedBy = "security-admin",
         .consents = {{"subject", "ciso", fixture::two_days_ago}, {"rival", "ciso", fixture::two_days_ago}},
         .expires = {fixture::now.ms + 3'600'000},
         .reason = "moving house"}};
    return snapshot;
}

TEST(PolicySituations, an_exception_lets_named_strangers_share_a_kernel_while_it_lives) {
    const GpuWorkload work = one_gpu(Tier::container, distrusting);
    Snapshot plain = excepted(ThreatModel::cloud);
    plain.policies[0].spec.exceptions.clear();
    EXPECT_FALSE(accepted(plain, work)) << "without one, strangers need VMs";

    const Answer live = ask(excepted(ThreatModel::cloud), work);
    ASSERT_NE(live.contract(), nullptr) << "a live one is honoured";
    ASSERT_EQ(live.contract()->exceptions.size(), 1U);
    EXPECT_EQ(live.contract()->exceptions[0].name, "migration-week");
    EXPECT_TRUE(accepted(excepted(ThreatModel::internal), work));
}

TEST(PolicySituations, an_exception_is_void_where_the_design_says_so) {
    const GpuWorkload work = one_gpu(Tier::container, distrusting);
    struct Row {
        std::string_view says;
        void (*change)(Snapshot&);
    };
    const Row rows[] = {
        {"in `regulated`", [](Snapshot& s) { s.policies[0].spec.threatModel = ThreatModel::regulated; }},
        {"under compliance mode", [](Snapshot& s) { s.tenants[0].spec.compliance = Compliance::dedicated; }},
        {"under the other compliance mode",
         [](Snapshot& s) { s.tenants[0].spec.compliance = Compliance::confidential; }},
        {"after it expired", [](Snapshot& s) { s.policies[0].spec.exceptions[0].expires = fixture::an_hour_ago; }},
        {"at the moment it expires", [](Snapshot& s) { s.policies[0].spec.exceptions[0].expires = fixture::now; }},
        {"for tenants it does not name",
         [](Snapshot& s) {
             s.policies[0].spec.exceptions[0].tenants[0] = "friend";
             s.policies[0].spec.exceptions[0].consents[0].tenant = "friend";
         }},
        {"below the class's floor",
         [](Snapshot& s) {
             s.classes = {TenantClass{
                 .metadata = {.name = "batch"},
                 .spec = {.mechanisms = {Mechanism::whole}, .tier = Tier::vm, .sharing = {distrusting, distrusting}}}};
         }},
        {"while an escape advisory is open, due or not",
         [](Snapshot& s) {
             s.policies[0].spec.versionGate.advisories = {flaw({fixture::now.ms + 3'600'000}, true)};
             s.nodes[0].status.versions = {{Component::container_toolkit, "1.17.7"}};
         }},
        {"for a tenant that does not trust the operator",
         [](Snapshot& s) { s.tenants[0].spec.operatorTrust = OperatorTrust::untrusted; }},
        {"where NVLink is not partitioned",
         [](Snapshot& s) {
             std::erase_if(s.nodes[0].status.capabilities,
                           [](const DetectedCapability& d) { return d.name == Capability::nvlink_partition; });
         }},
    };
    for (const Row& row : rows) {
        Snapshot snapshot = excepted(ThreatModel::cloud);
        row.change(snapshot);
        EXPECT_FALSE(accepted(snapshot, work)) << row.says;
    }
    EXPECT_FALSE(accepted(excepted(ThreatModel::cloud), one_gpu(Tier::process, distrusting)))
        << "below the tier it grants";
    EXPECT_TRUE(accepted(excepted(ThreatModel::cloud), one_gpu(Tier::vm, distrusting))) << "a VM never needed it";
    for (const Mechanism mechanism : {Mechanism::mps, Mechanism::time_slicing})
        EXPECT_FALSE(
            accepted(excepted(ThreatModel::cloud), fixture::request({mechanism, fixture::Form::count}, Tier::container,
                                                                    {distrusting, distrusting}, Level::soft)))
            << "it never puts strangers on one GPU";
}

TEST(PolicySituations, an_exception_lowers_the_wall_between_strangers_and_no_other_floor) {
    Snapshot snapshot = excepted(ThreatModel::cloud);
    snapshot.policies[0].spec.exceptions[0].tier = Tier::process;
    snapshot.classes = {TenantClass{
        .metadata = {.name = "batch"},
        .spec = {.mechanisms = {Mechanism::whole}, .tier = Tier::process, .sharing = {distrusting, distrusting}}}};
    EXPECT_FALSE(accepted(snapshot, one_gpu(Tier::process, same_tenant))) << "`cloud` wants a container even alone";
    EXPECT_FALSE(accepted(snapshot, one_gpu(Tier::process, same_domain))) << "and beside friends";
    EXPECT_FALSE(accepted(snapshot, one_gpu(Tier::process, distrusting))) << "so all the more beside strangers";
    EXPECT_TRUE(accepted(snapshot, one_gpu(Tier::container, distrusting)));
}

TEST(PolicySituations, an_exception_is_void_when_compliance_mode_takes_away_the_last_stranger) {
    Snapshot snapshot = excepted(ThreatModel::cloud);
    snapshot.tenants[2].spec.compliance = Compliance::dedicated;  // the rival's, for whom it is void
    EXPECT_FALSE(accepted(snapshot, one_gpu(Tier::container, distrusting)));
}

// --- S6: what is asked by name is what is given ---

TEST(PolicySituations, a_slice_asked_by_name_is_that_slice_or_nothing) {
    struct Row {
        std::string_view says;
        std::optional<Mechanism> mechanism;
        const char* profile;
        bool exists;
    };
    const Row rows[] = {
        {"a MIG slice", Mechanism::mig, "3g.40gb", true},
        {"a MIG slice of another board", Mechanism::mig, "3g.71gb", false},
        {"an AMD partition on an NVIDIA GPU", Mechanism::mig, "cpx_nps4", false},
        {"a time-sliced vGPU type", Mechanism::vgpu, "H100-10C", true},
        {"a MIG slice as a time-sliced vGPU", Mechanism::vgpu, "3g.40gb", false},
        {"an AMD partition as a vGPU", Mechanism::vgpu, "cpx_nps4", false},
        {"a vGPU type of another board", Mechanism::vgpu, "A100-20C", false},
        {"a word that means nothing", Mechanism::vgpu, "nonsense", false},
        {"a word that means nothing, by any means", std::nullopt, "nonsense", false},
    };
    Snapshot snapshot = batch_fleet(ThreatModel::cloud, {named("vgpu-host")});
    for (const Row& row : rows) {
        GpuWorkload work = one_gpu(row.mechanism == Mechanism::mig ? Tier::container : Tier::vm, same_tenant);
        work.spec.gpu.count.reset();
        work.spec.gpu.profile = row.profile;
        work.spec.gpu.mechanism = row.mechanism;
        EXPECT_EQ(accepted(snapshot, work), row.exists) << row.says;
    }
    snapshot.classes = {TenantClass{
        .metadata = {.name = "batch"},
        .spec = {.mechanisms = {Mechanism::vgpu, Mechanism::mig_vgpu}, .sharing = {distrusting, distrusting}}}};
    GpuWorkload work = one_gpu(Tier::vm, same_tenant);
    work.spec.gpu = {.profile = "3g.40gb"};
    const Answer answer = ask(snapshot, work);
    ASSERT_NE(answer.contract(), nullptr);
    EXPECT_EQ(answer.contract()->mechanism, Mechanism::mig_vgpu) << "a hardware slice was swapped for turns on a GPU";
}

// A machine is passed all of a GPU by VFIO: a lease of a part would give it what others left or keep on the rest.
TEST(PolicySituations, less_than_a_whole_gpu_in_a_vm_is_refused_and_what_can_be_had_is_offered) {
    struct Row {
        std::string_view says;
        const char* host;
        GpuRequest asked, offered;
    };
    const Row rows[] = {
        {"a MIG slice: the whole GPU",
         "hgx-walls",
         {.profile = "1g.10gb", .mechanism = Mechanism::mig},
         {.count = 1, .mechanism = Mechanism::whole}},
        {"a share of turns: the whole GPU",
         "hgx-walls",
         {.fraction = Gpus::of_thousandths(250), .mechanism = Mechanism::time_slicing},
         {.count = 1, .mechanism = Mechanism::whole}},
        {"a GPU that several leases may share: the same, shared with none",
         "hgx-walls",
         {.count = 1, .mechanism = Mechanism::mps},
         {.count = 1, .mechanism = Mechanism::whole}},
        {"a MIG slice where there are vGPUs: the same slice as a vGPU",
         "vgpu-host",
         {.profile = "1g.10gb", .mechanism = Mechanism::mig},
         {.profile = "1g.10gb", .mechanism = Mechanism::mig_vgpu}},
    };
    for (const Row& row : rows) {
        const Snapshot snapshot = batch_fleet(ThreatModel::cloud, {named(row.host)});
        GpuWorkload work = one_gpu(Tier::vm, same_tenant);
        work.spec.gpu = row.asked;
        const Answer answer = ask(snapshot, work);
        ASSERT_NE(answer.refusal(), nullptr) << row.says;
        ASSERT_EQ(answer.refusal()->objections.size(), 1U) << row.says;
        EXPECT_EQ(answer.refusal()->objections[0].code, "tier.owns-gpu") << row.says;
        ASSERT_TRUE(answer.refusal()->proposal) << row.says;
        EXPECT_EQ(answer.refusal()->proposal->request.spec.gpu, row.offered) << row.says;
    }
    // Left open, the tier is one that can hold a slice, beside those whom that tier is enough for.
    GpuWorkload open;
    open.metadata.name = "work";
    open.spec.tenant = "subject";
    open.spec.gpu = {.profile = "1g.10gb", .mechanism = Mechanism::mig};
    const Answer answer = ask(batch_fleet(ThreatModel::cloud, {named("hgx-walls")}), open);
    ASSERT_NE(answer.contract(), nullptr);
    EXPECT_EQ(answer.contract()->tier, Tier::container);
    EXPECT_EQ(answer.contract()->sharing.node, same_domain);
}

// --- rule 3 and rule 8: amounts ---

TEST(PolicySituations, a_hard_level_covers_what_the_mechanism_partitions_and_nothing_else) {
    const Snapshot snapshot =
        fixture::fleet(ThreatModel::cloud, {named("hgx-walls")},
                       fixture::subject("slo-serving", OperatorTrust::trusted, Compliance::off, false));
    GpuWorkload work = fixture::request({Mechanism::mig, fixture::Form::profile}, Tier::container,
                                        {same_tenant, same_tenant}, Level::hard_reserved);
    for (const Aspect fits : {Aspect::sm, Aspect::l2, Aspect::memory_capacity, Aspect::memory_bandwidth}) {
        work.spec.slo.resources = {fits};
        EXPECT_TRUE(accepted(snapshot, work)) << word(fits);
    }
    for (const Aspect not_kept : {Aspect::pcie, Aspect::power_and_clocks, Aspect::nvlink, Aspect::observability}) {
        work.spec.slo.resources = {Aspect::sm, not_kept};
        EXPECT_FALSE(accepted(snapshot, work)) << word(not_kept);
    }
}

TEST(PolicySituations, amounts_stay_within_quota_node_and_fleet) {
    struct Row {
        std::string_view says;
        std::int64_t count, tasks, guarantee;
        bool fits;
    };
    const Row rows[] = {
        {"the whole node", 8, 1, 16, true},
        {"more than a node per task", 9, 1, 16, false},
        {"both nodes", 8, 2, 16, true},
        {"three tasks of five on two nodes of eight", 5, 3, 16, false},
        {"a hard quota is a ceiling", 8, 2, 15, false},
    };
    for (const Row& row : rows) {
        GpuNode second = named("hgx-walls");
        second.metadata.name = "hgx-second";
        Snapshot snapshot =
            fixture::fleet(ThreatModel::cloud, {named("hgx-walls"), second},
                           fixture::subject("slo-serving", OperatorTrust::trusted, Compliance::off, false));
        snapshot.tenants[0].spec.quota.guarantee = Gpus::whole(row.guarantee);
        GpuWorkload work = fixture::request({Mechanism::whole, fixture::Form::count}, Tier::container,
                                            {same_tenant, same_tenant}, Level::hard_reserved);
        work.spec.gpu.count = row.count;
        work.spec.tasks = row.tasks;
        EXPECT_EQ(accepted(snapshot, work), row.fits) << row.says;
    }
}

TEST(PolicySituations, seven_sevenths_of_a_gpu_are_one_gpu) {
    Snapshot snapshot = fixture::fleet(ThreatModel::cloud, {named("hgx-walls")},
                                       fixture::subject("slo-serving", OperatorTrust::trusted, Compliance::off, false));
    GpuWorkload work = fixture::request({Mechanism::mig, fixture::Form::profile}, Tier::container,
                                        {same_tenant, same_tenant}, Level::soft);
    for (const std::int64_t gpus : {1, 8}) {
        snapshot.tenants[0].spec.quota.guarantee = Gpus::whole(gpus);
        work.spec.tasks = 7 * gpus;
        EXPECT_TRUE(accepted(snapshot, work)) << "who owns " << gpus << " may fill them";
        work.spec.tasks = 7 * gpus + 1;
        EXPECT_FALSE(accepted(snapshot, work));
    }
}

TEST(PolicySituations, quota_counts_compute_slices_and_not_the_memory_that_comes_with_them) {
    struct Row {
        std::string_view model;
        GpuRequest asked;
        Mechanism mechanism;
        std::string_view of_one, of_three;
    };
    const Row rows[] = {
        {"h100-80gb-sxm5", {.profile = "1g.10gb"}, Mechanism::mig, "1/7", "3/7"},
        {"h100-80gb-sxm5", {.profile = "1g.20gb"}, Mechanism::mig, "1/7", "3/7"},
        {"h100-80gb-sxm5", {.profile = "3g.40gb"}, Mechanism::mig, "3/7", "9/7"},
        {"h100-80gb-sxm5", {.profile = "7g.80gb"}, Mechanism::mig, "1", "3"},
        {"h100-80gb-sxm5", {.profile = "1c.3g.40gb"}, Mechanism::mig, "1/7", "3/7"},
        {"a30-24gb", {.profile = "1g.6gb"}, Mechanism::mig, "0.25", "0.75"},
        {"h100-80gb-sxm5", {.fraction = Gpus{gpu_unit / 7}}, Mechanism::mig, "1/7", "3/7"},
        {"h100-80gb-sxm5", {.fraction = Gpus{gpu_unit / 7}}, Mechanism::mps, "1/7", "3/7"},
        {"h100-80gb-sxm5", {.memory = ByteSize{15LL << 30}}, Mechanism::mig, "1/7", "3/7"},
        {"mi300x", {.profile = "cpx_nps1"}, Mechanism::amd_partition, "0.125", "0.375"},
    };
    for (const Row& row : rows) {
        const auto facts = slice_on(silicon_of(row.model), row.asked, row.mechanism);
        ASSERT_TRUE(facts) << row.model << " " << row.asked.profile;
        EXPECT_EQ(print(Gpus{facts->units(1)}), row.of_one) << row.model << " " << row.asked.profile;
        EXPECT_EQ(print(Gpus{facts->units(3)}), row.of_three) << row.model << " " << row.asked.profile;
    }
    // A part by bytes is rounded up: ten thousand of them never count less than the memory they take.
    const std::int64_t mib = *silicon_of("h100-80gb-sxm5").nvidia->memory_mib;
    const auto bytes = slice_on(silicon_of("h100-80gb-sxm5"), {.memory = ByteSize{10LL << 30}}, Mechanism::mps);
    EXPECT_GE(bytes->units(1) * mib, gpu_unit * 10 * 1024);
    EXPECT_LT((bytes->units(1) - 1) * mib, gpu_unit * 10 * 1024);
    const auto third = slice_on(silicon_of("a30-24gb"), {.memory = ByteSize{8LL << 30}}, Mechanism::mps);
    EXPECT_EQ(print(Gpus{third->units(3)}), "1");
    EXPECT_EQ(third->per_gpu, 3);
    const auto more = slice_on(silicon_of("a30-24gb"), {.memory = ByteSize{(8LL << 30) + 1}}, Mechanism::mps);
    EXPECT_EQ(more->per_gpu, 2);
}

TEST(PolicySituations, a_limit_holds_for_the_tenants_below) {
    Snapshot snapshot = batch_fleet(ThreatModel::cloud, {named("hgx-walls")});
    Tenant parent;
    parent.metadata.name = "parent";
    parent.spec.tenantClass = "batch";
    parent.spec.quota.limit = Gpus::whole(4);
    snapshot.tenants.push_back(parent);
    snapshot.tenants[0].spec.parent = "parent";
    snapshot.tenants[0].spec.quota.guarantee = {};
    GpuWorkload work = one_gpu(Tier::container, same_tenant);
    work.spec.gpu.count = 4;
    EXPECT_TRUE(accepted(snapshot, work));
    work.spec.gpu.count = 5;
    EXPECT_FALSE(accepted(snapshot, work)) << "more than its parent may ever hold";
    work.spec.gpu.count = 1;
    work.spec.tasks = 8;
    EXPECT_FALSE(accepted(snapshot, work));
    work.spec.minTasks = 4;
    EXPECT_TRUE(accepted(snapshot, work)) << "an elastic gang may run with its fewest tasks";
    work.spec.minTasks = 5;
    EXPECT_FALSE(accepted(snapshot, work));
}

TEST(PolicySituations, a_guarantee_the_fleet_does_not_have_is_found) {
    Snapshot snapshot = batch_fleet(ThreatModel::cloud, {named("hgx-walls")});
    EXPECT_TRUE(unkeepable_guarantees(snapshot, fixture::now).empty());
    snapshot.tenants[0].spec.quota.guarantee = Gpus::of_thousandths(8001);
    EXPECT_FALSE(unkeepable_guarantees(snapshot, fixture::now).empty()) << "more than there is";
    snapshot.tenants[0].spec.quota.guarantee = Gpus::whole(8);
    snapshot.tenants[2].spec.quota.guarantee = Gpus::whole(1);
    EXPECT_FALSE(unkeepable_guarantees(snapshot, fixture::now).empty()) << "two that cannot both be kept";
    snapshot.tenants[2].spec.quota.guarantee = {};
    snapshot.tenants[0].spec.operatorTrust = OperatorTrust::untrusted;
    EXPECT_FALSE(unkeepable_guarantees(snapshot, fixture::now).empty()) << "GPUs enough, none that is confidential";
    snapshot.tenants[0].spec.operatorTrust = OperatorTrust::trusted;
    snapshot.tenants[0].spec.placement.sites = {"ashburn"};
    EXPECT_FALSE(unkeepable_guarantees(snapshot, fixture::now).empty()) << "GPUs enough, none where they may be";
}

TEST(PolicySituations, a_confidential_task_takes_one_gpu_or_the_whole_board_and_nothing_between) {
    for (const std::int64_t count : {1, 2, 4, 7, 8})
        for (const std::string_view name : {"cc-single", "cc-board"}) {
            GpuWorkload work = one_gpu(Tier::confidential_vm, same_tenant);
            work.spec.gpu.count = count;
            const bool fits = name == "cc-single" ? count == 1 : count == 8;
            EXPECT_EQ(accepted(batch_fleet(ThreatModel::cloud, {named(name)}), work), fits) << name << " " << count;
        }
}

TEST(PolicySituations, the_clear_leaves_a_confidential_vm_only_encrypted) {
    for (const bool encrypted : {false, true}) {
        GpuWorkload rdma = one_gpu(Tier::confidential_vm, same_tenant), nvme = rdma;
        rdma.spec.network = {.rdma = true, .encrypted = encrypted};
        nvme.spec.storage = {.localNvme = ByteSize{1}, .encrypted = encrypted};
        const Snapshot snapshot = batch_fleet(ThreatModel::cloud, {named("cc-single")});
        EXPECT_EQ(accepted(snapshot, rdma), encrypted);
        EXPECT_EQ(accepted(snapshot, nvme), encrypted);
    }
}

TEST(PolicySituations, what_a_fabric_leaves_open_is_disclosed) {
    GpuWorkload rdma = one_gpu(Tier::container, same_tenant), plain = rdma;
    rdma.spec.network = {.rdma = true};
    Snapshot snapshot = batch_fleet(ThreatModel::internal, {named("hgx-walls")});
    const auto about_fabric = [&](const GpuWorkload& work, std::vector<Held> Contract::* list) {
        const Answer answer = ask(snapshot, work);
        std::set<std::string> subjects;
        if (answer.contract() == nullptr) ADD_FAILURE() << "refused";
        if (answer.contract() != nullptr)
            for (const Held& held : answer.contract()->*list)
                if (held.subject.starts_with("fabric")) subjects.insert(held.subject);
        return subjects;
    };
    using Subjects = std::set<std::string>;
    EXPECT_EQ(about_fabric(rdma, &Contract::open), (Subjects{"fabric", "fabric-selftest"}))
        << "none is declared: nothing is promised; and nothing was tested";
    EXPECT_EQ(about_fabric(rdma, &Contract::isolates), Subjects{});
    snapshot.policies[0].spec.fabric =
        FabricPolicy{.pool = "10.128.0.0/16", .vlans = NumberRange{100, 200}, .partitionKeys = {}, .classes = {}};
    EXPECT_EQ(about_fabric(rdma, &Contract::isolates), Subjects{"fabric-identity"});
    EXPECT_EQ(about_fabric(rdma, &Contract::open),
              (Subjects{"fabric-source", "fabric-source-address", "fabric-contents", "fabric-contention",
                        "fabric-selftest"}));
    EXPECT_EQ(about_fabric(plain, &Contract::open), Subjects{}) << "it has no function";
    snapshot.policies[0].spec.fabric->kind = FabricKind::infiniband;
    EXPECT_EQ(about_fabric(rdma, &Contract::open),
              (Subjects{"fabric-source", "fabric-contents", "fabric-contention", "fabric-selftest"}))
        << "addresses are the subnet manager's there";
}

NodeFabricTest fence_test(FabricFence fence, std::vector<std::string> stopped, std::vector<std::string> through) {
    NodeFabricTest test{.nic = "0000:3b:00.0", .fence = fence};
    test.found = through.empty() ? FabricFound::closed : FabricFound::open;
    test.grade = Grade::emulated;
    test.stopped = std::move(stopped);
    test.through = std::move(through);
    test.record = 41;
    test.digest = std::string(64, 'a');
    return test;
}

struct AboutFences {
    std::string isolates, identity, open;
};
AboutFences about_fences(const Snapshot& snapshot, const GpuWorkload& work) {
    AboutFences about;
    const Answer answer = ask(snapshot, work);
    if (answer.contract() == nullptr) return about;
    for (const Held& held : answer.contract()->isolates) {
        if (held.subject == "fabric-selftest") about.isolates += held.says;
        if (held.subject == "fabric-identity") about.identity += fmt::format("{} {}", held.says, word(held.grade));
    }
    for (const Held& held : answer.contract()->open)
        if (held.subject == "fabric-selftest") about.open += held.says + "\n";
    return about;
}

TEST(PolicySituations, what_a_node_found_at_its_own_fences_is_in_the_contract_by_its_record) {
    GpuWorkload work = one_gpu(Tier::container, same_tenant);
    work.spec.network = {.rdma = true};
    Snapshot snapshot = batch_fleet(ThreatModel::internal, {named("hgx-walls")});
    snapshot.policies[0].spec.fabric =
        FabricPolicy{.pool = "10.128.0.0/16", .vlans = NumberRange{100, 200}, .partitionKeys = {}, .classes = {}};
    GpuNodeStatus& status = snapshot.nodes[0].status;
    status.functions = {{.address = "0000:3b:10.0"}, {.address = "0000:3b:10.1"}};
    for (NodeFunction& function : status.functions) function.physical = "0000:3b:00.0";
    EXPECT_THAT(about_fences(snapshot, work).open, testing::HasSubstr("no test of the fences was made in this boot"));

    status.fabricTests = {fence_test(FabricFence::on, {"foreign-tenant", "forged-mac"}, {})};
    AboutFences about = about_fences(snapshot, work);
    EXPECT_EQ(about.open, "");
    EXPECT_THAT(about.isolates, testing::HasSubstr("foreign-tenant, forged-mac; by"));
    EXPECT_THAT(about.isolates, testing::HasSubstr("log record 41, sha256 aaaaaaaaaaaaaaaa"));
    EXPECT_THAT(about.identity, testing::HasSubstr("Another tenant's port was not reached"));
    EXPECT_TRUE(about.identity.ends_with("emulated")) << about.identity;

    status.fabricTests[0].untried = {"foreign-uverbs"};
    EXPECT_THAT(about_fences(snapshot, work).open, testing::HasSubstr("foreign-uverbs is not shown to be stopped"));

    GpuWorkload in_a_vm = one_gpu(Tier::vm, same_tenant);
    in_a_vm.spec.network = {.rdma = true};
    status.fabricTests.push_back(fence_test(FabricFence::nic, {"foreign-tenant"}, {"forged-gid"}));
    status.fabricTests.back().untried = {"raw-ip-socket"};
    ASSERT_TRUE(accepted(snapshot, in_a_vm));
    EXPECT_THAT(about_fences(snapshot, in_a_vm).open, testing::HasSubstr("forged-gid gets through"));
    EXPECT_THAT(about_fences(snapshot, in_a_vm).open, testing::Not(testing::HasSubstr("raw-ip-socket")))
        << "in its own kernel that is the tenant's to do";

    status.functions[1].physical = "0000:af:00.0";
    about = about_fences(snapshot, work);
    EXPECT_THAT(about.open, testing::HasSubstr("no test of the fences")) << "its other NIC was not tested";
    EXPECT_EQ(about.isolates, "") << "a lease may get a function of either";
    status.functions[1].physical = "";
    EXPECT_THAT(about_fences(snapshot, work).isolates, testing::HasSubstr("forged-mac"))
        << "one that is gone is of no NIC that could be tested";
    for (NodeFunction& function : status.functions) function.physical = "";
    EXPECT_THAT(about_fences(snapshot, work).open, testing::HasSubstr("no test of the fences"));
}

// All that is left of a test: what got through then, and nobody has seen stopped since.
TEST(PolicySituations, what_is_left_of_an_earlier_test_opens_and_closes_nothing) {
    GpuWorkload in_a_vm = one_gpu(Tier::vm, same_tenant);
    in_a_vm.spec.network = {.rdma = true};
    Snapshot snapshot = batch_fleet(ThreatModel::internal, {named("hgx-walls")});
    GpuNodeStatus& status = snapshot.nodes[0].status;
    status.functions = {{.address = "0000:3b:10.0"}};
    status.functions[0].physical = "0000:3b:00.0";
    NodeFabricTest left = fence_test(FabricFence::nic, {}, {"forged-gid"});
    left.why = "found earlier, and not seen to be stopped since";
    status.fabricTests = {left};
    AboutFences about = about_fences(snapshot, in_a_vm);
    EXPECT_THAT(about.open, testing::HasSubstr("forged-gid gets through"));
    EXPECT_THAT(about.open, testing::HasSubstr("no test of the fences was made in this boot"));
    status.fabricTests.push_back(fence_test(FabricFence::nic, {"foreign-tenant", "forged-mac"}, {}));
    about = about_fences(snapshot, in_a_vm);
    EXPECT_THAT(about.open, testing::HasSubstr("forged-gid gets through"));
    EXPECT_THAT(about.isolates, testing::HasSubstr("foreign-tenant, forged-mac; by"));
}

TEST(PolicySituations, tenants_read_neither_a_nodes_own_words_nor_how_many_nodes_there_are) {
    GpuWorkload work = one_gpu(Tier::container, same_tenant);
    work.spec.network = {.rdma = true};
    Snapshot snapshot = batch_fleet(ThreatModel::internal, {named("hgx-walls")});
    GpuNode& first = snapshot.nodes[0];
    first.status.functions = {{.address = "0000:3b:10.0"}};
    first.status.functions[0].physical = "0000:3b:00.0";
    NodeFabricTest broken = fence_test(FabricFence::on, {}, {});
    broken.found = FabricFound::unproven;
    broken.why = "0000:3b:00.2 has the driver vfio-pci";
    broken.unclear = {"forged-mac"};
    first.status.fabricTests = {broken};
    const GpuNode copy = first;
    for (int i = 0; i < 6; ++i) {
        snapshot.nodes.push_back(copy);
        snapshot.nodes.back().metadata.name += fmt::format("-{}", i);
    }
    const FleetView fleet{snapshot, Instant{}};
    const auto said_to = [&](Audience reader) {
        FabricReader of{.nodes = {}, .reader = reader};
        for (const GpuNode& node : snapshot.nodes) of.nodes.push_back(node.metadata.name);
        Contract contract;
        Ask ask;
        ask.tier = Tier::container;
        write_fabric(contract, ask, fleet, of);
        std::string all;
        for (const Held& held : contract.open) all += held.says + "\n";
        return all;
    };
    EXPECT_THAT(said_to(Audience::fleet_operator), testing::HasSubstr("has the driver vfio-pci"));
    EXPECT_THAT(said_to(Audience::fleet_operator), testing::ContainsRegex("and [0-9]+ more"));
    EXPECT_THAT(said_to(Audience::tenant), testing::HasSubstr("forged-mac is not shown to be stopped"));
    EXPECT_THAT(said_to(Audience::tenant), testing::Not(testing::HasSubstr("driver")));
    EXPECT_THAT(said_to(Audience::tenant), testing::Not(testing::ContainsRegex("and [0-9]+ more")));
}

TEST(PolicySituations, a_node_that_gets_through_its_own_fences_serves_no_tier_that_promises_them) {
    Snapshot snapshot = batch_fleet(ThreatModel::internal, {named("hgx-walls")});
    GpuNodeStatus& status = snapshot.nodes[0].status;
    GpuWorkload behind_our_kernel = one_gpu(Tier::container, same_tenant), in_a_vm = one_gpu(Tier::vm, same_tenant);
    behind_our_kernel.spec.network = in_a_vm.spec.network = {.rdma = true};
    ASSERT_TRUE(accepted(snapshot, behind_our_kernel));
    ASSERT_TRUE(accepted(snapshot, in_a_vm));
    struct Row {
        const char* says;
        NodeFabricTest test;
        bool container, vm;
    };
    const Row rows[] = {
        {"all was stopped", fence_test(FabricFence::on, {"forged-gid"}, {}), true, true},
        {"a forged address passes all of the fences", fence_test(FabricFence::on, {}, {"forged-gid"}), false, true},
        {"a forged address passes the NIC: told, and not promised otherwise",
         fence_test(FabricFence::nic, {}, {"forged-gid"}), true, true},
        {"another tenant's port is reached past the NIC", fence_test(FabricFence::nic, {}, {"foreign-tenant"}), true,
         false},
    };
    for (const Row& row : rows) {
        status.fabricTests = {row.test};
        EXPECT_EQ(accepted(snapshot, behind_our_kernel), row.container) << row.says;
        EXPECT_EQ(accepted(snapshot, in_a_vm), row.vm) << row.says;
        GpuWorkload without = behind_our_kernel;
        without.spec.network = {};
        EXPECT_TRUE(accepted(snapshot, without)) << row.says << ", and it has no function";
    }
}

}  // namespace

}  // namespace bulkhead::situations
