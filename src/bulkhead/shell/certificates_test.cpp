// Which key a certificate is signed with, out of a store and tiles as a server has them.
#include "bulkhead/shell/certificates.hpp"

#include <gtest/gtest.h>

#include "bulkhead/audit/publisher.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/shell/fixture_test.hpp"

namespace bulkhead::shell {
namespace {

const std::string origin_here = "log.example/fleet";

evidence::SigningKey key_from(char seed) { return evidence::SigningKey::from_seed(std::string(32, seed)).value(); }
evidence::VerifierKey log_key_of(char seed) { return {origin_here, key_from(seed).public_key()}; }

// A log of one node and one wipe of each grade; the lease is called after it.
class GradedLog : public ::testing::Test {
protected:
    void SetUp() override {
        const evidence::SigningKey node = key_from('n');
        auto store = store::Store::open(options_).value();
        auto tiles = audit::Publisher::open(folder_ / "tiles", origin_here, key_from('L')).value();
        Batch batch{.epoch = store.raise_epoch(0).value(), .clock = Instant{1'800'000'000'000}};
        const auto add = [&](const evidence::Record& record) {
            Leaf leaf{.index = std::ssize(batch.leaves), .salt = std::string(16, 's'), .payload = payload_of(record)};
            leaf.entry = evidence::commit_to(leaf.salt, leaf.payload);
            tiles.append(leaf.entry);
            batch.leaves.push_back(std::move(leaf));
        };
        add(evidence::key_added({1}, "api:admin", "node-7", node.public_key()));
        for (const Grade grade :
             {Grade::silicon, Grade::emulated, Grade::simulated, Grade::documented, Grade::assumed}) {
            evidence::WipeStatement wipe;
            wipe.node = "node-7";
            wipe.unit = "drive0";
            wipe.lease = word(grade);
            wipe.device = "SERIAL-1";
            wipe.method = "nvme-format-erase";
            wipe.result = evidence::WipeResult::verified;
            wipe.grade = grade;
            evidence::Record record{.kind = evidence::RecordKind::wiped, .at = {9}, .actor = "node:node-7"};
            record.node = wipe.node;
            record.unit = wipe.unit;
            record.lease = wipe.lease;
            record.grade = grade;
            record.evidence = evidence::sign_statement(node, evidence::statement_text(wipe));
            add(record);
        }
        ASSERT_TRUE(store.commit(batch));
        ASSERT_TRUE(tiles.publish());
        certificates_.emplace(options_, folder_ / "tiles",
                              Certificates::Signers{origin_here, key_from('L'), key_from('B')}, store.secret());
    }
    evidence::Certificate of(Grade grade) {
        const auto found = certificates_->of_lease(std::string{word(grade)}, {.limit = 1});
        EXPECT_TRUE(found) << found.error().what;
        return found ? found->certificates.at(0) : evidence::Certificate{};
    }
    static bool holds(const evidence::Certificate& certificate, const evidence::LogKeys& keys, bool accept_lab) {
        return evidence::verify_certificate(certificate, keys, {.accept_lab = accept_lab}).has_value();
    }

    const ScratchFolder folder_;
    const store::Options options_{.path = folder_ / "store.db", .sync = store::Sync::off};
    std::optional<Certificates> certificates_;
};

TEST_F(GradedLog, the_log_signs_for_hardware_and_its_lab_for_what_plays_it) {
    for (const Grade grade : {Grade::silicon, Grade::documented, Grade::assumed}) {
        const evidence::Certificate certificate = of(grade);
        EXPECT_FALSE(certificate.lab) << word(grade);
        EXPECT_TRUE(holds(certificate, log_key_of('L'), false)) << word(grade);
    }
    for (const Grade grade : {Grade::emulated, Grade::simulated}) {
        const evidence::Certificate certificate = of(grade);
        EXPECT_TRUE(certificate.lab) << word(grade);
        EXPECT_FALSE(holds(certificate, log_key_of('L'), false)) << word(grade);
        EXPECT_TRUE(holds(certificate, log_key_of('L'), true)) << word(grade);
        EXPECT_FALSE(evidence::open_checkpoint(certificate.checkpoint, log_key_of('L'))) << "the log did not sign it";
    }
}

TEST_F(GradedLog, while_its_key_is_replaced_both_introduce_the_lab) {
    EXPECT_FALSE(holds(of(Grade::emulated), log_key_of('M'), true));
    for (int twice = 0; twice < 2; ++twice) certificates_->introduce_lab_by(key_from('M'));
    const evidence::Certificate certificate = of(Grade::emulated);
    EXPECT_TRUE(holds(certificate, log_key_of('L'), true));
    EXPECT_TRUE(holds(certificate, log_key_of('M'), true));
    // Also for who knows that the first was replaced before this tree was signed.
    EXPECT_TRUE(holds(certificate, evidence::LogKeys{{{log_key_of('L'), 1}, {log_key_of('M')}}}, true));
    EXPECT_EQ(evidence::parse_note(*certificate.lab)->signatures.size(), 2u);
}

}  // namespace
}  // namespace bulkhead::shell
