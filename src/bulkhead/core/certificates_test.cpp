#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bulkhead/codec/decode.hpp"
#include "bulkhead/core/persisted.hpp"
#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::HasSubstr;

struct Renewal : testing::Test {
    Renewal() { enrol("first"); }
    void enrol(const std::string& certificate) {
        ASSERT_TRUE(plane
                        .ask(command::Enrol{.node = "n0",
                                            .spec = {.site = "fra"},
                                            .evidence_key = print(plane.nodes["n0"]->key.public_key()),
                                            .certificate = certificate})
                        .outcome);
    }
    // True: the session is open.
    bool hello(const std::string& certificate) {
        auto& node = *plane.nodes["n0"];
        const std::size_t closed = plane.closes.size();
        node.session = ++sessions;
        plane.event(AgentHello{"n0", node.session, node.executor->hello(node.model.inventory(), node.model.boot_id()),
                               certificate});
        for (std::size_t i = closed; i < plane.closes.size(); ++i)
            if (plane.closes[i].find("newer certificate") != std::string::npos) return false;
        return true;
    }
    Result<> renew(const std::string& shown, const std::string& renewed) {
        return plane
            .ask(
                command::Renew{.node = "n0", .session = plane.nodes["n0"]->session, .shown = shown, .renewed = renewed})
            .outcome;
    }
    KeyRow row() const {
        KeyRow found;
        for (const auto& [key, body] : plane.rows)
            if (key.first == Table::key) found = *from_json<KeyRow>("a key", body);
        return found;
    }

    Plane plane{1};
    std::uint64_t sessions = 100;
};

TEST_F(Renewal, both_certificates_are_good_until_the_new_one_is_used) {
    ASSERT_TRUE(hello("first"));
    const KeyRow before = row();
    ASSERT_TRUE(renew("first", "second"));
    EXPECT_EQ(row().certificate, "first");
    EXPECT_EQ(row().renewed, "second");
    EXPECT_EQ(row().publicKey, before.publicKey) << "the evidence key stays";
    EXPECT_EQ(row().leaf, before.leaf);
    EXPECT_EQ(plane.logged("certificate-renewed"), 1);
    EXPECT_THAT(plane.log.back(), HasSubstr(R"("actor":"node:n0")"));

    EXPECT_TRUE(hello("first")) << "the agent crashed before it had kept the new one";
    EXPECT_EQ(row().renewed, "second");
    EXPECT_TRUE(hello("second"));
    EXPECT_EQ(row().certificate, "second");
    EXPECT_EQ(row().renewed, "");
    EXPECT_EQ(plane.logged("certificate-retired"), 1);
    EXPECT_FALSE(hello("first"));
    EXPECT_TRUE(hello("second"));
}

TEST_F(Renewal, outlives_a_restart) {
    ASSERT_TRUE(hello("first"));
    ASSERT_TRUE(renew("first", "second"));
    plane.restart(2);
    EXPECT_TRUE(hello("first"));
    plane.restart(3);
    EXPECT_TRUE(hello("second"));
    plane.restart(4);
    EXPECT_FALSE(hello("first"));
    EXPECT_TRUE(hello("second"));
}

TEST_F(Renewal, asked_for_twice_the_last_one_counts) {
    ASSERT_TRUE(hello("first"));
    ASSERT_TRUE(renew("first", "lost on its way"));
    ASSERT_TRUE(renew("first", "second"));
    EXPECT_FALSE(hello("lost on its way"));
    EXPECT_TRUE(hello("second"));
}

TEST_F(Renewal, is_for_the_open_session_of_the_current_certificate) {
    ASSERT_TRUE(hello("first"));
    EXPECT_EQ(plane.ask(command::Renew{.node = "n9", .session = 1, .shown = "a", .renewed = "b"}).outcome.error().code,
              Code::not_found);
    EXPECT_EQ(renew("another", "second").error().code, Code::denied);
    EXPECT_EQ(renew("", "second").error().code, Code::denied);
    const std::uint64_t old = plane.nodes["n0"]->session;
    ASSERT_TRUE(hello("first"));
    EXPECT_EQ(
        plane.ask(command::Renew{.node = "n0", .session = old, .shown = "first", .renewed = "b"}).outcome.error().code,
        Code::conflict);
    EXPECT_EQ(row().renewed, "");
    EXPECT_EQ(plane.logged("certificate-renewed"), 0);
}

TEST_F(Renewal, a_revoked_node_gets_none_and_loses_both) {
    ASSERT_TRUE(hello("first"));
    ASSERT_TRUE(renew("first", "second"));
    ASSERT_TRUE(plane.ask(command::Revoke{.node = "n0", .why = "stolen"}).outcome);
    EXPECT_TRUE(row().retired);
    EXPECT_EQ(renew("first", "third").error().code, Code::denied);
    static_cast<void>(hello("second"));
    EXPECT_THAT(plane.closes.back(), HasSubstr("revoked"));
}

TEST_F(Renewal, enrolling_anew_ends_what_was_under_way) {
    ASSERT_TRUE(hello("first"));
    ASSERT_TRUE(renew("first", "second"));
    enrol("third");
    EXPECT_EQ(renew("first", "fourth").error().code, Code::conflict) << "the session was closed";
    EXPECT_FALSE(hello("second"));
    EXPECT_FALSE(hello("first"));
    EXPECT_TRUE(hello("third"));
}

}  // namespace
}  // namespace bulkhead
