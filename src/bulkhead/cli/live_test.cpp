// `bulkhead up` as a person meets it: processes, sockets, files; and what happens when one of them dies.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "bulkhead/base/result.hpp"
#include "bulkhead/cli/said_test.hpp"

namespace bulkhead::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::HasSubstr;

bool within(std::chrono::milliseconds limit, const std::function<bool()>& holds) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < until) {
        if (holds()) return true;
        std::this_thread::sleep_for(50ms);
    }
    return holds();
}

class Fleet {
public:
    Fleet() {
        std::string pattern = fs::temp_directory_path() / "bulkhead-live-XXXXXX";
        invariant(mkdtemp(pattern.data()) != nullptr, "a scratch folder can be made");
        folder_ = pattern;
        ::setenv("BULKHEAD_CONTEXT", (folder_ / "context").c_str(), 1);
    }
    ~Fleet() {
        stop(SIGKILL);
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
        ::unsetenv("BULKHEAD_CONTEXT");
    }
    Fleet(const Fleet&) = delete;
    Fleet& operator=(const Fleet&) = delete;

    void start() {
        fs::remove(folder_ / "up.out");
        up_ = spawn({"up", "--nodes", "2", "--gpus", "2", "--data", data().string(), "--port", "0", "--agent-port", "0",
                     "--time", "5"},
                    folder_ / "up.out");
        ASSERT_TRUE(within(40s, [&] { return slurp(folder_ / "up.out").find("Ctrl-C") != std::string::npos; }))
            << slurp(folder_ / "up.out") << slurp(data() / "server.log");
    }
    int stop(int signal) {
        if (up_ <= 0) return -1;
        ::kill(up_, signal);
        int status = 0;
        ::waitpid(up_, &status, 0);
        up_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    fs::path data() const { return folder_ / "data"; }

    struct Said {
        int status = 0;
        std::string out;
    };
    Said say(const std::vector<std::string>& words) const {
        const pid_t child = spawn(words, folder_ / "said");
        int status = 0;
        ::waitpid(child, &status, 0);
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(folder_ / "said")};
    }
    // Processes of this fleet, by their command lines.
    std::vector<pid_t> processes(const std::string& command) const {
        std::vector<pid_t> out;
        std::error_code ignored;
        for (const auto& entry : fs::directory_iterator{"/proc", ignored}) {
            const std::string line = slurp(entry.path() / "cmdline");
            if (line.find('\0' + command + '\0') != std::string::npos &&
                line.find(data().string()) != std::string::npos)
                out.push_back(std::stoi(entry.path().filename().string()));
        }
        return out;
    }
    fs::path folder() const { return folder_; }

private:
    static pid_t spawn(const std::vector<std::string>& words, const fs::path& output) {
        std::vector<std::string> all{BULKHEAD_PROGRAM};
        all.insert(all.end(), words.begin(), words.end());
        std::vector<char*> argv;
        for (std::string& word : all) argv.push_back(word.data());
        argv.push_back(nullptr);
        const pid_t child = ::fork();
        if (child != 0) return child;
        const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::dup2(file, STDOUT_FILENO);
        ::dup2(file, STDERR_FILENO);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    fs::path folder_;
    pid_t up_ = -1;
};

std::string word_after(const std::string& text, const std::string& mark) {
    const std::size_t at = text.find(mark);
    if (at == std::string::npos) return {};
    const std::size_t begin = text.find_first_not_of(' ', at + mark.size());
    return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

// A port that somebody listens on.
class TakenPort {
public:
    TakenPort() {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        invariant(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                      ::listen(socket_, 1) == 0 &&
                      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0,
                  "a port can be had");
        number_ = std::to_string(ntohs(address.sin_port));
    }
    ~TakenPort() { ::close(socket_); }
    TakenPort(const TakenPort&) = delete;
    TakenPort& operator=(const TakenPort&) = delete;
    const std::string& number() const { return number_; }

private:
    int socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    std::string number_;
};

TEST(Live, says_why_it_does_not_come_up_and_leaves_a_directory_as_it_was) {
    const Fleet fleet;
    const TakenPort taken;
    fs::create_directories(fleet.data());
    fs::permissions(fleet.data(), fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec);
    const auto said = fleet.say({"up", "--nodes", "1", "--data", fleet.data().string(), "--port", taken.number(),
                                 "--agent-port", "0", "--no-context"});
    EXPECT_NE(said.status, 0);
    EXPECT_THAT(said.out, HasSubstr("server has ended: cannot listen on 127.0.0.1:" + taken.number()));
    EXPECT_EQ(fs::status(fleet.data()).permissions(),
              fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec)
        << "whose directory it is, is not ours to say";
    const auto agents = fleet.say({"up", "--nodes", "1", "--data", (fleet.folder() / "new").string(), "--port", "0",
                                   "--agent-port", taken.number(), "--no-context"});
    EXPECT_THAT(agents.out, HasSubstr("server has ended: "));
    EXPECT_THAT(agents.out, HasSubstr(taken.number()));
    EXPECT_EQ(fs::status(fleet.folder() / "new").permissions(), fs::perms::owner_all) << "one of ours";
}

TEST(Live, an_agent_whose_files_are_not_good_says_so_instead_of_enrolling) {
    const Fleet fleet;
    const std::string folder = (fleet.folder() / "agent").string();
    fs::create_directories(folder);
    fs::permissions(folder, fs::perms::owner_all);
    EXPECT_THAT(fleet.say({"agent", "--data", folder}).out, HasSubstr("this machine is no node yet"));
    std::ofstream{folder + "/node.json"} << R"({"name":"n","agents":"127.0.0.1:1"})";
    const auto readable = fleet.say({"agent", "--data", folder});
    EXPECT_EQ(readable.status, 4);
    EXPECT_THAT(readable.out, HasSubstr("others may use " + folder + "/node.json"));
    fs::permissions(folder + "/node.json", fs::perms::owner_read | fs::perms::owner_write);
    const auto lost = fleet.say({"agent", "--data", folder});
    EXPECT_NE(lost.status, 0);
    EXPECT_THAT(lost.out, HasSubstr("tls.key"));
    EXPECT_THAT(lost.out, testing::Not(HasSubstr("no node yet")));
}

TEST(Live, a_fleet_comes_up_serves_work_proves_its_wiping_and_survives) {
    Fleet fleet;
    ASSERT_NO_FATAL_FAILURE(fleet.start());
    EXPECT_THAT(fleet.say({"fleet"}).out, HasSubstr("node-02  local  ready"));

    const std::string steps = (fleet.data() / "first-steps.yaml").string();
    ASSERT_TRUE(within(20s, [&] { return fleet.say({"fleet"}).out.find("32 available") != std::string::npos; }))
        << fleet.say({"fleet"}).out;
    const auto applied = fleet.say({"apply", "-f", steps});
    ASSERT_EQ(applied.status, 0) << applied.out;
    ASSERT_TRUE(within(20s, [&] {
        const std::string out = fleet.say({"get", "workload", "fraud-scoring"}).out;
        return out.find("running") != std::string::npos;
    })) << fleet.say({"explain", "fraud-scoring"}).out;
    EXPECT_THAT(fleet.say({"fleet"}).out, HasSubstr("harbor-bank/fraud-scoring 3g.40gb"));
    EXPECT_THAT(fleet.say({"explain", "fraud-scoring"}).out, HasSubstr("tier        vm"));
    const std::string lease = word_after(fleet.say({"get", "workload", "fraud-scoring", "-o", "yaml"}).out, "lease:");
    ASSERT_FALSE(lease.empty());

    // The agent dies without a word; another takes up its journal, and the tenant's lease goes on.
    const auto agents = fleet.processes("agent");
    ASSERT_EQ(agents.size(), 2u);
    for (const pid_t agent : agents) ::kill(agent, SIGKILL);
    ASSERT_TRUE(within(20s, [&] {
        const auto now = fleet.processes("agent");
        return now.size() == 2 && now != agents;
    }));
    ASSERT_TRUE(within(20s, [&] {
        const std::string out = fleet.say({"get", "nodes"}).out;
        return out.find("node-01  local  ready") != std::string::npos &&
               out.find("node-02  local  ready") != std::string::npos;
    })) << fleet.say({"get", "nodes"}).out;
    EXPECT_THAT(fleet.say({"get", "workload", "fraud-scoring"}).out, HasSubstr(lease)) << "still the same lease";

    ASSERT_EQ(fleet.say({"delete", "workload", "fraud-scoring"}).status, 0);
    const std::string certificate = (fleet.folder() / "wiped.json").string();
    ASSERT_TRUE(within(20s, [&] {
        return fleet.say({"certificate", "--lease", lease, "-o", certificate}).status == 0;
    })) << fleet.say({"certificate", "--lease", lease}).out;
    const std::string key = word_after(slurp(fleet.data() / "server.log"), "log key");
    const auto verified = fleet.say({"verify", certificate, "--key", key, "--tenant", "harbor-bank"});
    EXPECT_EQ(verified.status, 0) << verified.out;
    EXPECT_THAT(verified.out, HasSubstr("PROVEN"));
    EXPECT_EQ(fleet.say({"verify", certificate, "--key", key, "--tenant", "aurora"}).status, 3);

    EXPECT_EQ(fleet.stop(SIGINT), 0);
    EXPECT_TRUE(within(5s, [&] { return fleet.processes("agent").empty() && fleet.processes("serve").empty(); }))
        << "Ctrl-C stops all of it";
    EXPECT_THAT(fleet.say({"audit", "verify", "--tiles", (fleet.data() / "tiles").string(), "--key", key}).out,
                HasSubstr("VERIFIED"));

    ASSERT_NO_FATAL_FAILURE(fleet.start());
    EXPECT_THAT(fleet.say({"get", "workload", "pretrain"}).out, HasSubstr("aurora")) << "and what it knew, it knows";
    EXPECT_EQ(fleet.stop(SIGTERM), 0);
}

}  // namespace
}  // namespace bulkhead::cli
