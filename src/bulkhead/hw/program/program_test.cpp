#include "bulkhead/hw/program/program.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace bulkhead::program {
namespace {

namespace fs = std::filesystem;

class Tied : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = fs::temp_directory_path() / "bulkhead-program-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
        lock_ = ::open((folder_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
    void TearDown() override {
        ::close(lock_);
        fs::remove_all(folder_);
    }
    // Says who it is, and stays.
    std::vector<std::string> stays() const {
        return {"sh", "-c",
                "echo $$ > " + (folder_ / "draft").string() + "; mv " + (folder_ / "draft").string() + " " +
                    (folder_ / "pid").string() + "; exec sleep 600"};
    }
    static bool in_time(const std::function<bool()>& holds) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
        while (!holds() && std::chrono::steady_clock::now() < until)
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
        return holds();
    }
    pid_t said() const {
        pid_t pid = 0;
        EXPECT_TRUE(in_time([&] { return static_cast<bool>(std::ifstream{folder_ / "pid"} >> pid); }));
        return pid;
    }
    static bool is_gone(pid_t pid) {
        std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
        const std::string text{std::istreambuf_iterator<char>{file}, {}};
        const std::size_t state = text.rfind(") ");
        return state == std::string::npos || text[state + 2] == 'Z' || text[state + 2] == 'X';
    }
    bool lock_is_free() const {
        const int other = ::open((folder_ / "lock").c_str(), O_RDWR | O_CLOEXEC);
        const bool is_free = ::flock(other, LOCK_EX | LOCK_NB) == 0;
        ::close(other);
        return is_free;
    }

    fs::path folder_;
    int lock_ = -1;
};

TEST_F(Tied, says_what_it_said_and_how_it_ended) {
    const auto ran = run_tied({"sh", "-c", "cat; echo out; echo err >&2; exit 3"}, -1, std::chrono::seconds{30});
    ASSERT_TRUE(ran) << ran.error().what;
    EXPECT_EQ(ran->status, 3);
    EXPECT_EQ(ran->output, "out\nerr\n") << "and there was nothing to read";
    const auto none = run_tied({"/nowhere/nvidia-smi"}, -1, std::chrono::seconds{30});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().what, "/nowhere/nvidia-smi cannot be started: No such file or directory");
}

TEST_F(Tied, whoever_runs_it_is_killed_and_takes_it_along) {
    const pid_t caller = ::fork();
    if (caller == 0) {
        ::flock(lock_, LOCK_EX);
        (void)run_tied(stays(), lock_, std::chrono::minutes{10});
        ::_exit(0);
    }
    ::close(std::exchange(lock_, -1));
    const pid_t program = said();
    EXPECT_FALSE(is_gone(program));
    ::kill(caller, SIGKILL);
    ::waitpid(caller, nullptr, 0);
    EXPECT_TRUE(in_time([&] { return is_gone(program); }));
    EXPECT_TRUE(in_time([&] { return lock_is_free(); }));
}

// It may sleep in the kernel, where no signal reaches it.
TEST_F(Tied, who_waits_for_the_lock_waits_for_it_too) {
    const pid_t caller = ::fork();
    if (caller == 0) {
        ::flock(lock_, LOCK_EX);
        std::thread{[&] { (void)run_tied(stays(), lock_, std::chrono::minutes{10}); }}.detach();
        if (said() == 0) ::_exit(1);
        ::close(lock_);  // as if it were gone; only the program has it now
        ::pause();
    }
    ::close(std::exchange(lock_, -1));
    const pid_t program = said();
    EXPECT_FALSE(lock_is_free());
    ::kill(program, SIGKILL);
    EXPECT_TRUE(in_time([&] { return lock_is_free(); }));
    ::kill(caller, SIGKILL);
    ::waitpid(caller, nullptr, 0);
}

}  // namespace
}  // namespace bulkhead::program
