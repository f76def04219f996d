// An agent on simulated GPUs as an operator starts it, looked at from outside: what faces the network has no rights,
// what has rights faces no network, and either may be killed.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <thread>

#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/cli/host_places_test.hpp"
#include "bulkhead/cli/said_test.hpp"
#include "bulkhead/hw/container/tenants.hpp"
#include "bulkhead/hw/program/program.hpp"

namespace bulkhead::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// One that ends is waited for here, so that it is known how.
class Started {
public:
    Started(std::vector<std::string> words, const fs::path& output) : output_{output} {
        words.insert(words.begin(), BULKHEAD_PROGRAM);
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ != 0) return;
        const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::dup2(file, STDOUT_FILENO);
        ::dup2(file, STDERR_FILENO);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    ~Started() { (void)end(SIGKILL); }
    Started(const Started&) = delete;
    Started& operator=(const Started&) = delete;

    pid_t pid() const { return pid_; }
    std::string said() const { return slurp(output_); }
    bool has_ended() {
        if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = 0;
        return pid_ == 0;
    }
    int status() const { return status_; }
    int end(int signal) {
        if (pid_ > 0) {
            ::kill(pid_, signal);
            ::waitpid(pid_, &status_, 0);
            pid_ = 0;
        }
        return status_;
    }

private:
    fs::path output_;
    pid_t pid_ = 0;
    int status_ = 0;
};

bool in_time(const std::function<bool()>& holds) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{90};
    while (std::chrono::steady_clock::now() < until) {
        if (holds()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    return holds();
}

std::string field_of(pid_t process, const std::string& name) {
    std::istringstream status{slurp(fmt::format("/proc/{}/status", process))};
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(name + ":")) {
            const std::size_t at = line.find_first_not_of(" \t", name.size() + 1);
            return at == std::string::npos ? "" : line.substr(at);
        }
    return "";
}

// One whose parent is gone too may wait for somebody to notice that it has ended.
bool is_gone(pid_t process) {
    const std::string state = field_of(process, "State");
    return state.empty() || state.starts_with('Z');
}

class AgentWithHands : public testing::Test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "tenants run as other users";
        std::string pattern = fs::temp_directory_path() / "bulkhead-hands-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
        ::setenv("BULKHEAD_SIM_NODE", (folder_ / "gpus").c_str(), 1);
        const auto made = program::run({fs::path{BULKHEAD_PROGRAM}.parent_path() / "bulkhead-gpusim", "new",
                                        folder_ / "gpus", "--gpus", "1 x h200-141gb"},
                                       {}, "", std::chrono::seconds{30});
        ASSERT_TRUE(made && made->status == 0);
        server_.emplace(std::vector<std::string>{"serve", "--data", folder_ / "server", "--port", "0", "--agent-port",
                                                 "0", "--simulated-fleet"},
                        folder_ / "server.out");
        ASSERT_TRUE(in_time([&] { return server_->said().find("log key") != std::string::npos; })) << server_->said();
        const std::string address = slurp(folder_ / "server/address");
        url_ = address.substr(0, address.find('\n'));
        ASSERT_EQ(ask("apply", {"-f", examples + "gpu-node/fleet.yaml"}).status, 0);
        const Said token = ask("token", {"node", "gpu-1"});
        std::ofstream{folder_ / "token"} << token.out.substr(0, token.out.find('\n')) << '\n';
        fs::permissions(folder_ / "token", fs::perms::owner_read | fs::perms::owner_write);
    }
    void TearDown() override {
        if (folder_.empty()) return;
        const pid_t root = agent_ && agent_->pid() > 0 ? hands() : 0;
        agent_.reset();
        server_.reset();
        EXPECT_TRUE(root == 0 || in_time([&] { return is_gone(root); })) << "hands stay behind";
        ::unsetenv("BULKHEAD_SIM_NODE");
        std::error_code ignored;
        clear(places());
        fs::remove_all(folder_, ignored);
    }

    Said ask(const char* command, std::vector<std::string> words, const std::string& token = {}) const {
        words.insert(words.end(), {"--server", url_, "--token-file",
                                   token.empty() ? std::string{folder_ / "server/keys/admin.token"} : token, "--ca",
                                   folder_ / "server/keys/ca.crt"});
        std::vector<const char*> raw;
        for (const std::string& word : words) raw.push_back(word.c_str());
        return said_by(command, raw);
    }
    void launch_agent() {
        agent_.reset();
        fs::remove(folder_ / "agent.out");
        agent_.emplace(
            std::vector<std::string>{"agent", "--data", folder_ / "node", "--name", "gpu-1", "--server", url_, "--ca",
                                     folder_ / "server/keys/ca.crt", "--token-file", folder_ / "token", "--hardware",
                                     "gpu", "--nvml", BULKHEAD_SIM_LIBRARIES "/libnvidia-ml.so.1", "--cuda",
                                     BULKHEAD_SIM_LIBRARIES "/libcuda.so.1"},
            folder_ / "agent.out");
    }
    void start_agent() {
        launch_agent();
        ASSERT_TRUE(
            in_time([&] { return agent_->said().find("welcome") != std::string::npos || agent_->has_ended(); }));
        ASSERT_FALSE(agent_->has_ended()) << agent_->said();
    }
    pid_t hands() const {
        std::istringstream children{slurp(fmt::format("/proc/{0}/task/{0}/children", agent_->pid()))};
        pid_t child = 0;
        children >> child;
        return child;
    }
    agent::HostPlaces places() const { return agent::host_places(folder_ / "node"); }
    bool is_wiped_after(const std::string& tenant) const {
        std::istringstream log{ask("audit", {"list"}).out};
        for (std::string line; std::getline(log, line);)
            if (line.find(" wiped ") != std::string::npos && line.find(tenant) != std::string::npos) return true;
        return false;
    }
    std::string output_of_tenants() const {
        std::string all;
        std::error_code none;
        for (const auto& entry : fs::recursive_directory_iterator{places().run_folder + "/tenants", none})
            if (entry.path().filename().string().starts_with("stdout")) all += slurp(entry.path());
        return all;
    }

    fs::path folder_;
    std::string url_;
    std::optional<Started> server_, agent_;
};

TEST_F(AgentWithHands, what_faces_the_network_has_no_rights_and_what_has_rights_no_network) {
    start_agent();
    const pid_t line = agent_->pid(), root = hands();
    ASSERT_GT(root, 0);
    std::istringstream ids{field_of(line, "Uid")};
    for (int i = 0; i < 4; ++i) {
        int id = 0;
        ids >> id;
        EXPECT_GT(id, 0) << "real, effective, saved, file system";
    }
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
        EXPECT_EQ(field_of(line, set), "0000000000000000") << set;
    EXPECT_EQ(field_of(line, "Groups"), "");
    EXPECT_EQ(field_of(line, "NoNewPrivs"), "1");
    EXPECT_EQ(field_of(line, "Seccomp"), "2");
    EXPECT_TRUE(field_of(root, "Uid").starts_with("0\t"));
    EXPECT_THAT(slurp(fmt::format("/proc/{}/cmdline", root)), HasSubstr("agent-hands"));

    // Every socket of the hands is a local one.
    std::string local;
    for (const std::string& where : {std::string{"self"}, std::to_string(root)})
        local += slurp(fmt::format("/proc/{}/net/unix", where));
    int sockets = 0;
    for (const auto& entry : fs::directory_iterator{fmt::format("/proc/{}/fd", root)}) {
        std::error_code gone;
        const std::string target = fs::read_symlink(entry.path(), gone);
        if (!target.starts_with("socket:[")) continue;
        ++sockets;
        EXPECT_THAT(local, HasSubstr(" " + target.substr(8, target.size() - 9))) << target;
    }
    EXPECT_GE(sockets, 1) << "the line itself";
    const bool apart = fs::read_symlink(fmt::format("/proc/{}/ns/net", root)) != fs::read_symlink("/proc/self/ns/net");
    EXPECT_EQ(apart, agent_->said().find("without a network") != std::string::npos) << agent_->said();
}

TEST_F(AgentWithHands, files_belong_to_the_half_that_uses_them) {
    start_agent();
    const auto owner = [&](const std::string& name) {
        struct stat facts{};
        EXPECT_EQ(::stat((folder_ / "node" / name).c_str(), &facts), 0) << name;
        return facts.st_uid;
    };
    for (const char* name : {"", "gpus", "hands.lock"}) EXPECT_EQ(owner(name), 0u) << name;
    for (const char* name : {"line", "line/journal", "line/evidence.key", "line/node.json"})
        EXPECT_NE(owner(name), 0u) << name;
}

TEST_F(AgentWithHands, hands_end_with_the_agent_however_it_ends_and_not_before) {
    start_agent();
    pid_t root = hands();
    EXPECT_EQ(::getsid(root), root) << "an interrupt from the keyboard does not reach them";
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::kill(root, signal);
    EXPECT_EQ(agent_->end(SIGTERM), 0) << agent_->said();
    EXPECT_TRUE(is_gone(root)) << "the agent waits for them";
    start_agent();
    root = hands();
    agent_->end(SIGKILL);
    EXPECT_TRUE(in_time([&] { return is_gone(root); })) << "nobody is at the other end of the line";
}

TEST_F(AgentWithHands, an_agent_that_waits_for_the_hands_of_an_earlier_one_can_be_stopped) {
    start_agent();
    ASSERT_EQ(agent_->end(SIGTERM), 0);
    const container::Fd busy{::open((folder_ / "node/hands.lock").c_str(), O_RDWR | O_CLOEXEC)};
    ASSERT_EQ(::flock(*busy, LOCK_EX), 0);
    for (const int signal : {SIGTERM, SIGINT}) {
        launch_agent();
        ASSERT_TRUE(in_time([&] { return agent_->said().find("still at work") != std::string::npos; }))
            << agent_->said();
        const pid_t root = hands();
        ::kill(agent_->pid(), signal);
        ASSERT_TRUE(in_time([&] { return agent_->has_ended(); })) << agent_->said();
        EXPECT_EQ(agent_->status(), 0) << agent_->said();
        EXPECT_TRUE(is_gone(root));
    }
}

TEST_F(AgentWithHands, hands_killed_in_the_middle_of_an_operation_cost_nothing_but_time) {
    start_agent();
    ASSERT_TRUE(in_time([&] { return is_wiped_after("gpu-1"); })) << agent_->said();
    // Whoever says that it was asked to go, and stays, is being stopped: that takes the whole of its grace.
    std::ofstream{folder_ / "stubborn.yaml"}
        << "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: stubborn}\n"
           "spec:\n  tenant: vision\n  gpu: {count: 1}\n  cpu: 1\n  memory: 1Gi\n  command: [/bin/sh, -c, \"trap 'echo "
           "asked' TERM; echo here; "
           "while true; do sleep 0.1; done\"]\n";
    const Said applied = ask("apply", {"-f", folder_ / "stubborn.yaml"});
    ASSERT_EQ(applied.status, 0) << applied.err;
    ASSERT_TRUE(in_time([&] { return output_of_tenants().find("here") != std::string::npos; })) << agent_->said();
    ASSERT_EQ(ask("delete", {"workloads", "stubborn"}).status, 0);
    ASSERT_TRUE(in_time([&] { return output_of_tenants().find("asked") != std::string::npos; })) << agent_->said();
    ::kill(hands(), SIGKILL);

    ASSERT_TRUE(in_time([&] { return agent_->has_ended(); })) << "it cannot work, and says so";
    EXPECT_NE(agent_->status(), 0);
    EXPECT_THAT(agent_->said(), HasSubstr("have ended: killed by signal 9"));
    EXPECT_THAT(agent_->said(), HasSubstr("try: start the agent again"));
    const auto tenants = tenants_in(places());
    ASSERT_TRUE(tenants) << tenants.error().what;
    const auto leases = tenants->leases();
    ASSERT_TRUE(leases && leases->size() == 1);
    EXPECT_EQ(tenants->look(leases->front())->state, container::Look::State::running) << "tenants outlive them";

    start_agent();
    EXPECT_TRUE(in_time([&] { return is_wiped_after("vision"); })) << agent_->said();
    EXPECT_TRUE(tenants->leases()->empty());
}

// The whole way: a tenant's file, its agent, the server, a terminal.
TEST_F(AgentWithHands, what_a_command_prints_is_read_while_it_runs_and_after_it_has_ended) {
    start_agent();
    ASSERT_TRUE(in_time([&] { return is_wiped_after("gpu-1"); })) << agent_->said();
    // What a command prints is read by its tenant's people, and nobody of the operator's.
    const Said key = ask("token", {"create", "--role", "tenant-user", "--tenant", "vision", "--subject", "reader"});
    ASSERT_EQ(key.status, 0) << key.err;
    ASSERT_TRUE(auth::write_secret(folder_ / "reader.token", key.out));
    const auto read = [&](std::vector<std::string> more) {
        more.insert(more.begin(), "talk");
        return ask("logs", std::move(more), folder_ / "reader.token");
    };
    std::ofstream{folder_ / "talk.yaml"}
        << "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: talk}\n"
           "spec:\n  tenant: vision\n  gpu: {count: 1}\n  cpu: 1\n  memory: 1Gi\n  command: [/bin/sh, -c, \"trap 'echo "
           "last; exit 4' TERM; printf 'first\\\\033[2J\\\\n'; echo wrong >&2; while true; do sleep 0.1; done\"]\n";
    const Said applied = ask("apply", {"-f", folder_ / "talk.yaml"});
    ASSERT_EQ(applied.status, 0) << applied.err;
    ASSERT_TRUE(in_time([&] { return !read({}).out.empty() && !read({"--err"}).out.empty(); })) << agent_->said();
    EXPECT_EQ(read({}).out, "first?[2J\n") << "what would clear a reader's screen does not reach it";
    EXPECT_EQ(read({"--raw"}).out, "first\033[2J\n");
    EXPECT_EQ(read({"--err"}).out, "wrong\n");
    const Said beyond = read({"--rank", "1"});
    EXPECT_NE(beyond.status, 0);
    EXPECT_THAT(beyond.err, testing::AllOf(HasSubstr("talk runs on 1 node"), testing::Not(HasSubstr("1 nodes"))));

    const auto tenants = tenants_in(places());
    ASSERT_TRUE(tenants) << tenants.error().what;
    ASSERT_EQ(tenants->leases()->size(), 1u);
    const container::LeaseCgroup group{*container::find_hierarchies(), places().cgroups, tenants->leases()->front()};
    const auto processes = group.processes(container::Room::tenant);
    ASSERT_TRUE(processes) << processes.error().what;
    for (const pid_t process : *processes) ::kill(process, SIGTERM);
    EXPECT_TRUE(in_time([&] { return read({"--raw"}).out == "first\033[2J\nlast\n"; })) << read({}).out;
    ASSERT_TRUE(in_time([&] { return ask("get", {"workloads", "talk", "-o", "json"}).out.contains("exitStatus"); }));
    const Said followed = read({"-f"});
    EXPECT_EQ(followed.status, 0) << followed.err;
    EXPECT_EQ(followed.out, "first?[2J\nlast\n");
    EXPECT_THAT(read({"-f", "--err"}).out, testing::StartsWith("wrong\n"));  // and what a shell says of its end
}

// As the agent of an older version left it: one folder, all of it root's.
TEST_F(AgentWithHands, a_node_of_an_older_agent_goes_on_as_it_was) {
    start_agent();
    ASSERT_EQ(agent_->end(SIGTERM), 0);
    const fs::path node = folder_ / "node";
    for (const auto& entry : fs::directory_iterator{node / "line"}) {
        ASSERT_EQ(::chown(entry.path().c_str(), 0, 0), 0);
        fs::rename(entry.path(), node / entry.path().filename());
    }
    fs::remove(node / "line");
    start_agent();
    EXPECT_TRUE(fs::exists(node / "line/journal"));
    EXPECT_FALSE(fs::exists(node / "journal"));
}

}  // namespace
}  // namespace bulkhead::cli
