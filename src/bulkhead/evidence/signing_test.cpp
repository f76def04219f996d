#include "bulkhead/evidence/signing.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/evidence/keys_test.hpp"

namespace bulkhead::evidence {
namespace {

std::string bytes(std::string_view hex) { return from_hex(hex).value(); }

TEST(Signing, gives_the_answers_of_rfc_8032) {
    struct Row {
        std::string_view seed, key, message, signature;
    };
    const Row rows[] = {
        {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
         "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
         "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bb"
         "e"
         "24655141438e7a100b"},
        {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
         "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
         "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302"
         "a"
         "eeb00d291612bb0c00"},
        {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
         "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
         "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed"
         "2"
         "8dc027beceea1ec40a"},
    };
    for (const Row& row : rows) {
        const SigningKey key = SigningKey::from_seed(bytes(row.seed)).value();
        EXPECT_EQ(to_hex(bytes_of(key.public_key().bytes)), row.key);
        EXPECT_EQ(to_hex(key.sign(bytes(row.message))), row.signature);
        EXPECT_TRUE(verify(key.public_key(), bytes(row.message), bytes(row.signature)));
    }
}

TEST(Signing, any_change_is_noticed) {
    const SigningKey key = key_of_seed('a');
    const std::string message = "wiped", signature = key.sign(message);
    EXPECT_TRUE(verify(key.public_key(), message, signature));
    EXPECT_FALSE(verify(key_of_seed('b').public_key(), message, signature));
    EXPECT_FALSE(verify(key.public_key(), "wiped!", signature));
    for (std::size_t bit = 0; bit < signature.size() * 8; ++bit) {
        std::string changed = signature;
        changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
        EXPECT_FALSE(verify(key.public_key(), message, changed)) << "bit " << bit;
    }
    for (const std::size_t size : {0u, 63u, 65u})
        EXPECT_FALSE(verify(key.public_key(), message, std::string(size, 'x')));
}

TEST(Signing, a_key_is_made_from_32_bytes_only) {
    for (const std::size_t size : {0u, 31u, 33u, 64u})
        EXPECT_EQ(SigningKey::from_seed(std::string(size, 'x')).error().code, Code::invalid);
}

TEST(Signing, a_copy_signs_alike_after_the_original_is_gone) {
    std::optional<SigningKey> first = key_of_seed('a');
    const SigningKey copy = *first;
    const std::string signature = first->sign("x");
    first.reset();
    EXPECT_EQ(copy.sign("x"), signature);
}

TEST(PublicKeys, are_read_back_as_written) {
    const PublicKey key = key_of_seed('a').public_key();
    EXPECT_EQ(parse_public_key(print(key)), key);
    EXPECT_EQ(key_id(key).size(), 16u);
    EXPECT_NE(key_id(key), key_id(key_of_seed('b').public_key()));
    for (const std::string_view wrong : {"", "AAAA", "not base64", "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE"})
        EXPECT_FALSE(parse_public_key(wrong)) << wrong;
}

}  // namespace
}  // namespace bulkhead::evidence
