// `bulkhead audit` on a log in a folder, without any server: what an auditor types, and what is said of a log that was
// touched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "bulkhead/audit/publisher.hpp"
#include "bulkhead/audit/tile_reader.hpp"
#include "bulkhead/cli/said_test.hpp"
#include "bulkhead/evidence/fabric_log_test.hpp"
#include "bulkhead/evidence/keys_test.hpp"
#include "bulkhead/evidence/listed_log_test.hpp"
#include "bulkhead/evidence/log_proof.hpp"

namespace bulkhead::cli {
namespace {

using testing::HasSubstr;

class AuditedLog : public InFolder {
protected:
    AuditedLog() : InFolder{"audit"} {}

    static evidence::VerifierKey key(char seed = 'L') {
        return {"log.example/fleet", evidence::key_of_seed(seed).public_key()};
    }
    std::string tiles() const { return path("tiles"); }

    // Another history from entry `changed` on, when there is one.
    void publish(std::uint64_t size, std::uint64_t changed = UINT64_MAX) {
        auto log = audit::Publisher::open(tiles(), "log.example/fleet", evidence::key_of_seed('L')).value();
        while (log.size() < size) {
            const bool other = log.size() == changed;
            log.append(sha256(fmt::format("entry {}{}", log.size(), other ? "'" : "")));
        }
        ASSERT_TRUE(log.publish());
    }
    void flip(const std::string& file, std::size_t byte, unsigned bit) {
        std::string bytes = slurp(tiles() + "/" + file);
        ASSERT_LT(byte, bytes.size());
        bytes[byte] = static_cast<char>(bytes[byte] ^ (1 << bit));
        std::ofstream{tiles() + "/" + file, std::ios::binary} << bytes;
    }
    int verify(std::vector<std::string> more = {}) {
        more.insert(more.begin(), {"verify", "--tiles", tiles(), "--key", print(key())});
        return run_with(more);
    }
    int watch() {
        return run_with({"watch", "--once", "--tiles", tiles(), "--key", print(key()), "--state", path("state")});
    }
};

TEST_F(AuditedLog, one_flipped_bit_is_found_and_its_leaf_is_named) {
    publish(600);
    EXPECT_EQ(verify(), 0) << out_;
    EXPECT_THAT(out_, HasSubstr("VERIFIED  600 entries of log.example/fleet"));
    flip("tile/entries/001", 34 * 44 + 20, 3);
    EXPECT_EQ(verify(), 1);
    EXPECT_THAT(out_, HasSubstr("NOT WHAT WAS SIGNED  tile/entries/001 was edited: entry 300 is not the one that was"));
    flip("tile/entries/001", 34 * 44 + 20, 3);
    flip("tile/0/000", 32 * 17, 0);
    EXPECT_EQ(verify(), 1);
    EXPECT_THAT(out_, HasSubstr("tile/0/000 was edited: entry 17 is what was signed, and its hash there is not"));
    flip("tile/0/000", 32 * 17, 0);
    std::filesystem::resize_file(tiles() + "/tile/entries/002.p/88", 34 * 80);
    EXPECT_EQ(verify(), 1);
    EXPECT_THAT(out_, HasSubstr("entries 512 to 599 cannot be read"));
}

TEST_F(AuditedLog, a_proof_is_given_as_others_read_it) {
    publish(600);
    const std::string index = "300";
    ASSERT_EQ(
        run_with({"prove", "--tiles", tiles(), "--key", print(key()), "--index", index, "--format", "tlog-proof"}), 0)
        << err_;
    const auto proof = evidence::parse_log_proof(out_);
    ASSERT_TRUE(proof) << out_;
    EXPECT_EQ(evidence::verify_log_proof(*proof, bytes_of(sha256("entry 300")), key())->size, 600u);
    EXPECT_EQ(run_with({"prove", index, "--tiles", tiles(), "--key", print(key())}), 0);
    EXPECT_THAT(out_, HasSubstr("entry 300 is in the log of size 600"));
    EXPECT_EQ(run_with({"prove", "--index", "600", "--tiles", tiles(), "--key", print(key())}), 1);
    EXPECT_EQ(run_with({"prove", "--index", "1", "--tiles", tiles(), "--key", print(key('x'))}), 3);
}

TEST_F(AuditedLog, whoever_watches_remembers_between_two_runs) {
    publish(100);
    EXPECT_EQ(run_with({"watch", "--once", "--tiles", tiles(), "--state", path("state")}), 2) << "which key?";
    EXPECT_EQ(watch(), 0) << err_;
    publish(300);
    EXPECT_EQ(watch(), 0) << out_;
    EXPECT_THAT(out_, HasSubstr("300 entries, 200 of them new"));
    EXPECT_EQ(watch(), 0);
    EXPECT_THAT(out_, HasSubstr("nothing new"));
    EXPECT_EQ(run_with({"watch", "--once", "--tiles", tiles(), "--state", path("state")}), 0) << "the key is known now";

    // A log that was put back from a copy, and one that was written anew.
    const std::string good = slurp(path("state"));
    std::filesystem::rename(tiles(), path("honest"));
    publish(200);
    EXPECT_EQ(watch(), 1);
    EXPECT_THAT(out_, HasSubstr("ROLLBACK  the checkpoint covers 200 entries, and one over 300 was seen"));
    std::filesystem::remove_all(tiles());
    publish(500, 42);
    EXPECT_EQ(watch(), 1);
    EXPECT_THAT(out_, HasSubstr("FORK  the checkpoint over 500 entries does not continue the one over 300"));
    EXPECT_EQ(slurp(path("state")), good) << "what is good stays what was good";
    EXPECT_EQ(slurp(path("state.refused")), slurp(tiles() + "/checkpoint")) << "and the other is kept, to be shown";
    EXPECT_EQ(watch(), 1) << "again, as long as it is so";

    std::filesystem::remove_all(tiles());
    std::filesystem::rename(path("honest"), tiles());
    publish(700);
    flip("tile/entries/002.p/188", 34 * 3 + 9, 5);
    EXPECT_EQ(watch(), 1);
    EXPECT_THAT(out_, HasSubstr("EDIT  entries 300 to 699 are not what was signed"));
    flip("tile/entries/002.p/188", 34 * 3 + 9, 5);
    EXPECT_EQ(watch(), 0) << out_;

    std::ofstream{path("state")} << "half a st";
    std::filesystem::permissions(path("state"),
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    EXPECT_EQ(watch(), 2) << "a state that cannot be read is not taken for none";
}

// What was given away before tenants had pseudonyms is as good as ever, to both programs that check it.
TEST(OldCertificate, verifies_as_ever) {
    const std::string file = BULKHEAD_SOURCE_DIR "/testdata/certificates/before-pseudonyms.json",
                      key = BULKHEAD_SOURCE_DIR "/testdata/certificates/before-pseudonyms.vkey";
    // It is of model GPUs, and from before labs had a key of their own: for those who accept that, and nobody else.
    const Said said = said_by("verify", {file.c_str(), "--key", key.c_str(), "--accept-lab"});
    EXPECT_EQ(said.status, 0) << said.out << said.err;
    EXPECT_THAT(said.out, HasSubstr("PROVEN IN A LAB"));
    EXPECT_THAT(said.out, HasSubstr("signed with the log's own key"));
    const Said by_default = said_by("verify", {file.c_str(), "--key", key.c_str()});
    EXPECT_EQ(by_default.status, refused) << by_default.out;
    EXPECT_THAT(by_default.out, HasSubstr("graded simulated, and signed with the log's own key"));
    const std::string without = fmt::format(
        "python3 " BULKHEAD_SOURCE_DIR "/docs/verify/verify_certificate.py {} --key {} >/dev/null", file, key);
    const std::string independent = without + " --accept-lab";
    EXPECT_NE(std::system(without.c_str()), 0);
    EXPECT_EQ(std::system(independent.c_str()), 0);
    EXPECT_NE(std::system((independent + " --node another").c_str()), 0);
}

// Of a lease with two drives: what `verify` ends with, and what it says.
TEST(WholeLease, is_proven_by_its_own_record_and_by_nothing_less) {
    evidence::ListedLog log;
    const auto lease = log.lease("lease-1", {{.node = "n0", .unit = "drive0"}, {.node = "n0", .unit = "drive1"}});
    const auto first = log.wiped({.unit = "drive0"});
    const auto failed = log.failed({.unit = "drive1"}, "it holds what it held before");
    const auto second = log.wiped({.unit = "drive1"});
    const std::string file = fmt::format("{}/whole-lease-{}.json", testing::TempDir(), ::getpid()),
                      key = print(log.verifier());
    const auto said = [&](const evidence::CertificateList& list, const char* more = "--accept-lab") {
        std::ofstream{file} << print(list);
        return said_by("verify", {file.c_str(), "--key", key.c_str(), more});
    };
    const Said whole = said(log.list({lease, {second, first}}));
    EXPECT_EQ(whole.status, 0) << whole.out;
    EXPECT_THAT(whole.out, HasSubstr("PROVEN: 2 of 2 units of lease lease-1"));
    EXPECT_EQ(said(log.list({lease, {second, first}}), "--whole-lease").status, 0);

    const Said part = said(log.list({lease, {first}, {failed}}));
    EXPECT_EQ(part.status, 6) << part.out;
    EXPECT_THAT(part.out, HasSubstr("PARTLY PROVEN: 1 of 2 units of lease lease-1"));
    EXPECT_THAT(part.out, HasSubstr("not shown: n0 drive1: its wipe failed, by entry 3 of the log"));
    EXPECT_EQ(said(log.list({-1, {first}})).status, 6) << "what the lease had is not shown";
    EXPECT_EQ(said(log.list({lease, {}, {failed}})).status, refused);

    // As servers gave it before.
    evidence::CertificateList older;
    older.certificates = log.list({lease, {first}}).certificates;
    const Said before = said(older);
    EXPECT_EQ(before.status, 0) << before.out;
    EXPECT_THAT(before.out, HasSubstr("not shown: what else the lease had"));
    EXPECT_EQ(said(older, "--whole-lease").status, 6);
    EXPECT_EQ(std::system(fmt::format("python3 " BULKHEAD_SOURCE_DIR "/docs/verify/verify_certificate.py {} --key '{}' "
                                      "--whole-lease >/dev/null",
                                      file, key)
                              .c_str()),
              4 << 8);
}

// What a node found at its own fences, as a server gives it away: both programs say the same of it.
TEST(FabricCertificate, is_proven_in_a_lab_and_not_what_it_is_not) {
    using evidence::FabricLog;
    const evidence::FabricLog log;
    const std::string folder = testing::TempDir(), file = folder + "/fabric-certificate.json",
                      key = print(log.verifier);
    struct Row {
        const char* says;
        std::function<void(evidence::FabricStatement&)> change;
        bool proven;
    };
    const Row rows[] = {
        {"as it is", [](auto&) {}, true},
        {"broken off", [](auto& of) { of.why = "the link is down"; }, true},
        {"the fences off", [](auto& of) { of.fence = FabricFence::off; }, false},
        {"an attempt twice", [](auto& of) { of.attempts.push_back(of.attempts[0]); }, false},
        {"ended before it began", [](auto& of) { of.ended = Instant{10}; }, false},
        {"words for a name", [](auto& of) { of.attempts[0].name = "All is well"; }, false},
        {"another NIC", [](auto& of) { of.nic = "0000:af:00.0"; }, false},
    };
    for (const Row& row : rows) {
        evidence::FabricStatement statement = evidence::some_fabric_test();
        row.change(statement);
        std::ofstream{file} << print(log.certificate_of(FabricLog::record_of(statement, log.node_key)));
        const Said ours = said_by("verify", {file.c_str(), "--key", key.c_str(), "--accept-lab"});
        EXPECT_EQ(ours.status == 0, row.proven) << row.says << ": " << ours.out << ours.err;
        const std::string theirs = fmt::format(
            "python3 " BULKHEAD_SOURCE_DIR "/docs/verify/verify_certificate.py {} --key '{}' >/dev/null", file, key);
        EXPECT_EQ(std::system((theirs + " --accept-lab").c_str()) == 0, row.proven) << row.says;
        EXPECT_NE(std::system(theirs.c_str()), 0) << row.says << ": it is a lab's";
        EXPECT_NE(said_by("verify", {file.c_str(), "--key", key.c_str()}).status, 0) << row.says;
    }
    std::filesystem::remove(file);
}

// An implementation that is not ours reads our log: the packages that read Go's own checksum database.
TEST_F(AuditedLog, is_read_by_a_program_that_is_not_ours) {
    if (std::system("go version >/dev/null 2>&1") != 0) GTEST_SKIP() << "go is not here";
    const std::string program = path("read-log-in-go");
    const std::string build = "cd " BULKHEAD_SOURCE_DIR
                              "/scripts/read-log-in-go && GOFLAGS=-mod=readonly go build -o " +
                              program + " . >" + path("go.out") + " 2>&1";
    if (std::system(build.c_str()) != 0) GTEST_SKIP() << "its packages are not to be had: " << slurp(path("go.out"));
    const auto read_by_go = [&] {
        const std::string command =
            program + " " + tiles() + " '" + print(key()) + "' 0 255 256 300 599 >" + path("go.out") + " 2>&1";
        return std::system(command.c_str());
    };
    publish(600);
    EXPECT_EQ(read_by_go(), 0) << slurp(path("go.out"));
    EXPECT_EQ(slurp(path("go.out")), "log.example/fleet: 600 entries, 5 proven\n");
    flip("tile/entries/001", 34 * 44 + 20, 3);
    EXPECT_NE(read_by_go(), 0) << "and it notices what we notice";
}

}  // namespace
}  // namespace bulkhead::cli
