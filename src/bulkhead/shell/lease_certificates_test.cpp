// What a server says of a lease: every wipe of it, in pages, and what was not wiped.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bulkhead/audit/publisher.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/shell/certificates.hpp"
#include "bulkhead/shell/fixture_test.hpp"

namespace bulkhead::shell {
namespace {

using evidence::LeaseUnit;
using evidence::Record;
using evidence::RecordKind;

const std::string lease_log = "log.example/fleet";

class LeaseLog : public ::testing::Test {
protected:
    LeaseLog() {
        store_.emplace(store::Store::open(options_).value());
        batch_ = {.epoch = store_->raise_epoch(0).value(), .clock = Instant{1'800'000'000'000}};
        add(evidence::key_added({1}, "api:admin", "n0", node_.public_key()));
    }
    std::string called(const std::string& tenant) const {
        return evidence::pseudonym(evidence::opening_of(store_->secret(), tenant));
    }
    std::int64_t add(const Record& record) {
        Leaf leaf{.index = std::ssize(batch_.leaves), .salt = std::string(16, 's'), .payload = payload_of(record)};
        leaf.entry = evidence::commit_to(leaf.salt, leaf.payload);
        batch_.leaves.push_back(std::move(leaf));
        return batch_.leaves.back().index;
    }
    void lease(const std::string& name, const std::vector<LeaseUnit>& units, const std::string& tenant = "acme") {
        Record record = evidence::lease_units(name, units);
        record.tenant = called(tenant);
        add(record);
    }
    std::int64_t tell(RecordKind kind, const std::string& unit, const std::string& lease, const std::string& tenant,
                      const std::string& why = {}, const std::string& gone = {}) {
        Record record{.kind = kind, .at = {9}, .actor = "node:n0"};
        record.node = "n0";
        record.unit = unit;
        record.lease = lease;
        record.tenant = tenant;
        if (!why.empty()) record.detail["why"] = why;
        if (!gone.empty()) record.detail["gone"] = gone;
        if (kind == RecordKind::wiped) {
            evidence::WipeStatement wipe;
            wipe.node = "n0";
            wipe.unit = unit;
            wipe.lease = lease;
            wipe.tenants = {tenant};
            wipe.device = "SERIAL-1";
            wipe.method = "overwrite";
            wipe.result = evidence::WipeResult::verified;
            record.grade = wipe.grade = Grade::silicon;
            record.evidence = evidence::sign_statement(node_, evidence::statement_text(wipe));
        }
        return add(record);
    }
    std::int64_t wiped(const std::string& unit, const std::string& lease = "lease-1",
                       const std::string& tenant = "acme") {
        return tell(RecordKind::wiped, unit, lease, called(tenant));
    }
    void replaced(const std::string& lease, const std::string& tenant, const std::string& was, const std::string& by) {
        tell(RecordKind::quarantined, "drive0", lease, tenant, by + " is in the place of " + was, was);
    }
    void remove_node() {
        Record record{.kind = RecordKind::deleted, .at = {9}, .actor = "api:admin"};
        record.object = "GpuNode/n0";
        add(record);
    }
    using Missing = std::vector<evidence::Unwiped>;
    Missing missing(const std::string& lease, const std::string& tenant) {
        const auto list = certificates_->of_lease(lease, {}, tenant);
        EXPECT_TRUE(list) << list.error().what;
        return list ? list->unwiped : Missing{};
    }
    Certificates& published() {
        auto tiles = audit::Publisher::open(folder_ / "tiles", lease_log, key('L')).value();
        for (const Leaf& leaf : batch_.leaves) tiles.append(leaf.entry);
        invariant(store_->commit(batch_).has_value() && tiles.publish().has_value(), "a small log can be written");
        certificates_.emplace(options_, folder_ / "tiles", Certificates::Signers{lease_log, key('L'), key('B')},
                              store_->secret());
        return *certificates_;
    }
    static evidence::SigningKey key(char seed) {
        return evidence::SigningKey::from_seed(std::string(32, seed)).value();
    }
    static evidence::CheckedList checked(const evidence::CertificateList& list) {
        return evidence::verify_certificates(list, evidence::VerifierKey{lease_log, key('L').public_key()});
    }

    const ScratchFolder folder_;
    const store::Options options_{.path = folder_ / "store.db", .sync = store::Sync::off};
    const evidence::SigningKey node_ = key('n');
    std::optional<store::Store> store_;
    Batch batch_;
    std::optional<Certificates> certificates_;
};

TEST_F(LeaseLog, gives_a_hundred_and_fifty_wipes_in_two_pages_and_each_once) {
    std::vector<LeaseUnit> units;
    for (unsigned i = 0; i < 150; ++i) units.push_back({.node = "n0", .unit = fmt::format("gpu{}/slices 0-0", i)});
    lease("lease-1", units);
    for (const LeaseUnit& unit : units) wiped(unit.unit);
    Certificates& log = published();
    auto first = log.of_lease("lease-1", {.limit = 100}, "acme");
    ASSERT_TRUE(first) << first.error().what;
    EXPECT_EQ(first->certificates.size(), 100u);
    EXPECT_EQ(first->total, 150);
    EXPECT_TRUE(first->unwiped.empty()) << "it is on record, if not on this page";
    EXPECT_EQ(checked(*first).lease->wiped, 100u) << "a page is not taken for the whole";
    ASSERT_TRUE(first->next);
    const auto second = log.of_lease("lease-1", {.limit = 100, .from = first->next}, "acme");
    ASSERT_TRUE(second);
    EXPECT_EQ(second->certificates.size(), 50u);
    EXPECT_FALSE(second->next);
    EXPECT_FALSE(second->consists);
    for (const auto& one : second->certificates) first->certificates.push_back(one);
    EXPECT_TRUE(checked(*first).lease->whole());
}

TEST_F(LeaseLog, says_what_was_not_wiped_and_why) {
    lease("lease-1", {{.node = "n0", .unit = "gpu0/slices 0-6"},
                      {.node = "n0", .unit = "drive0", .serial = "SERIAL-1"},
                      {.node = "n0", .unit = "drive1"},
                      {.node = "n0", .unit = "drive2"},
                      {.node = "n0", .unit = "drive3", .serial = "SERIAL-3"},
                      {.node = "n0", .unit = "vf0"}});
    wiped("gpu0/slices 0-6");
    tell(RecordKind::wipe_failed, "drive0", "lease-1", called("acme"), "it holds what it held before");
    tell(RecordKind::held, "drive1", "", "acme");
    tell(RecordKind::quarantined, "drive2", "", "", "is gone from this machine");
    wiped("drive3");  // of another drive, by its statement
    tell(RecordKind::held, "vf0", "", "borealis");
    const auto list = published().of_lease("lease-1", {}, "acme");
    ASSERT_TRUE(list) << list.error().what;
    const std::vector<evidence::Unwiped> wanted{{"n0", "drive0", "wipe-failed", "it holds what it held before"},
                                                {"n0", "drive1", "held", ""},
                                                {"n0", "drive2", "quarantined", "is gone from this machine"},
                                                {"n0", "drive3", "awaited", ""},
                                                {"n0", "vf0", "awaited", ""}};
    EXPECT_EQ(list->unwiped, wanted) << "and a neighbour's hold is not told";
    const evidence::CheckedList of = checked(*list);
    EXPECT_TRUE(of.refused.empty());
    ASSERT_TRUE(of.lease);
    EXPECT_EQ(of.lease->wiped, 1u);
    EXPECT_EQ(of.lease->units, 6u);
    EXPECT_NE(of.lease->not_wiped.at(0).find("by entry 3 of the log: it holds what"), std::string::npos);
    const auto somebody = certificates_->of_lease("lease-1", {}, "borealis");
    ASSERT_FALSE(somebody);
    EXPECT_EQ(somebody.error().what, "no wipe of lease lease-1 is on record") << "as of a lease that never was";
}

TEST_F(LeaseLog, counts_what_was_repaired_and_wiped_in_the_end) {
    lease("lease-1", {{.node = "n0", .unit = "drive0"}, {.node = "n0", .unit = "drive1"}});
    tell(RecordKind::wipe_failed, "drive0", "lease-1", called("acme"), "no answer");
    tell(RecordKind::wipe_failed, "drive1", "lease-1", called("acme"), "no answer");
    tell(RecordKind::released_from_quarantine, "drive0", "", "");
    tell(RecordKind::released_from_quarantine, "drive1", "", "");
    wiped("drive0");
    const auto list = published().of_lease("lease-1", {});
    ASSERT_TRUE(list);
    EXPECT_EQ(list->unwiped, (std::vector<evidence::Unwiped>{{"n0", "drive1", "awaited", ""}}));
    EXPECT_TRUE(list->failed.empty());
}

TEST_F(LeaseLog, says_of_a_drive_that_was_replaced_that_it_is_gone_whatever_becomes_of_the_other) {
    lease("lease-1", {{.node = "n0", .unit = "drive0", .serial = "S1"}, {.node = "n0", .unit = "vf0"}});
    wiped("vf0");
    replaced("lease-1", "acme", "S1", "S2");
    tell(RecordKind::released_from_quarantine, "drive0", "", "", "looked at");
    tell(RecordKind::quarantined, "drive0", "", "", "the other is worn");
    tell(RecordKind::released_from_quarantine, "drive0", "", "", "looked at again");
    tell(RecordKind::wiped, "drive0", "", "");
    lease("lease-2", {{.node = "n0", .unit = "drive0", .serial = "S2"}, {.node = "n0", .unit = "vf0"}}, "borealis");
    wiped("vf0", "lease-2", "borealis");
    replaced("lease-2", "borealis", "S2", "S3");
    published();
    EXPECT_EQ(missing("lease-1", "acme"), (Missing{{"n0", "drive0", "quarantined", "S2 is in the place of S1"}}));
    EXPECT_EQ(missing("lease-2", "borealis"), (Missing{{"n0", "drive0", "quarantined", "S3 is in the place of S2"}}));
}

TEST_F(LeaseLog, says_of_a_function_that_was_replaced_that_it_is_gone_though_no_serial_number_is_on_record) {
    lease("lease-1", {{.node = "n0", .unit = "vf0"}, {.node = "n0", .unit = "drive0"}});
    wiped("drive0");
    tell(RecordKind::quarantined, "vf0", "lease-1", "acme", "0000:3b:02.1 is in the place of 0000:3b:01.1",
         "0000:3b:01.1");
    tell(RecordKind::released_from_quarantine, "vf0", "", "");
    published();
    EXPECT_EQ(missing("lease-1", "acme"),
              (Missing{{"n0", "vf0", "quarantined", "0000:3b:02.1 is in the place of 0000:3b:01.1"}}));
}

// Each of these names nobody, or the one who came after.
TEST_F(LeaseLog, does_not_tell_what_befell_those_who_had_it_afterwards) {
    std::vector<LeaseUnit> units{{.node = "n0", .unit = "vf0"}};
    for (unsigned i = 0; i < 4; ++i) units.push_back({.node = "n0", .unit = fmt::format("drive{}", i), .serial = "S1"});
    lease("lease-1", units);
    wiped("vf0");
    tell(RecordKind::wiped, "drive0", "", "");  // nobody's, of another drive
    tell(RecordKind::quarantined, "drive0", "", "", "the next one's fault");
    lease("lease-2", {{.node = "n0", .unit = "drive1"}, {.node = "n0", .unit = "drive2"}}, "borealis");
    tell(RecordKind::quarantined, "drive1", "", "", "the next one's fault");
    tell(RecordKind::quarantined, "drive2", "lease-2", "borealis", "S3 is in the place of S2", "S2");
    tell(RecordKind::quarantined, "drive3", "lease-9", "acme", "of another lease of the same tenant");
    published();
    EXPECT_EQ(missing("lease-1", "acme"), (Missing{{"n0", "drive0", "awaited", ""},
                                                   {"n0", "drive1", "awaited", ""},
                                                   {"n0", "drive2", "awaited", ""},
                                                   {"n0", "drive3", "awaited", ""}}));
}

TEST_F(LeaseLog, does_not_tell_another_tenants_quarantine_even_where_nothing_shows_that_it_was_given_it) {
    lease("lease-1", {{.node = "n0", .unit = "drive0"}, {.node = "n0", .unit = "vf0"}});
    wiped("vf0");
    tell(RecordKind::quarantined, "drive0", "", "", "worn");
    tell(RecordKind::quarantined, "drive0", "lease-2", "borealis", "S3 is in the place of S2", "S2");
    published();
    EXPECT_EQ(missing("lease-1", "acme"), (Missing{{"n0", "drive0", "quarantined", "worn"}}));
}

TEST_F(LeaseLog, still_tells_of_the_slices_that_nobody_else_was_given) {
    lease("lease-1", {{.node = "n0", .unit = "gpu0/slices 0-6"}, {.node = "n0", .unit = "gpu1/slices 0-6"}});
    for (const std::string gpu : {"gpu0", "gpu1"}) wiped(gpu + "/slices 0-3");
    lease("lease-2", {{.node = "n0", .unit = "gpu0/slices 0-3"}, {.node = "n0", .unit = "gpu1/slices 0-3"}},
          "borealis");
    tell(RecordKind::wipe_failed, "gpu0/slices 4-6", "lease-1", called("acme"), "no answer");
    tell(RecordKind::quarantined, "gpu0/slices 0-3", "", "", "the next one's fault");
    tell(RecordKind::quarantined, "gpu1/slices 0-6", "", "", "fell off the bus");  // with what was not wiped yet
    published();
    EXPECT_EQ(missing("lease-1", "acme"), (Missing{{"n0", "gpu0/slices 0-6", "wipe-failed", "no answer"},
                                                   {"n0", "gpu1/slices 0-6", "quarantined", "fell off the bus"}}));
}

TEST_F(LeaseLog, tells_who_left_a_shared_gpu_what_befell_it_while_others_were_on_it) {
    const LeaseUnit shared{.node = "n0", .unit = "gpu0/slices 0-0", .shared = true};
    lease("lease-1", {shared, {.node = "n0", .unit = "vf0"}});
    lease("lease-2", {shared}, "borealis");
    wiped("vf0");
    tell(RecordKind::quarantined, shared.unit, "", "", "fell off the bus");
    published();
    EXPECT_EQ(missing("lease-1", "acme"), (Missing{{"n0", shared.unit, "quarantined", "fell off the bus"}}));
}

TEST_F(LeaseLog, does_not_take_a_node_for_the_one_that_had_its_name_before) {
    lease("lease-1",
          {{.node = "n0", .unit = "drive0"}, {.node = "n0", .unit = "drive1"}, {.node = "n0", .unit = "vf0"}});
    wiped("vf0");
    tell(RecordKind::quarantined, "drive0", "", "", "worn");
    remove_node();
    tell(RecordKind::released_from_quarantine, "drive0", "", "");
    tell(RecordKind::quarantined, "drive1", "", "", "the new node's fault");
    published();
    EXPECT_EQ(missing("lease-1", "acme"),
              (Missing{{"n0", "drive0", "quarantined", "worn"}, {"n0", "drive1", "awaited", ""}}));
}

TEST_F(LeaseLog, says_why_where_nothing_was_wiped) {
    lease("lease-1", {{.node = "n0", .unit = "drive0"}});
    tell(RecordKind::wipe_failed, "drive0", "lease-1", called("acme"), "no answer");
    const auto none = published().of_lease("lease-1", {}, "acme");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Code::not_found);
    EXPECT_EQ(none.error().what, "no wipe of lease lease-1 is on record: n0 drive0 is wipe-failed: no answer");
}

TEST_F(LeaseLog, finds_the_wipe_of_who_left_a_shared_gpu_last) {
    const LeaseUnit shared{.node = "n0", .unit = "gpu0/slices 0-0", .shared = true};
    lease("lease-1", {shared});
    lease("lease-2", {shared}, "borealis");
    wiped(shared.unit, "lease-2", "acme");
    wiped(shared.unit, "lease-2", "borealis");
    Certificates& log = published();
    for (const auto& [name, tenant] : {std::pair{"lease-1", "acme"}, {"lease-2", "borealis"}}) {
        const auto list = log.of_lease(name, {}, tenant);
        ASSERT_TRUE(list) << list.error().what;
        EXPECT_EQ(list->certificates.size(), 1u);
        EXPECT_TRUE(checked(*list).lease->whole()) << name;
    }
}

TEST_F(LeaseLog, does_not_claim_the_whole_of_a_lease_from_before_there_was_a_record_of_it) {
    wiped("drive0");
    const auto list = published().of_lease("lease-1", {});
    ASSERT_TRUE(list);
    EXPECT_FALSE(list->consists);
    const evidence::CheckedList of = checked(*list);
    ASSERT_TRUE(of.lease);
    EXPECT_FALSE(of.lease->whole());
    EXPECT_EQ(of.lease->wiped, 1u);
}

}  // namespace
}  // namespace bulkhead::shell
