#include "bulkhead/shell/keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "bulkhead/evidence/note.hpp"
#include "bulkhead/shell/fixture_test.hpp"

namespace bulkhead::shell {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr Instant today{1'800'000'000'000};

struct Keys {
    Result<ServerKeys> open(Instant at = today) const {
        return open_keys({.directory = folder / "keys", .names = {{"localhost"}, {"127.0.0.1"}}, .now = at});
    }
    std::string path(const std::string& name) const { return folder / ("keys/" + name); }
    const ScratchFolder folder;
};

TEST(Keys, are_made_once) {
    const Keys keys;
    const auto first = keys.open(), again = keys.open();
    ASSERT_TRUE(first) << first.error().what;
    ASSERT_TRUE(again) << again.error().what;
    EXPECT_EQ(first->ca.key, again->ca.key);
    EXPECT_EQ(first->server.certificate, again->server.certificate);
    ASSERT_EQ(first->bootstrap.size(), 3u) << "one for each duty that nobody holds together";
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(first->bootstrap[i].hash, again->bootstrap[i].hash);
    EXPECT_NE(first->bootstrap[0].hash, first->bootstrap[1].hash);
}

TEST(Keys, half_of_a_pair_is_refused_and_not_replaced) {
    for (const auto& [lost, other] : {std::pair{"ca.crt", "ca.key"}, std::pair{"ca.key", "ca.crt"},
                                      std::pair{"log.seed", "log.origin"}, std::pair{"log.origin", "log.seed"}}) {
        const Keys keys;
        ASSERT_TRUE(keys.open());
        const std::string before = slurp(keys.path(other));
        fs::remove(keys.path(lost));
        const auto opened = keys.open();
        ASSERT_FALSE(opened) << lost;
        EXPECT_EQ(opened.error().code, Code::corrupt);
        EXPECT_THAT(opened.error().what, HasSubstr(lost));
        EXPECT_FALSE(opened.error().remedy.empty());
        EXPECT_EQ(slurp(keys.path(other)), before) << "what is left is not touched";
        EXPECT_FALSE(fs::exists(keys.path(lost)));
    }
}

TEST(Keys, the_lab_has_a_key_of_its_own_and_another_when_it_is_lost) {
    const Keys keys;
    const auto first = keys.open();
    ASSERT_TRUE(first) << first.error().what;
    EXPECT_NE(first->lab.public_key(), first->log.public_key());
    EXPECT_EQ(slurp(keys.path("lab.vkey")),
              print(evidence::VerifierKey{first->log_origin + "/lab", first->lab.public_key()}) + "\n");
    EXPECT_EQ(fs::status(keys.path("lab.seed")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(keys.open()->lab.public_key(), first->lab.public_key());
    fs::remove(keys.path("lab.seed"));
    const auto other = keys.open();
    ASSERT_TRUE(other) << other.error().what;
    EXPECT_NE(other->lab.public_key(), first->lab.public_key());
    EXPECT_EQ(other->log.public_key(), first->log.public_key());
    EXPECT_EQ(slurp(keys.path("lab.vkey")),
              print(evidence::VerifierKey{first->log_origin + "/lab", other->lab.public_key()}) + "\n");
    std::ofstream{keys.path("lab.seed")} << "short";
    EXPECT_FALSE(keys.open()) << "what is there and is no key is not replaced in silence";
}

TEST(Keys, a_first_start_that_was_cut_short_begins_again) {
    const Keys keys;
    ASSERT_TRUE(keys.open());
    for (const auto& entry : fs::directory_iterator{keys.folder / "keys"})
        if (entry.path().filename() != "ca.key") fs::remove(entry.path());
    EXPECT_TRUE(keys.open());
}

TEST(Keys, keys_of_two_copies_do_not_pass_for_a_pair) {
    const Keys mine, foreign;
    ASSERT_TRUE(mine.open());
    ASSERT_TRUE(foreign.open());
    fs::copy_file(foreign.path("ca.crt"), mine.path("ca.crt"), fs::copy_options::overwrite_existing);
    EXPECT_FALSE(mine.open());

    const Keys third;
    ASSERT_TRUE(third.open());
    fs::copy_file(foreign.path("log.seed"), third.path("log.seed"), fs::copy_options::overwrite_existing);
    EXPECT_FALSE(third.open()) << "nobody would believe a log that goes on under another key";
}

TEST(Keys, the_server_gets_a_new_certificate_with_a_new_authority) {
    const Keys keys, other;
    const auto before = keys.open(), foreign = other.open();
    ASSERT_TRUE(before && foreign);
    for (const char* name : {"ca.crt", "ca.key"})
        fs::copy_file(other.path(name), keys.path(name), fs::copy_options::overwrite_existing);
    const auto after = keys.open();
    ASSERT_TRUE(after) << after.error().what;
    EXPECT_EQ(after->ca.key, foreign->ca.key);
    EXPECT_NE(after->server.certificate, before->server.certificate);
    EXPECT_TRUE(after->server.certificate.ends_with(foreign->ca.certificate));
    EXPECT_EQ(keys.open()->server.certificate, after->server.certificate) << "and keeps it";
}

}  // namespace
}  // namespace bulkhead::shell
