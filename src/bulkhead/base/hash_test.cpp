#include "bulkhead/base/hash.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace bulkhead {
namespace {

std::string hex(const Hash& hash) { return to_hex(bytes_of(hash)); }
std::string bytes(std::string_view hex_text) { return from_hex(hex_text).value(); }

TEST(Sha256, gives_the_published_answers) {
    struct Row {
        std::string message;
        std::string_view hash;
    };
    const Row rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    for (const Row& row : rows) EXPECT_EQ(hex(sha256(row.message)), row.hash) << row.message.substr(0, 60);
}

TEST(Sha256, of_parts_is_that_of_the_parts_joined) {
    EXPECT_EQ(sha256({"a", "", "bc"}), sha256("abc"));
    EXPECT_EQ(sha256({}), sha256(""));
    EXPECT_NE(sha256({"a", "bc"}), sha256({"a", "cb"}));
}

// RFC 4231, all seven cases; the fifth is published truncated to 128 bits.
TEST(HmacSha256, gives_the_answers_of_rfc_4231) {
    struct Row {
        std::string key, message;
        std::string_view hash;
    };
    const Row rows[] = {
        {std::string(20, '\x0b'), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {std::string(20, '\xaa'), std::string(50, '\xdd'),
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {bytes("0102030405060708090a0b0c0d0e0f10111213141516171819"), std::string(50, '\xcd'),
         "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {std::string(20, '\x0c'), "Test With Truncation", "a3b6167473100ee06e0c796c2955552b"},
        {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {std::string(131, '\xaa'),
         "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
         "hashed before being used by the HMAC algorithm.",
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };
    for (const Row& row : rows)
        EXPECT_EQ(hex(hmac_sha256(row.key, row.message)).substr(0, row.hash.size()), row.hash) << row.message;
}

TEST(HashBytes, are_32_or_no_hash) {
    EXPECT_EQ(hash_from(bytes_of(sha256("x"))), sha256("x"));
    EXPECT_FALSE(hash_from(std::string(31, 'x')));
    EXPECT_FALSE(hash_from(std::string(33, 'x')));
    EXPECT_FALSE(hash_from(""));
}

TEST(Hex, writes_lower_case_and_reads_nothing_else) {
    EXPECT_EQ(to_hex(std::string_view{"\x00\x7f\xff", 3}), "007fff");
    EXPECT_EQ(from_hex("007fff"), (std::string{"\x00\x7f\xff", 3}));
    EXPECT_EQ(from_hex(""), "");
    for (const std::string_view wrong : {"0", "0g", "AB", "0x00", "00 ", " 00", "0\n", "\u00e9"})
        EXPECT_FALSE(from_hex(wrong)) << wrong;
}

// RFC 4648 section 10.
TEST(Base64, gives_the_answers_of_rfc_4648) {
    struct Row {
        std::string_view plain, coded;
    };
    for (const Row& row :
         {Row{"", ""}, Row{"f", "Zg=="}, Row{"fo", "Zm8="}, Row{"foo", "Zm9v"}, Row{"foob", "Zm9vYg=="},
          Row{"fooba", "Zm9vYmE="}, Row{"foobar", "Zm9vYmFy"}, Row{"\xfb\xff\xbf", "+/+/"}}) {
        EXPECT_EQ(to_base64(row.plain), row.coded);
        EXPECT_EQ(from_base64(row.coded), row.plain);
    }
}

TEST(Base64, refuses_what_it_would_not_have_written) {
    struct Row {
        std::string_view says, text;
    };
    const Row rows[] = {
        {"padding is missing", "Zg"},
        {"half of the padding is missing", "Zg="},
        {"more padding than text", "Z==="},
        {"only padding", "===="},
        {"padding in the middle", "Zg==Zg=="},
        {"padding before the last character", "Zg=g"},
        {"bits that no byte took, of two", "Zh=="},
        {"bits that no byte took, of one", "Zm9="},
        {"the alphabet of URLs", "-_-_"},
        {"a blank inside", "Zm 9"},
        {"a line break at the end", "Zm9v\n"},
        {"a byte beyond ASCII", "Zm9\xc3"},
        {"a zero byte", std::string_view{"Zm9\0", 4}},
        {"one character too many", "Zm9vY"},
    };
    for (const Row& row : rows) EXPECT_FALSE(from_base64(row.text)) << row.says;
}

RC_GTEST_PROP(Spellings, read_back_what_they_wrote, (const std::string& any)) {
    RC_ASSERT(from_hex(to_hex(any)) == any);
    RC_ASSERT(from_base64(to_base64(any)) == any);
}

RC_GTEST_PROP(Spellings, have_one_text_for_each_value, (const std::string& text)) {
    if (const auto value = from_base64(text)) RC_ASSERT(to_base64(*value) == text);
    if (const auto value = from_hex(text)) RC_ASSERT(to_hex(*value) == text);
}

}  // namespace
}  // namespace bulkhead
