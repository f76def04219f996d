#include "bulkhead/evidence/log_proof.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/evidence/keys_test.hpp"
#include "bulkhead/evidence/merkle.hpp"

namespace bulkhead::evidence {
namespace {

using testing::HasSubstr;

const std::string proof_log = "log.example/fleet";
VerifierKey proof_key() { return {proof_log, key_of_seed('L').public_key()}; }

// Entry 1 of 3.
LogProof proof_of_three() {
    const Hash a = leaf_hash("a"), b = leaf_hash("b"), c = leaf_hash("c");
    const Hash root = node_hash(node_hash(a, b), c);
    return {.extra = {},
            .index = 1,
            .hashes = {a, c},
            .checkpoint = sign_checkpoint({proof_log, 3, root, {}}, key_of_seed('L'))};
}

TEST(LogProof, is_the_text_of_the_format) {
    const LogProof proof = proof_of_three();
    const std::string text = print(proof);
    EXPECT_TRUE(text.starts_with("c2sp.org/tlog-proof@v1\nindex 1\n")) << text;
    EXPECT_TRUE(text.ends_with("\n\n" + proof.checkpoint)) << text;
    EXPECT_EQ(parse_log_proof(text), proof);
    LogProof with_extra = proof;
    with_extra.extra = "salt";
    EXPECT_THAT(print(with_extra), HasSubstr("\nextra c2FsdA==\nindex 1\n"));
    EXPECT_EQ(parse_log_proof(print(with_extra)), with_extra);
    LogProof only_one{.index = 0, .checkpoint = sign_checkpoint({proof_log, 1, leaf_hash("a"), {}}, key_of_seed('L'))};
    EXPECT_EQ(parse_log_proof(print(only_one)), only_one) << "a tree of one leaf needs no hashes";
    EXPECT_TRUE(verify_log_proof(only_one, "a", proof_key()));
}

TEST(LogProof, holds_for_this_entry_of_this_log_and_for_nothing_else) {
    const LogProof proof = proof_of_three();
    EXPECT_EQ(verify_log_proof(proof, "b", proof_key())->size, 3u);
    EXPECT_FALSE(verify_log_proof(proof, "a", proof_key()));
    EXPECT_FALSE(verify_log_proof(proof, "b", VerifierKey{proof_log, key_of_seed('x').public_key()}));
    LogProof moved = proof;
    moved.index = 0;
    EXPECT_FALSE(verify_log_proof(moved, "b", proof_key()));
    moved.index = 3;
    EXPECT_THAT(verify_log_proof(moved, "b", proof_key()).error().what, HasSubstr("no leaf 3"));
}

TEST(LogProof, what_is_malformed_is_refused) {
    const std::string note = "\n" + proof_of_three().checkpoint;
    const std::string hash = to_base64(bytes_of(leaf_hash("a"))) + "\n";
    struct Row {
        std::string_view says;
        std::string text;
    };
    const Row rows[] = {
        {"nothing", ""},
        {"another version", "c2sp.org/tlog-proof@v2\nindex 1\n" + note},
        {"no index", "c2sp.org/tlog-proof@v1\n" + hash + note},
        {"a leading zero", "c2sp.org/tlog-proof@v1\nindex 01\n" + note},
        {"a sign", "c2sp.org/tlog-proof@v1\nindex -1\n" + note},
        {"too large", "c2sp.org/tlog-proof@v1\nindex 18446744073709551616\n" + note},
        {"empty extra", "c2sp.org/tlog-proof@v1\nextra \nindex 1\n" + note},
        {"extra after index", "c2sp.org/tlog-proof@v1\nindex 1\nextra c2FsdA==\n" + note},
        {"a hash that is cut short", "c2sp.org/tlog-proof@v1\nindex 1\nAAAA\n" + note},
        {"no blank line", "c2sp.org/tlog-proof@v1\nindex 1\n" + hash},
        {"no checkpoint", "c2sp.org/tlog-proof@v1\nindex 1\n" + hash + "\n"},
        {"a note that is no checkpoint",
         "c2sp.org/tlog-proof@v1\nindex 1\n\nhello\n\n\u2014 a " + to_base64(std::string(68, 'x')) + "\n"},
        {"too many hashes",
         [&] {
             std::string text = "c2sp.org/tlog-proof@v1\nindex 1\n";
             for (int i = 0; i < 65; ++i) text += hash;
             return text + note;
         }()},
    };
    for (const Row& row : rows) {
        const auto read = parse_log_proof(row.text);
        ASSERT_FALSE(read) << row.says;
        EXPECT_EQ(read.error().code, Code::invalid) << row.says;
    }
}

}  // namespace
}  // namespace bulkhead::evidence
