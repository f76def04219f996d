#include "bulkhead/evidence/commitment.hpp"

#include <gtest/gtest.h>

namespace bulkhead::evidence {
namespace {

TEST(Commitment, is_the_hash_of_salt_and_payload) {
    const std::string salt(16, 's');
    EXPECT_EQ(commit_to(salt, "payload"), sha256(salt + "payload"));
    EXPECT_TRUE(open_commitment(commit_to(salt, "payload"), salt, "payload"));
}

TEST(Commitment, opens_for_nothing_else) {
    const std::string salt(16, 's');
    const Hash entry = commit_to(salt, "payload");
    EXPECT_EQ(open_commitment(entry, salt, "Payload").error().code, Code::corrupt);
    EXPECT_EQ(open_commitment(entry, std::string(16, 't'), "payload").error().code, Code::corrupt);
    EXPECT_EQ(open_commitment(entry, salt + "p", "ayload").error().code, Code::invalid)
        << "a part of the payload passes for salt";
    EXPECT_EQ(open_commitment(entry, "", salt + "payload").error().code, Code::invalid);
}

}  // namespace
}  // namespace bulkhead::evidence
