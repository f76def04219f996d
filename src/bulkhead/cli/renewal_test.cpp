// Certificates that run out soon, against the whole control plane on loopback: real core, store and TLS, and the
// agent's own parts; then the two programs themselves.
#include "bulkhead/agent/renewal.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "bulkhead/agent/link.hpp"
#include "bulkhead/cli/client.hpp"
#include "bulkhead/cli/said_test.hpp"
#include "bulkhead/shell/server.hpp"

namespace bulkhead::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using agent::Link;
using testing::HasSubstr;

constexpr auto patience = 20s;

Instant clock_now() {
    using namespace std::chrono;
    return {duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

std::string line_of(const fs::path& path) {
    const std::string text = slurp(path);
    return text.substr(0, text.find('\n'));
}

struct Scratch {
    Scratch() {
        std::string pattern = fs::temp_directory_path() / "bulkhead-renewal-XXXXXX";
        invariant(mkdtemp(pattern.data()) != nullptr, "a scratch folder can be made");
        path = pattern;
    }
    ~Scratch() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    fs::path path;
};

const std::string fleet_policy =
    R"({"apiVersion":"bulkhead.dev/v1alpha1","kind":"FleetPolicy","metadata":{"name":"fleet"},
    "spec":{"threatModel":"internal","sites":[{"name":"here","jurisdiction":"eu"}]}})";

std::string enrolment_token(Client& client, const std::string& node) {
    const auto reply = client.post("/v1/tokens/enrolment", R"({"node":")" + node + "\"}");
    EXPECT_TRUE(reply) << reply.error().what;
    const std::string mark = R"("token":")";
    const std::size_t at = reply->body.find(mark);
    return at == std::string::npos
               ? ""
               : reply->body.substr(at + mark.size(), reply->body.find('"', at + mark.size()) - at - mark.size());
}

// A minute, begun five minutes ago for clocks that are behind: a third of that life is left from the start.
constexpr Duration soon_over{60'000};

struct RenewalLive : testing::Test {
    void start(Duration certificates_last = soon_over) {
        shell::ServerOptions options{.data = folder.path / "data", .port = 0, .agent_port = agent_port};
        options.sync = false;
        options.tick = Duration{100};
        options.node_certificate_lasts = certificates_last;
        auto started = shell::Server::start(options, log);
        ASSERT_TRUE(started) << started.error().what;
        server = *std::move(started);
        agent_port = server->agent_port();
        auto opened = Client::open({server->url(), line_of(server->token_file()), slurp(server->ca_file())});
        ASSERT_TRUE(opened) << opened.error().what;
        client.emplace(*std::move(opened));
        ASSERT_TRUE(client->post("/v1/apply", fleet_policy));
    }
    agent::Identity enrol(const std::string& name) {
        auto identity =
            agent::enrol({.server = {.address = server->url(), .ca = slurp(server->ca_file()), .ca_fingerprint = ""},
                          .name = name,
                          .token = enrolment_token(*client, name),
                          .spec = {.site = "here"},
                          .folder = home(name)});
        EXPECT_TRUE(identity) << identity.error().what;
        return identity.value_or(agent::Identity{});
    }
    std::string home(const std::string& name) const { return folder.path / name; }
    std::size_t logged(const std::string& kind) {
        const auto records = client->get("/v1/log/records");
        EXPECT_TRUE(records);
        std::size_t count = 0;
        for (std::size_t at = 0; (at = records->body.find(kind, at)) != std::string::npos; ++at) ++count;
        return count;
    }

    Scratch folder;
    shell::Log log{-1};
    std::uint16_t agent_port = 0;
    std::unique_ptr<shell::Server> server;
    std::optional<Client> client;
};

// A link that says hello, and keeps what it hears until it is asked for.
class Caller {
public:
    explicit Caller(const agent::Identity& identity)
        : link_{*Link::open({.address = identity.agents,
                             .ca = identity.ca,
                             .certificate = identity.certificate,
                             .key = identity.key,
                             .retry_min = {20},
                             .retry_max = {200}})} {}
    Link* operator->() { return link_.get(); }
    template <class E>
    E expect() {
        const auto until = std::chrono::steady_clock::now() + patience;
        while (std::chrono::steady_clock::now() < until) {
            if (told_.empty())
                for (Link::Event& event : link_->wait(50ms)) {
                    if (std::holds_alternative<Link::Connected>(event)) (void)link_->hello({});
                    told_.push_back(std::move(event));
                }
            if (told_.empty()) continue;
            const Link::Event event = std::move(told_.front());
            told_.pop_front();
            if (const E* found = std::get_if<E>(&event)) return *found;
        }
        ADD_FAILURE() << "the link did not say what was expected";
        return {};
    }

private:
    std::unique_ptr<Link> link_;
    std::deque<Link::Event> told_;
};

TEST_F(RenewalLive, a_short_lived_certificate_is_renewed_and_the_old_one_is_refused_after_the_new_was_used) {
    ASSERT_NO_FATAL_FAILURE(start());
    const agent::Identity old = enrol("node-1");
    auto renewal = agent::Renewal::of(old, home("node-1"));
    ASSERT_TRUE(renewal);
    Caller caller{old};
    const auto session = caller.expect<Link::Welcome>().session;
    const auto request = *renewal->request(clock_now());
    ASSERT_TRUE(request) << "a third is left";
    ASSERT_TRUE(caller->renew(*request));
    const auto renewed = renewal->accept(caller.expect<Link::Renewed>().certificate, clock_now());
    ASSERT_TRUE(renewed) << renewed.error().what;
    EXPECT_EQ(logged("certificate-renewed"), 1u);
    EXPECT_EQ(logged("certificate-retired"), 0u);

    caller->set_identity(renewed->certificate, renewed->key);
    caller->reconnect("the certificate was renewed");
    EXPECT_GT(caller.expect<Link::Welcome>().session, session);
    EXPECT_EQ(logged("certificate-retired"), 1u);

    Caller thief{old};
    const auto lost = thief.expect<Link::Lost>();
    EXPECT_EQ(lost.code, Code::denied);
    EXPECT_THAT(lost.why, HasSubstr("not good any more"));
    EXPECT_EQ(agent::load_identity(home("node-1"))->evidence_seed, old.evidence_seed);
}

TEST_F(RenewalLive, a_crash_between_issue_and_first_use_keeps_both_working) {
    ASSERT_NO_FATAL_FAILURE(start());
    const agent::Identity old = enrol("node-1");
    auto renewal = agent::Renewal::of(old, home("node-1"));
    ASSERT_TRUE(renewal);
    std::string certificate;
    {
        Caller caller{old};
        (void)caller.expect<Link::Welcome>();
        ASSERT_TRUE(caller->renew(**renewal->request(clock_now())));
        certificate = caller.expect<Link::Renewed>().certificate;
    }
    // The agent dies before it has kept what it was given; and the control plane starts anew.
    server->stop();
    server.reset();
    ASSERT_NO_FATAL_FAILURE(start());
    {
        const auto kept = agent::load_identity(home("node-1"));
        ASSERT_TRUE(kept);
        EXPECT_EQ(kept->certificate, old.certificate);
        Caller again{*kept};
        (void)again.expect<Link::Welcome>();
    }
    // It dies after it has kept it, and before it has used it.
    ASSERT_TRUE(renewal->accept(certificate, clock_now()));
    const auto kept = agent::load_identity(home("node-1"));
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->certificate, certificate);
    Caller again{*kept};
    (void)again.expect<Link::Welcome>();
    Caller thief{old};
    EXPECT_EQ(thief.expect<Link::Lost>().code, Code::denied);
}

TEST_F(RenewalLive, a_refusal_says_why_and_the_session_goes_on) {
    ASSERT_NO_FATAL_FAILURE(start(Duration::days(90)));
    const agent::Identity identity = enrol("node-1");
    const auto another = enrol("node-2");
    Caller caller{identity};
    (void)caller.expect<Link::Welcome>();
    ASSERT_TRUE(caller->renew(auth::make_request("node-2")->request));
    EXPECT_THAT(caller.expect<Link::NotRenewed>().why, HasSubstr("names \"node-2\""));
    ASSERT_TRUE(caller->renew(auth::make_request("node-1")->request));
    EXPECT_THAT(caller.expect<Link::NotRenewed>().why, HasSubstr("too often: once in 1h")) << "refused ones count too";
    EXPECT_EQ(logged("certificate-renewed"), 0u);
    ASSERT_TRUE(caller->report({1, FaultReport{UnitKind::memory, 0, "still here"}}));
    EXPECT_EQ(caller.expect<Link::Acked>().number, 1);

    Caller beside{another};
    (void)beside.expect<Link::Welcome>();
    ASSERT_TRUE(beside->renew(auth::make_request("node-2")->request)) << "each node for itself";
    const std::string renewed = beside.expect<Link::Renewed>().certificate;
    EXPECT_EQ(auth::verify_peer(identity.ca, renewed, clock_now())->node, "node-2");
}

TEST_F(RenewalLive, a_revoked_node_loses_both_certificates) {
    ASSERT_NO_FATAL_FAILURE(start());
    const agent::Identity old = enrol("node-1");
    auto renewal = agent::Renewal::of(old, home("node-1"));
    ASSERT_TRUE(renewal);
    Caller caller{old};
    (void)caller.expect<Link::Welcome>();
    ASSERT_TRUE(caller->renew(**renewal->request(clock_now())));
    const auto renewed = renewal->accept(caller.expect<Link::Renewed>().certificate, clock_now());
    ASSERT_TRUE(renewed);
    ASSERT_TRUE(client->post("/v1/nodes/node-1/revoke", R"({"why":"stolen"})"));
    (void)caller.expect<Link::Lost>();
    EXPECT_EQ(caller.expect<Link::Lost>().code, Code::denied);
    agent::Identity next = old;
    next.certificate = renewed->certificate;
    next.key = renewed->key;
    Caller again{next};
    EXPECT_EQ(again.expect<Link::Lost>().code, Code::denied);
}

TEST_F(RenewalLive, a_life_that_makes_no_sense_is_refused_at_the_start) {
    for (const Duration lasts : {Duration{0}, Duration{59'999}, Duration::days(3651), Duration{-1}}) {
        shell::ServerOptions options{.data = folder.path / "data", .port = 0, .agent_port = 0};
        options.node_certificate_lasts = lasts;
        const auto started = shell::Server::start(options, log);
        ASSERT_FALSE(started);
        EXPECT_EQ(started.error().code, Code::invalid);
    }
}

// Both programs, as they are started.
class Process {
public:
    Process(std::vector<std::string> words, const fs::path& output) {
        words.insert(words.begin(), BULKHEAD_PROGRAM);
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        child_ = ::fork();
        if (child_ != 0) return;
        const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::dup2(file, STDOUT_FILENO);
        ::dup2(file, STDERR_FILENO);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    ~Process() {
        ::kill(child_, SIGTERM);
        ::waitpid(child_, nullptr, 0);
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

private:
    pid_t child_ = -1;
};

TEST(RenewalOfPrograms, an_agent_renews_by_itself_and_comes_back_with_the_new_certificate) {
    const Scratch folder;
    const fs::path data = folder.path / "data", home = folder.path / "node";
    const auto within = [](const fs::path& file, const std::string& text) {
        const auto until = std::chrono::steady_clock::now() + patience;
        while (std::chrono::steady_clock::now() < until && slurp(file).find(text) == std::string::npos)
            std::this_thread::sleep_for(50ms);
        return slurp(file);
    };
    const Process serve{
        {"serve", "--data", data.string(), "--port", "0", "--agent-port", "0", "--node-certificates-last", "1m"},
        folder.path / "serve.out"};
    ASSERT_THAT(within(folder.path / "serve.out", "log key"), HasSubstr("log key"));
    auto client =
        Client::open({line_of(data / "address"), line_of(data / "keys/admin.token"), slurp(data / "keys/ca.crt")});
    ASSERT_TRUE(client) << client.error().what;
    ASSERT_TRUE(client->post("/v1/apply", fleet_policy));
    const Process node{{"agent", "--data", home.string(), "--server", line_of(data / "address"), "--ca",
                        (data / "keys/ca.crt").string(), "--token", enrolment_token(*client, "node-1"), "--name",
                        "node-1", "--site", "here", "--gpus", "1"},
                       folder.path / "node.out"};
    ASSERT_THAT(within(folder.path / "node.out", "the certificate is renewed"),
                HasSubstr("the certificate is renewed"));
    const auto until = std::chrono::steady_clock::now() + patience;
    std::string records;
    while (std::chrono::steady_clock::now() < until && records.find("certificate-retired") == std::string::npos) {
        std::this_thread::sleep_for(100ms);
        if (const auto reply = client->get("/v1/log/records")) records = reply->body;
    }
    EXPECT_THAT(records, HasSubstr("certificate-retired")) << slurp(folder.path / "node.out");
    EXPECT_TRUE(agent::load_identity(home.string()));
}

}  // namespace
}  // namespace bulkhead::cli
