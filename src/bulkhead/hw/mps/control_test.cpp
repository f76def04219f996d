// Against nvml-sim's stand-in for the control program, which speaks as the real one was heard to (testdata/mps/).
#include "bulkhead/hw/mps/control.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "bulkhead/hw/program/program.hpp"

namespace bulkhead::mps {
namespace {

namespace fs = std::filesystem;

class Mps : public ::testing::Test {
protected:
    void SetUp() override {
        settings_ = {.program = std::string{BULKHEAD_SOURCE_DIR} + "/nvml-sim/mps/nvidia-cuda-mps-control",
                     .folder = fs::temp_directory_path() / ("mps-" + std::to_string(::getpid())),
                     .device = "GPU-0"};
        fs::remove_all(settings_.folder);
    }
    void TearDown() override {
        if (auto left = Control::adopt(settings_)) (void)left->stop();
        fs::remove_all(settings_.folder);
    }
    Control started() {
        auto control = Control::start(settings_);
        if (!control) throw std::runtime_error{control.error().what};
        return *std::move(control);
    }
    Settings settings_;
};

TEST_F(Mps, a_daemon_starts_once_and_is_taken_over_afterwards) {
    EXPECT_FALSE(Control::adopt(settings_));
    const Control first = started();
    EXPECT_GT(first.daemon(), 0);
    EXPECT_EQ(started().daemon(), first.daemon());
}

TEST_F(Mps, limits_are_in_force_or_an_error) {
    Control control = started();
    EXPECT_TRUE(control.limit({.thread_percentage = 50, .memory_mib = 40'000}));
    const auto refused = control.limit({.thread_percentage = 150});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("keeps 50.0 percent"), std::string::npos) << refused.error().what;
}

TEST_F(Mps, a_server_is_seen_healthy_and_faulty) {
    Control control = started();
    EXPECT_EQ(control.state().value(), ServerState::none);
    ASSERT_TRUE(control.serve(0));
    EXPECT_EQ(control.servers().value().size(), 1u);
    EXPECT_EQ(control.state().value(), ServerState::active);
    std::ofstream{settings_.folder + "/pipe/fault"} << "x";
    EXPECT_EQ(control.state().value(), ServerState::fault);
}

TEST_F(Mps, clients_are_listed_and_ended_by_its_own_command) {
    Control control = started();
    ASSERT_TRUE(control.serve(0));
    const pid_t child = ::fork();
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    fs::create_directories(settings_.folder + "/pipe/clients");
    std::ofstream{settings_.folder + "/pipe/clients/" + std::to_string(child)} << "";
    const auto clients = control.clients();
    ASSERT_TRUE(clients);
    ASSERT_EQ(clients->size(), 1u);
    EXPECT_EQ(clients->front().pid, child);
    EXPECT_TRUE(control.end_client(clients->front()));
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    const auto gone = control.end_client({clients->front().server, 99'999'999});
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, Code::not_found);
}

TEST_F(Mps, after_a_stop_neither_daemon_nor_server_is_left) {
    Control control = started();
    ASSERT_TRUE(control.serve(0));
    const pid_t daemon = control.daemon(), server = control.servers().value().front();
    ASSERT_TRUE(control.stop());
    EXPECT_FALSE(Control::adopt(settings_));
    for (const pid_t process : {daemon, server}) {
        std::ifstream file{"/proc/" + std::to_string(process) + "/stat"};
        const std::string stat{std::istreambuf_iterator<char>{file}, {}};
        EXPECT_TRUE(stat.empty() || stat.contains(") Z ")) << "somebody has to take note of its end: " << stat;
    }
    EXPECT_FALSE(control.servers());
}

TEST_F(Mps, limits_reach_the_servers_there_are) {
    Control control = started();
    ASSERT_TRUE(control.limit({.thread_percentage = 25, .memory_mib = 10'240}));
    ASSERT_TRUE(control.serve(0));
    EXPECT_TRUE(control.limit({.thread_percentage = 50, .memory_mib = 40'000}));
    const std::string server = std::to_string(control.servers().value().front());
    const auto ask = [&](const std::string& question) {
        return program::run({settings_.program}, control.environment(), question + "\n", std::chrono::seconds{60})
            ->output;
    };
    EXPECT_EQ(ask("get_active_thread_percentage " + server), "50.0\n");
    EXPECT_EQ(ask("get_device_pinned_mem_limit " + server + " 0"), "39G\n");
}

// Stopped as by a debugger: it is there, holds its pipes, and says nothing.
TEST_F(Mps, a_daemon_that_does_not_answer_is_ended_all_the_same) {
    Control control = started();
    ASSERT_TRUE(control.serve(0));
    const pid_t daemon = control.daemon(), server = control.servers().value().front();
    ASSERT_EQ(::kill(daemon, SIGSTOP), 0);
    settings_.patience = std::chrono::milliseconds{2000};
    auto hung = Control::adopt(settings_);
    ASSERT_TRUE(hung) << "it is not called absent";
    EXPECT_FALSE(hung->answers());
    settings_.patience = std::chrono::seconds{30};  // for the signal
    const auto stopped = Control::adopt(settings_)->stop();
    EXPECT_TRUE(stopped) << stopped.error().what;
    for (const pid_t process : {daemon, server}) {
        std::ifstream file{"/proc/" + std::to_string(process) + "/stat"};
        const std::string stat{std::istreambuf_iterator<char>{file}, {}};
        EXPECT_TRUE(stat.empty() || stat.contains(") Z ")) << stat;
    }
}

TEST_F(Mps, a_number_that_is_somebody_elses_by_now_is_no_daemon) {
    fs::create_directories(settings_.folder + "/pipe");
    std::ofstream{settings_.folder + "/pipe/nvidia-cuda-mps-control.pid"} << ::getpid();
    EXPECT_FALSE(Control::adopt(settings_));
}

TEST_F(Mps, a_program_that_is_not_there_says_so) {
    settings_.program = "/nowhere/nvidia-cuda-mps-control";
    const auto control = Control::start(settings_);
    ASSERT_FALSE(control);
    EXPECT_NE(control.error().what.find("cannot be started"), std::string::npos) << control.error().what;
}

TEST(MpsClients, the_most_at_once_depends_on_generation_and_driver) {
    EXPECT_EQ(clients_max(6, 13000), 16u);
    EXPECT_EQ(clients_max(9, 13000), 48u);
    EXPECT_EQ(clients_max(9, 13010), 60u);
}

}  // namespace
}  // namespace bulkhead::mps
