// What a connected agent costs the control plane: memory, CPU for its handshake and for each heartbeat; and how long it
// takes until all are back after they were all thrown out. The server runs in a process of its own, so that only it is
// measured; the agents are real links, one TLS connection each.
#include <benchmark/benchmark.h>
#include <grpc/support/log.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bulkhead/agent/fleet_test.hpp"
#include "bulkhead/agent/link.hpp"
#include "bulkhead/wire/agent_server.hpp"
#include "bulkhead/wire/tls_memory.hpp"

namespace bulkhead::agent {
namespace {

using namespace std::chrono_literals;

// Before main, and so before anything uses OpenSSL; as the program itself does it.
const bool apart = wire::keep_tls_buffers_apart();

constexpr Duration heartbeat_every{10'000};

struct Sample {
    std::int64_t memory_bytes = 0;
    std::int64_t cpu_ns = 0;
    std::int64_t sessions = 0;
    std::int64_t heartbeats = 0;
    std::int64_t port = 0;
};

class Counting final : public wire::AgentServer::Handler {
public:
    Result<wire::AgentServer::Peer> admit(std::string_view certificate) override {
        server.wait(nullptr);
        auto peer = auth::read_peer(certificate);
        if (!peer) return std::unexpected(peer.error());
        return wire::AgentServer::Peer{std::move(peer->node), std::move(peer->fingerprint)};
    }
    void on_hello(const wire::AgentServer::Peer&, std::uint64_t session, Hello&&) override {
        last_session = session;
        server.load()->welcome(session, 1, heartbeat_every);
    }
    void on_report(const std::string&, std::uint64_t, Report&&) override {}
    void on_heartbeat(const std::string&, std::uint64_t, wire::Heartbeat&&) override { ++heartbeats; }
    void on_renewal(const std::string&, std::uint64_t, std::string&&) override {}
    void on_output(const std::string&, std::uint64_t, wire::Output&&) override {}
    void on_gone(const std::string&, std::uint64_t, std::string_view) override {}
    std::atomic<wire::AgentServer*> server = nullptr;
    std::atomic<std::int64_t> heartbeats = 0;
    std::atomic<std::uint64_t> last_session = 0;
};

std::int64_t anonymous_memory_bytes() {
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("RssAnon:")) return std::strtoll(line.c_str() + 8, nullptr, 10) * 1024;
    return 0;
}

std::int64_t cpu_ns() {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

// Answers every byte with a sample, until the other end closes; after an 'x' it has thrown everybody out.
[[noreturn]] void serve(int line) {
    gpr_set_log_function([](gpr_log_func_args*) {});
    if (!apart) ::_exit(2);
    Counting handler;
    auto server = wire::AgentServer::start({.address = "127.0.0.1:0",
                                            .ca = fleet().ca.certificate,
                                            .certificate = fleet().server.certificate,
                                            .key = fleet().server.key},
                                           handler);
    if (!server) ::_exit(1);
    handler.server = server->get();
    handler.server.notify_all();
    for (char asked = 0; ::read(line, &asked, 1) == 1;) {
        if (asked == 'x')
            for (std::uint64_t session = 1; session < handler.last_session + 1; ++session)
                (*server)->close(session, "as after a restart");
        const Sample sample{anonymous_memory_bytes(), cpu_ns(), static_cast<std::int64_t>((*server)->sessions()),
                            handler.heartbeats, (*server)->port()};
        if (::write(line, &sample, sizeof sample) != sizeof sample) break;
    }
    ::_exit(0);
}

struct ServerProcess {
    ServerProcess() {
        (void)fleet();  // both processes know the same CA
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
        process = ::fork();  // before this process has touched gRPC
        if (process == 0) {
            ::close(ends[0]);
            serve(ends[1]);
        }
        ::close(ends[1]);
        line = ends[0];
    }
    ~ServerProcess() {
        ::close(line);
        ::waitpid(process, nullptr, 0);
    }
    Sample sample(char ask = '?') const {
        Sample taken;
        if (::write(line, &ask, 1) != 1 || ::recv(line, &taken, sizeof taken, MSG_WAITALL) != sizeof taken)
            std::abort();
        return taken;
    }
    pid_t process = 0;
    int line = -1;
};

// Thousands of agents take minutes; whoever waits sees how far they are.
void say(std::string_view what, const Sample& sample) {
    static auto next = std::chrono::steady_clock::now();
    if (std::chrono::steady_clock::now() < next) return;
    next += 10s;
    std::fprintf(stderr, "%.*s: %ld sessions, %.0f MB\n", static_cast<int>(what.size()), what.data(),
                 static_cast<long>(sample.sessions), static_cast<double>(sample.memory_bytes) / 1e6);
}

// A share of the agents, on a thread of its own for as long as the benchmark lasts. In a fleet each has a machine.
void live(const std::stop_token& stop, std::size_t first, std::size_t count, std::int64_t port) {
    std::vector<std::unique_ptr<Link>> links;
    while (!stop.stop_requested()) {
        for (std::size_t i = 0; i < 10 && links.size() < count; ++i) {
            const auth::KeyPair node = fleet().node("node-" + std::to_string(first + links.size()));
            links.push_back(std::move(*Link::open({.address = "127.0.0.1:" + std::to_string(port),
                                                   .ca = fleet().ca.certificate,
                                                   .certificate = node.certificate,
                                                   .key = node.key})));
        }
        for (auto& link : links)
            for (const Link::Event& event : link->wait(0ms))
                if (std::holds_alternative<Link::Connected>(event)) (void)link->hello({});
        std::this_thread::sleep_for(1ms);
    }
}

void connected_agents(benchmark::State& state) {
    const auto count = static_cast<std::size_t>(state.range(0));
    for ([[maybe_unused]] auto _ : state) {
        const ServerProcess server;
        const Sample before = server.sample();
        const std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
        std::vector<std::jthread> agents;
        for (std::size_t i = 0; i < threads; ++i)
            agents.emplace_back(live, count * i / threads, count * (i + 1) / threads - count * i / threads,
                                before.port);
        const auto wait_for_all = [&](std::string_view what) {
            Sample now = server.sample();
            for (; std::cmp_less(now.sessions, count); now = server.sample()) {
                say(what, now);
                std::this_thread::sleep_for(10ms);
            }
            return now;
        };
        const Sample connected = wait_for_all("connecting");
        const Sample begin = server.sample();
        std::this_thread::sleep_for(20s);
        const Sample end = server.sample();
        (void)server.sample('x');
        const auto thrown_out = std::chrono::steady_clock::now();
        while (server.sample().sessions != 0 && std::chrono::steady_clock::now() < thrown_out + 1s)
            std::this_thread::sleep_for(1ms);
        (void)wait_for_all("coming back");
        const std::chrono::duration<double> back = std::chrono::steady_clock::now() - thrown_out;
        const auto per_agent = [&](std::int64_t total) {
            return static_cast<double>(total) / static_cast<double>(count);
        };
        state.counters["bytes_per_agent"] = per_agent(end.memory_bytes - before.memory_bytes);
        state.counters["handshake_cpu_us"] = per_agent(connected.cpu_ns - before.cpu_ns) / 1e3;
        state.counters["all_back_s"] = back.count();
        state.counters["heartbeats"] = static_cast<double>(end.heartbeats - begin.heartbeats);
        state.counters["heartbeat_cpu_us"] = static_cast<double>(end.cpu_ns - begin.cpu_ns) / 1e3 /
                                             static_cast<double>(end.heartbeats - begin.heartbeats);
    }
}
// One size per run of the program, for a process that has used gRPC must not fork; BULKHEAD_BENCH_AGENTS sets another.
std::int64_t agents_wanted() {
    const char* wanted = std::getenv("BULKHEAD_BENCH_AGENTS");
    return wanted != nullptr ? std::max(1LL, std::atoll(wanted)) : 1'000;
}
BENCHMARK(connected_agents)->Arg(agents_wanted())->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace bulkhead::agent
