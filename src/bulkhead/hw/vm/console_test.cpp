// Pieces are renamed here as virtlogd renames them; virtlogd itself does it in daemon_test.cpp.
#include "bulkhead/hw/vm/console.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace bulkhead::vm {

namespace {

class RolledConsole {
public:
    RolledConsole() {
        std::string pattern = std::filesystem::temp_directory_path() / "bulkhead-console-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
    }
    ~RolledConsole() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    RolledConsole(const RolledConsole&) = delete;
    RolledConsole& operator=(const RolledConsole&) = delete;

    std::string path() const { return folder_ / "console"; }
    Console console() const { return Console{path()}; }  // a new agent each time: nothing is remembered but on record
    void print(const std::string& text) const { std::ofstream{path(), std::ios::app} << text; }
    void rename_pieces() const {  // three are kept
        const auto piece = [&](int i) { return i < 0 ? path() : fmt::format("{}.{}", path(), i); };
        std::error_code none;
        std::filesystem::remove(piece(2), none);
        for (int i = 2; i >= 0; --i) std::filesystem::rename(piece(i - 1), piece(i), none);
    }
    void roll() const {
        rename_pieces();
        print("");
    }
    void truncate() const { std::filesystem::resize_file(path(), 0); }

private:
    std::filesystem::path folder_;
};

}  // namespace

TEST(Console, that_is_not_there_has_printed_nothing) {
    const RolledConsole here;
    EXPECT_EQ(here.console().read(0, 100).value(), (ConsoleText{0, ""}));
    EXPECT_EQ(here.console().tail(100).value(), (ConsoleText{0, ""}));
}

TEST(Console, goes_on_in_the_next_piece_where_the_one_before_ended) {
    const RolledConsole here;
    here.print("one,");
    EXPECT_EQ(here.console().read(0, 100).value(), (ConsoleText{0, "one,"}));
    here.print("two,");
    here.roll();
    EXPECT_EQ(here.console().read(4, 100).value(), (ConsoleText{4, "two,"}))
        << "printed before the roll, read after it";
    EXPECT_EQ(here.console().read(8, 100).value(), (ConsoleText{8, ""}));
    here.print("three,");
    EXPECT_EQ(here.console().read(8, 100).value(), (ConsoleText{8, "three,"}));
    EXPECT_EQ(here.console().read(0, 100).value(), (ConsoleText{0, "one,two,three,"})) << "all of it is kept";
    EXPECT_EQ(here.console().read(2, 8).value(), (ConsoleText{2, "e,two,th"}));
    EXPECT_EQ(here.console().read(50, 8).value(), (ConsoleText{50, ""})) << "never from an earlier byte than was asked";
    here.rename_pieces();
    EXPECT_EQ(here.console().read(12, 100).value(), (ConsoleText{12, "e,"})) << "between a name and the next file";
    for (int i = 0; i < 3; ++i) {
        here.print("four,");
        here.roll();
        ASSERT_TRUE(here.console().keep());
    }
    EXPECT_EQ(here.console().read(0, 100).value(), (ConsoleText{14, "four,four,four,"})) << "the oldest went";
}

// A good command is not told as failed because its last line is in another file.
TEST(Console, its_end_is_found_in_the_older_piece_and_over_the_cut) {
    const RolledConsole here;
    here.print("much\nbulkhead-exit: 0\n");
    here.roll();
    EXPECT_EQ(here.console().tail(100).value(), (ConsoleText{0, "much\nbulkhead-exit: 0\n"}));
    here.print("Power down\n");
    EXPECT_EQ(here.console().tail(20).value(), (ConsoleText{13, "-exit: 0\nPower down\n"}));
}

TEST(Console, numbers_never_go_back_whatever_was_missed) {
    const RolledConsole here;
    here.print("seen");
    EXPECT_EQ(here.console().tail(100)->bytes, "seen");
    for (int i = 0; i < 6; ++i) {
        here.roll();
        here.print("unseen");
    }
    const auto next = here.console().read(4, 100);
    ASSERT_TRUE(next);
    EXPECT_EQ(*next, (ConsoleText{4, "unseenunseenunseenunseen"})) << "what nobody saw is not counted";
    here.truncate();
    EXPECT_EQ(here.console().read(28, 100).value(), (ConsoleText{28, ""}));
}

TEST(Console, another_machine_begins_at_nothing) {
    const RolledConsole here;
    here.print("of the one before");
    here.roll();
    here.print("too");
    ASSERT_TRUE(here.console().keep());
    ASSERT_TRUE(here.console().forget());
    ASSERT_TRUE(here.console().forget()) << "again is fine";
    here.print("new");
    EXPECT_EQ(here.console().read(0, 100).value(), (ConsoleText{0, "new"}));
}

// Whoever follows it reads every byte once, in order, as long as somebody looks before four pieces are full.
RC_GTEST_PROP(Console, is_one_stream_for_whoever_follows_it, ()) {
    const RolledConsole here;
    std::string printed, followed;
    const auto steps = *rc::gen::container<std::vector<std::string>>(
        rc::gen::container<std::string>(rc::gen::inRange<char>('a', 'z')));
    for (const std::string& step : steps) {
        here.print(step);
        printed += step;
        if (*rc::gen::inRange(0, 2) == 0) here.roll();
        if (*rc::gen::inRange(0, 2) == 0) RC_ASSERT(here.console().keep().has_value());
        const auto text = here.console().read(std::ssize(followed), 1 << 20);
        RC_ASSERT(text.has_value());
        RC_ASSERT(text->from == std::ssize(followed));
        followed += text->bytes;
        RC_ASSERT(printed.starts_with(followed));
        const auto tail = here.console().tail(5);
        RC_ASSERT(tail.has_value());
        RC_ASSERT(tail->from + std::ssize(tail->bytes) == std::ssize(printed));
        RC_ASSERT(printed.ends_with(tail->bytes));
    }
}

}  // namespace bulkhead::vm
