// Figures as text, and what of them a tenant may see.
#include "bulkhead/shell/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/model/workload.hpp"
#include "bulkhead/shell/device_metrics.hpp"
#include "bulkhead/shell/tenant_metrics.hpp"

namespace bulkhead::shell {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Exposition, is_the_format_to_the_letter) {
    Exposition out;
    auto& second = out.family("b_total", Exposition::Type::counter, "A line\nand a \\ and a \".");
    second.add(labels({{"name", "a\"b\\c\nd"}, {"other", ""}}), 7);
    out.value("a", Exposition::Type::gauge, "First.", decimal(-1'234, 3));
    out.family("b_total", Exposition::Type::gauge, "said already").add("", 8u);
    auto& histogram = out.family("c_seconds", Exposition::Type::histogram, "Third.");
    histogram.add(labels({{"le", "+Inf"}}), 3, "_bucket");
    histogram.add("", decimal(5, 6), "_sum");
    EXPECT_EQ(out.text(),
              "# HELP a First.\n"
              "# TYPE a gauge\n"
              "a -1.234\n"
              "# HELP b_total A line\\nand a \\\\ and a \".\n"
              "# TYPE b_total counter\n"
              "b_total{name=\"a\\\"b\\\\c\\nd\",other=\"\"} 7\n"
              "b_total 8\n"
              "# HELP c_seconds Third.\n"
              "# TYPE c_seconds histogram\n"
              "c_seconds_bucket{le=\"+Inf\"} 3\n"
              "c_seconds_sum 0.000005\n");
}

TEST(TelemetryBoard, keeps_the_newest_of_a_session_and_nothing_of_one_that_is_gone) {
    TelemetryBoard board;
    const auto sample = [](std::uint16_t gpus) {
        Telemetry telemetry{.grade = Grade::simulated, .age = {500}, .gpus = {}};
        telemetry.gpus.resize(gpus);
        return telemetry;
    };
    board.put("n1", 7, sample(1), Instant{10'000});
    board.put("n1", 8, sample(2), Instant{11'000});
    board.put("n1", 7, sample(3), Instant{12'000});
    ASSERT_EQ(board.newest().size(), 1u);
    EXPECT_EQ(board.newest().at("n1").telemetry->gpus.size(), 2u) << "a session that was replaced is not heard";
    EXPECT_EQ(board.newest().at("n1").taken, Instant{10'500}) << "its age is not forgotten";
    board.forget("n1", 7);
    EXPECT_EQ(board.newest().size(), 1u);
    board.forget("n1", 8);
    EXPECT_TRUE(board.newest().empty());
}

// A node with three GPUs: acme has the first whole, half of the second as an instance, and a share of the third.
struct Scene {
    Catalog catalog{1};
    std::map<std::string, Sampled> samples;
    Ledger ledger;
    Census census;
    static constexpr Instant now{1'000'000};

    void put(Table table, std::int64_t key, const auto& object) {
        ASSERT_TRUE(catalog.feed(std::vector{Row{table, key, to_compact_json(object), false}}));
    }
    static GpuLease lease(const std::string& name, const std::string& tenant, Mechanism mechanism, LeasedSlice slice) {
        GpuLease out;
        out.metadata.name = name;
        out.metadata.resourceVersion = "1";
        out.spec = {.tenant = tenant, .workload = name + "-work", .mechanism = mechanism, .tier = Tier::container};
        out.spec.slices = {std::move(slice)};
        out.status = GpuLeaseStatus{.phase = LeasePhase::active,
                                    .gpus = Gpus::whole(1),
                                    .boundAt = Instant{100'000},
                                    .activeAt = Instant{200'000}};
        return out;
    }
    void add_tenant(std::int64_t key, const std::string& name) {
        Tenant tenant;
        tenant.metadata.name = name;
        tenant.metadata.resourceVersion = "1";
        tenant.spec.tenantClass = "batch";
        tenant.spec.quota.guarantee = Gpus::whole(2);
        put(Table::tenant, key, tenant);
    }
    static std::vector<Measured> all_counters(std::uint64_t value) {
        std::vector<Measured> out;
        for (const Counter counter : every<Counter>()) out.push_back({counter, value});
        return out;
    }
    void sample(Telemetry telemetry, Instant taken = Instant{999'000}) {
        samples["n1"] = {taken, std::make_shared<const Telemetry>(std::move(telemetry))};
    }
    std::string seen_by(const std::string& tenant) {
        Exposition out;
        const auto taken = census.take(catalog);
        const auto books = ledger.books([](const std::string&) { return true; });
        tell_tenant(out, tenant, {*taken, books, samples, now});
        return out.text();
    }
    std::string seen_by_operators() {
        Exposition out;
        const auto taken = census.take(catalog);
        const auto books = ledger.books([](const std::string&) { return true; });
        tell_tenants(out, {*taken, books, samples, now});
        tell_contention(out, {*taken, books, samples, now});
        tell_devices(out, samples);
        return out.text();
    }
};

Telemetry quiet_node() {
    Telemetry telemetry{.grade = Grade::simulated, .age = {}, .gpus = {}};
    for (std::uint16_t i = 0; i < 3; ++i)
        telemetry.gpus.push_back({i,
                                  i,
                                  "GPU-" + std::to_string(i),
                                  "0000:0" + std::to_string(i) + ":00.0",
                                  "NVIDIA H200",
                                  Scene::all_counters(1'000 + i),
                                  {}});
    telemetry.gpus[1].instances.push_back({2, 4, "3g.71gb", "MIG-acme", Scene::all_counters(77 << 20)});
    return telemetry;
}

void add_acme(Scene& scene) {
    scene.add_tenant(1, "acme");
    scene.put(Table::lease, 11, Scene::lease("l-whole", "acme", Mechanism::whole, {"n1", 0, "", 0, 1000}));
    scene.put(Table::lease, 12, Scene::lease("l-mig", "acme", Mechanism::mig, {"n1", 1, "3g.71gb", 4, 1000}));
    scene.put(Table::lease, 13, Scene::lease("l-share", "acme", Mechanism::mps, {"n1", 2, "", 0, 500}));
}

// Everything on the node that is not acme's own moves.
Telemetry node_with_a_busy_neighbour(std::uint64_t seed) {
    Rng rng{seed};
    Telemetry telemetry = quiet_node();
    const auto shake = [&](std::vector<Measured>& readings) {
        for (Measured& reading : readings) reading.value = rng.below(1'000'000'000);
    };
    shake(telemetry.gpus[1].readings);
    shake(telemetry.gpus[2].readings);
    telemetry.gpus[1].instances.insert(telemetry.gpus[1].instances.begin(),
                                       {1, 0, "3g.71gb", "MIG-beta", Scene::all_counters(rng.below(1 << 30))});
    telemetry.gpus[2].instances.push_back({0, 0, "7g.141gb", "MIG-none", Scene::all_counters(5)});
    for (Measured& reading : telemetry.gpus[0].readings) {
        if (reading.counter == Counter::clock_reasons) reading.value |= clocks_by_power_brake | clocks_by_hardware;
        if (reading.counter >= Counter::ecc_corrected) reading.value = rng.below(1'000);  // of whoever was there before
        if (reading.counter == Counter::energy_mj) reading.value = rng.below(1'000'000);
        if (reading.counter == Counter::pcie_replays) reading.value = rng.below(1'000);
    }
    return telemetry;
}

TEST(TenantMetrics, are_the_same_bytes_with_and_without_a_neighbour) {
    Scene alone;
    add_acme(alone);
    alone.sample(quiet_node());
    const std::string before = alone.seen_by("acme"), before_operators = alone.seen_by_operators();
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        Scene shared;
        shared.add_tenant(2, "beta");
        shared.put(Table::lease, 21, Scene::lease("l-beta", "beta", Mechanism::mig, {"n1", 1, "3g.71gb", 0, 1000}));
        shared.put(Table::lease, 22, Scene::lease("l-beta2", "beta", Mechanism::mps, {"n1", 2, "", 0, 500}));
        GpuWorkload waiting;
        waiting.metadata.name = "beta-waits";
        waiting.spec.tenant = "beta";
        waiting.status = GpuWorkloadStatus{.phase = WorkloadPhase::pending, .since = Instant{1}};
        shared.put(Table::workload, 31, waiting);
        add_acme(shared);
        shared.sample(node_with_a_busy_neighbour(seed));
        EXPECT_EQ(shared.seen_by("acme"), before) << "seed " << seed;
        EXPECT_NE(shared.seen_by_operators(), before_operators) << "operators do see it";
    }
}

TEST(TenantMetrics, show_a_whole_gpu_exactly_and_an_instance_its_memory) {
    Scene scene;
    add_acme(scene);
    scene.sample(quiet_node());
    const std::string text = scene.seen_by("acme");
    const std::string whole =
        R"({lease="l-whole",workload="l-whole-work",gpu="0",modelName="NVIDIA H200",grade="simulated"})";
    EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_POWER_USAGE" + whole + " 1.000\n"));
    EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_GPU_UTIL" + whole + " 1000\n"));
    EXPECT_THAT(text, HasSubstr(R"(DCGM_FI_DEV_FB_USED{lease="l-mig",workload="l-mig-work",gpu="0",modelName="NVIDIA )"
                                R"(H200",grade="simulated",GPU_I_PROFILE="3g.71gb"} 77)"));
    EXPECT_THAT(text, Not(HasSubstr(R"(DCGM_FI_DEV_POWER_USAGE{lease="l-mig")")));
    EXPECT_THAT(text, Not(HasSubstr(R"(DCGM_FI_DEV_GPU_TEMP{lease="l-mig")")));
    for (const char* withheld : {"lease=\"l-share\",workload=\"l-share-work\",gpu", "ECC", "XID", "xid", "ENERGY", "n1",
                                 "GPU-0", "0000:", "Hostname", "UUID", "MIG-"})
        EXPECT_THAT(text, Not(HasSubstr(withheld)));
    EXPECT_THAT(text, HasSubstr("bulkhead_tenant_gpus_held{tenant=\"acme\"} 3.000\n"));
    EXPECT_THAT(text, HasSubstr("bulkhead_tenant_guarantee_gpus{tenant=\"acme\"} 2.000\n"));
    EXPECT_THAT(text, HasSubstr("bulkhead_tenant_open_gpu_seconds{tenant=\"acme\",phase=\"active\"} 2400.000000\n"));
}

TEST(TenantMetrics, tell_nothing_that_was_measured_before_the_lease_was_active) {
    Scene scene;
    add_acme(scene);
    scene.sample(quiet_node(), Instant{199'999});
    EXPECT_THAT(scene.seen_by("acme"), Not(HasSubstr("DCGM_")));
    scene.sample(quiet_node(), Instant{200'000});
    EXPECT_THAT(scene.seen_by("acme"), HasSubstr("DCGM_"));
    GpuLease ending = Scene::lease("l-whole", "acme", Mechanism::whole, {"n1", 0, "", 0, 1000});
    ending.metadata.resourceVersion = "2";
    ending.status->phase = LeasePhase::ending;
    scene.put(Table::lease, 11, ending);
    EXPECT_THAT(scene.seen_by("acme"), Not(HasSubstr("DCGM_FI_DEV_POWER_USAGE"))) << "it is being wiped";
}

TEST(TenantMetrics, name_two_causes_of_waiting_to_a_tenant_and_all_of_them_to_operators) {
    Scene scene;
    scene.add_tenant(1, "acme");
    GpuWorkload waiting;
    waiting.metadata.name = "w1";
    waiting.spec.tenant = "acme";
    waiting.status =
        GpuWorkloadStatus{.phase = WorkloadPhase::pending,
                          .since = Instant{400'000},
                          .reasons = {"3 nodes have work on them that it may not sit beside",
                                      "of those, 2 nodes have GPUs that are being wiped, or that nobody vouches for"}};
    scene.put(Table::workload, 31, waiting);
    waiting.metadata.name = "w2";
    waiting.status->reasons = {"it asks for 8 GPUs; its tenant holds 4 of at most 8"};
    scene.put(Table::workload, 32, waiting);
    const std::string own = scene.seen_by("acme"), all = scene.seen_by_operators();
    for (const char* line : {"{tenant=\"acme\",cause=\"own-limit\",kind=\"estimate\"} 1\n",
                             "{tenant=\"acme\",cause=\"room\",kind=\"estimate\"} 1\n"})
        EXPECT_THAT(own, HasSubstr(line));
    EXPECT_THAT(own, Not(HasSubstr("isolation")));
    EXPECT_THAT(own, HasSubstr("bulkhead_tenant_oldest_wait_seconds{tenant=\"acme\"} 600.000\n"));
    for (const char* cause : {"isolation", "wipe", "quota"})
        EXPECT_THAT(all, HasSubstr("{tenant=\"acme\",cause=\"" + std::string{cause} + "\",kind=\"estimate\"} 1\n"));
}

TEST(OperatorMetrics, say_whose_work_is_on_gpus_that_are_held_back) {
    Scene scene;
    add_acme(scene);
    Telemetry hot = quiet_node();
    for (GpuSample& gpu : hot.gpus)
        for (Measured& reading : gpu.readings)
            if (reading.counter == Counter::clock_reasons) reading.value = gpu.gpu == 1 ? clocks_by_power_cap : 1;
    scene.sample(std::move(hot));
    const std::string text = scene.seen_by_operators();
    EXPECT_THAT(text, HasSubstr("bulkhead_gpu_clocks_held_back{Hostname=\"n1\",gpu=\"1\",cause=\"power\",kind="
                                "\"measurement\",grade=\"simulated\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("bulkhead_gpu_clocks_held_back{Hostname=\"n1\",gpu=\"0\",cause=\"power\",kind="
                                "\"measurement\",grade=\"simulated\"} 0\n"));
    EXPECT_THAT(text,
                HasSubstr("bulkhead_tenant_gpus_held_back{tenant=\"acme\",cause=\"power\",kind=\"estimate\"} 1\n"));
}

TEST(OperatorMetrics, are_explained_on_the_page) {
    Scene scene;
    add_acme(scene);
    scene.sample(quiet_node());
    std::ifstream file{BULKHEAD_SOURCE_DIR "/docs/metrics.md"};
    std::ostringstream page;
    page << file.rdbuf();
    std::istringstream lines{scene.seen_by_operators()};
    std::string last;
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("# TYPE ")) continue;
        const std::string name = line.substr(7, line.find(' ', 7) - 7);
        EXPECT_LT(last, name) << "families are in order, each once";
        last = name;
        if (name.starts_with("DCGM_")) {
            EXPECT_THAT(page.str(), HasSubstr("`" + name + "`"));
        }
    }
    EXPECT_FALSE(last.empty());
}

TEST(Census, follows_the_catalog_by_its_changes_and_catches_up_when_those_are_forgotten) {
    Catalog catalog{1, {.changes = 16}};
    Census followed;
    Rng rng{7};
    for (int round = 0; round < 60; ++round) {
        const auto rows = static_cast<int>(rng.below(40));  // now and then more than are remembered
        for (int i = 0; i < rows; ++i) {
            const auto key = static_cast<std::int64_t>(rng.below(20));
            GpuLease lease = Scene::lease("l-" + std::to_string(key), rng.chance(500) ? "acme" : "beta",
                                          Mechanism::whole, {"n1", 0, "", 0, 1000});
            const bool gone = rng.chance(300) && catalog.get(ObjectKind::lease, lease.metadata.name) != nullptr;
            ASSERT_TRUE(
                catalog.feed(std::vector{Row{Table::lease, key, gone ? std::string{} : to_compact_json(lease), gone}}));
        }
        Census fresh;
        const auto expected = fresh.take(catalog), seen = followed.take(catalog);
        ASSERT_EQ(seen->leases.size(), expected->leases.size()) << "round " << round;
        for (std::size_t i = 0; i < expected->leases.size(); ++i) ASSERT_EQ(*seen->leases[i], *expected->leases[i]);
        EXPECT_EQ(followed.take(catalog), seen) << "nothing has changed: nothing is made anew";
    }
}

TEST(OperatorMetrics, tell_of_so_many_gpus_and_count_the_rest) {
    std::map<std::string, Sampled> samples;
    Telemetry node{.grade = Grade::simulated, .age = {}, .gpus = {}};
    for (std::uint16_t i = 0; i < 8; ++i) node.gpus.push_back({i, i, "u", "b", "m", {{Counter::celsius, 30}}, {}});
    for (std::size_t i = 0; i < gpus_told_max / 8 + 1; ++i)
        samples["n" + std::to_string(i)] = {Instant{}, std::make_shared<const Telemetry>(node)};
    Exposition out;
    tell_devices(out, samples);
    EXPECT_THAT(out.text(), HasSubstr("bulkhead_telemetry_gpus_left_out 8\n"));
}

Batch closing(GpuLease lease, std::map<std::string, std::string> detail) {
    Batch batch;
    batch.rows.push_back({Table::lease, 5, to_compact_json(lease), false});
    batch.rows.push_back({Table::lease, 5, {}, true});
    batch.leaves.push_back({.payload = evidence::payload_of({.kind = evidence::RecordKind::lease_closed,
                                                             .at = Instant{40'000},
                                                             .actor = "core",
                                                             .tenant = lease.spec.tenant,
                                                             .lease = lease.metadata.name,
                                                             .detail = std::move(detail)})});
    return batch;
}

TEST(Ledger, adds_up_what_came_of_the_time_of_leases) {
    GpuLease lease = Scene::lease("l", "acme", Mechanism::whole, {"n1", 0, "", 0, 1000});
    lease.status = GpuLeaseStatus{.phase = LeasePhase::ending,
                                  .gpus = Gpus::whole(2),
                                  .boundAt = Instant{10'000},
                                  .activeAt = Instant{12'000},
                                  .endedAt = Instant{32'000},
                                  .why = "reclaimed: its tenant held 8 GPUs and was due 4"};
    Ledger ledger;
    ledger.committed(closing(lease, {{"lost-gpu-ms", "10000"}, {"lost-basis", "interval"}}));
    ledger.committed(closing(lease, {{"exit-status", "0"}}));
    const auto books = ledger.books([](const std::string&) { return true; });
    ASSERT_EQ(books.tenants.size(), 1u);
    const Ledger::OfTenant& acme = books.tenants.at("acme");
    using enum Fate;
    using enum Knowledge;
    EXPECT_EQ(acme.closed, 2u);
    EXPECT_EQ(acme.micros.at({kept, measurement}), 40'000'000);
    EXPECT_EQ(acme.micros.at({kept, estimate}), 30'000'000);
    EXPECT_EQ(acme.micros.at({lost, estimate}), 10'000'000);
    EXPECT_EQ(acme.micros.at({preparing, measurement}), 2 * 4'000'000);
    EXPECT_EQ(acme.micros.at({ending, measurement}), 2 * 16'000'000);
    ASSERT_EQ(acme.interrupted.size(), 1u);
    EXPECT_EQ(acme.interrupted.at(EndCause::reclaimed).leases, 1u);
    EXPECT_EQ(acme.interrupted.at(EndCause::reclaimed).lost_micros, 10'000'000);
    EXPECT_TRUE(ledger.books([](const std::string&) { return false; }).tenants.empty()) << "a tenant that is no more";
}

TEST(Ledger, counts_wipes_by_result_and_by_how_long_they_took) {
    Ledger ledger;
    Batch batch;
    const auto note = [&](evidence::RecordKind kind, const std::string& unit, std::int64_t took_ms) {
        evidence::WipeStatement statement{.node = "n", .device = "d", .unit = unit, .method = "overwrite"};
        statement.began = Instant{1'000};
        statement.ended = Instant{1'000 + took_ms};
        evidence::Record record{.kind = kind, .at = Instant{9'000}, .actor = "node:n", .node = "n", .unit = unit};
        record.evidence = evidence::SignedEvidence{evidence::statement_text(statement), "k", "c2ln"};
        batch.leaves.push_back({.payload = evidence::payload_of(record)});
    };
    note(evidence::RecordKind::wiped, "gpu3/slices 4-7", 900);
    note(evidence::RecordKind::wiped, "gpu3", 7'000);
    note(evidence::RecordKind::wiped, "drive0", 1'000'000);
    note(evidence::RecordKind::wipe_failed, "gpu1", 5);
    note(evidence::RecordKind::quarantined, "gpu1", 5);
    ledger.committed(batch);
    const auto books = ledger.books([](const std::string&) { return true; });
    EXPECT_EQ(books.wipes.ended.at({UnitKind::memory, true}), 2u);
    EXPECT_EQ(books.wipes.ended.at({UnitKind::drive, true}), 1u);
    EXPECT_EQ(books.wipes.ended.at({UnitKind::memory, false}), 1u);
    EXPECT_EQ(books.wipes.took, (decltype(books.wipes.took){1, 0, 0, 1, 0, 0, 0, 0, 0, 1}));
    EXPECT_EQ(books.wipes.took_ms, 1'007'900);
    EXPECT_EQ(books.quarantined, 1u);
}

}  // namespace
}  // namespace bulkhead::shell
