// The log's own account of a lease: what it had, and which wipes answer for it.
#include "bulkhead/evidence/lease_units.hpp"

#include <gtest/gtest.h>

#include "bulkhead/core/plane_test.hpp"
#include "bulkhead/evidence/statement.hpp"

namespace bulkhead {
namespace {

struct LoggedLease {
    evidence::LeaseOnRecord lease;
    std::vector<evidence::WipeOnRecord> wipes;
};

// The only lease there was, out of what was logged.
LoggedLease logged_lease(const Plane& plane) {
    LoggedLease out;
    for (std::size_t i = 0; i < plane.log.size(); ++i) {
        const auto record = evidence::read_record(plane.log[i]);
        if (!record) continue;
        if (record->kind == evidence::RecordKind::lease_units)
            out.lease = {static_cast<std::int64_t>(i), record->lease, record->tenant, *evidence::units_of(*record)};
        if (record->kind == evidence::RecordKind::wiped)
            out.wipes.push_back({static_cast<std::int64_t>(i), record->node, record->unit,
                                 evidence::read_statement(record->evidence->statement)->device, record->lease,
                                 record->tenant});
    }
    return out;
}

struct LeaseAccounted : testing::Test {
    LeaseAccounted() {
        EXPECT_TRUE(plane
                        .apply("apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\n"
                               "spec: {class: research, priorityGrant: 50}\n")
                        .outcome);
        EXPECT_TRUE(plane
                        .apply("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: train}\n"
                               "spec: {tenant: acme, gpu: {count: 1, mechanism: whole}, storage: {localNvme: 1Gi}}\n")
                        .outcome);
        plane.settle();
        EXPECT_EQ(plane.workload("train").status->phase, WorkloadPhase::running);
    }
    void end() {
        EXPECT_TRUE(plane.remove(ObjectKind::workload, "train").outcome);
        plane.settle();
    }
    Plane plane{1};
};

TEST_F(LeaseAccounted, what_it_had_is_logged_when_it_is_given_and_all_of_it_wiped_at_its_end) {
    const LoggedLease before = logged_lease(plane);
    ASSERT_EQ(before.lease.units.size(), 2u);
    EXPECT_EQ(before.lease.units[0].unit.substr(0, 3), "gpu");
    EXPECT_EQ(before.lease.units[1].unit, "drive0");
    EXPECT_EQ(before.lease.units[1].serial, plane.node("n0").status.drives.at(0).serial);
    EXPECT_EQ(before.lease.tenant.front(), '~') << "it goes with certificates that others read";
    EXPECT_EQ(evidence::not_wiped(before.lease, before.wipes).size(), 2u) << "wipes of before are not its own";
    end();
    const LoggedLease after = logged_lease(plane);
    EXPECT_TRUE(evidence::not_wiped(after.lease, after.wipes).empty());
}

TEST_F(LeaseAccounted, what_failed_or_is_held_is_missing) {
    plane.fault("n0", {.kind = UnitKind::drive, .device = 0, .why = "worn"});
    plane.settle();
    end();
    const LoggedLease after = logged_lease(plane);
    EXPECT_EQ(evidence::not_wiped(after.lease, after.wipes), std::vector<std::size_t>{1});
}

}  // namespace
}  // namespace bulkhead
