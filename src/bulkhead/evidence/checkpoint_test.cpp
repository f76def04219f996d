#include "bulkhead/evidence/checkpoint.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <sstream>

#include "bulkhead/evidence/keys_test.hpp"

namespace bulkhead::evidence {
namespace {

TEST(Checkpoint, is_signed_byte_for_byte_as_the_vector) {
    std::ifstream file{std::string{BULKHEAD_SHARED_DIR} + "/data/tlog/checkpoint-vector.json"};
    if (!file) GTEST_SKIP() << "shared/data/tlog is not here";
    std::ostringstream text;
    text << file.rdbuf();
    const boost::json::object facts = boost::json::parse(text.str()).as_object();
    const auto fact = [&](std::string_view name) { return std::string{facts.at(name).as_string()}; };

    const SigningKey key = SigningKey::from_seed(from_hex(fact("seed_hex")).value()).value();
    EXPECT_EQ(to_hex(bytes_of(key.public_key().bytes)), fact("public_key_hex"));
    const Checkpoint checkpoint{fact("origin"),
                                facts.at("tree_size").to_number<std::uint64_t>(),
                                hash_from(from_hex(fact("root_hex")).value()).value(),
                                {}};
    EXPECT_EQ(sign_checkpoint(checkpoint, key), fact("checkpoint"));
    const VerifierKey log{fact("origin"), key.public_key()};
    EXPECT_EQ(print(log), fact("vkey"));
    EXPECT_EQ(parse_verifier_key(fact("vkey")), log);
    EXPECT_EQ(open_checkpoint(fact("checkpoint"), log), checkpoint);
}

TEST(Checkpoint, keeps_extension_lines) {
    const Checkpoint checkpoint{"a.example", 18446744073709551615u, sha256("root"), {"one", "two"}};
    EXPECT_EQ(parse_checkpoint(print(checkpoint)), checkpoint);
}

TEST(Checkpoint, what_is_malformed_is_refused) {
    const std::string root = to_base64(bytes_of(sha256("root")));
    ASSERT_TRUE(parse_checkpoint("a.example\n0\n" + root + "\n"));
    struct Row {
        std::string_view says;
        std::string text;
    };
    const Row rows[] = {
        {"nothing", ""},
        {"two lines", "a.example\n8\n"},
        {"no name", "\n8\n" + root + "\n"},
        {"the last line does not end", "a.example\n8\n" + root},
        {"a leading zero", "a.example\n08\n" + root + "\n"},
        {"a sign", "a.example\n+8\n" + root + "\n"},
        {"a negative size", "a.example\n-8\n" + root + "\n"},
        {"a blank", "a.example\n8 \n" + root + "\n"},
        {"a size in hex", "a.example\n0x8\n" + root + "\n"},
        {"a size beyond 64 bits", "a.example\n18446744073709551616\n" + root + "\n"},
        {"no size", "a.example\n\n" + root + "\n"},
        {"a root too short", "a.example\n8\nAAAA\n"},
        {"a root that is no base64", "a.example\n8\nroot!\n"},
        {"an empty line at the end", "a.example\n8\n" + root + "\n\n"},
    };
    for (const Row& row : rows) EXPECT_EQ(parse_checkpoint(row.text).error().code, Code::invalid) << row.says;
}

TEST(Checkpoint, of_another_log_is_refused_even_under_a_trusted_signature) {
    const VerifierKey log{"a.example", key_of_seed('a').public_key()};
    Note note{.text = print(Checkpoint{"b.example", 1, {}, {}}), .signatures = {}};
    sign_note(note, "a.example", key_of_seed('a'));
    EXPECT_EQ(open_checkpoint(print(note), log).error().code, Code::denied);
    EXPECT_EQ(open_checkpoint(sign_checkpoint({"a.example", 1, {}, {}}, key_of_seed('b')), log).error().code,
              Code::denied);
    EXPECT_EQ(open_checkpoint("", log).error().code, Code::invalid);
}

}  // namespace
}  // namespace bulkhead::evidence
