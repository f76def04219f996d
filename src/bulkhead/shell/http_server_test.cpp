// The server on loopback, against clients that behave and clients that do not.
#include "bulkhead/shell/http_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "bulkhead/auth/ca.hpp"
#include "bulkhead/shell/fixture_test.hpp"
#include "bulkhead/shell/https_probe_test.hpp"

namespace bulkhead::shell {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Ticks final : public Feed {
public:
    std::optional<std::string> next() override {
        if (told_ == 3) return std::nullopt;
        return "data: " + std::to_string(++told_) + "\n\n";
    }
    void on_ready(std::function<void()>) override {}

private:
    int told_ = 0;
};

class Silence final : public Feed {
public:
    std::optional<std::string> next() override { return ""; }
    void on_ready(std::function<void()>) override {}
};

// Says back what it was asked; /late answers from another thread, /never not at all.
class Echo final : public HttpDoor {
public:
    ~Echo() override {
        for (std::thread& thread : threads_) thread.join();
    }
    std::expected<Admission, Response> admit(const Head& head) override {
        if (head.target.path == "/denied") return std::unexpected(problem(Error{Code::denied, "no", "ask"}));
        const std::string& path = head.target.path;
        return Admission{.caller = {.token_id = head.authorization},
                         .lane = path == "/slow" || path == "/slow-file" || path == "/question" ? Lane::read
                                 : path == "/write"                                             ? Lane::write
                                 : path == "/backup"                                            ? Lane::backup
                                                                                                : Lane::quick,
                         .body_max = 1000};
    }
    void handle(const Admission&, Request request, Respond respond) override {
        const std::string& path = request.head.target.path;
        if (path == "/never") return;
        if (path == "/late") {
            threads_.emplace_back([respond] {
                std::this_thread::sleep_for(50ms);
                respond({.body = "late"});
            });
            return;
        }
        if (path == "/question") {  // answered when the test wants it
            const std::lock_guard lock{mutex};
            questions.push_back(respond);
            return;
        }
        if (path == "/file" || path == "/backup" || path == "/slow-file") {
            if (path != "/file") std::this_thread::sleep_for(400ms);
            return respond({.content_type = "text/plain", .file = std::make_shared<TemporaryFile>(file)});
        }
        if (path == "/ticks") return respond({.content_type = "text/event-stream", .feed = std::make_shared<Ticks>()});
        if (path == "/silence")
            return respond({.content_type = "text/event-stream", .feed = std::make_shared<Silence>()});
        if (path == "/large") return respond({.body = std::string(large, 'x')});
        if (path == "/shared") return respond({.shared = std::make_shared<const std::string>("shared text")});
        respond({.headers = {{"ETag", "\"7\""}}, .body = path + "|" + request.body});
    }
    void note(const Admission*, int status, std::int64_t) override { last_status = status; }

    std::size_t asked() {
        const std::lock_guard lock{mutex};
        return questions.size();
    }
    void answer_all() {
        const std::lock_guard lock{mutex};
        for (const Respond& respond : questions) respond({.body = "so"});
        questions.clear();
    }

    static constexpr std::size_t large = 8 << 20;
    std::atomic<int> last_status{0};
    std::string file;
    std::mutex mutex;
    std::vector<Respond> questions;

private:
    std::vector<std::thread> threads_;
};

const auth::KeyPair& test_ca() {
    static const auth::KeyPair ca = *auth::create_ca("test", {{0}, {4'000'000'000'000}});
    return ca;
}
const auth::KeyPair& test_server() {
    static const auth::KeyPair made =
        *auth::issue_server(test_ca(), {{"localhost"}, {"127.0.0.1"}}, {{0}, {4'000'000'000'000}});
    return made;
}

const std::string token_line = "Authorization: somebody\r\n";

struct Serving {
    explicit Serving(HttpServer::Options options = {}) {
        options.certificate = test_server().certificate;
        options.key = test_server().key;
        auto started = HttpServer::start(options, echo, log);
        EXPECT_TRUE(started) << (started ? "" : started.error().what);
        server = *std::move(started);
    }
    std::uint16_t port() const { return server->port(); }
    Log log{-1};
    Echo echo;
    std::unique_ptr<HttpServer> server;
};

TEST(HttpServer, answers_several_requests_on_one_connection) {
    const Serving serving;
    Probe probe{serving.port(), test_ca().certificate};
    ASSERT_TRUE(probe.connected());
    EXPECT_EQ(probe.ask("GET", "/a")->body, "/a|");
    EXPECT_EQ(probe.ask("POST", "/b", "hello")->body, "/b|hello");
    EXPECT_EQ(probe.ask("PUT", "/slow", "by a worker")->body, "/slow|by a worker");
    EXPECT_EQ(probe.ask("GET", "/late")->body, "late");
    const auto shared = probe.ask("GET", "/shared");
    EXPECT_EQ(shared->body, "shared text");
    EXPECT_EQ(shared->headers.at("cache-control"), "no-store");
    const auto head = probe.ask("HEAD", "/a");
    EXPECT_EQ(head->status, 200);
    EXPECT_EQ(head->headers.at("content-length"), "3");
    EXPECT_EQ(probe.ask("GET", "/again")->body, "/again|") << "HEAD left nothing behind";
}

TEST(HttpServer, takes_requests_that_were_sent_before_the_answer) {
    const Serving serving;
    Probe probe{serving.port()};
    ASSERT_TRUE(probe.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_EQ(probe.hear()->body, "/a|");
    EXPECT_EQ(probe.hear()->body, "/b|");
}

TEST(HttpServer, reads_chunks_and_says_go_on_when_asked) {
    const Serving serving;
    Probe probe{serving.port()};
    ASSERT_TRUE(probe.send(
        "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
    EXPECT_EQ(probe.hear()->body, "/c|abcde");
    ASSERT_TRUE(probe.send("POST /d HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
    EXPECT_EQ(probe.hear()->status, 100);
    ASSERT_TRUE(probe.send("hi"));
    EXPECT_EQ(probe.hear()->body, "/d|hi");
}

TEST(HttpServer, a_refusal_comes_before_the_body_is_read) {
    const Serving serving;
    Probe probe{serving.port()};
    // The body never comes; the answer does.
    ASSERT_TRUE(probe.send("POST /denied HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n"));
    const auto heard = probe.hear();
    ASSERT_TRUE(heard);
    EXPECT_EQ(heard->status, 403);
    EXPECT_EQ(heard->headers.at("content-type"), "application/problem+json");
    EXPECT_TRUE(probe.closed_within(20s)) << "what is not read cannot be told from the next request";
}

TEST(HttpServer, everything_has_an_end) {
    HttpServer::Options options;
    options.header_bytes_max = 2000;
    options.body_bytes_max = 5000;
    const Serving serving{options};
    struct Row {
        std::string_view says;
        std::string bytes;
        int status;
    };
    const Row rows[] = {
        {"a header too large", "GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(4000, 'a') + "\r\n\r\n", 431},
        {"a target too long", "GET /" + std::string(3000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
        {"a body larger than the server reads", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 6000\r\n\r\n", 413},
        {"a body larger than the route reads", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n", 413},
        {"a body of nonsense length", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400},
        {"a body of two lengths", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
        {"a body of absurd length", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
        {"chunks too large",
         "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + std::string(2000, 'a') +
             "\r\n0\r\n\r\n",
         413},
        {"garbage", "\x01\x02\x03\x04 nonsense\r\n\r\n", 400},
        {"a path that climbs", "GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"an unknown method", "BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n", 405},
        {"a blank in the target", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"a header without an end of name", "GET / HTTP/1.1\r\nHost: x\r\nnocolon\r\n\r\n", 400},
    };
    for (const Row& row : rows) {
        Probe probe{serving.port()};
        ASSERT_TRUE(probe.send(row.bytes)) << row.says;
        const auto heard = probe.hear();
        ASSERT_TRUE(heard) << row.says;
        EXPECT_EQ(heard->status, row.status) << row.says << "\n" << heard->body;
    }
    Probe probe{serving.port()};
    EXPECT_EQ(probe.ask("GET", "/alive")->body, "/alive|") << "and it serves on";
}

TEST(HttpServer, slow_and_silent_clients_are_hung_up_on) {
    HttpServer::Options options;
    options.handshake_within = options.header_within = options.body_within = Duration{300};
    options.idle = Duration{600};
    const Serving serving{options};
    {
        Probe half{serving.port(), {}, false};  // connects, and never begins TLS
        EXPECT_TRUE(half.closed_within(20s)) << "half-open";
    }
    {
        Probe plain{serving.port(), {}, false};
        ASSERT_TRUE(plain.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));  // no TLS at all
        EXPECT_TRUE(plain.closed_within(20s)) << "plain HTTP";
    }
    {
        Probe slow{serving.port()};
        ASSERT_TRUE(slow.connected());
        bool cut = false;
        for (const char c : std::string_view{"GET / HTTP/1.1\r\nHost: x\r\n"}) {  // a byte at a time, for ever
            if (!slow.send({&c, 1})) cut = true;
            std::this_thread::sleep_for(40ms);
            if (cut) break;
        }
        EXPECT_TRUE(cut || slow.closed_within(20s)) << "slow header";
    }
    {
        Probe stalled{serving.port()};
        ASSERT_TRUE(stalled.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf"));
        EXPECT_TRUE(stalled.closed_within(20s)) << "half a body";
    }
    {
        Probe resting{serving.port()};
        ASSERT_TRUE(resting.ask("GET", "/a"));
        EXPECT_TRUE(resting.closed_within(20s)) << "idle";
    }
    EXPECT_TRUE([&] {
        for (int i = 0; i < 100 && serving.server->connections() > 0; ++i) std::this_thread::sleep_for(20ms);
        return serving.server->connections() == 0;
    }());
}

TEST(HttpServer, an_answer_that_never_comes_is_a_timeout) {
    HttpServer::Options options;
    options.answer_within = Duration{200};
    const Serving serving{options};
    Probe probe{serving.port()};
    EXPECT_EQ(probe.ask("GET", "/never")->status, 504);
    EXPECT_EQ(probe.ask("GET", "/a")->status, 200);
}

TEST(HttpServer, takes_no_more_connections_than_it_said) {
    HttpServer::Options options;
    options.connections_max = 3;
    const Serving serving{options};
    std::vector<std::unique_ptr<Probe>> open;
    for (int i = 0; i < 3; ++i) {
        open.push_back(std::make_unique<Probe>(serving.port()));
        ASSERT_TRUE(open.back()->ask("GET", "/a", {}, token_line));
    }
    Probe fourth{serving.port()};
    EXPECT_FALSE(fourth.connected()) << "whoever holds a token is not sent away";
    open.pop_back();
    bool again = false;
    for (int i = 0; i < 50 && !again; ++i) {
        std::this_thread::sleep_for(20ms);
        Probe later{serving.port()};
        again = later.connected() && later.ask("GET", "/a").has_value();
    }
    EXPECT_TRUE(again) << "when one goes, another may come";
}

TEST(HttpServer, one_address_cannot_lock_the_others_out) {
    HttpServer::Options options;
    options.connections_max = 20;
    options.strangers_max = 10;
    options.strangers_of_one_address_max = 4;
    const Serving serving{options};
    Probe known{serving.port()};
    ASSERT_TRUE(known.ask("GET", "/a", {}, token_line));
    std::vector<std::unique_ptr<Probe>> crowd;
    for (int i = 0; i < 60; ++i) {
        crowd.push_back(std::make_unique<Probe>(serving.port()));
        // Some ask what everybody may ask, some begin a request, some say nothing.
        if (i % 3 == 0) crowd.back()->ask("GET", "/a");
        if (i % 3 == 1) crowd.back()->send("GET /a HT");
    }
    EXPECT_LE(serving.server->connections(), 8u);
    EXPECT_EQ(known.ask("GET", "/a", {}, token_line)->status, 200) << "who was here is here";
    Probe newcomer{serving.port()};
    ASSERT_TRUE(newcomer.connected());
    EXPECT_EQ(newcomer.ask("GET", "/a", {}, token_line)->status, 200) << "and who comes gets in";
    for (int i = 0; i < 20; ++i) crowd.push_back(std::make_unique<Probe>(serving.port()));
    EXPECT_EQ(newcomer.ask("GET", "/a", {}, token_line)->status, 200) << "and stays";
}

TEST(HttpServer, only_a_token_makes_an_acquaintance) {
    HttpServer::Options options;
    options.header_within = Duration{2000};
    const Serving serving{options};
    Probe stranger{serving.port()}, known{serving.port()};
    ASSERT_TRUE(stranger.ask("GET", "/a"));
    ASSERT_TRUE(known.ask("GET", "/a", {}, token_line));
    EXPECT_TRUE(stranger.closed_within(10s));
    EXPECT_FALSE(known.closed_within(2500ms));
}

TEST(HttpServer, writes_do_not_wait_behind_questions_and_no_token_asks_too_many) {
    HttpServer::Options options;
    options.lane_max = 6;
    options.lane_share_max = 4;
    Serving serving{options};
    std::vector<std::unique_ptr<Probe>> asking;
    const auto ask_as = [&](const std::string& who) {
        asking.push_back(std::make_unique<Probe>(serving.port()));
        ASSERT_TRUE(asking.back()->send("GET /question HTTP/1.1\r\nHost: x\r\nAuthorization: " + who + "\r\n\r\n"));
        for (int i = 0; i < 100 && serving.echo.asked() < asking.size(); ++i) std::this_thread::sleep_for(10ms);
    };
    for (int i = 0; i < 4; ++i) ask_as("eve");
    Probe eve{serving.port()}, bob{serving.port()};
    const auto refused = eve.ask("GET", "/question", {}, "Authorization: eve\r\n");
    EXPECT_EQ(refused->status, 429);
    EXPECT_EQ(refused->headers.at("retry-after"), "1");
    EXPECT_EQ(eve.ask("PUT", "/write", "x", "Authorization: eve\r\n")->status, 200) << "another lane";
    for (int i = 0; i < 2; ++i) ask_as("bob");
    EXPECT_EQ(bob.ask("GET", "/question", {}, "Authorization: ann\r\n")->status, 429) << "the lane is full";
    EXPECT_EQ(bob.ask("PUT", "/write", "x")->status, 200);
    serving.echo.answer_all();
    for (const auto& probe : asking) EXPECT_EQ(probe->hear()->body, "so");
    EXPECT_EQ(eve.ask("GET", "/slow", {}, "Authorization: eve\r\n")->status, 200) << "what is answered counts no more";
}

TEST(HttpServer, speaks_http_to_the_letter) {
    HttpServer::Options options;
    const Serving serving{options};
    struct Row {
        std::string_view says;
        std::string bytes;
        int status;
    };
    const Row rows[] = {
        {"no host", "GET /a HTTP/1.1\r\nX: y\r\n\r\n", 400},
        {"two hosts", "GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
        {"HTTP/1.0 needs none", "GET /a HTTP/1.0\r\n\r\n", 200},
        {"a coding that says not where the body ends", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
         400},
        {"a chunk whose extension has no end",
         "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(40'000, 'a'), 431},
        {"a trailer without end",
         "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + std::string(40'000, 'a'), 431},
    };
    for (const Row& row : rows) {
        Probe probe{serving.port()};
        ASSERT_TRUE(probe.send(row.bytes));
        EXPECT_EQ(probe.hear()->status, row.status) << row.says;
    }
    Probe probe{serving.port()};
    const auto head = probe.ask("HEAD", "/ticks");
    EXPECT_EQ(head->status, 200);
    EXPECT_EQ(head->headers.at("content-type"), "text/event-stream");
    EXPECT_FALSE(head->headers.contains("content-length")) << "nobody knows how long a stream is";
    EXPECT_EQ(probe.ask("GET", "/a")->status, 200);
    EXPECT_EQ(probe.ask("PATCH", "/a")->headers.at("allow"), "GET, HEAD, POST, PUT, DELETE");
}

TEST(HttpServer, a_long_answer_arrives_whole_and_one_that_nobody_takes_is_given_up) {
    HttpServer::Options options;
    options.write_within = Duration{2000};
    const Serving serving{options};
    Probe taking{serving.port()};
    const auto heard = taking.ask("GET", "/large");
    ASSERT_TRUE(heard);
    EXPECT_EQ(heard->body, std::string(Echo::large, 'x'));
    EXPECT_EQ(taking.ask("GET", "/a")->body, "/a|") << "and the connection goes on";

    Probe not_taking{serving.port()};
    ASSERT_TRUE(not_taking.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n"));
    for (int i = 0; i < 300 && serving.server->connections() > 1; ++i) std::this_thread::sleep_for(100ms);
    EXPECT_EQ(serving.server->connections(), 1u);
}

TEST(HttpServer, who_never_stops_asking_keeps_nobody_else_waiting) {
    HttpServer::Options options;
    options.threads = 1;  // accepting, deadlines and all connections
    const Serving serving{options};
    Probe flooding{serving.port()};
    std::string many;
    for (int i = 0; i < 400; ++i) many += "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
    std::atomic<bool> enough = false;
    std::thread flood{[&] {
        // One thread sends and takes, as fast as the server answers: there is always more in its buffer.
        while (!enough && flooding.send(many))
            for (int i = 0; i < 400 && flooding.hear(); ++i) {
            }
    }};
    for (int i = 0; i < 20; ++i) {
        Probe other{serving.port()};
        EXPECT_EQ(other.ask("GET", "/b")->body, "/b|");
    }
    enough = true;
    flood.join();
}

TEST(HttpServer, streams_go_on_until_they_are_over) {
    HttpServer::Options options;
    options.stream_pulse = Duration{50};
    options.streams_max = 1;
    const Serving serving{options};
    Probe probe{serving.port()};
    ASSERT_TRUE(probe.send("GET /ticks HTTP/1.1\r\nHost: x\r\n\r\n"));
    ASSERT_TRUE(probe.read_until("0\r\n\r\n"));
    EXPECT_THAT(probe.unread(), HasSubstr("Content-Type: text/event-stream"));
    EXPECT_THAT(probe.unread(), HasSubstr("data: 3"));

    Probe quiet{serving.port()};
    ASSERT_TRUE(quiet.send("GET /silence HTTP/1.1\r\nHost: x\r\n\r\n"));
    ASSERT_TRUE(quiet.read_until(": still here")) << "a sign of life";
    Probe second{serving.port()};
    EXPECT_EQ(second.ask("GET", "/silence")->status, 429) << "streams are counted";
}

TEST(HttpServer, sends_a_file_and_removes_it) {
    const ScratchFolder folder;
    Serving serving;
    serving.echo.file = folder / "copy";
    std::ofstream{serving.echo.file} << std::string(300'000, 'x');
    Probe probe{serving.port()};
    EXPECT_EQ(probe.ask("GET", "/file")->body.size(), 300'000u);
    EXPECT_EQ(probe.ask("GET", "/a")->status, 200) << "after which the connection goes on";
    EXPECT_FALSE(std::filesystem::exists(serving.echo.file));
}

TEST(HttpServer, a_file_that_comes_too_late_is_removed_all_the_same) {
    const ScratchFolder folder;
    HttpServer::Options options;
    options.answer_within = Duration{100};
    Serving serving{options};
    serving.echo.file = folder / "copy";
    const auto write_file = [&] { std::ofstream{serving.echo.file} << "copy"; };
    write_file();
    Probe probe{serving.port()};
    EXPECT_EQ(probe.ask("GET", "/backup")->body, "copy") << "a backup takes as long as it takes";
    write_file();
    EXPECT_EQ(probe.ask("GET", "/slow-file")->status, 504);
    for (int i = 0; i < 100 && std::filesystem::exists(serving.echo.file); ++i) std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(std::filesystem::exists(serving.echo.file));
}

TEST(HttpServer, stops_while_clients_hang_on) {
    auto serving = std::make_unique<Serving>();
    Probe resting{serving->port()}, streaming{serving->port()};
    ASSERT_TRUE(resting.ask("GET", "/a"));
    ASSERT_TRUE(streaming.send("GET /silence HTTP/1.1\r\nHost: x\r\n\r\n"));
    ASSERT_TRUE(streaming.read_until("\r\n\r\n"));
    const auto began = std::chrono::steady_clock::now();
    serving.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - began, 3s);
    EXPECT_TRUE(resting.closed_within(20s));
}

TEST(HttpServer, a_port_that_is_taken_is_said) {
    const Serving serving;
    Echo echo;
    Log log{-1};
    const auto second = HttpServer::start(
        {.port = serving.port(), .certificate = test_server().certificate, .key = test_server().key}, echo, log);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::unavailable);
}

}  // namespace
}  // namespace bulkhead::shell
