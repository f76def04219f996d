// What the core tells metering: what leases held, at which prices, and what compliance evidence there was.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/core/persisted.hpp"
#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

// A fleet with prices: from 2027-01-01 (the plane's clock begins on 2027-01-15), and dearer ones to come.
struct Billed : Plane {
    explicit Billed(std::string_view compliance = "off") : Plane{2} {
        expect(apply(policy()));
        expect(apply(tenant(compliance)));
    }
    static std::string policy(std::string_view first = "2.40", std::string_view more = "") {
        return fmt::format(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {{name: fleet}}\nspec:\n"
            "  threatModel: internal\n  sites: [{{name: fra, jurisdiction: eu}}]\n"
            "  versionGate: {{shippedAdvisories: false}}\n  pricing:\n    currency: EUR\n    lists:\n"
            "    - {{name: first, validFrom: 2027-01-01T00:00:00Z, prices: [{{model: h100-80gb-sxm5, perHour: {}}}]}}\n"
            "    - {{name: second, validFrom: 2027-02-01T00:00:00Z, complianceSurchargePercent: 20,\n"
            "       prices: [{{model: h100-80gb-sxm5, perHour: 3}}]}}\n{}",
            first, more);
    }
    static std::string tenant(std::string_view compliance) {
        return fmt::format(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: acme}}\n"
            "spec: {{class: frontier-training, quota: {{guarantee: 4}}, compliance: {}}}\n",
            compliance);
    }
    static void expect(const Answer& answer) {
        EXPECT_TRUE(answer.outcome) << (answer.outcome ? "" : answer.outcome.error().what);
    }
    GpuLease start(const std::string& name) {
        expect(
            apply(fmt::format("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {{name: {}}}\n"
                              "spec: {{tenant: acme, gpu: {{count: 1}}, tasks: 2}}\n",
                              name)));
        settle(30);
        EXPECT_EQ(workload(name).status->phase, WorkloadPhase::running)
            << testing::PrintToString(workload(name).status->reasons);
        return find<GpuLease>(workload(name).status->lease);
    }
    std::vector<UsageRow> usage() const {
        std::vector<UsageRow> out;
        for (const auto& [key, body] : rows)
            if (key.first == Table::usage) out.push_back(from_json<UsageRow>("row", body).value());
        return out;
    }
};

TEST(Metering, a_row_says_what_was_held_and_at_which_prices) {
    Billed plane;
    const GpuLease lease = plane.start("train");
    plane.settle(20);
    plane.remove(ObjectKind::workload, "train");
    ASSERT_EQ(plane.usage().size(), 1u);
    const UsageRow row = plane.usage()[0];
    EXPECT_EQ(row.from, *lease.status->activeAt);
    ASSERT_TRUE(row.metered);
    EXPECT_EQ(row.metered->tenantClass, "frontier-training");
    EXPECT_EQ(row.metered->compliance, Compliance::off);
    EXPECT_TRUE(row.metered->covered.empty());
    ASSERT_EQ(row.metered->units.size(), 1u);
    EXPECT_EQ(row.metered->units[0], (MeteredUnits{"h100-80gb-sxm5", "", false, Gpus::whole(2)}));
    EXPECT_EQ(row.currency, "EUR");
    ASSERT_EQ(row.rates.size(), 1u) << "the next list has not begun";
    EXPECT_EQ(row.rates[0].list, "first");
    EXPECT_EQ(row.rates[0].surchargePercent, 12);
    ASSERT_EQ(row.rates[0].prices.size(), 1u);
    EXPECT_EQ(row.rates[0].prices[0].perHour, Money{2'400'000'000});
}

TEST(Metering, evidence_covers_a_compliant_lease_from_its_start_and_the_log_says_by_which_wipes) {
    Billed plane{"dedicated"};
    const GpuLease lease = plane.start("train");
    ASSERT_TRUE(lease.status->metered);
    EXPECT_EQ(lease.status->metered->compliance, Compliance::dedicated);
    ASSERT_EQ(lease.status->metered->covered.size(), 1u) << lease.status->metered->notCovered;
    EXPECT_EQ(lease.status->metered->covered[0].from, *lease.status->activeAt);
    const std::int64_t leaf = lease.status->metered->leaf;
    ASSERT_GE(leaf, 0);
    const std::string& record = plane.log.at(static_cast<std::size_t>(leaf));
    EXPECT_THAT(record, HasSubstr("\"kind\":\"lease-active\""));
    EXPECT_THAT(record, HasSubstr(lease.metadata.name));
    EXPECT_THAT(record, HasSubstr("\"compliance\":\"dedicated\""));
    EXPECT_THAT(record, HasSubstr("\"wipes\":\""));
    plane.settle(5);
    plane.remove(ObjectKind::workload, "train");
    const UsageRow row = plane.usage().at(0);
    ASSERT_EQ(row.metered->covered.size(), 1u);
    EXPECT_EQ(row.metered->covered[0].to, row.to);
}

TEST(Metering, a_silent_node_is_no_evidence_and_its_return_is) {
    Billed plane{"dedicated"};
    const GpuLease lease = plane.start("train");
    const std::string node = lease.spec.slices.at(0).node;
    const Instant last_word = plane.now;
    plane.nodes[node]->reachable = false;
    plane.settle(60);
    GpuLease dark = plane.find<GpuLease>(lease.metadata.name);
    ASSERT_EQ(dark.status->metered->covered.size(), 1u);
    EXPECT_EQ(dark.status->metered->covered[0].to, last_word) << "not from when it was noticed";
    EXPECT_THAT(dark.status->metered->notCovered, HasSubstr("not heard of"));
    EXPECT_EQ(plane.logged("coverage-lost"), 1);
    plane.nodes[node]->reachable = true;
    plane.hello(node);
    plane.settle(5);
    GpuLease again = plane.find<GpuLease>(lease.metadata.name);
    ASSERT_EQ(again.status->metered->covered.size(), 2u);
    EXPECT_FALSE(again.status->metered->covered[1].to);
    EXPECT_EQ(plane.logged("coverage-regained"), 1);
}

// A simulated fleet has no silicon to take evidence from: there a node's word stands, and does not age while it is
// heard.
TEST(Metering, in_a_simulated_fleet_a_nodes_word_covers_as_long_as_it_is_heard) {
    Billed plane{"dedicated"};
    const GpuLease lease = plane.start("train");
    plane.now = plane.now + Duration::hours(25);
    for (auto& [name, node] : plane.nodes) plane.event(AgentHeartbeat{name, node->session});
    plane.event(Tick{});
    const GpuLease later = plane.find<GpuLease>(lease.metadata.name);
    ASSERT_EQ(later.status->metered->covered.size(), 1u);
    EXPECT_FALSE(later.status->metered->covered[0].to);
}

TEST(Metering, coverage_goes_on_after_a_restart) {
    Billed plane{"dedicated"};
    const GpuLease lease = plane.start("train");
    plane.restart(2);
    for (const auto& [name, node] : plane.nodes) plane.hello(name);
    plane.settle(5);
    plane.remove(ObjectKind::workload, "train");
    const UsageRow row = plane.usage().at(0);
    ASSERT_EQ(row.metered->covered.size(), 1u);
    EXPECT_EQ(row.metered->covered[0], (CoveredTime{row.from, row.to}));
}

// Friday to Monday, with nobody there: the nodes come back at once, and what was between is shown by nothing.
TEST(Metering, time_without_a_control_plane_is_covered_by_nothing) {
    Billed plane{"dedicated"};
    const GpuLease lease = plane.start("train");
    const Instant friday = plane.now;
    plane.now = plane.now + Duration::hours(63);
    const Instant monday = plane.now;
    plane.restart(2, false, friday);
    for (const auto& [name, node] : plane.nodes) plane.hello(name);
    plane.settle(5);
    const GpuLease later = plane.find<GpuLease>(lease.metadata.name);
    ASSERT_EQ(later.status->metered->covered.size(), 2u);
    EXPECT_EQ(later.status->metered->covered[0].to, friday);
    EXPECT_GE(later.status->metered->covered[1].from, monday);
    EXPECT_EQ(plane.logged("coverage-lost"), 1);
}

TEST(Metering, prices_that_have_begun_are_not_changed_and_those_to_come_are) {
    Billed plane;
    const Answer cheaper = plane.apply(Billed::policy("1.00"));
    ASSERT_FALSE(cheaper.outcome);
    EXPECT_EQ(cheaper.outcome.error().code, Code::conflict);
    EXPECT_THAT(cheaper.outcome.error().what, HasSubstr("price list first"));
    Billed::expect(plane.apply(Billed::policy(
        "2.40",
        "    - {name: third, validFrom: 2027-03-01T00:00:00Z, prices: [{model: h100-80gb-sxm5, perHour: 4}]}\n")));
    plane.start("train");
    const Answer gone = plane.remove(ObjectKind::policy, "fleet");
    ASSERT_FALSE(gone.outcome);
}

TEST(Metering, a_correction_is_a_row_of_its_own_and_the_same_again_changes_nothing) {
    Billed plane;
    const std::string lease = plane.start("train").metadata.name;
    plane.remove(ObjectKind::workload, "train");
    command::CorrectUsage wanted{.id = "ticket-7",
                                 .lease = lease,
                                 .tenant = "acme",
                                 .workload = "train",
                                 .from = plane.usage().at(0).from,
                                 .to = plane.usage().at(0).to,
                                 .amount = {-1'000'000'000},
                                 .currency = "EUR",
                                 .why = "it was slow"};
    EXPECT_THAT(plane.ask(wanted).body, HasSubstr("posted"));
    EXPECT_EQ(plane.usage().size(), 2u);
    EXPECT_EQ(plane.logged("usage-corrected"), 1);
    plane.restart(2);
    plane.settle(1);
    EXPECT_THAT(plane.ask(wanted).body, HasSubstr("unchanged")) << "whatever happened in between";
    EXPECT_EQ(plane.usage().size(), 2u);
    wanted.amount = {-2'000'000'000};
    const Answer other = plane.ask(wanted);
    ASSERT_FALSE(other.outcome);
    EXPECT_EQ(other.outcome.error().code, Code::conflict);
    wanted.id = "ticket-8";
    wanted.amount = {};
    EXPECT_EQ(plane.ask(wanted).outcome.error().code, Code::invalid);
}

TEST(Compliance, a_manifest_that_turns_the_switch_is_in_the_log_too) {
    Billed plane;
    Billed::expect(plane.apply(Billed::tenant("dedicated")));
    EXPECT_EQ(plane.logged("compliance-on"), 1);
    Billed::expect(plane.apply(Billed::tenant("dedicated")));
    EXPECT_EQ(plane.logged("compliance-on"), 1);
    Billed::expect(plane.apply(Billed::tenant("off")));
    EXPECT_EQ(plane.logged("compliance-off"), 1);
}

TEST(Compliance, the_switch_says_first_what_would_change_and_is_for_leases_to_come) {
    Billed plane;
    const GpuLease lease = plane.start("train");
    const command::SetCompliance dry{"acme", Compliance::dedicated, "audit", true};
    const std::size_t entries = plane.log.size();
    const Answer preview = plane.ask(dry);
    ASSERT_TRUE(preview.outcome) << preview.outcome.error().what;
    EXPECT_THAT(preview.body, HasSubstr("\"result\":\"would change\""));
    EXPECT_THAT(preview.body, HasSubstr("not covered"));
    EXPECT_THAT(preview.body, HasSubstr("\"base\":\"4.8\",\"surcharge\":\"0.576\""));
    EXPECT_EQ(plane.find<Tenant>("acme").spec.compliance, Compliance::off);
    EXPECT_EQ(plane.log.size(), entries);

    const Answer on = plane.ask(command::SetCompliance{"acme", Compliance::dedicated, "audit", false});
    ASSERT_TRUE(on.outcome) << on.outcome.error().what;
    EXPECT_THAT(on.body, HasSubstr("\"result\":\"changed\""));
    EXPECT_EQ(plane.find<Tenant>("acme").spec.compliance, Compliance::dedicated);
    EXPECT_EQ(plane.logged("compliance-on"), 1);
    EXPECT_EQ(plane.find<GpuLease>(lease.metadata.name).status->metered->compliance, Compliance::off);
    EXPECT_THAT(plane.ask(command::SetCompliance{"acme", Compliance::dedicated, "audit", false}).body,
                HasSubstr("unchanged"));
    EXPECT_EQ(plane.logged("compliance-on"), 1) << "nothing changed, nothing is logged";

    const GpuLease covered = plane.start("more");
    EXPECT_EQ(covered.status->metered->compliance, Compliance::dedicated);
    const Answer off = plane.ask(command::SetCompliance{"acme", Compliance::off, "audit is over", false});
    ASSERT_TRUE(off.outcome);
    EXPECT_THAT(off.body, HasSubstr("it keeps the mode it began with"));
    EXPECT_EQ(plane.logged("compliance-off"), 1);
    plane.settle(3);
    EXPECT_FALSE(plane.find<GpuLease>(covered.metadata.name).status->metered->covered.at(0).to);
    EXPECT_EQ(plane.ask(command::SetCompliance{"nobody", Compliance::off, "x", false}).outcome.error().code,
              Code::not_found);
}

// Two tenants of one trust domain on nodes of two GPUs. The rules let them share nodes; `kept` work asks not to.
struct Exclusive : Billed {
    explicit Exclusive(std::string_view limit = "8") {
        const auto tenant = [](std::string_view name, std::string_view most) {
            return fmt::format(
                "---\napiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {}}}\nspec:\n"
                "  class: research\n  quota: {{limit: {}}}\n  trustDomain: {{name: lab, consent: {{by: head, at: "
                "2026-11-01T00:00:00Z}}}}\n",
                name, most);
        };
        expect(remove(ObjectKind::tenant, "acme"));  // all GPUs are guaranteed to it
        expect(apply(policy("2.40", "  trustDomains: [{name: lab, members: [vision, speech]}]\n") +
                     tenant("vision", limit) + tenant("speech", "8")));
    }
    void submit(std::string_view name, std::string_view owner, bool alone) {
        expect(
            apply(fmt::format("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {{name: {}}}\n"
                              "spec: {{tenant: {}, gpu: {{count: 1, mechanism: whole}}{}}}\n",
                              name, owner, alone ? ", isolation: {node: same-tenant}" : "")));
        settle(30);
    }
    GpuLease lease_of(const std::string& name) const { return find<GpuLease>(workload(name).status->lease); }
    std::vector<UsageRow> kept() const {
        std::vector<UsageRow> out;
        for (const UsageRow& row : usage())
            if (row.exclusive) out.push_back(row);
        return out;
    }
};

TEST(Metering, capacity_kept_by_an_isolation_request_is_metered_in_rows_of_its_own) {
    Exclusive plane;
    plane.submit("alone", "vision", true);
    const GpuLease lease = plane.lease_of("alone");
    ASSERT_TRUE(lease.spec.sharing.keepsNode);
    ASSERT_TRUE(lease.status->kept);
    const std::vector<MeteredUnits> one{
        {.model = "h100-80gb-sxm5", .profile = {}, .units = Gpus::whole(1), .exclusive = true}};
    EXPECT_EQ(lease.status->kept->units, one);
    EXPECT_EQ(lease.status->kept->since, *lease.status->activeAt);
    plane.settle(20);
    // Work of the same tenant on the rest of the node ends what is kept.
    plane.submit("beside", "vision", true);
    ASSERT_EQ(plane.lease_of("beside").spec.slices[0].node, lease.spec.slices[0].node);
    ASSERT_EQ(plane.kept().size(), 1u);
    const UsageRow row = plane.kept()[0];
    EXPECT_EQ(row.lease, lease.metadata.name);
    EXPECT_EQ(row.exclusive, 1);
    EXPECT_EQ(row.from, *lease.status->activeAt);
    EXPECT_GT(row.to, row.from);
    EXPECT_EQ(row.gpus, Gpus::whole(1));
    EXPECT_EQ(row.metered->units, one);
    ASSERT_EQ(row.rates.size(), 1u);
    EXPECT_TRUE(row.rates[0].prices.empty()) << "the list has no exclusive price";
    // A new process goes on where the old one was; the end of the guest's work begins the second row.
    plane.restart(2);
    for (const auto& [name, node] : plane.nodes) plane.hello(name);
    plane.remove(ObjectKind::workload, "beside");
    plane.settle(30);
    ASSERT_TRUE(plane.lease_of("alone").status->kept);
    EXPECT_EQ(plane.lease_of("alone").status->kept->units, one);
    EXPECT_EQ(plane.lease_of("alone").status->kept->rows, 1);
    plane.remove(ObjectKind::workload, "alone");
    plane.settle(5);
    ASSERT_EQ(plane.kept().size(), 2u);
    EXPECT_EQ(plane.kept()[1].exclusive, 2);
    for (const UsageRow& each : plane.usage()) EXPECT_EQ(each.gpus, Gpus::whole(1)) << "leased and kept alike";
}

TEST(Metering, work_that_shares_as_the_rules_say_keeps_nothing) {
    Exclusive plane;
    plane.submit("plain", "vision", false);
    EXPECT_FALSE(plane.lease_of("plain").spec.sharing.keepsNode);
    EXPECT_FALSE(plane.lease_of("plain").status->kept);
    plane.remove(ObjectKind::workload, "plain");
    EXPECT_TRUE(plane.kept().empty());
}

TEST(Metering, capacity_that_would_be_kept_counts_against_the_limit) {
    Exclusive plane{"1"};
    plane.submit("alone", "vision", true);
    EXPECT_EQ(plane.workload("alone").status->phase, WorkloadPhase::pending);
    EXPECT_THAT(testing::PrintToString(plane.workload("alone").status->reasons),
                HasSubstr("its isolation request would keep 1 more from others"));
    plane.submit("plain", "vision", false);
    EXPECT_EQ(plane.workload("plain").status->phase, WorkloadPhase::running);
}

}  // namespace
}  // namespace bulkhead
