#include "bulkhead/node/journal.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "bulkhead/node/rig_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

// One record of every kind, with something in every field.
std::vector<JournalRecord> one_of_each() {
    const Prepare lease{.lease = key_of(3, 7),
                        .tenant = "acme",
                        .workload = "fraud-scoring",
                        .mechanism = Mechanism::mps_in_mig,
                        .tier = Tier::confidential_vm,
                        .gpus = {{7, 4, 4, "3g.40gb", 250}, {65'535, 255, 255, "", 1000}},
                        .drives = {1, 300},
                        .functions = {65'535}};
    const WipeTask task{UnitKind::memory, 7, 4, 4, key_of(3, 8), "lease-1", {"acme", "beta"}, true};
    const Release release{lease.lease, {task, {UnitKind::host, 0, 0, 1, key_of(3, 9)}}};
    const WipeReport wiped{
        UnitKind::memory, 7, 4, 4, task.ticket, true, true, "why", {"{statement}", "key", "signature"}};
    Ledger ledger;
    ledger.epoch = 3;
    ledger.lives = 2;
    ledger.boot = "boot";
    ledger.reports = 99;
    ledger.leases[lease.lease] = {lease, PartPhase::running, "why", true, release};
    ledger.units[{UnitKind::drive, 1, 0}] = {true, key_of(2, 1)};
    ledger.wipes[task.ticket] = {task, true, Instant{-5}, "boot", true, true};
    ledger.answered[wiped.ticket] = wiped;
    ledger.faulty[{UnitKind::vf, 3}] = "stuck";
    ledger.draining[{UnitKind::memory, 3}] = "Xid 63";
    ledger.host_tenants = {"acme", "beta"};
    ledger.unacknowledged[98] = {98, FaultReport{UnitKind::drive, 2, "gone", true}};
    ledger.unacknowledged[99] = {99, wiped};
    ledger.closed[key_of(1, 1)] = PartPhase::refused;
    ledger.closed_up_to = 5;
    return {journal::AgentStarted{"boot"},
            journal::BootSeen{"boot 2"},
            journal::EpochSeen{3},
            journal::LeaseTaken{lease},
            journal::LeaseRefused{key_of(3, 6)},
            journal::LeaseStarting{lease.lease},
            journal::LeaseMoved{lease.lease, PartPhase::failed, "it broke"},
            journal::ReleaseTaken{release},
            journal::WipeTaken{task},
            journal::WipeBegan{task.ticket, Instant{1'234}, true},
            journal::WipeAnswered{wiped, true},
            journal::DeviceFaulty{{UnitKind::drive, 2}, "gone"},
            journal::ReportMade{{99, LeaseReport{lease.lease, PartPhase::stopped, ""}}},
            journal::Acknowledged{98},
            journal::Everything{ledger},
            journal::WipeReset{task.ticket},
            journal::DeviceDraining{{UnitKind::memory, 2}, "Xid 94"},
            journal::LeaseSaved{lease.lease, {true, "step 41"}}};
}

std::string frames(std::span<const JournalRecord> records) {
    std::string bytes;
    std::uint64_t sequence = 40;
    for (const JournalRecord& record : records) bytes += journal_frame(sequence++, {&record, 1});
    return bytes;
}

TEST(Journal, what_is_written_is_read_back) {
    const auto records = one_of_each();
    ASSERT_EQ(records.size(), std::variant_size_v<JournalRecord>) << "one of each";
    for (const std::string& bytes : {frames(records), journal_frame(40, records)}) {
        const auto read = read_journal(bytes);
        ASSERT_TRUE(read) << read.error().what;
        EXPECT_EQ(read->records, records);
        EXPECT_EQ(read->sound_bytes, bytes.size());
        EXPECT_EQ(read->dropped_bytes, 0u);
    }
}

TEST(Journal, nothing_is_an_empty_journal) {
    const auto read = read_journal("");
    ASSERT_TRUE(read);
    EXPECT_TRUE(read->records.empty());
    EXPECT_EQ(read->next_sequence, 0u);
}

TEST(Journal, a_torn_end_is_dropped_wherever_it_was_torn) {
    const auto records = one_of_each();
    const std::string last = journal_frame(40 + records.size() - 1, {&records.back(), 1});
    const std::string whole = frames(records), kept = whole.substr(0, whole.size() - last.size());
    for (std::size_t cut = 1; cut < last.size(); ++cut) {
        for (const bool zeros : {false, true}) {  // a file system may leave the length, and no bytes
            std::string torn = kept + last.substr(0, cut);
            if (zeros) torn.resize(whole.size(), '\0');
            if (torn == whole) continue;
            const auto read = read_journal(torn);
            ASSERT_TRUE(read) << cut << ": " << read.error().what;
            EXPECT_EQ(read->records.size(), records.size() - 1) << cut;
            EXPECT_EQ(read->sound_bytes, kept.size());
            EXPECT_EQ(read->dropped_bytes, torn.size() - kept.size());
            EXPECT_EQ(read->next_sequence, 40 + records.size() - 1) << "the next append takes its place";
        }
    }
}

TEST(Journal, damage_before_a_sound_record_is_an_error_wherever_it_is) {
    auto records = one_of_each();
    records.resize(4);
    const std::string whole = frames(records);
    const std::string last = journal_frame(43, {&records.back(), 1});
    for (std::size_t at = 0; at < whole.size() - last.size(); ++at) {
        std::string bad = whole;
        bad[at] = static_cast<char>(bad[at] ^ 0x20);
        const auto read = read_journal(bad);
        ASSERT_FALSE(read) << "a flipped bit at " << at << " went unnoticed";
        EXPECT_EQ(read.error().code, Code::corrupt);
        EXPECT_THAT(read.error().remedy, HasSubstr("dirty"));
    }
}

TEST(Journal, a_lost_or_repeated_record_in_the_middle_is_an_error) {
    const auto records = one_of_each();
    const auto frame = [&](std::uint64_t sequence) { return journal_frame(sequence, {&records[0], 1}); };
    EXPECT_FALSE(read_journal(frame(1) + frame(3)));
    EXPECT_FALSE(read_journal(frame(1) + frame(1)));
    EXPECT_TRUE(read_journal(frame(1) + frame(2)));
}

// What came with version 3 is at its default; the rest is as it was.
TEST(Journal, a_file_of_the_version_before_is_read) {
    std::ifstream file{BULKHEAD_SOURCE_DIR "/testdata/journal/v2.journal", std::ios::binary};
    const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
    ASSERT_EQ(bytes.substr(0, 4), "BHJ2");
    const auto read = read_journal(bytes);
    ASSERT_TRUE(read) << read.error().what;
    auto wanted = one_of_each();
    wanted.resize(15);
    std::get<journal::ReleaseTaken>(wanted[7]).order.wipes[0].burn_in = false;
    std::get<journal::WipeTaken>(wanted[8]).task.burn_in = false;
    Ledger& ledger = std::get<journal::Everything>(wanted[14]).ledger;
    ledger.leases.begin()->second.release->wipes[0].burn_in = false;
    ledger.wipes.begin()->second.task.burn_in = false;
    ledger.wipes.begin()->second.reset = false;
    ledger.draining.clear();
    std::get<FaultReport>(ledger.unacknowledged.at(98).what).drain = false;
    EXPECT_EQ(read->records, wanted);
    const auto both = read_journal(bytes + journal_frame(read->next_sequence, wanted));
    ASSERT_TRUE(both) << "what is appended is of the new version";
    EXPECT_EQ(both->records.size(), 30u);
}

// Every field that came with version 4 is kept by it.
TEST(Journal, what_is_to_be_saved_and_was_is_kept) {
    Prepare lease{.lease = key_of(3, 7), .tenant = "acme"};
    lease.program = {.words = {"train"}, .checkpoint = {"save", "it"}, .checkpoint_within = Duration{5'000}};
    Ledger ledger;
    ledger.leases[lease.lease] = {
        lease, PartPhase::running, "", true, Release{lease.lease, {}, true}, Saved{true, "41"}};
    const std::vector<JournalRecord> records{
        journal::LeaseTaken{lease}, journal::ReleaseTaken{{lease.lease, {}, true}}, journal::Everything{ledger},
        journal::ReportMade{{1, LeaseReport{.lease = lease.lease,
                                            .phase = PartPhase::stopped,
                                            .why = {},
                                            .saved = Saved{false, "the disk is full"}}}}};
    const auto read = read_journal(journal_frame(1, records));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(read->records, records);
}

// And with version 5: who functions are on the fabric, until a wipe of them is verified.
TEST(Journal, a_function_keeps_its_port_until_its_wipe_is_verified) {
    const FabricPort port{.function = 1,
                          .mac = "02:42:0a:80:10:05",
                          .vlan = 100,
                          .address = "10.128.16.5/20",
                          .subnet = "10.128.16.0/20",
                          .rate_mbps = 200'000,
                          .dscp = 26,
                          .node_guid = "02:42:4e:00:0a:80:10:05",
                          .port_guid = "02:42:50:00:0a:80:10:05",
                          .pkey = 0x8123};
    const Prepare lease{.lease = key_of(3, 7), .tenant = "acme", .functions = {1}, .ports = {port}};
    Ledger ledger;
    play_back(ledger, journal::LeaseTaken{lease});
    play_back(ledger, journal::LeaseMoved{lease.lease, PartPhase::stopped, ""});
    EXPECT_EQ(ledger.ports.at(1), (KnownPort{"acme", port})) << "the lease is over, the function is not wiped";
    const auto answered = [](Key ticket, bool verified) {
        return journal::WipeAnswered{
            {.kind = UnitKind::vf, .device = 1, .size = 1, .ticket = ticket, .verified = verified}, true};
    };
    play_back(ledger, answered(1, false));
    EXPECT_TRUE(ledger.ports.contains(1)) << "a wipe that failed";
    const auto read = read_journal(journal_frame(1, std::vector<JournalRecord>{journal::Everything{ledger}}));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(std::get<journal::Everything>(read->records[0]).ledger, ledger) << "also on disk";
    play_back(ledger, answered(2, true));
    EXPECT_TRUE(ledger.ports.empty());
}

TEST(Journal, another_version_is_named_and_not_guessed) {
    const auto records = one_of_each();
    for (const char version : {'1', '8'}) {
        std::string bytes = frames(records);
        bytes[3] = version;
        const auto read = read_journal(bytes);
        ASSERT_FALSE(read);
        EXPECT_THAT(read.error().what, HasSubstr(fmt::format("version {} ", version)));
    }
}

TEST(Journal, a_record_that_fits_nothing_changes_nothing_else) {
    Ledger ledger;
    play_back(ledger, journal::LeaseStarting{5});
    play_back(ledger, journal::LeaseMoved{5, PartPhase::running, ""});
    play_back(ledger, journal::WipeBegan{5, {}, true});
    play_back(ledger, journal::Acknowledged{5});
    EXPECT_EQ(ledger, Ledger{});
}

TEST(Journal, an_older_answer_does_not_undo_a_newer_one) {
    Ledger ledger;
    play_back(ledger, journal::WipeAnswered{{.kind = UnitKind::drive, .ticket = 9, .verified = true}, true});
    play_back(ledger, journal::WipeAnswered{{.kind = UnitKind::drive, .ticket = 8, .verified = false}, true});
    EXPECT_TRUE(ledger.clean({UnitKind::drive, 0, 0}));
    EXPECT_EQ(ledger.units.at({UnitKind::drive, 0, 0}).ticket, 9);
}

TEST(Journal, only_the_last_report_of_each_unit_is_kept) {
    Rig rig;
    for (int i = 0; i < 50; ++i) {
        rig.clean_all();
        rig.carry(rig.executor->on_ack(rig.executor->ledger().reports));
    }
    EXPECT_EQ(rig.executor->ledger().answered.size(), 6u);
    EXPECT_LT(journal_frame(0, rig.executor->compacted()).size(), 8'000u);
}

}  // namespace
}  // namespace bulkhead
