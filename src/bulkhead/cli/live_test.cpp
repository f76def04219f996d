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
#include "bulkhead/cli/live_fleet_test.hpp"

namespace bulkhead::cli {
namespace {

using testing::HasSubstr;

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
    EXPECT_THAT(fleet.say({"explain", "fraud-scoring"}).out, HasSubstr("tier        container"));
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
    const auto verified = fleet.say({"verify", certificate, "--key", key, "--tenant", "harbor-bank", "--accept-lab"});
    EXPECT_EQ(verified.status, 0) << verified.out;
    EXPECT_THAT(verified.out, HasSubstr("PROVEN IN A LAB"));
    const auto by_default = fleet.say({"verify", certificate, "--key", key});
    EXPECT_EQ(by_default.status, 5) << by_default.out;
    EXPECT_THAT(by_default.out, HasSubstr("LAB ONLY, NOT HARDWARE"));
    EXPECT_EQ(fleet.say({"verify", certificate, "--key", key, "--tenant", "aurora"}).status, 3);

    // The lease has ended: what it cost, as a table and as FOCUS rows that a script of its own adds up.
    const std::vector<std::string> days{"usage",      "--from",   "2026-01-01", "--to",
                                        "2036-01-01", "--tenant", "harbor-bank"};
    const auto bill = [&](const std::string& format) {
        std::vector<std::string> words = days;
        words.insert(words.end(), {"-o", format});
        return fleet.say(words).out;
    };
    EXPECT_THAT(bill("table"), HasSubstr("harbor-bank slo-serving mig"));
    EXPECT_THAT(bill("table"), testing::Not(HasSubstr("aurora")));
    const std::string total = word_after(bill("table"), "\ntotal");
    ASSERT_FALSE(total.empty()) << bill("table");
    std::ofstream{fleet.folder() / "focus.csv", std::ios::binary} << bill("focus");
    if (std::system("python3 -c '' 2>/dev/null") == 0) {
        EXPECT_EQ(std::system(("python3 " BULKHEAD_SOURCE_DIR "/scripts/check-focus.py " +
                               (fleet.folder() / "focus.csv").string() + " --total=" + total)
                                  .c_str()),
                  0)
            << bill("focus");
    }
    const auto corrected = fleet.say({"correct", lease, "--id", "ticket-1", "--amount", "-0.01", "--why", "a favour"});
    EXPECT_EQ(corrected.status, 0) << corrected.out;
    EXPECT_THAT(fleet.say({"correct", lease, "--id", "ticket-1", "--amount", "-0.01", "--why", "a favour"}).out,
                HasSubstr("unchanged"));
    EXPECT_EQ(fleet.say({"correct", lease, "--id", "ticket-1", "--amount", "-5", "--why", "a favour"}).status, 3);
    EXPECT_THAT(bill("csv"), HasSubstr(",-0.01,"));

    // The switch: first what it would change, then it, and only for leases to come.
    const auto preview = fleet.say({"tenant", "compliance", "on", "aurora", "--dedicated"});
    EXPECT_EQ(preview.status, 0) << preview.out;
    EXPECT_THAT(preview.out, HasSubstr("nothing was changed yet"));
    EXPECT_THAT(preview.out, HasSubstr("not covered"));
    EXPECT_THAT(fleet.say({"get", "tenants", "-o", "wide"}).out, testing::Not(HasSubstr("dedicated")));
    EXPECT_EQ(fleet.say({"tenant", "compliance", "on", "aurora"}).status, 2) << "which of the two?";
    const auto on =
        fleet.say({"tenant", "compliance", "on", "aurora", "--dedicated", "--yes", "--why", "an audit is due"});
    EXPECT_EQ(on.status, 0) << on.out;
    EXPECT_THAT(fleet.say({"get", "tenants", "-o", "wide"}).out, HasSubstr("dedicated"));

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
