#include "bulkhead/evidence/key_history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/evidence/keys_test.hpp"
#include "bulkhead/evidence/merkle.hpp"

namespace bulkhead::evidence {
namespace {

using testing::HasSubstr;

const std::string turning_log = "log.example/fleet";

VerifierKey turning_key(char seed) { return {turning_log, key_of_seed(seed).public_key()}; }

// A log of a few leaves whose key changes as the control plane changes it.
struct TurningLog {
    std::vector<std::string> payloads;
    std::vector<Hash> leaves;
    static std::string salt() { return std::string(16, 's'); }

    void add(const Record& record) {
        payloads.push_back(payload_of(record));
        leaves.push_back(leaf_hash(bytes_of(commit_to(salt(), payloads.back()))));
    }
    Hash root(std::size_t begin, std::size_t end) const {
        Frontier frontier;
        for (std::size_t i = begin; i < end; ++i) frontier.append(leaves[i]);
        return frontier.root();
    }
    std::string checkpoint(const std::vector<SigningKey>& keys) const {
        return sign_checkpoint({turning_log, leaves.size(), root(0, leaves.size()), {}}, keys);
    }
    Certificate certify(std::uint64_t index, const std::vector<SigningKey>& keys) const {
        const auto proof = prove_inclusion(index, leaves.size(), [&](unsigned level, std::uint64_t i) -> Result<Hash> {
            return root(i << level, (i + 1) << level);
        });
        Certificate made;
        made.record = proven_leaf(index, salt(), payloads[index], *proof);
        made.checkpoint = checkpoint(keys);
        return made;
    }
    Certificate turn(char before, char after) {
        Record record = log_key_rotated({turning_key(before), turning_key(after)});
        record.actor = "api:sec";
        add(record);
        return certify(leaves.size() - 1, {key_of_seed(before), key_of_seed(after)});
    }
    void grow(int leaves_more) {
        for (int i = 0; i < leaves_more; ++i) add({.kind = RecordKind::usage, .actor = "core"});
    }
};

// A, then B from leaf 3 on, then C from leaf 6 on.
struct Turned {
    TurningLog log;
    KeyHistory history{.first = print(turning_key('A'))};
    std::string at_two, at_five, at_eight;

    Turned() {
        log.grow(2);
        at_two = log.checkpoint({key_of_seed('A')});
        log.grow(1);
        history.rotations.push_back(log.turn('A', 'B'));
        log.grow(1);
        at_five = log.checkpoint({key_of_seed('B')});
        log.grow(1);
        history.rotations.push_back(log.turn('B', 'C'));
        log.grow(1);
        at_eight = log.checkpoint({key_of_seed('C')});
    }
};

TEST(KeyHistory, whoever_trusts_one_key_of_a_log_can_trust_each_for_its_time) {
    const Turned log;
    for (const char trusted : {'A', 'B', 'C'}) {
        const auto keys = keys_of(log.history, turning_key(trusted));
        ASSERT_TRUE(keys) << trusted << keys.error().what;
        EXPECT_EQ(keys->newest(), turning_key('C'));
        EXPECT_EQ(keys->terms()[0].most, 3u);
        EXPECT_EQ(keys->terms()[1].most, 6u);
        EXPECT_EQ(open_checkpoint(log.at_two, *keys)->size, 2u) << "the oldest key, of its time";
        EXPECT_EQ(open_checkpoint(log.at_five, *keys)->size, 5u);
        EXPECT_EQ(open_checkpoint(log.at_eight, *keys)->size, 8u);
    }
    EXPECT_FALSE(open_checkpoint(log.at_eight, turning_key('A'))) << "without the history, the first key alone";
    EXPECT_EQ(keys_of(log.history, turning_key('D')).error().code, Code::denied);
    EXPECT_EQ(read_key_history(print(log.history)), log.history);
}

TEST(KeyHistory, a_key_that_was_replaced_signs_nothing_newer) {
    const Turned log;
    const auto keys = keys_of(log.history, turning_key('A'));
    ASSERT_TRUE(keys);
    const auto forged = open_checkpoint(log.log.checkpoint({key_of_seed('A')}), *keys);
    ASSERT_FALSE(forged);
    EXPECT_THAT(forged.error().what, HasSubstr("the key that signed for 8 leaves was replaced when the log had 3"));
    EXPECT_TRUE(open_checkpoint(log.log.checkpoint({key_of_seed('A'), key_of_seed('C')}), *keys))
        << "beside one that may, it does no harm";
}

TEST(KeyHistory, of_certificates_from_before_and_after_a_change) {
    const Turned log;
    const auto keys = keys_of(log.history, turning_key('B'));
    ASSERT_TRUE(keys);
    EXPECT_TRUE(verify_certificate(log.log.certify(0, {key_of_seed('C')}), *keys));
    EXPECT_TRUE(verify_certificate(log.history.rotations[0], *keys));
    EXPECT_FALSE(verify_certificate(log.log.certify(0, {key_of_seed('B')}), *keys));
}

TEST(KeyHistory, that_does_not_hold_together_is_refused) {
    struct Row {
        std::string_view says;
        void (*change)(Turned&);
        std::string_view error;
    };
    const Row rows[] = {
        {"signed by the old key alone",
         [](Turned& log) { log.history.rotations[0] = log.log.certify(3, {key_of_seed('A')}); },
         "no key that is trust"},
        {"signed by the new key alone",
         [](Turned& log) { log.history.rotations[0] = log.log.certify(3, {key_of_seed('B')}); },
         "no key that is trust"},
        {"a change is missing", [](Turned& log) { log.history.rotations.erase(log.history.rotations.begin()); },
         "does not begin with the key before"},
        {"in another order", [](Turned& log) { std::swap(log.history.rotations[0], log.history.rotations[1]); },
         "does not begin with the key before"},
        {"no change at all",
         [](Turned& log) { log.history.rotations[0] = log.log.certify(0, {key_of_seed('A'), key_of_seed('B')}); },
         "changes no key"},
        {"another first key", [](Turned& log) { log.history.first = print(turning_key('D')); },
         "does not begin with the key before"},
        {"of another payload",
         [](Turned& log) {
             std::string& payload = log.history.rotations[0].record.payload;
             payload.replace(payload.find("api:sec"), 7, "api:eve");
         },
         "is not what the log holds there"},
    };
    for (const Row& row : rows) {
        Turned log;
        row.change(log);
        const auto keys = keys_of(log.history, turning_key('C'));
        ASSERT_FALSE(keys) << row.says;
        EXPECT_THAT(keys.error().what, HasSubstr(row.error)) << row.says;
    }
    EXPECT_FALSE(read_key_history(R"({"version":"bulkhead.dev/log-keys/v2","first":"x"})"));
}

}  // namespace
}  // namespace bulkhead::evidence
