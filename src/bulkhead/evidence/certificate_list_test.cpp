// All of a lease, or not: what a list of certificates comes to, by our program and by the one that shares no code with
// it.
#include "bulkhead/evidence/certificate_list.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "bulkhead/evidence/listed_log_test.hpp"

namespace bulkhead::evidence {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

enum class Comes : std::uint8_t { proven, in_part, refused };

// By the library, and by the other program.
struct Judged {
    Comes ours{}, theirs{};
    LeaseAccount account;
    std::string words;
};
Judged judged(const ListedLog& log, const CertificateList& list, const Expectations& expected = {}) {
    Judged out;
    const std::string file = fmt::format("{}/listed-{}.json", testing::TempDir(), ::getpid()), said = file + ".out";
    std::ofstream{file} << print(list);
    const auto read = read_certificates(file, print(list));
    if (!read || *read != list) {
        out.ours = Comes::refused;
    } else {
        const CheckedList checked = verify_certificates(*read, log.verifier(), expected);
        if (checked.lease) out.account = *checked.lease;
        const bool holds = checked.refused.empty() &&
                           std::ranges::all_of(checked.certificates, [](const auto& one) { return one.has_value(); });
        out.ours = !holds || !checked.lease || (out.account.wiped == 0 && out.account.units > 0) ? Comes::refused
                   : out.account.whole()                                                         ? Comes::proven
                                                                                                 : Comes::in_part;
    }
    const int status = std::system(fmt::format("python3 " BULKHEAD_SOURCE_DIR
                                               "/docs/verify/verify_certificate.py {} --key '{}' --lease '{}' >{} 2>&1",
                                               file, print(log.verifier()), expected.lease, said)
                                       .c_str());
    std::ifstream in{said};
    out.words.assign(std::istreambuf_iterator<char>{in}, {});
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out.theirs = code == 0 ? Comes::proven : code == 4 ? Comes::in_part : Comes::refused;
    return out;
}

const std::vector<LeaseUnit> gpu_and_drive{{.node = "n0", .unit = "gpu0/slices 0-6"},
                                           {.node = "n0", .unit = "drive0", .serial = "S1, with = a comma"}};

TEST(LeaseList, is_proven_when_everything_the_lease_had_was_wiped) {
    ListedLog log;
    const auto lease = log.lease("lease-1", gpu_and_drive);
    // In two runs, as after a repair of some of its slices.
    const auto low = log.wiped({.unit = "gpu0/slices 0-3"}), high = log.wiped({.unit = "gpu0/slices 4-6"});
    const auto drive = log.wiped({.unit = "drive0", .device = "S1, with = a comma"});
    const Judged all = judged(log, log.list({lease, {drive, high, low}}));
    EXPECT_EQ(all.ours, Comes::proven);
    EXPECT_EQ(all.theirs, Comes::proven) << all.words;
    EXPECT_EQ(all.account.units, 2u);
    for (const auto& some : {std::vector{drive, high}, std::vector{high, low}}) {
        const Judged part = judged(log, log.list({lease, some}));
        EXPECT_EQ(part.ours, Comes::in_part);
        EXPECT_EQ(part.theirs, Comes::in_part) << part.words;
        EXPECT_THAT(part.account.not_wiped, ElementsAre(HasSubstr("no certificate of a wipe of it is here")));
    }
    EXPECT_EQ(judged(log, log.list({lease, {drive, high, low}}), {.lease = "lease-2"}).ours, Comes::refused);
    EXPECT_EQ(judged(log, log.list({lease, {drive, high, low}}), {.lease = "lease-2"}).theirs, Comes::refused);
}

TEST(LeaseList, names_what_failed_and_what_is_held_with_the_reason) {
    ListedLog log;
    const auto lease = log.lease("lease-1", gpu_and_drive);
    const auto gpu = log.wiped({.unit = "gpu0/slices 0-6"});
    const auto failed = log.failed({.unit = "drive0"}, "it holds what it held before");
    const Judged by_record = judged(log, log.list({lease, {gpu}, {failed}, {{"n0", "drive0", "wipe-failed", "x"}}}));
    EXPECT_EQ(by_record.ours, Comes::in_part);
    EXPECT_EQ(by_record.theirs, Comes::in_part);
    EXPECT_EQ(by_record.account.wiped, 1u);
    const auto reason = HasSubstr("its wipe failed, by entry 3 of the log: it holds what it held before");
    EXPECT_THAT(by_record.account.not_wiped, ElementsAre(reason));
    EXPECT_THAT(by_record.words, reason);
    EXPECT_THAT(by_record.words, HasSubstr("PARTLY PROVEN: 1 of 2"));

    const Judged by_word = judged(log, log.list({lease, {gpu}, {}, {{"n0", "drive0", "held", "court order"}}}));
    EXPECT_EQ(by_word.ours, Comes::in_part);
    EXPECT_EQ(by_word.theirs, Comes::in_part);
    EXPECT_THAT(by_word.account.not_wiped, ElementsAre(HasSubstr("held: court order, by the server's word")));
    EXPECT_THAT(by_word.words, HasSubstr("held: court order, by the server's word"));

    const Judged nothing = judged(log, log.list({lease, {}, {failed}}));
    EXPECT_EQ(nothing.ours, Comes::refused);
    EXPECT_EQ(nothing.theirs, Comes::refused);
}

TEST(LeaseList, counts_no_wipe_that_is_not_of_what_the_lease_had) {
    ListedLog log;
    const auto early = log.wiped({.unit = "drive0", .device = "S1, with = a comma"});
    const auto lease = log.lease("lease-1", gpu_and_drive);
    const auto gpu = log.wiped({.unit = "gpu0/slices 0-6"});
    const auto other_drive = log.wiped({.unit = "drive0", .device = "ANOTHER"});
    const auto other_lease = log.wiped({.unit = "drive0", .lease = "lease-2", .device = "S1, with = a comma"});
    const auto other_record = log.lease("lease-2", {gpu_and_drive[0]});
    struct Row {
        const char* says;
        ListedLog::Parts parts;
        Comes comes;
    };
    const Row rows[] = {{"another drive in its place", {lease, {gpu, other_drive}}, Comes::in_part},
                        {"a wipe from before the lease", {lease, {gpu, early}}, Comes::in_part},
                        {"a wipe of another lease", {lease, {gpu, other_lease}}, Comes::refused},
                        {"another lease's record", {other_record, {gpu}}, Comes::refused},
                        {"a wipe for the lease's record", {gpu, {gpu}}, Comes::refused},
                        {"a wipe for a failure", {lease, {gpu}, {gpu}}, Comes::refused},
                        {"no record of the lease", {-1, {gpu}}, Comes::in_part}};
    for (const Row& row : rows) {
        const Judged one = judged(log, log.list(row.parts));
        EXPECT_EQ(one.ours, row.comes) << row.says;
        EXPECT_EQ(one.theirs, row.comes) << row.says << ": " << one.words;
    }
    CertificateList spoilt = log.list({lease, {gpu}});
    std::string& payload = spoilt.consists->record.payload;
    payload.erase(payload.find("drive0"), 6);  // the drive would not be missed
    EXPECT_EQ(judged(log, spoilt).ours, Comes::refused);
    EXPECT_EQ(judged(log, spoilt).theirs, Comes::refused);
    CertificateList older = log.list({lease, {gpu}});
    older.version = certificates_version;
    EXPECT_EQ(judged(log, older).ours, Comes::refused) << "the first form has nothing of a lease";
    EXPECT_EQ(judged(log, older).theirs, Comes::refused);
}

TEST(LeaseList, takes_the_wipe_of_who_left_a_shared_gpu_last_for_all_who_were_there) {
    ListedLog log;
    const auto lease = log.lease("lease-1", {{.node = "n0", .unit = "gpu0/slices 0-0", .shared = true}});
    const auto not_ours = log.wiped({.unit = "gpu0/slices 0-0", .lease = "lease-2", .tenant = "~borealis"});
    const auto ours = log.wiped({.unit = "gpu0/slices 0-0", .lease = "lease-2"});
    EXPECT_EQ(judged(log, log.list({lease, {ours}})).ours, Comes::proven);
    EXPECT_EQ(judged(log, log.list({lease, {ours}})).theirs, Comes::proven);
    EXPECT_EQ(judged(log, log.list({lease, {not_ours}})).ours, Comes::refused);
    EXPECT_EQ(judged(log, log.list({lease, {not_ours}})).theirs, Comes::refused);
}

TEST(LeaseList, of_a_hundred_and_fifty_units_misses_each_that_is_left_out) {
    ListedLog log;
    std::vector<LeaseUnit> units;
    for (unsigned i = 0; i < 150; ++i) units.push_back({.node = "n0", .unit = fmt::format("gpu{}/slices 0-0", i)});
    const auto lease = log.lease("lease-1", units);
    std::vector<std::int64_t> wipes;
    for (const LeaseUnit& unit : units) wipes.push_back(log.wiped({.unit = unit.unit}));
    const CheckedList all = verify_certificates(log.list({lease, wipes}), log.verifier());
    ASSERT_TRUE(all.lease);
    EXPECT_TRUE(all.lease->whole());
    wipes.resize(100);
    const Judged page = judged(log, log.list({lease, wipes}));
    EXPECT_EQ(page.ours, Comes::in_part);
    EXPECT_EQ(page.theirs, Comes::in_part);
    EXPECT_EQ(page.account.not_wiped.size(), 50u);
    EXPECT_THAT(page.words, HasSubstr("PARTLY PROVEN: 100 of 150"));
}

TEST(LeaseList, reads_the_units_it_wrote) {
    const std::vector<LeaseUnit> units{{.node = "a", .unit = "gpu0/slices 0-6", .shared = true},
                                       {.node = "a", .unit = "drive0", .serial = "S 1 = 2 shared"},
                                       {.node = "b", .unit = "vf3"}};
    const auto record = read_record(payload_of(lease_units("lease-1", units)));
    ASSERT_TRUE(record);
    EXPECT_EQ(units_of(*record).value(), units);
    EXPECT_FALSE(units_of(Record{.kind = RecordKind::leased}));
    Record hole = *record;
    hole.detail["b"] = "vf3\n";
    EXPECT_FALSE(units_of(hole));
    EXPECT_TRUE(overlap("gpu0/slices 0-3", "gpu0/slices 3-6"));
    EXPECT_FALSE(overlap("gpu0/slices 0-3", "gpu0/slices 4-6"));
    EXPECT_FALSE(overlap("gpu0/slices 0-3", "gpu1/slices 0-3"));
}

}  // namespace
}  // namespace bulkhead::evidence
