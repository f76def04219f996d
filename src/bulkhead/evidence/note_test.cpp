#include "bulkhead/evidence/note.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/evidence/keys_test.hpp"

namespace bulkhead::evidence {
namespace {

VerifierKey trust(std::string name, char seed) { return {std::move(name), key_of_seed(seed).public_key()}; }

Note signed_by(std::string text, std::string_view name, char seed) {
    Note note{.text = std::move(text), .signatures = {}};
    sign_note(note, name, key_of_seed(seed));
    return note;
}

// The example in the documentation of Go's sumdb/note: what others wrote, we verify.
TEST(Note, of_another_implementation_verifies) {
    const VerifierKey key =
        parse_verifier_key("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW").value();
    const std::string message =
        "If you think cryptography is the answer to your problem,\n"
        "then you don't know what your problem is.\n"
        "\n"
        "\u2014 PeterNeumann "
        "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
    const Note note = parse_note(message).value();
    EXPECT_TRUE(verify_note(note, {&key, 1}));
    EXPECT_EQ(print(note), message);
    EXPECT_EQ(print(key), "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW");
}

TEST(Note, keeps_text_with_blank_lines_of_its_own) {
    const Note note = signed_by("one\n\n\ntwo\n", "a.example", 'a');
    EXPECT_EQ(parse_note(print(note)), note);
}

TEST(Note, signatures_of_strangers_are_ignored) {
    Note note = signed_by("text\n", "witness.example/w", 'w');
    sign_note(note, "a.example", key_of_seed('a'));
    note.signatures.push_back({"post-quantum.example", 7, std::string(4900, 'q')});
    note.signatures.push_back({"a.example", 1, "another key of the same name"});
    note.signatures.push_back({"b.example", note_key_id(trust("a.example", 'a')), "another name with the same id"});
    const VerifierKey key = trust("a.example", 'a');
    EXPECT_TRUE(verify_note(parse_note(print(note)).value(), {&key, 1}));
}

TEST(Note, without_a_trusted_signature_is_refused) {
    const Note note = signed_by("text\n", "a.example", 'a');
    const VerifierKey other = trust("a.example", 'b');
    EXPECT_EQ(verify_note(note, {&other, 1}).error().code, Code::denied);
    EXPECT_EQ(verify_note(note, {}).error().code, Code::denied);
}

TEST(Note, a_false_signature_of_a_trusted_key_spoils_it_even_beside_a_true_one) {
    Note note = signed_by("text\n", "a.example", 'a');
    const VerifierKey key = trust("a.example", 'a');
    note.text = "other\n";
    EXPECT_EQ(verify_note(note, {&key, 1}).error().code, Code::corrupt);
    note.text = "text\n";
    note.signatures.push_back(note.signatures.front());
    EXPECT_TRUE(verify_note(note, {&key, 1}));
    note.signatures.back().signature[0] = static_cast<char>(note.signatures.back().signature[0] ^ 1);
    EXPECT_EQ(verify_note(note, {&key, 1}).error().code, Code::corrupt);
}

TEST(Note, takes_sixteen_signatures_and_more_but_has_a_limit) {
    Note note{.text = "text\n", .signatures = {}};
    for (int i = 0; i < 100; ++i) sign_note(note, "witness-" + std::to_string(i), key_of_seed(static_cast<char>(i)));
    EXPECT_EQ(parse_note(print(note)).value().signatures.size(), 100u);
    sign_note(note, "one-more", key_of_seed('z'));
    EXPECT_EQ(parse_note(print(note)).error().what, "not a signed note: more than 100 signatures");
    EXPECT_FALSE(parse_note(print(signed_by(std::string(1 << 20, 'x') + '\n', "a", 'a'))));
}

TEST(Note, what_is_malformed_is_refused) {
    const std::string good = print(signed_by("text\n", "a.example", 'a'));
    ASSERT_TRUE(parse_note(good));
    const std::string line = good.substr(good.find("\n\n") + 2);
    struct Row {
        std::string_view says;
        std::string text;
    };
    const Row rows[] = {
        {"nothing", ""},
        {"no signature", "text\n\n"},
        {"no blank line", "text\n" + line},
        {"no text at all", line},
        {"no newline at the end", good.substr(0, good.size() - 1)},
        {"a hyphen for the dash", "text\n\n- a.example " + line.substr(line.rfind(' ') + 1)},
        {"no name", "text\n\n\u2014 " + line.substr(line.rfind(' ') + 1)},
        {"an empty name", "text\n\n\u2014  " + line.substr(line.rfind(' ') + 1)},
        {"a plus in the name", "text\n\n\u2014 a+b " + line.substr(line.rfind(' ') + 1)},
        {"a wide space in the name", "text\n\n\u2014 a\u3000b " + line.substr(line.rfind(' ') + 1)},
        {"a signature that is no base64", "text\n\n\u2014 a.example !!!!\n"},
        {"a signature of an id only", "text\n\n\u2014 a.example AAAAAA==\n"},
        {"text after the signatures", good + "text\n"},
        {"a blank line after the signatures", good + "\n"},
        {"two blanks before the signature", "text\n\n\u2014 a.example  " + line.substr(line.rfind(' ') + 1)},
        {"a tab", "te\txt\n\n" + line},
        {"a carriage return", "text\r\n\r\n" + line},
        {"bytes that are no UTF-8", "te\xffxt\n\n" + line},
    };
    for (const Row& row : rows) EXPECT_EQ(parse_note(row.text).error().code, Code::invalid) << row.says;
}

RC_GTEST_PROP(Note, any_changed_byte_is_refused, ()) {
    const std::string good = print(signed_by("origin\n42\nroot\n", "a.example", 'a'));
    std::string changed = good;
    const auto at = *rc::gen::inRange<std::size_t>(0, good.size());
    changed[at] = *rc::gen::arbitrary<char>();
    RC_PRE(changed != good);
    const VerifierKey key = trust("a.example", 'a');
    const auto note = parse_note(changed);
    const bool accepted = note && verify_note(*note, {&key, 1});
    RC_ASSERT(!accepted);
}

TEST(VerifierKey, what_is_malformed_is_refused) {
    const std::string good = print(trust("a.example", 'a'));
    ASSERT_EQ(parse_verifier_key(good), trust("a.example", 'a'));
    const std::size_t plus = good.find('+');
    const std::string name = good.substr(0, plus), id = good.substr(plus + 1, 8), key = good.substr(plus + 10);
    const std::string raw{bytes_of(key_of_seed('a').public_key().bytes)};
    struct Row {
        std::string_view says;
        std::string text;
    };
    const Row rows[] = {
        {"nothing", ""},
        {"only a name", name},
        {"no key", name + "+" + id},
        {"an empty key", name + "+" + id + "+"},
        {"another id", name + "+00000000+" + key},
        {"an id in capitals", name + "+ABCDEF12+" + key},
        {"another name, so another id", "b.example+" + id + "+" + key},
        {"another type", name + "+" + id + "+" + to_base64("\x02" + raw)},
        {"a key too short", name + "+" + id + "+" + to_base64("\x01" + raw.substr(1))},
        {"a key too long", name + "+" + id + "+" + to_base64("\x01x" + raw)},
        {"no base64", name + "+" + id + "+!!!!"},
        {"a blank in the name", "a example+" + id + "+" + key},
        {"a line break at the end", good + "\n"},
    };
    for (const Row& row : rows) EXPECT_EQ(parse_verifier_key(row.text).error().code, Code::invalid) << row.says;
}

}  // namespace
}  // namespace bulkhead::evidence
