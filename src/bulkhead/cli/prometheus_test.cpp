// Debian's own Prometheus asks a real server: the format, the rules, the dashboard and the scrape configuration that we
// ship are what it makes of them, not what we think of them.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
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

#include "bulkhead/cli/host_places_test.hpp"
#include "bulkhead/cli/said_test.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/hw/program/program.hpp"

namespace bulkhead::cli {
namespace {

namespace paths = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const std::string shipped_rules = BULKHEAD_SOURCE_DIR "/packaging/prometheus/";
const std::string shipped_dashboard = BULKHEAD_SOURCE_DIR "/packaging/grafana/dashboard.json";

bool has_prometheus() { return paths::exists("/usr/bin/prometheus") && paths::exists("/usr/bin/promtool"); }
#define NEEDS_PROMETHEUS() \
    if (!has_prometheus()) GTEST_SKIP() << "no prometheus here: scripts/setup.sh installs it"

program::Ran promtool(std::vector<std::string> words, const std::string& input = "") {
    words.insert(words.begin(), "/usr/bin/promtool");
    auto ran = program::run(words, {}, input, std::chrono::seconds{120});
    EXPECT_TRUE(ran) << ran.error().what;
    return ran ? *ran : program::Ran{};
}

class InBackground {
public:
    InBackground(std::vector<std::string> words, paths::path output) : output_{std::move(output)} {
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ != 0) return;
        const int file = ::open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::dup2(file, STDOUT_FILENO);
        ::dup2(file, STDERR_FILENO);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    ~InBackground() {
        ::kill(pid_, SIGTERM);
        ::waitpid(pid_, nullptr, 0);
    }
    InBackground(const InBackground&) = delete;
    InBackground& operator=(const InBackground&) = delete;
    std::string said() const { return slurp(output_); }

private:
    paths::path output_;
    pid_t pid_ = 0;
};

bool sooner_or_later(const std::function<bool()>& holds) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{120};
    while (std::chrono::steady_clock::now() < until) {
        if (holds()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds{200});
    }
    return holds();
}

// A port that was free a moment ago.
std::string free_port() {
    const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(probe, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size), 0);
    ::close(probe);
    return std::to_string(ntohs(address.sin_port));
}

// Every "expr" of the dashboard, with something in the place of Grafana's variables.
std::vector<std::string> dashboard_expressions() {
    std::vector<std::string> out;
    const std::string text = slurp(shipped_dashboard);
    constexpr std::string_view mark = "\"expr\": \"";
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
        at += mark.size();
        std::string expression;
        for (; text[at] != '"'; ++at) {
            if (text[at] == '\\') ++at;
            expression += text[at];
        }
        for (const auto& [name, value] :
             {std::pair{"$__rate_interval", "1m"}, std::pair{"$tenant", ".*"}, std::pair{"$node", ".*"}})
            for (std::size_t found = expression.find(name); found != std::string::npos; found = expression.find(name))
                expression.replace(found, std::string_view{name}.size(), value);
        out.push_back(std::move(expression));
    }
    return out;
}

TEST(PrometheusRules, speak_when_they_should_and_not_otherwise) {
    NEEDS_PROMETHEUS();
    const auto checked = promtool({"check", "rules", shipped_rules + "alerts.yaml"});
    EXPECT_EQ(checked.status, 0) << checked.output;
    const auto tested = promtool({"test", "rules", shipped_rules + "alerts_test.yaml"});
    EXPECT_EQ(tested.status, 0) << tested.output;
    // Each rule is named in the tests twice: where it speaks, and where it does not.
    std::istringstream rules{slurp(shipped_rules + "alerts.yaml")};
    const std::string tests = slurp(shipped_rules + "alerts_test.yaml");
    int count = 0;
    for (std::string line; std::getline(rules, line);) {
        const std::size_t at = line.find("- alert: ");
        if (at == std::string::npos) continue;
        ++count;
        const std::string name = line.substr(at + 9);
        EXPECT_THAT(tests, HasSubstr("name: " + name + " speaks"));
        EXPECT_THAT(tests, HasSubstr("name: " + name + " is quiet"));
    }
    EXPECT_GE(count, 15);
}

class Prometheus : public testing::Test {
protected:
    void SetUp() override {
        NEEDS_PROMETHEUS();
        std::string pattern = paths::temp_directory_path() / "bulkhead-prometheus-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
        server_.emplace(std::vector<std::string>{BULKHEAD_PROGRAM, "serve", "--data", folder_ / "server", "--port", "0",
                                                 "--agent-port", "0", "--simulated-fleet"},
                        folder_ / "server.out");
        ASSERT_TRUE(sooner_or_later([&] { return server_->said().find("log key") != std::string::npos; }))
            << server_->said();
        const std::string address = slurp(folder_ / "server/address");
        url_ = address.substr(0, address.find('\n'));
        ASSERT_EQ(ask("apply", {"-f", examples + "gpu-node/fleet.yaml"}).status, 0);
    }
    void TearDown() override {
        agent_.reset();
        prometheus_.reset();
        server_.reset();
        ::unsetenv("BULKHEAD_SIM_NODE");
        if (folder_.empty()) return;
        clear(agent::host_places(folder_ / "node"));
        std::error_code ignored;
        paths::remove_all(folder_, ignored);
    }
    Said ask(const char* command, std::vector<std::string> words) const {
        words.insert(words.end(), {"--server", url_, "--token-file", folder_ / "server/keys/admin.token", "--ca",
                                   folder_ / "server/keys/ca.crt"});
        std::vector<const char*> raw;
        for (const std::string& word : words) raw.push_back(word.c_str());
        return said_by(command, raw);
    }
    std::string fetch(const std::string& path) const {
        std::string token = slurp(folder_ / "server/keys/admin.token");
        token.erase(token.find_last_not_of('\n') + 1);
        const auto ran = program::run({"/usr/bin/curl", "-sS", "--fail", "--cacert", folder_ / "server/keys/ca.crt",
                                       "-H", "Authorization: Bearer " + token, url_ + path},
                                      {}, "", std::chrono::seconds{60});
        EXPECT_TRUE(ran && ran->status == 0) << (ran ? ran->output : ran.error().what);
        return ran ? ran->output : "";
    }
    // An agent on two simulated GPUs.
    void start_agent() {
        ::setenv("BULKHEAD_SIM_NODE", (folder_ / "gpus").c_str(), 1);
        const auto made = program::run({paths::path{BULKHEAD_PROGRAM}.parent_path() / "bulkhead-gpusim", "new",
                                        folder_ / "gpus", "--gpus", "2 x h200-141gb"},
                                       {}, "", std::chrono::seconds{30});
        ASSERT_TRUE(made && made->status == 0);
        const Said token = ask("token", {"node", "gpu-1"});
        std::ofstream{folder_ / "token"} << token.out.substr(0, token.out.find('\n')) << '\n';
        paths::permissions(folder_ / "token", paths::perms::owner_read | paths::perms::owner_write);
        agent_.emplace(std::vector<std::string>{BULKHEAD_PROGRAM, "agent", "--data", folder_ / "node", "--name",
                                                "gpu-1", "--server", url_, "--ca", folder_ / "server/keys/ca.crt",
                                                "--token-file", folder_ / "token", "--hardware", "gpu", "--nvml",
                                                BULKHEAD_SIM_LIBRARIES "/libnvidia-ml.so.1", "--cuda",
                                                BULKHEAD_SIM_LIBRARIES "/libcuda.so.1"},
                       folder_ / "agent.out");
    }
    // Our configuration, with other places in it and a shorter interval.
    void start_prometheus() {
        std::string config = slurp(shipped_rules + "prometheus.yaml");
        const auto put = [&](const std::string& in, const std::string& value) {
            ASSERT_NE(config.find(in), std::string::npos) << in;
            for (std::size_t at = config.find(in); at != std::string::npos; at = config.find(in, at + value.size()))
                config.replace(at, in.size(), value);
        };
        put("/etc/prometheus/bulkhead.token", folder_ / "server/keys/admin.token");
        put("/etc/prometheus/vision.token", folder_ / "server/keys/admin.token");
        put("/etc/prometheus/bulkhead-ca.crt", folder_ / "server/keys/ca.crt");
        put("bulkhead.example:7443", url_.substr(url_.find("//") + 2));
        put("alerts.yaml", shipped_rules + "alerts.yaml");
        put("_interval: 15s", "_interval: 1s");
        std::ofstream{folder_ / "prometheus.yaml"} << config;
        const auto checked = promtool({"check", "config", folder_ / "prometheus.yaml"});
        ASSERT_EQ(checked.status, 0) << checked.output;
        const std::string port = free_port();
        prometheus_url_ = "http://127.0.0.1:" + port;
        prometheus_.emplace(std::vector<std::string>{"/usr/bin/prometheus",
                                                     fmt::format("--config.file={}/prometheus.yaml", folder_.string()),
                                                     fmt::format("--storage.tsdb.path={}/tsdb", folder_.string()),
                                                     "--web.listen-address=127.0.0.1:" + port},
                            folder_ / "prometheus.out");
    }
    program::Ran query(const std::string& expression) const {
        return promtool({"query", "instant", prometheus_url_, expression});
    }
    bool finds(const std::string& expression) const {
        const auto ran = program::run({"/usr/bin/promtool", "query", "instant", prometheus_url_, expression}, {}, "",
                                      std::chrono::seconds{60});
        return ran && ran->status == 0 && ran->output.find(" => ") != std::string::npos;
    }

    paths::path folder_;
    std::string url_, prometheus_url_;
    std::optional<InBackground> server_, agent_, prometheus_;
};

// What promtool has to say of names is said of DCGM's, of series and of labels, which are not ours to choose.
void expect_sound(const std::string& text) {
    const auto checked = promtool({"check", "metrics"}, text);
    EXPECT_TRUE(checked.status == 0 || checked.status == 3) << checked.output;
    std::istringstream lines{checked.output};
    for (std::string line; std::getline(lines, line);)
        if (!line.empty()) {
            EXPECT_THAT(line, testing::AnyOf(testing::StartsWith("DCGM_FI_DEV_"),
                                             testing::StartsWith("bulkhead_gpu_xids_total label names")));
        }
}

TEST_F(Prometheus, scrapes_a_server_whose_node_has_gpus) {
    if (::geteuid() != 0) GTEST_SKIP() << "tenants run as other users";
    start_agent();
    ASSERT_TRUE(sooner_or_later([&] { return fetch("/metrics").find("DCGM_FI_DEV_GPU_UTIL{") != std::string::npos; }))
        << agent_->said();
    std::ofstream{folder_ / "work.yaml"}
        << "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: short}\n"
           "spec:\n  tenant: vision\n  gpu: {count: 1}\n  cpu: 1\n  memory: 1Gi\n  command: [/bin/sleep, \"3\"]\n"
           "---\n"
           "apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: long}\n"
           "spec:\n  tenant: vision\n  gpu: {count: 1}\n  cpu: 1\n  memory: 1Gi\n  command: [/bin/sleep, \"600\"]\n";
    const Said applied = ask("apply", {"-f", folder_ / "work.yaml"});
    ASSERT_EQ(applied.status, 0) << applied.err;
    start_prometheus();

    // Both targets answer, and every family that can be there is.
    for (const char* job : {"bulkhead", "bulkhead-tenant"})
        EXPECT_TRUE(sooner_or_later([&] { return finds(fmt::format("up{{job=\"{}\"}} == 1", job)); }))
            << prometheus_->said();
    for (const char* expression :
         {"DCGM_FI_DEV_GPU_UTIL{Hostname=\"gpu-1\",grade=\"simulated\",modelName=~\"NVIDIA H200.*\"}",
          "DCGM_FI_DEV_FB_USED{job=\"bulkhead\"}",
          "DCGM_FI_DEV_POWER_USAGE{job=\"bulkhead\",device=~\"nvidia[01]\"} > 10", "DCGM_FI_DEV_SM_CLOCK > 0",
          "DCGM_FI_DEV_XID_ERRORS == 0", "bulkhead_node_ready{node=\"gpu-1\"} == 1",
          "bulkhead_wipes_total{unit=\"memory\",result=\"verified\"} > 0", "bulkhead_wipe_seconds_count > 0",
          "bulkhead_tenant_guarantee_gpus{tenant=\"vision\",job=\"bulkhead\"} == 1",
          "bulkhead_certificate_end_timestamp_seconds{certificate=\"server\"} > time()",
          "bulkhead_node_certificate_end_timestamp_seconds{node=\"gpu-1\"} > time()", "bulkhead_log_leaves > 0",
          "bulkhead_telemetry_age_seconds{node=\"gpu-1\",grade=\"simulated\"}",
          // What came of the command that ended well, by the server's own clock.
          "bulkhead_tenant_goodput_gpu_seconds_total{tenant=\"vision\",kind=\"measurement\",job=\"bulkhead\"} > 2",
          // A whole GPU is shown to whoever has it, by lease and not by place.
          "DCGM_FI_DEV_POWER_USAGE{job=\"bulkhead-tenant\",workload=\"long\",Hostname=\"\",UUID=\"\"} > 10"})
        EXPECT_TRUE(sooner_or_later([&] { return finds(expression); })) << expression << '\n' << query("up").output;
    EXPECT_FALSE(finds("{job=\"bulkhead-tenant\",tenant!=\"\",tenant!=\"vision\"}")) << "nobody else's";
    EXPECT_FALSE(finds("{job=\"bulkhead-tenant\",__name__=~\"bulkhead_node.*|bulkhead_log.*|DCGM_FI_DEV_ECC.*\"}"));

    expect_sound(fetch("/metrics"));
    const std::string own = fetch("/v1/tenants/vision/metrics");
    expect_sound(own);
    EXPECT_THAT(own, Not(HasSubstr("gpu-1"))) << "no node is named";

    // The rules were loaded and looked at; the dashboard's expressions are Prometheus's to understand.
    const auto rules = program::run({"/usr/bin/curl", "-sS", "--fail", prometheus_url_ + "/api/v1/rules"}, {}, "",
                                    std::chrono::seconds{60});
    ASSERT_TRUE(rules && rules->status == 0);
    EXPECT_THAT(rules->output, HasSubstr("\"name\":\"BulkheadNodeSilent\""));
    EXPECT_THAT(rules->output, Not(HasSubstr("\"health\":\"err\"")));
    const auto expressions = dashboard_expressions();
    EXPECT_GE(expressions.size(), 30u);
    for (const std::string& expression : expressions) {
        const auto answered = query(expression);
        EXPECT_EQ(answered.status, 0) << expression << '\n' << answered.output;
    }
}

}  // namespace
}  // namespace bulkhead::cli
