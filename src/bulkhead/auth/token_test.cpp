#include "bulkhead/auth/token.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/print.hpp"

namespace bulkhead::auth {
namespace {

using testing::HasSubstr;
using testing::Not;

const Instant morning = *parse_instant("2026-11-15T09:00:00Z");
const Instant later = morning + Duration::hours(1);

TEST(Token, has_a_form_that_can_be_recognised_and_never_repeats) {
    std::set<std::string> seen;
    for (int i = 0; i < 100; ++i) {
        const std::string token = new_token();
        EXPECT_EQ(token.size(), 68u);
        EXPECT_TRUE(token.starts_with("bh1_"));
        EXPECT_TRUE(hash_of_token(token));
        EXPECT_TRUE(seen.insert(token).second);
    }
    const std::string good = new_token();
    for (const std::string& bad :
         {std::string{}, std::string{"bh1_"}, good.substr(1), good + "0", "BH1_" + good.substr(4),
          good.substr(0, 67) + "G", good.substr(0, 67) + "A", good.substr(0, 67) + "\n"})
        EXPECT_FALSE(hash_of_token(bad)) << bad;
}

TEST(Token, is_kept_only_as_a_hash) {
    const auto minted = mint_api_token({Role::auditor, "kim", "", std::nullopt}, morning);
    ASSERT_TRUE(minted);
    const std::string kept = to_json(minted->stored);
    EXPECT_THAT(kept, Not(HasSubstr(minted->text.substr(4))));
    ReadText text = read_documents("row", kept);
    StoredToken again;
    ASSERT_TRUE(decode(*text.documents.at(0).root, "row", again, text.errors));
    EXPECT_EQ(again, minted->stored);
}

TEST(Token, names_its_caller_until_it_ends_or_is_taken_back) {
    TokenBook book;
    const auto admin = mint_api_token({Role::platform_admin, "ops", "", std::nullopt}, morning);
    const auto alice = mint_api_token({Role::tenant_user, "alice", "acme", later}, morning);
    ASSERT_TRUE(admin && alice);
    ASSERT_TRUE(book.put(admin->stored) && book.put(alice->stored));

    const auto caller = book.caller(alice->text, morning);
    ASSERT_TRUE(caller);
    EXPECT_EQ(caller->role, Role::tenant_user);
    EXPECT_EQ(caller->subject, "alice");
    EXPECT_EQ(caller->tenant, "acme");
    EXPECT_EQ(caller->token_id, alice->stored.id);
    EXPECT_TRUE(caller->rights.may(Permission::submit, "acme"));
    EXPECT_FALSE(caller->rights.may(Permission::submit, "beta"));
    EXPECT_EQ(book.caller(admin->text, later + Duration::days(9999))->role, Role::platform_admin);
    EXPECT_FALSE(book.caller(alice->text, later)) << "ended at this very moment";
    EXPECT_FALSE(book.caller(new_token(), morning)) << "never made";
    EXPECT_FALSE(book.caller(alice->stored.hash, morning)) << "the hash is not the token";
    EXPECT_TRUE(book.erase(admin->stored.id));
    EXPECT_FALSE(book.erase(admin->stored.id));
    EXPECT_FALSE(book.caller(admin->text, morning)) << "taken back";
    EXPECT_EQ(book.list().size(), 1u);
}

TEST(Token, carries_no_more_than_its_scope) {
    const auto narrow = mint_api_token(
        {.role = Role::tenant_user, .subject = "ci", .tenant = "acme", .name = "ci", .scope = {Permission::submit}},
        morning);
    ASSERT_TRUE(narrow);
    const auto caller = caller_of(narrow->stored);
    ASSERT_TRUE(caller);
    EXPECT_TRUE(caller->rights.may(Permission::submit, "acme"));
    EXPECT_FALSE(caller->rights.may(Permission::read_output, "acme"));
    EXPECT_FALSE(mint_api_token(
        {.role = Role::tenant_user, .subject = "ci", .tenant = "acme", .scope = {Permission::manage_fleet}}, morning))
        << "a scope adds nothing";
}

TEST(Token, that_breaks_glass_has_a_reason_and_an_end) {
    const auto wish = [](std::optional<Instant> end, std::string why) {
        return mint_api_token(
            {.role = Role::break_glass, .subject = "ops", .tenant = "acme", .expires = end, .why = std::move(why)},
            morning);
    };
    EXPECT_TRUE(wish(morning + Duration::hours(1), "ticket 7"));
    EXPECT_FALSE(wish(std::nullopt, "ticket 7"));
    EXPECT_FALSE(wish(morning + Duration::hours(9), "ticket 7"));
    EXPECT_FALSE(wish(morning + Duration::hours(1), ""));
    EXPECT_FALSE(mint_api_token({.role = Role::auditor, .subject = "a", .why = "x"}, morning));
}

TEST(Token, is_found_by_all_of_its_hash_and_not_by_its_public_id) {
    TokenBook book;
    const auto good = mint_api_token({Role::auditor, "kim", "", std::nullopt}, morning);
    StoredToken twisted = good->stored;
    twisted.hash.back() = twisted.hash.back() == '0' ? '1' : '0';
    ASSERT_TRUE(book.put(twisted));
    EXPECT_FALSE(book.caller(good->text, morning));
}

TEST(Token, wishes_that_make_no_sense_are_refused) {
    struct Row {
        const char* says;
        ApiTokenWish wish;
    };
    for (const Row& row :
         {Row{"nobody's", {Role::auditor, "", "", {}}},
          Row{"a tenant's without tenant", {Role::tenant_user, "a", "", {}}},
          Row{"an admin of one tenant", {Role::platform_admin, "a", "acme", {}}},
          Row{"a tenant that is no name", {Role::tenant_admin, "a", "Ac me", {}}},
          Row{"a node's", {Role::node, "a", "", {}}}, Row{"over already", {Role::auditor, "a", "", morning}},
          Row{"two lines", {Role::auditor, "a\nb", "", {}}}})
        EXPECT_FALSE(mint_api_token(row.wish, morning)) << row.says;
    for (const char* node : {"", "a b", "-*", "**", "a*b"})
        EXPECT_FALSE(mint_enrolment_token(node, later, morning)) << node;
    EXPECT_FALSE(mint_enrolment_token("node-1", morning, morning)) << "over already";
}

TEST(ApiToken, that_was_taken_back_is_remembered_and_good_for_nothing) {
    TokenBook book;
    const auto minted = mint_api_token({Role::auditor, "eve", "", later}, morning);
    ASSERT_TRUE(book.put(minted->stored));
    EXPECT_TRUE(book.in_force(minted->stored.id, morning));
    EXPECT_FALSE(book.in_force(minted->stored.id, later)) << "expired";
    EXPECT_FALSE(book.in_force("0000000000000000", morning)) << "never made";
    StoredToken revoked = minted->stored;
    revoked.revokedAt = morning;
    ASSERT_TRUE(book.put(revoked));
    EXPECT_FALSE(book.in_force(minted->stored.id, morning));
    EXPECT_FALSE(book.caller(minted->text, morning));
    EXPECT_EQ(book.list().size(), 1u);
}

TEST(EnrolmentToken, admits_one_node_once) {
    struct Row {
        const char *says, *admits, *node;
        Instant at;
        bool good;
    };
    const Row rows[] = {
        {"the node it was made for", "node-17", "node-17", morning, true},
        {"a longer name", "node-17", "node-170", morning, false},
        {"a shorter name", "node-17", "node-1", morning, false},
        {"a name with its beginning", "rack4-*", "rack4-n1", morning, true},
        {"a name with another beginning", "rack4-*", "rack5-n1", morning, false},
        {"any name at all", "*", "n1", morning, true},
        {"a name that is none", "*", "Node 1", morning, false},
        {"too late", "node-17", "node-17", later, false},
    };
    for (const Row& row : rows) {
        TokenBook book;
        const auto minted = mint_enrolment_token(row.admits, later, morning);
        ASSERT_TRUE(minted) << row.says;
        ASSERT_TRUE(book.put(minted->stored));
        const auto used = book.redeem(minted->text, row.node, row.at);
        EXPECT_EQ(used.has_value(), row.good) << row.says;
        if (!used) continue;
        EXPECT_EQ(used->usedBy, row.node);
        const auto replayed = book.redeem(minted->text, row.node, row.at);
        ASSERT_FALSE(replayed) << row.says;
        EXPECT_EQ(replayed.error().code, Code::denied);
    }
}

TEST(EnrolmentToken, opens_no_other_door_and_no_other_token_opens_this_one) {
    TokenBook book;
    const auto enrolment = mint_enrolment_token("*", later, morning);
    const auto api = mint_api_token({Role::platform_admin, "ops", "", std::nullopt}, morning);
    ASSERT_TRUE(book.put(enrolment->stored) && book.put(api->stored));
    EXPECT_FALSE(book.caller(enrolment->text, morning));
    EXPECT_FALSE(book.redeem(api->text, "node-17", morning));
}

TEST(EnrolmentToken, of_many_who_use_it_at_once_one_is_admitted) {
    TokenBook book;
    const auto minted = mint_enrolment_token("*", later, morning);
    ASSERT_TRUE(book.put(minted->stored));
    std::atomic<int> admitted = 0;
    {
        std::vector<std::jthread> nodes;
        for (int i = 0; i < 8; ++i)
            nodes.emplace_back(
                [&, i] { admitted += book.redeem(minted->text, "n" + std::to_string(i), morning) ? 1 : 0; });
    }
    EXPECT_EQ(admitted, 1);
}

TEST(EnrolmentToken, a_row_that_was_tampered_with_is_not_taken_in) {
    TokenBook book;
    const auto minted = mint_enrolment_token("*", later, morning);
    StoredToken endless = minted->stored, hollow = minted->stored, renamed = minted->stored;
    endless.expiresAt.reset();
    hollow.hash = "00";
    renamed.id = "0000000000000000";
    EXPECT_FALSE(book.put(endless));
    EXPECT_FALSE(book.put(hollow));
    EXPECT_FALSE(book.put(renamed));
}

}  // namespace
}  // namespace bulkhead::auth
