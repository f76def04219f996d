#include "bulkhead/agent/renewal.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "bulkhead/agent/fleet_test.hpp"
#include "bulkhead/auth/secret_file.hpp"

namespace bulkhead::agent {
namespace {

namespace fs = std::filesystem;

constexpr Duration hour = Duration::hours(1);

// An identity in a folder, as enrolling leaves it.
struct RenewalOfNode : testing::Test {
    RenewalOfNode() {
        folder = ::mkdtemp(pattern);
        node = TestFleet::node("node-17", fleet().ca, life);
        put("tls.key", node.key);
        put("tls.crt", node.certificate);
        put("ca.crt", fleet().ca.certificate);
        put("evidence.key", std::string(64, 'a') + "\n");
        put("node.json", R"({"name": "node-17", "agents": "127.0.0.1:1"})");
    }
    ~RenewalOfNode() override { fs::remove_all(folder); }
    void put(const std::string& file, const std::string& content) const {
        ASSERT_TRUE(auth::write_secret(folder + "/" + file, content));
    }
    Renewal renewal() const { return *Renewal::of(*load_identity(folder), folder); }
    std::string certified(const std::string& request) const {
        return *auth::sign_request(fleet().ca, request, "node-17", {now, now + Duration::days(90)});
    }

    char pattern[32] = "/tmp/bulkhead-renewal-XXXXXX";
    std::string folder;
    Instant now{wall_clock().ms / 1000 * 1000};
    auth::Validity life{now + Duration::days(-59), now + Duration::days(31)};  // 90 days, of which 31 are left
    auth::KeyPair node;
};

TEST_F(RenewalOfNode, is_due_when_a_third_of_the_life_is_left) {
    Renewal one = renewal();
    EXPECT_EQ(one.due(), now + Duration::days(1));
    EXPECT_EQ(one.ends(), life.until);
    EXPECT_FALSE(*one.request(now));
    EXPECT_FALSE(*one.request(one.due() + Duration{-1}));
    EXPECT_TRUE(*one.request(one.due()));
}

TEST_F(RenewalOfNode, is_asked_for_once_an_hour_with_a_new_key_each_time) {
    Renewal one = renewal();
    const Instant due = one.due();
    const auto first = *one.request(due);
    ASSERT_TRUE(first);
    EXPECT_FALSE(*one.request(due + Duration{1}));
    EXPECT_FALSE(*one.request(due + hour + Duration{-1}));
    const auto second = *one.request(due + hour);
    ASSERT_TRUE(second);
    EXPECT_NE(*first, *second);
    EXPECT_EQ(one.accept(certified(*first), now).error().code, Code::invalid) << "the first key is gone";
}

TEST_F(RenewalOfNode, a_short_life_leaves_room_for_several_attempts) {
    node = TestFleet::node("node-17", fleet().ca, {now + Duration{-300'000}, now + Duration{60'000}});
    put("tls.key", node.key);
    put("tls.crt", node.certificate);
    Renewal one = renewal();
    ASSERT_TRUE(*one.request(now));
    EXPECT_FALSE(*one.request(now + Duration{29'999}));
    EXPECT_TRUE(*one.request(now + Duration{30'000}));
}

TEST_F(RenewalOfNode, a_clock_that_was_ahead_does_not_make_it_wait) {
    Renewal one = renewal();
    ASSERT_TRUE(*one.request(now + Duration::days(1000)));
    EXPECT_TRUE(*one.request(one.due()));
}

TEST_F(RenewalOfNode, replaces_key_and_certificate_at_once_and_nothing_else) {
    Renewal one = renewal();
    const Identity before = *load_identity(folder);
    const auto request = *one.request(one.due());
    EXPECT_EQ(load_identity(folder)->key, before.key) << "asking changes nothing";
    const auto renewed = one.accept(certified(*request), now);
    ASSERT_TRUE(renewed) << renewed.error().what;
    EXPECT_NE(renewed->key, before.key);
    EXPECT_EQ(one.ends(), now + Duration::days(90));
    EXPECT_FALSE(*one.request(now)) << "the next life has begun";

    const auto after = load_identity(folder);
    ASSERT_TRUE(after) << after.error().what;
    EXPECT_EQ(after->key, renewed->key);
    EXPECT_EQ(after->certificate, renewed->certificate);
    EXPECT_EQ(after->evidence_seed, before.evidence_seed);
    EXPECT_EQ(after->name, before.name);
    for (const auto& entry : fs::directory_iterator{folder})
        EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write) << entry.path();
    EXPECT_FALSE(fs::exists(folder + "/tls.key")) << "an old key is not left lying around";

    const auto again = *one.request(one.due());
    ASSERT_TRUE(one.accept(*auth::sign_request(fleet().ca, *again, "node-17", {now, now + Duration::days(120)}), now));
    EXPECT_EQ(load_identity(folder)->certificate, [&] {
        const std::string pem = *auth::read_secret(folder + "/tls.pem");
        return pem.substr(pem.find("-----BEGIN CERTIFICATE"));
    }());
}

// A process that dies leaves the files as they are at some step; each such picture is a whole identity, old or new.
TEST_F(RenewalOfNode, a_crash_at_any_step_leaves_an_identity) {
    const auto next = *auth::make_request("node-17");
    const std::string pem = next.key + certified(next.request);
    std::ofstream{folder + "/tls.pem.AbCdEf"} << pem.substr(0, 100);
    EXPECT_EQ(load_identity(folder)->key, node.key) << "while the new file is being written";
    put("tls.pem", pem);
    EXPECT_EQ(load_identity(folder)->key, next.key) << "renamed; the old ones still there";
    fs::remove(folder + "/tls.key");
    EXPECT_EQ(load_identity(folder)->key, next.key) << "one of them gone";
    fs::remove(folder + "/tls.crt");
    EXPECT_EQ(load_identity(folder)->key, next.key);
    put("tls.pem", next.key);
    EXPECT_EQ(load_identity(folder).error().code, Code::corrupt) << "what no crash leaves is not guessed at";
}

TEST_F(RenewalOfNode, an_answer_is_believed_only_as_far_as_it_can_be_checked) {
    const auth::KeyPair other_ca = *auth::create_ca("test fleet", fleet().decade);
    const auth::Validity good{now, now + Duration::days(90)};
    struct Row {
        const char* says;
        std::function<std::string(const std::string&)> answer;
    };
    const Row rows[] = {
        {"nothing", [](const std::string&) { return ""; }},
        {"another CA",
         [&](const std::string& request) { return *auth::sign_request(other_ca, request, "node-17", good); }},
        {"another's key", [&](const std::string&) { return fleet().node("node-17").certificate; }},
        {"the certificate it has", [&](const std::string&) { return node.certificate; }},
        {"one that ends sooner",
         [&](const std::string& request) {
             return *auth::sign_request(fleet().ca, request, "node-17", {now, now + Duration::days(30)});
         }},
        {"one that is not good yet",
         [&](const std::string& request) {
             return *auth::sign_request(fleet().ca, request, "node-17", {now + hour, now + Duration::days(90)});
         }},
    };
    for (const Row& row : rows) {
        Renewal one = renewal();
        const auto request = *one.request(one.due());
        EXPECT_FALSE(one.accept(row.answer(*request), now)) << row.says;
        EXPECT_EQ(load_identity(folder)->key, node.key) << row.says;
        EXPECT_FALSE(one.accept(certified(*request), now)) << row.says << ": a request is answered once";
    }
    Renewal unasked = renewal();
    EXPECT_EQ(unasked.accept(node.certificate, now).error().code, Code::conflict);
}

TEST_F(RenewalOfNode, what_the_next_process_would_find_is_the_identity) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may open any folder";
    Renewal one = renewal();
    const auto request = *one.request(one.due());
    // The file can be put there, and the folder not be opened to make that durable.
    fs::permissions(folder, fs::perms::owner_write | fs::perms::owner_exec);
    const auto renewed = one.accept(certified(*request), now);
    fs::permissions(folder, fs::perms::owner_all);
    ASSERT_TRUE(renewed) << renewed.error().what;
    EXPECT_EQ(load_identity(folder)->certificate, renewed->certificate);
    EXPECT_EQ(one.ends(), now + Duration::days(90));
}

TEST_F(RenewalOfNode, a_disk_that_fails_keeps_the_old_identity) {
    Renewal one = renewal();
    const auto request = *one.request(one.due());
    fs::rename(folder, folder + ".away");
    EXPECT_FALSE(one.accept(certified(*request), now));
    fs::rename(folder + ".away", folder);
    EXPECT_EQ(load_identity(folder)->key, node.key);
    EXPECT_EQ(one.ends(), life.until);
    EXPECT_TRUE(*one.request(one.due() + hour)) << "and it is tried again";
}

}  // namespace
}  // namespace bulkhead::agent
