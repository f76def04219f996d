#include "bulkhead/policy/version_gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace bulkhead {
namespace {

using testing::IsEmpty;
using testing::Not;

const Instant long_after = parse_instant("2030-01-01T00:00:00Z").value();

GpuNode node_with(std::vector<InstalledVersion> versions, std::vector<Capability> capabilities = {}) {
    GpuNode node;
    node.metadata.name = "n1";
    node.status.versions = std::move(versions);
    for (const Capability capability : capabilities) node.status.capabilities.push_back({.name = capability});
    return node;
}

std::vector<std::string> ids(const std::vector<OpenAdvisory>& open) {
    std::vector<std::string> all;
    for (const OpenAdvisory& o : open) all.push_back(o.advisory.id);
    return all;
}

FleetPolicySpec only(std::vector<Advisory> advisories) {
    FleetPolicySpec policy;
    policy.versionGate.shippedAdvisories = false;
    policy.versionGate.advisories = std::move(advisories);
    return policy;
}

Advisory flaw(std::vector<FixedVersion> fixed, Severity severity = Severity::high) {
    return {.id = "X-1",
            .component = Component::driver,
            .fixed = std::move(fixed),
            .severity = severity,
            .published = parse_instant("2026-05-01T00:00:00Z").value()};
}

TEST(Versions, compare_number_by_number_as_vendors_count) {
    struct Row {
        std::string_view a, b;
        int order;
    };
    for (const Row& row : {Row{"580.9", "580.65.06", -1}, Row{"580.65.06", "580.65.6", 0}, Row{"1.17", "1.17.0", 0},
                           Row{"1.17.8", "1.17.10", -1}, Row{"595.71.05", "580.159.03", 1}, Row{"v1.16.2", "1.16.2", 0},
                           Row{"26.3.2", "4.5.3", 1}, Row{"0", "0.0.0", 0}})
        EXPECT_EQ(compare_versions(row.a, row.b), row.order) << row.a << " " << row.b;
}

TEST(Versions, what_is_no_version_compares_with_nothing) {
    for (const char* text : {"", "v", ".", "580.", ".580", "580..1", "580.x", "1.17.8-rc.1", " 580", "580 ", "-1", "+1",
                             "99999999999999999999", "580.159.04\n", "0x10"})
        EXPECT_EQ(compare_versions(text, "1.0"), std::nullopt) << text;
}

RC_GTEST_PROP(Versions, ordering_is_total_and_antisymmetric, ()) {
    const auto draw = [] {
        std::string text;
        for (const unsigned n :
             *rc::gen::nonEmpty(rc::gen::container<std::vector<unsigned>>(rc::gen::inRange(0U, 600U))))
            text += (text.empty() ? "" : ".") + std::to_string(n);
        return text;
    };
    const std::string a = draw(), b = draw(), c = draw();
    const int ab = compare_versions(a, b).value(), bc = compare_versions(b, c).value(),
              ac = compare_versions(a, c).value();
    RC_ASSERT(ab == -compare_versions(b, a).value());
    if (ab <= 0 && bc <= 0) RC_ASSERT(ac <= 0);
}

TEST(VersionGate, a_branch_without_a_listed_fix_stays_vulnerable_and_a_newer_one_is_fixed) {
    const std::vector<FixedVersion> branches{{"535", "535.309.01"}, {"580", "580.159.03"}, {"595", "595.71.05"}};
    struct Row {
        std::string_view says, installed;
        std::vector<FixedVersion> fixed;
        bool open;
        std::string wanted;
    };
    const Row rows[] = {
        {"below the fix of its branch", "580.126.09", branches, true, "580.159.03"},
        {"the fix itself", "580.159.03", branches, false, ""},
        {"above the fix", "580.159.04", branches, false, ""},
        {"9 is less than 159", "580.9.99", branches, true, "580.159.03"},
        {"an older branch nobody fixed", "470.256.02", branches, true, ""},
        {"a branch between two fixed ones, never fixed", "590.48.01", branches, true, ""},
        {"a branch newer than all that are listed", "610.43", branches, false, ""},
        {"a version nobody can read", "built from source", branches, true, "535.309.01 or 580.159.03 or 595.71.05"},
        {"a fix for all branches", "1.17.7", {{"", "1.17.8"}}, true, "1.17.8"},
        {"and beyond it", "1.19.0", {{"", "1.17.8"}}, false, ""},
        {"a branch of two numbers", "1.17.7", {{"1.17", "1.17.8"}, {"1.18", "1.18.2"}}, true, "1.17.8"},
        {"58 is not the branch of 580", "580.1", {{"58", "58.2"}}, false, ""},
        {"a branch named exactly beats the rest", "1.17.9", {{"", "1.19.1"}, {"1.17", "1.17.9"}}, false, ""},
        {"the rest is held to the fix for all", "1.18.0", {{"", "1.19.1"}, {"1.17", "1.17.9"}}, true, "1.19.1"},
        {"no fix at all", "610.1", {}, true, ""},
        {"a branch that is no number vouches for nothing", "610.1", {{"R580", "580.1"}}, true, ""},
        {"a fix that is no version", "580.1", {{"580", "next"}}, true, "next"},
    };
    for (const Row& row : rows) {
        const auto open = open_advisories(node_with({{Component::driver, std::string{row.installed}}}),
                                          only({flaw(row.fixed)}), long_after);
        ASSERT_EQ(open.size(), row.open ? 1U : 0U) << row.says;
        if (!row.open) continue;
        EXPECT_EQ(open[0].wanted, row.wanted) << row.says;
        EXPECT_EQ(open[0].installed, row.installed) << row.says;
    }
}

TEST(VersionGate, software_a_node_does_not_have_is_not_vulnerable) {
    EXPECT_THAT(open_advisories(node_with({}), {}, long_after), IsEmpty());
    for (const OpenAdvisory& o : open_advisories(node_with({{Component::dcgm, "4.5.2"}}), {}, long_after))
        EXPECT_EQ(o.advisory.component, Component::dcgm);
}

TEST(VersionGate, software_a_node_looked_for_and_does_not_have_is_not_vulnerable) {
    const GpuNode without = node_with({{Component::driver, "999.0"}, {Component::container_toolkit, "none"}},
                                      {Capability::mig, Capability::mps});
    EXPECT_THAT(ids(open_advisories(without, {}, long_after)), IsEmpty());
    const GpuNode silent = node_with({{Component::driver, "999.0"}}, {Capability::mig, Capability::mps});
    EXPECT_THAT(ids(open_advisories(silent, {}, long_after)), Not(IsEmpty()));
}

TEST(VersionGate, software_a_node_must_have_and_does_not_name_is) {
    for (const Capability needs_driver : {Capability::mig, Capability::mps})
        for (const OpenAdvisory& o : open_advisories(node_with({}, {needs_driver}), {}, long_after)) {
            EXPECT_TRUE(o.advisory.component == Component::driver ||
                        o.advisory.component == Component::container_toolkit);
            EXPECT_TRUE(o.installed.empty());
            EXPECT_THAT(o.wanted, Not(IsEmpty()));
        }
    EXPECT_THAT(open_advisories(node_with({}, {Capability::mig}), {}, long_after), Not(IsEmpty()));
    EXPECT_THAT(open_advisories(node_with({{Component::driver, "610.10"}, {Component::container_toolkit, "9.0.0"}},
                                          {Capability::mig}),
                                {}, long_after),
                IsEmpty());
    EXPECT_THAT(open_advisories(node_with({{Component::driver, "610.10"}}, {Capability::mig_vgpu}), {}, long_after),
                Not(IsEmpty()))
        << "a host of vGPUs has a manager";
    EXPECT_THAT(
        open_advisories(node_with({{Component::vgpu_manager, "595.71.03"}}, {Capability::mig, Capability::vgpu}), {},
                        long_after),
        IsEmpty())
        << "and the manager is its driver";
    EXPECT_THAT(
        open_advisories(node_with({}, {Capability::amd_partition, Capability::virtual_machines}), {}, long_after),
        IsEmpty());
}

// The minimum safe set of August 2026, and what was newest on the branch before it.
TEST(VersionGate, the_minimum_safe_set_is_clean_and_the_version_before_it_is_not) {
    struct Row {
        Component component;
        std::string clean, before;
    };
    const Row rows[] = {
        {Component::driver, "535.309.01", "535.288.01"},     {Component::driver, "580.159.03", "580.126.09"},
        {Component::driver, "595.71.05", "595.71.04"},       {Component::vgpu_manager, "580.159.01", "580.129.08"},
        {Component::vgpu_manager, "595.71.03", "595.58.02"}, {Component::container_toolkit, "1.19.1", "1.19.0"},
        {Component::gpu_operator, "26.3.2", "26.3.1"},       {Component::device_plugin, "0.17.3", "0.17.2"},
        {Component::mig_manager, "0.12.2", "0.12.1"},        {Component::dcgm, "4.5.3", "4.5.2"},
    };
    for (const Row& row : rows) {
        EXPECT_THAT(ids(open_advisories(node_with({{row.component, row.clean}}), {}, long_after)), IsEmpty())
            << word(row.component) << " " << row.clean;
        EXPECT_THAT(ids(open_advisories(node_with({{row.component, row.before}}), {}, long_after)), Not(IsEmpty()))
            << word(row.component) << " " << row.before;
    }
}

TEST(VersionGate, an_older_gate_settles_the_flaws_it_was_cut_for_and_no_later_ones) {
    const auto has = [](Component component, std::string version, std::string_view id) {
        const auto open = ids(open_advisories(node_with({{component, std::move(version)}}), {}, long_after));
        return std::ranges::find(open, id) != open.end();
    };
    struct Row {
        Component component;
        std::string before, clean;
        std::string_view id;
    };
    for (const Row& row : {
             Row{Component::vgpu_manager, "535.247.02", "535.261.04", "CVE-2025-23290"},
             Row{Component::vgpu_manager, "570.158.02", "570.172.07", "CVE-2025-23283"},
             Row{Component::container_toolkit, "1.17.7", "1.17.8", "CVE-2025-23266"},
             Row{Component::container_toolkit, "1.17.3", "1.17.4", "CVE-2025-23359"},
             Row{Component::container_toolkit, "1.17.2", "1.17.3", "CVE-2024-0135"},
             Row{Component::container_toolkit, "1.16.1", "1.16.2", "CVE-2024-0132"},
             Row{Component::gpu_operator, "25.3.1", "25.3.2", "CVE-2025-23266"},
             Row{Component::gpu_operator, "24.6.1", "24.6.2", "CVE-2024-0132"},
             Row{Component::driver, "550.54.15", "550.90.07", "CVE-2024-0090"},
             Row{Component::driver, "470.239.06", "470.256.02", "CVE-2024-0092"},
         }) {
        EXPECT_TRUE(has(row.component, row.before, row.id)) << row.id << " " << row.before;
        EXPECT_FALSE(has(row.component, row.clean, row.id)) << row.id << " " << row.clean;
    }
    EXPECT_TRUE(has(Component::vgpu_manager, "535.309.01", "CVE-2026-24197")) << "no fix is listed for that branch";
}

TEST(VersionGate, a_flaw_is_due_by_severity_and_overdue_a_millisecond_later) {
    struct Row {
        Severity severity;
        const char* due;
    };
    for (const Row& row : {Row{Severity::critical, "2026-05-08T00:00:00Z"}, Row{Severity::high, "2026-05-31T00:00:00Z"},
                           Row{Severity::medium, "2026-07-30T00:00:00Z"}, Row{Severity::low, "2026-10-28T00:00:00Z"}}) {
        const Instant due = parse_instant(row.due).value();
        const auto ask = [&](Instant now) {
            return open_advisories(node_with({{Component::driver, "1"}}), only({flaw({{"", "2"}}, row.severity)}), now)
                .at(0);
        };
        EXPECT_EQ(print(ask(due).due), row.due);
        EXPECT_FALSE(ask(due + Duration{-1}).overdue) << row.due;
        EXPECT_FALSE(ask(due).overdue) << row.due;
        EXPECT_TRUE(ask(due + Duration{1}).overdue) << row.due;
    }
}

TEST(VersionGate, an_explicit_due_date_and_the_policys_days_win) {
    Advisory dated = flaw({{"", "2"}});
    dated.due = parse_instant("2027-01-01T00:00:00Z").value();
    const GpuNode node = node_with({{Component::driver, "1"}});
    EXPECT_EQ(open_advisories(node, only({dated}), Instant{}).at(0).due, *dated.due);

    FleetPolicySpec hasty = only({flaw({{"", "2"}})});
    hasty.versionGate.dueDays.high = 0;
    EXPECT_EQ(print(open_advisories(node, hasty, Instant{}).at(0).due), "2026-05-01T00:00:00Z");
}

TEST(VersionGate, the_policys_own_advisory_replaces_the_shipped_one_of_that_component_alone) {
    FleetPolicySpec policy;
    policy.versionGate.advisories = {{.id = "CVE-2025-23266",
                                      .component = Component::container_toolkit,
                                      .fixed = {{"", "1.17.5"}},  // backported here, say
                                      .severity = Severity::critical,
                                      .closesTiers = {Tier::container},
                                      .published = parse_instant("2025-07-01T00:00:00Z").value()}};
    const GpuNode node = node_with({{Component::container_toolkit, "1.17.5"}, {Component::gpu_operator, "25.3.1"}});
    int toolkit = 0, gpu_operator = 0;
    for (const OpenAdvisory& o : open_advisories(node, policy, long_after)) {
        if (o.advisory.id != "CVE-2025-23266") continue;
        (o.advisory.component == Component::container_toolkit ? toolkit : gpu_operator)++;
    }
    EXPECT_EQ(toolkit, 0);
    EXPECT_EQ(gpu_operator, 1);

    policy.versionGate.shippedAdvisories = false;
    EXPECT_THAT(open_advisories(node, policy, long_after), IsEmpty());
}

TEST(VersionGate, answers_come_in_order_of_id) {
    const auto open = open_advisories(
        node_with(
            {{Component::container_toolkit, "1.0"}, {Component::driver, "535.1"}, {Component::gpu_operator, "1.0"}}),
        {}, long_after);
    ASSERT_GT(open.size(), 20U);
    EXPECT_TRUE(std::ranges::is_sorted(open, {}, [](const OpenAdvisory& o) { return o.advisory.id; }));
}

bool closed(Component component, std::string version, Tier tier, Mechanism mechanism) {
    const auto open = open_advisories(node_with({{component, std::move(version)}}), {}, long_after);
    return std::ranges::any_of(open, [&](const OpenAdvisory& o) { return closes(o, tier, mechanism); });
}

TEST(VersionGate, a_flaw_closes_the_tiers_that_share_the_flawed_code) {
    using enum Tier;
    using M = Mechanism;
    struct Row {
        std::string_view says;
        Component component;
        std::string version;
        Tier tier;
        Mechanism mechanism;
        bool closes;
    };
    const Row rows[] = {
        {"a toolkit escape closes containers", Component::container_toolkit, "1.17.7", container, M::whole, true},
        {"and not VMs", Component::container_toolkit, "1.17.7", vm, M::whole, false},
        {"nor bare processes, which no toolkit starts", Component::container_toolkit, "1.17.7", process, M::whole,
         false},
        {"a driver flaw closes what shares the kernel", Component::driver, "580.126.09", container, M::whole, true},
        {"processes too", Component::driver, "580.126.09", process, M::mps, true},
        {"a guest brings its own driver", Component::driver, "580.126.09", vm, M::whole, false},
        {"a confidential guest too", Component::driver, "580.126.09", confidential_vm, M::whole, false},
        {"cutting a GPU anew is flawed in every tier", Component::driver, "580.126.09", vm, M::mig, true},
        {"whatever is built on MIG", Component::driver, "580.126.09", vm, M::mig_vgpu, true},
        {"the manager is every guest's", Component::vgpu_manager, "580.95.02", vm, M::vgpu, true},
        {"but not a passed-through GPU's", Component::vgpu_manager, "580.95.02", vm, M::whole, false},
        {"nor a container's", Component::vgpu_manager, "580.95.02", container, M::whole, false},
        {"the exporter answers the node", Component::dcgm, "4.5.2", container, M::whole, true},
        {"not the guests", Component::dcgm, "4.5.2", vm, M::mig_vgpu, false},
    };
    for (const Row& row : rows)
        EXPECT_EQ(closed(row.component, row.version, row.tier, row.mechanism), row.closes) << row.says;
}

TEST(VersionGate, nothing_closes_before_it_is_due) {
    const GpuNode node = node_with({{Component::container_toolkit, "1.19.0"}});
    const auto published = parse_instant("2026-06-01T00:00:00Z").value();
    const auto early = open_advisories(node, {}, published),
               late = open_advisories(node, {}, published + Duration::days(31));
    ASSERT_EQ(early.size(), 1U);
    EXPECT_FALSE(closes(early[0], Tier::container, Mechanism::whole));
    EXPECT_TRUE(closes(late.at(0), Tier::container, Mechanism::whole));
}

TEST(ShippedAdvisories, are_complete_and_named_once) {
    std::set<std::pair<std::string, Component>> seen;
    for (const Advisory& a : shipped_advisories()) {
        EXPECT_TRUE(seen.emplace(a.id, a.component).second) << a.id << " " << word(a.component);
        EXPECT_TRUE(std::regex_match(a.id, std::regex{"CVE-20[0-9]{2}-[0-9]{4,5}"})) << a.id;
        EXPECT_THAT(a.fixed, Not(IsEmpty())) << a.id;
        EXPECT_THAT(a.source, Not(IsEmpty())) << a.id;
        EXPECT_FALSE(a.due) << a.id;
        for (const FixedVersion& fix : a.fixed) {
            ASSERT_TRUE(compare_versions(fix.version, "0")) << a.id << " " << fix.version;
            EXPECT_TRUE(fix.branch.empty() || fix.version.starts_with(fix.branch + ".")) << a.id << " " << fix.version;
        }
        EXPECT_TRUE(!a.closesTiers.empty() || !a.closesMechanisms.empty()) << a.id << " would close everything";
        EXPECT_TRUE(print(a.published).ends_with("-01T00:00:00Z")) << a.id;
        // The source names the month of publication.
        EXPECT_NE(a.source.find(print(a.published).substr(0, 7)), std::string::npos) << a.id << " " << a.source;
    }
}

// Our list against the fact sheet it was drawn from: every row is there, with a fixed version the sheet prints.
TEST(ShippedAdvisories, hold_every_row_of_the_fact_sheet) {
    std::ifstream file{BULKHEAD_SHARED_DIR "/facts/gpu-partitioning.json"};
    if (!file) GTEST_SKIP() << "no fact sheet at " BULKHEAD_SHARED_DIR "/facts/gpu-partitioning.json";
    std::stringstream text;
    text << file.rdbuf();
    const auto sheet = boost::json::parse(text.str()).as_object().at("advisories").as_array();
    ASSERT_EQ(sheet.size(), 38U);

    const std::pair<std::string_view, Component> names[] = {
        {"driver", Component::driver},
        {"Virtual GPU Manager", Component::vgpu_manager},
        {"Container Toolkit", Component::container_toolkit},
        {"GPU Operator", Component::gpu_operator},
        {"device plugin", Component::device_plugin},
        {"MIG Manager", Component::mig_manager},
        {"DCGM", Component::dcgm},
    };
    int checked = 0;
    for (const auto& value : sheet) {
        const auto& row = value.as_object();
        const std::string cves{row.at("cve").as_string()}, component{row.at("component").as_string()},
            fixed{row.at("fixed").as_string()};
        const auto* name =
            std::ranges::find_if(names, [&](auto& n) { return component.find(n.first) != std::string::npos; });
        ASSERT_NE(name, std::end(names)) << component;

        std::string year;
        static const std::regex part{"(CVE-(20[0-9]{2})-)?([0-9]{4,5})(?![0-9-])"};
        for (std::sregex_iterator it{cves.begin(), cves.end(), part}, end; it != end; ++it) {
            if ((*it)[2].matched) year = (*it)[2];
            const std::string id = "CVE-" + year + "-" + (*it)[3].str();
            const auto all = shipped_advisories();
            const auto ours =
                std::ranges::find_if(all, [&](const Advisory& a) { return a.id == id && a.component == name->second; });
            ASSERT_NE(ours, all.end()) << id << " in " << component;
            EXPECT_TRUE(std::ranges::any_of(
                ours->fixed, [&](const FixedVersion& f) { return fixed.find(f.version) != std::string::npos; }))
                << id << " in " << component << ": the sheet says " << fixed;
            ++checked;
        }
    }
    EXPECT_GE(checked, 60);  // rows name up to eight flaws each
}

}  // namespace
}  // namespace bulkhead
