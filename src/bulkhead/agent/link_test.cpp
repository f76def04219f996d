// Both ends of the line at once: the real server (wire/agent_server.hpp) and real links on loopback, and callers who
// misbehave in every way we could think of.
#include "bulkhead/agent/link.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "bulkhead/agent/fleet_test.hpp"
#include "bulkhead/wire/agent_server.hpp"
#include "bulkhead/wire/buffer.hpp"
#include "bulkhead/wire/message.hpp"

namespace bulkhead::agent {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using wire::AgentServer;

constexpr auto patience = 30s;  // for machines that are busy; nothing waits it out

// Notes what it hears, welcomes whoever says hello, and can be waited for.
class Control final : public AgentServer::Handler {
public:
    struct Note {
        std::string what;  // "hello", "report", "heartbeat", "gone"
        std::string node;
        std::uint64_t session = 0;
        std::int64_t number = 0;  // of a report; of a heartbeat: how many GPUs its sample tells of
        std::string why;          // of a gone; of a hello: the certificate's fingerprint
    };

    Result<AgentServer::Peer> admit(std::string_view certificate) override {
        server.wait(nullptr);  // in the moment between listening and knowing
        const auto peer = auth::read_peer(certificate);
        if (!peer) return std::unexpected(peer.error());
        const std::lock_guard lock{mutex_};
        if (revoked_.contains(peer->fingerprint)) return fail(Code::denied, "node " + peer->node + " was revoked");
        return AgentServer::Peer{peer->node, peer->fingerprint};
    }
    void on_hello(const AgentServer::Peer& peer, std::uint64_t session, Hello&&) override {
        note({"hello", peer.node, session, 0, peer.certificate});
        if (welcomes) server.load()->welcome(session, 7, heartbeat_every);
    }
    void on_report(const std::string& node, std::uint64_t session, Report&& report) override {
        note({"report", node, session, report.number, ""});
        server.load()->acknowledge(session, report.number);
    }
    void on_heartbeat(const std::string& node, std::uint64_t session, wire::Heartbeat&& heartbeat) override {
        note({"heartbeat", node, session, heartbeat.telemetry ? std::ssize(heartbeat.telemetry->gpus) : 0, ""});
    }
    void on_renewal(const std::string& node, std::uint64_t session, std::string&& request) override {
        note({"renewal", node, session, 0, ""});
        const auto made = auth::sign_request(fleet().ca, request, node, fleet().today);
        if (made)
            server.load()->renewed(session, *made);
        else
            server.load()->not_renewed(session, made.error().what);
    }
    void on_output(const std::string& node, std::uint64_t session, wire::Output&& output) override {
        note({"output", node, session, static_cast<std::int64_t>(output.request),
              output.why.empty() ? output.piece.bytes : "none: " + output.why});
    }
    void on_gone(const std::string& node, std::uint64_t session, std::string_view why) override {
        note({"gone", node, session, 0, std::string{why}});
    }

    void revoke(const std::string& certificate) {
        const std::lock_guard lock{mutex_};
        revoked_.insert(*auth::fingerprint(certificate));
    }
    std::vector<Note> notes() const {
        const std::lock_guard lock{mutex_};
        return notes_;
    }
    std::size_t count(std::string_view what) const {
        const std::lock_guard lock{mutex_};
        return static_cast<std::size_t>(std::ranges::count(notes_, what, &Note::what));
    }
    // The n-th note of the kind, from 1.
    Note wait_for(std::string_view what, std::size_t n = 1) {
        std::unique_lock lock{mutex_};
        Note found;
        const bool came = changed_.wait_for(lock, patience, [&] {
            std::size_t seen = 0;
            for (const Note& note : notes_)
                if (note.what == what && ++seen == n) return found = note, true;
            return false;
        });
        EXPECT_TRUE(came) << "no " << what << " number " << n;
        return found;
    }

    std::atomic<AgentServer*> server = nullptr;
    bool welcomes = true;
    Duration heartbeat_every{10'000};

private:
    void note(Note note) {
        const std::lock_guard lock{mutex_};
        notes_.push_back(std::move(note));
        changed_.notify_all();
    }
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Note> notes_;
    std::set<std::string> revoked_;
};

// A link that keeps what it was told until somebody asks, and says hello when it should.
class Caller {
public:
    explicit Caller(const Link::Options& options) : link_(std::move(*Link::open(options))) {}

    Link* operator->() { return link_.get(); }

    // The next event, if one comes.
    std::optional<Link::Event> next(std::chrono::milliseconds within) {
        if (told_.empty())
            for (Link::Event& event : link_->wait(within)) {
                // It may be lost again by now; then a Lost follows.
                if (std::holds_alternative<Link::Connected>(event)) (void)link_->hello({});
                told_.push_back(std::move(event));
            }
        if (told_.empty()) return std::nullopt;
        Link::Event event = std::move(told_.front());
        told_.pop_front();
        return event;
    }
    // The next event of that kind; others before it are let pass.
    template <class E>
    E expect() {
        const auto deadline = std::chrono::steady_clock::now() + patience;
        while (std::chrono::steady_clock::now() < deadline)
            if (auto event = next(50ms))
                if (E* found = std::get_if<E>(&*event)) return std::move(*found);
        ADD_FAILURE() << "the link did not say what was expected";
        return {};
    }

private:
    std::unique_ptr<Link> link_;
    std::deque<Link::Event> told_;
};

struct Line : testing::Test {
    Line() {
        // gRPC tells stderr of every handshake that fails, and here most are meant to.
        gpr_set_log_function([](gpr_log_func_args*) {});
    }
    void start(const std::function<void(AgentServer::Options&)>& change = {}) {
        AgentServer::Options options{.address = "127.0.0.1:" + std::to_string(port),
                                     .ca = fleet().ca.certificate,
                                     .certificate = fleet().server.certificate,
                                     .key = fleet().server.key};
        if (change) change(options);
        control.server = nullptr;
        auto started = AgentServer::start(options, control);
        ASSERT_TRUE(started) << started.error().what;
        server = std::move(*started);
        control.server = server.get();
        control.server.notify_all();
        port = server->port();
    }
    std::string address() const { return "127.0.0.1:" + std::to_string(port); }
    Link::Options options_for(const auth::KeyPair& node) const {
        return {.address = address(),
                .ca = fleet().ca.certificate,
                .certificate = node.certificate,
                .key = node.key,
                .seed = 1,
                .retry_min = {20},
                .retry_max = {200}};
    }
    std::unique_ptr<Caller> link(const auth::KeyPair& node) const {
        return std::make_unique<Caller>(options_for(node));
    }

    Control control;
    std::unique_ptr<AgentServer> server;
    std::uint16_t port = 0;
};

// A client that speaks in bytes, and listens unless it is deaf.
class RawClient final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
public:
    struct Manner {
        const char* method = wire::session_method;
        bool deaf = false;
    };
    RawClient(const std::string& address, std::shared_ptr<grpc::ChannelCredentials> credentials, Manner manner)
        : stub_(grpc::CreateCustomChannel(address, credentials, arguments())) {
        stub_.PrepareBidiStreamingCall(&context_, manner.method, {}, this);
        AddHold();
        if (!manner.deaf) StartRead(&incoming_);
        StartCall();
    }
    RawClient(const std::string& address, std::shared_ptr<grpc::ChannelCredentials> credentials)
        : RawClient(address, std::move(credentials), Manner{}) {}
    ~RawClient() override {
        context_.TryCancel();
        (void)status();
    }
    void write(std::string_view bytes) {
        std::unique_lock lock{mutex_};
        buffer_ = wire::to_buffer(bytes);
        written_ = false;
        StartWrite(&buffer_);
        changed_.wait_for(lock, patience, [&] { return written_; });
    }
    void OnReadDone(bool ok) override {
        if (ok) StartRead(&incoming_);
    }
    void OnWriteDone(bool) override {
        const std::lock_guard lock{mutex_};
        written_ = true;
        changed_.notify_all();
    }
    void OnDone(const grpc::Status& status) override {
        const std::lock_guard lock{mutex_};
        status_ = status;
        changed_.notify_all();
    }
    grpc::Status status() {
        std::unique_lock lock{mutex_};
        if (std::exchange(held_, false)) RemoveHold();
        if (!changed_.wait_for(lock, patience, [&] { return status_.has_value(); }))
            return {grpc::StatusCode::UNKNOWN, "still open"};
        return *status_;
    }

private:
    static grpc::ChannelArguments arguments() {
        grpc::ChannelArguments arguments;
        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
        return arguments;
    }
    grpc::GenericStub stub_;
    grpc::ClientContext context_;
    grpc::ByteBuffer buffer_, incoming_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool written_ = false, held_ = true;
    std::optional<grpc::Status> status_;
};

std::shared_ptr<grpc::ChannelCredentials> tls(const auth::KeyPair& node,
                                              const std::string& ca = fleet().ca.certificate) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ca;
    options.pem_cert_chain = node.certificate;
    options.pem_private_key = node.key;
    return grpc::SslCredentials(options);
}

Order some_order(Key lease) { return {7, Release{lease, {{UnitKind::memory, 3, 0, 4, lease}}}}; }

TEST_F(Line, carries_a_session_from_hello_to_farewell) {
    control.heartbeat_every = {30};
    start();
    auto one = link(fleet().node("node-1"));
    const auto welcome = one->expect<Link::Welcome>();
    EXPECT_EQ(welcome.epoch, 7);
    EXPECT_EQ(welcome.session, 1u);
    EXPECT_EQ(control.wait_for("hello").node, "node-1");
    EXPECT_EQ(server->sessions(), 1u);

    for (Key lease = 1; lease <= 300; ++lease) ASSERT_TRUE(server->send(1, some_order(lease)));
    for (Key lease = 1; lease <= 300; ++lease) ASSERT_EQ(one->expect<Link::OrderArrived>().order, some_order(lease));

    for (std::int64_t number = 1; number <= 300; ++number)
        ASSERT_TRUE((*one)->report({number, LeaseReport{number, PartPhase::prepared, ""}}));
    for (std::int64_t acked = 0; acked < 300; acked = one->expect<Link::Acked>().number) continue;
    EXPECT_EQ(control.wait_for("report", 300).number, 300);

    for (int i = 0; i < 100 && control.count("heartbeat") < 3; ++i) (void)one->next(20ms);
    EXPECT_GE(control.count("heartbeat"), 3u);

    one.reset();
    EXPECT_EQ(control.wait_for("gone").session, 1u);
    EXPECT_EQ(server->sessions(), 0u);
}

TEST_F(Line, takes_what_is_measured_with_the_heartbeat_and_goes_on_without_it) {
    control.heartbeat_every = {20};
    start();
    auto one = link(fleet().node("node-1"));
    (void)one->expect<Link::Welcome>();
    std::size_t gpus = 0;
    (*one)->measure_with([&]() -> std::optional<Telemetry> {
        if (gpus == 0) return std::nullopt;
        Telemetry telemetry{.grade = Grade::simulated, .age = {}, .gpus = {}};
        telemetry.gpus.resize(gpus);
        return telemetry;
    });
    const auto beats = [&](std::int64_t told) {
        const std::size_t before = control.count("heartbeat");
        for (int i = 0; i < 1'000; ++i) {
            (void)one->next(5ms);
            const auto notes = control.notes();
            std::size_t seen = 0;
            for (const Control::Note& note : notes)
                if (note.what == "heartbeat" && ++seen > before && note.number == told) return true;
        }
        return false;
    };
    EXPECT_TRUE(beats(0)) << "nothing is measured yet";
    gpus = 2;
    EXPECT_TRUE(beats(2));
    gpus = wire::sampled_gpus_max + 1;
    EXPECT_TRUE(beats(0)) << "what breaks a limit is left out, and the session goes on";
    EXPECT_EQ(control.count("gone"), 0u);
    gpus = 1;
    EXPECT_TRUE(beats(1));
}

TEST_F(Line, is_closed_to_whoever_cannot_prove_to_be_a_node) {
    start();
    const auth::KeyPair other_ca = *auth::create_ca("test fleet", fleet().decade);
    struct Row {
        const char* says;
        auth::KeyPair shown;
    };
    const Row rows[] = {
        {"a certificate of another CA of the same name", TestFleet::node("node-1", other_ca, fleet().today)},
        {"one that has expired", TestFleet::node("node-1", fleet().ca, fleet().yesterday)},
        {"the server's own", fleet().server},
        {"the CA's own", fleet().ca},
    };
    for (const Row& row : rows) {
        auto caller = link(row.shown);
        const auto lost = caller->expect<Link::Lost>();
        EXPECT_FALSE(lost.why.empty()) << row.says;
    }
    grpc::SslCredentialsOptions nothing_to_show;
    nothing_to_show.pem_root_certs = fleet().ca.certificate;
    EXPECT_FALSE(RawClient(address(), grpc::SslCredentials(nothing_to_show)).status().ok()) << "no certificate";
    EXPECT_FALSE(RawClient(address(), grpc::InsecureChannelCredentials()).status().ok()) << "no TLS";
    EXPECT_TRUE(control.notes().empty());
}

TEST_F(Line, leads_only_to_the_fleets_own_server) {
    start();
    const auth::KeyPair other_ca = *auth::create_ca("test fleet", fleet().decade);
    Link::Options options = options_for(fleet().node("node-1"));
    options.ca = other_ca.certificate;
    EXPECT_FALSE(Caller{options}.expect<Link::Lost>().why.empty()) << "a CA we do not trust";
    options = options_for(fleet().node("node-1"));
    options.server_name = "elsewhere.example";
    EXPECT_FALSE(Caller{options}.expect<Link::Lost>().why.empty()) << "a server of another name";
    EXPECT_TRUE(control.notes().empty());
}

TEST_F(Line, a_revoked_node_is_turned_away_and_an_open_session_closed) {
    start();
    const auth::KeyPair node = fleet().node("node-1");
    auto one = link(node);
    (void)one->expect<Link::Welcome>();
    control.revoke(node.certificate);
    server->close_node("node-1", "node-1 was revoked");
    auto lost = one->expect<Link::Lost>();
    EXPECT_EQ(lost.code, Code::denied);
    EXPECT_THAT(lost.why, HasSubstr("revoked"));
    lost = one->expect<Link::Lost>();
    EXPECT_EQ(lost.code, Code::denied) << lost.why;
    EXPECT_THAT(lost.why, HasSubstr("node node-1 was revoked"));
    EXPECT_EQ(control.count("hello"), 1u);
}

TEST_F(Line, the_newer_session_of_a_node_replaces_the_older) {
    start();
    const auth::KeyPair node = fleet().node("node-1");
    auto older = link(node), newer = link(node), bystander = link(fleet().node("node-2"));
    (void)bystander->expect<Link::Welcome>();
    const auto first = older->expect<Link::Welcome>().session, second = newer->expect<Link::Welcome>().session;
    EXPECT_GT(second, first);
    const auto lost = older->expect<Link::Lost>();
    EXPECT_EQ(lost.code, Code::conflict);
    EXPECT_THAT(lost.why, HasSubstr("newer session"));
    older.reset();
    EXPECT_EQ(control.wait_for("gone").session, first);
    ASSERT_TRUE(server->send(second, some_order(1)));
    ASSERT_TRUE(server->send(first, some_order(1))) << "to a session that is gone: nothing";
    EXPECT_EQ(newer->expect<Link::OrderArrived>().order, some_order(1));
    // Its end is told before its place is free.
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (server->sessions() != 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(server->sessions(), 2u);
}

TEST_F(Line, an_agent_that_does_not_read_is_disconnected_with_a_reason) {
    start([](AgentServer::Options& options) {
        options.queued_messages_max = 50;
        options.hello_within = {300};
    });
    RawClient deaf{address(), tls(fleet().node("node-1")), {.deaf = true}};
    deaf.write(*wire::encode(wire::AgentMessage{Hello{}}));
    const auto session = control.wait_for("hello").session;
    Order large = some_order(1);
    std::get<Release>(large.what).wipes.resize(4'000, {UnitKind::memory, 3, 0, 4, 1});
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(server->send(session, large));
    const auto gone = control.wait_for("gone");
    EXPECT_THAT(gone.why, HasSubstr("does not read"));
}

TEST_F(Line, a_slow_reader_loses_nothing_while_the_queue_holds) {
    start([](AgentServer::Options& options) { options.queued_bytes_max = 64 << 20; });
    auto one = link(fleet().node("node-1"));
    const auto session = one->expect<Link::Welcome>().session;
    Order large = some_order(1);
    std::get<Release>(large.what).wipes.resize(1'000, {UnitKind::memory, 3, 0, 4, 1});
    for (int i = 0; i < 900; ++i) ASSERT_TRUE(server->send(session, large));
    std::this_thread::sleep_for(50ms);
    for (int heard = 0; heard < 900; ++heard) {
        const auto event = one->next(patience);
        ASSERT_TRUE(event) << "nothing after " << heard << " orders";
        const Link::Lost* lost = std::get_if<Link::Lost>(&*event);
        ASSERT_TRUE(std::holds_alternative<Link::OrderArrived>(*event))
            << "event " << event->index() << " after " << heard << " orders: " << (lost ? lost->why : "");
    }
}

// Around the size of a TLS record, byte by byte: one that is exactly full must not break the line (wire/pieces.hpp).
TEST_F(Line, no_size_of_a_message_breaks_it) {
    start();
    auto one = link(fleet().node("node-1"));
    const auto session = one->expect<Link::Welcome>().session;
    for (const std::size_t wipes : {325u, 330u, 1'345u, 1'350u})
        for (std::size_t name = 1; name <= 120; ++name) {
            Order order = some_order(1);
            std::get<Release>(order.what).wipes.resize(wipes, {UnitKind::memory, 3, 0, 4, 1});
            std::get<Release>(order.what).wipes[0].lease = std::string(name, 'a');
            ASSERT_TRUE(server->send(session, order));
            ASSERT_EQ(one->expect<Link::OrderArrived>().order, order);
        }
}

TEST_F(Line, what_is_no_message_ends_the_session_with_the_rule_it_breaks) {
    start([](AgentServer::Options& options) { options.hello_within = {300}; });
    const std::string hello = *wire::encode(wire::AgentMessage{Hello{}});
    const std::string heartbeat = *wire::encode(wire::AgentMessage{wire::Heartbeat{}});
    struct Row {
        const char* says;
        std::vector<std::string> said;
        grpc::StatusCode code;
        const char* why;
    };
    const Row rows[] = {
        {"garbage", {std::string(100, '\xff')}, grpc::StatusCode::INVALID_ARGUMENT, "not a message"},
        {"a message that is too large", {std::string(3 << 20, 'x')}, grpc::StatusCode::RESOURCE_EXHAUSTED, ""},
        {"a heartbeat before hello", {heartbeat}, grpc::StatusCode::INVALID_ARGUMENT, "before its hello"},
        {"hello twice", {hello, hello}, grpc::StatusCode::INVALID_ARGUMENT, "twice"},
        {"nothing for too long", {}, grpc::StatusCode::DEADLINE_EXCEEDED, "in time"},
    };
    for (const Row& row : rows) {
        RawClient client{address(), tls(fleet().node("node-1"))};
        for (const std::string& bytes : row.said) {
            client.write(bytes);
            if (&bytes != &row.said.back()) (void)control.wait_for("hello");
        }
        const grpc::Status status = client.status();
        EXPECT_EQ(status.error_code(), row.code) << row.says << ": " << status.error_message();
        EXPECT_THAT(status.error_message(), HasSubstr(row.why)) << row.says;
    }
    RawClient lost{address(), tls(fleet().node("node-1")), {.method = "/bulkhead.agent.v1.AgentService/Other"}};
    EXPECT_EQ(lost.status().error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_EQ(control.count("hello"), control.count("gone"));
}

TEST_F(Line, garbage_at_the_port_harms_nobody) {
    start();
    std::vector<int> sockets;
    for (int i = 0; i < 20; ++i) {
        const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ASSERT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
        const std::string garbage =
            i % 2 == 0 ? "GET / HTTP/1.1\r\n\r\n" : std::string(10'000, static_cast<char>(i * 13));
        (void)::send(socket, garbage.data(), garbage.size(), MSG_NOSIGNAL);
        sockets.push_back(socket);
    }
    auto one = link(fleet().node("node-1"));
    EXPECT_EQ(one->expect<Link::Welcome>().epoch, 7);
    for (const int socket : sockets) ::close(socket);
}

TEST_F(Line, agents_come_back_by_themselves_after_a_restart) {
    start();
    std::vector<std::unique_ptr<Caller>> links;
    for (int i = 0; i < 5; ++i) links.push_back(link(fleet().node("node-" + std::to_string(i))));
    for (auto& one : links) (void)one->expect<Link::Welcome>();
    server.reset();
    EXPECT_EQ(control.count("gone"), 5u) << "every session has ended before the server has";
    EXPECT_EQ(links[0]->expect<Link::Lost>().code, Code::unavailable);
    for (auto& one : links) (void)one->next(20ms);  // attempts at nothing
    start([](AgentServer::Options& options) { options.first_session = 100; });
    for (auto& one : links) EXPECT_GE(one->expect<Link::Welcome>().session, 100u);
    EXPECT_EQ(server->sessions(), 5u);
    ASSERT_TRUE((*links[0])->report({1, FaultReport{UnitKind::memory, 0, "again"}}));
    EXPECT_EQ(links[0]->expect<Link::Acked>().number, 1);
}

TEST_F(Line, a_closed_session_is_told_why_and_begins_anew) {
    start();
    auto one = link(fleet().node("node-1"));
    server->close(one->expect<Link::Welcome>().session, "silent\ntoo long");
    const auto lost = one->expect<Link::Lost>();
    EXPECT_EQ(lost.code, Code::unavailable);
    EXPECT_EQ(lost.why, "silent?too long");
    EXPECT_EQ(control.wait_for("gone").why, "silent?too long");
    EXPECT_EQ(one->expect<Link::Welcome>().session, 2u);
    (*one)->reconnect("the certificate was renewed");
    EXPECT_EQ(one->expect<Link::Lost>().why, "the certificate was renewed");
    EXPECT_EQ(one->expect<Link::Welcome>().session, 3u);
}

TEST_F(Line, a_certificate_is_renewed_within_the_session_and_proven_by_the_next) {
    start();
    const auth::KeyPair node = fleet().node("node-1");
    auto one = link(node);
    const auto next = *auth::make_request("node-1");
    EXPECT_EQ((*one)->renew(next.request).error().code, Code::unavailable) << "no session yet";
    const auto session = one->expect<Link::Welcome>().session;
    EXPECT_EQ(control.wait_for("hello").why, *auth::fingerprint(node.certificate));
    EXPECT_EQ((*one)->renew("a request").error().code, Code::invalid);
    ASSERT_TRUE((*one)->renew(next.request));
    EXPECT_EQ((*one)->renew(next.request).error().code, Code::conflict) << "one at a time";
    const std::string renewed = one->expect<Link::Renewed>().certificate;
    ASSERT_TRUE(auth::check_pair({next.key, renewed}));

    (*one)->set_identity(renewed, next.key);
    (*one)->reconnect("the certificate was renewed");
    EXPECT_GT(one->expect<Link::Welcome>().session, session);
    EXPECT_EQ(control.wait_for("hello", 2).why, *auth::fingerprint(renewed));
}

TEST_F(Line, a_refused_renewal_leaves_the_session_as_it_is) {
    start();
    auto one = link(fleet().node("node-1"));
    const auto session = one->expect<Link::Welcome>().session;
    ASSERT_TRUE((*one)->renew(auth::make_request("node-2")->request));
    EXPECT_THAT(one->expect<Link::NotRenewed>().why, HasSubstr("node-2"));
    ASSERT_TRUE((*one)->renew(auth::make_request("node-1")->request)) << "it may be asked again";
    (void)one->expect<Link::Renewed>();
    ASSERT_TRUE((*one)->report({1, FaultReport{UnitKind::memory, 0, "still here"}}));
    EXPECT_EQ(one->expect<Link::Acked>().number, 1);
    EXPECT_EQ(control.wait_for("report").session, session);
    EXPECT_EQ(control.count("gone"), 0u);
}

TEST_F(Line, what_a_command_prints_is_asked_for_and_told_in_both_cases) {
    start();
    auto one = link(fleet().node("node-1"));
    const auto session = one->expect<Link::Welcome>().session;
    server->ask(session, {41, {7, true, 1'000}});
    const auto wanted = one->expect<Link::OutputWanted>();
    EXPECT_EQ(wanted.request, 41u);
    EXPECT_EQ(wanted.place, (OutputPlace{7, true, 1'000}));
    ASSERT_TRUE((*one)->output(41, OutputPiece{1'000, "\xff hello"}));
    EXPECT_EQ(control.wait_for("output").why, "\xff hello");
    ASSERT_TRUE((*one)->output(42, fail(Code::not_found, "it has ended")));
    const auto none = control.wait_for("output", 2);
    EXPECT_EQ(none.number, 42);
    EXPECT_EQ(none.why, "none: it has ended");
    EXPECT_EQ((*one)->output(43, OutputPiece{0, std::string(output_piece_bytes_max + 1, 'x')}).error().code,
              Code::invalid);
}

TEST_F(Line, takes_no_more_agents_than_it_was_built_for) {
    start([](AgentServer::Options& options) { options.sessions_max = 1; });
    auto one = link(fleet().node("node-1"));
    (void)one->expect<Link::Welcome>();
    auto two = link(fleet().node("node-2"));
    EXPECT_EQ(two->expect<Link::Lost>().code, Code::exhausted);
    one.reset();
    (void)two->expect<Link::Welcome>();
}

TEST_F(Line, what_cannot_be_said_is_refused_on_the_spot) {
    start();
    auto one = link(fleet().node("node-1"));
    EXPECT_EQ((*one)->report({1, FaultReport{}}).error().code, Code::unavailable) << "no session yet";
    EXPECT_EQ((*one)->hello({}).error().code, Code::unavailable) << "not connected yet";
    const auto session = one->expect<Link::Welcome>().session;
    EXPECT_EQ((*one)->report({-1, FaultReport{}}).error().code, Code::invalid);
    EXPECT_EQ(server->send(session, {7, Start{-1}}).error().code, Code::invalid);
    ASSERT_TRUE(server->send(session, {7, Start{5}})) << "and the numbers have no gap";
    EXPECT_EQ(one->expect<Link::OrderArrived>().order, (Order{7, Start{5}}));
    EXPECT_FALSE(Link::open({})) << "without an identity";
    EXPECT_FALSE(AgentServer::start({.address = "127.0.0.1:0", .ca = "x", .certificate = "y", .key = "z"}, control));
    EXPECT_FALSE(AgentServer::start({.address = address(),
                                     .ca = fleet().ca.certificate,
                                     .certificate = fleet().server.certificate,
                                     .key = fleet().server.key},
                                    control))
        << "the port is taken";
}

TEST_F(Line, a_wait_can_be_cut_short) {
    start();
    control.welcomes = false;
    auto one = link(fleet().node("node-1"));
    (void)one->expect<Link::Connected>();
    const auto began = std::chrono::steady_clock::now();
    std::jthread other{[&] { (*one)->wake(); }};
    EXPECT_TRUE((*one)->wait(60s).empty());
    EXPECT_LT(std::chrono::steady_clock::now() - began, patience);
}

// A control plane that breaks the rules.
struct Liar final : grpc::CallbackGenericService {
    struct Reactor final : grpc::ServerGenericBidiReactor {
        explicit Reactor(std::vector<std::string> says) : lines(std::move(says)) {
            StartSendInitialMetadata();
            StartRead(&incoming);
        }
        void OnReadDone(bool ok) override {
            if (!ok) return Finish(grpc::Status::OK);
            if (next == 0) say();
            StartRead(&incoming);
        }
        void OnWriteDone(bool ok) override {
            if (ok) say();
        }
        void OnDone() override { delete this; }
        void say() {
            if (next == lines.size()) return;
            buffer = wire::to_buffer(lines[next++]);
            StartWrite(&buffer);
        }
        std::vector<std::string> lines;
        std::size_t next = 0;
        grpc::ByteBuffer incoming, buffer;
    };
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
        return new Reactor{lines};
    }
    std::vector<std::string> lines;
};

TEST_F(Line, an_agent_hangs_up_on_a_server_that_breaks_the_rules) {
    const auto line = [](const wire::ControlMessage& message) { return *wire::encode(message); };
    const auto order = [&](std::int64_t sequence) { return line(wire::NumberedOrder{sequence, some_order(sequence)}); };
    const std::string welcome = line(wire::Welcome{7, 1, {1'000}});
    struct Row {
        const char* says;
        std::vector<std::string> lines;
        const char* why;
    };
    const Row rows[] = {
        {"a gap in the orders", {welcome, order(1), order(3)}, "order 3 came where order 2 was due"},
        {"an order twice", {welcome, order(1), order(1)}, "order 1 came where order 2 was due"},
        {"orders that begin late", {welcome, order(2)}, "order 2 came where order 1 was due"},
        {"an order before the welcome", {order(1)}, "order 1 came where a welcome was due"},
        {"two welcomes", {welcome, welcome}, "out of turn"},
        {"an acknowledgement before the welcome", {line(wire::Acknowledged{1})}, "before its welcome"},
        {"a certificate out of the blue",
         {welcome, line(wire::Renewed{fleet().node("node-1").certificate})},
         "nobody asked for"},
        {"a refusal of nothing", {welcome, line(wire::NotRenewed{"no"})}, "nobody asked for"},
        {"garbage", {welcome, "\xff\xff"}, "no message"},
    };
    for (const Row& row : rows) {
        Liar liar;
        liar.lines = row.lines;
        grpc::SslServerCredentialsOptions tls_options{GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY};
        tls_options.pem_root_certs = fleet().ca.certificate;
        tls_options.pem_key_cert_pairs.push_back({fleet().server.key, fleet().server.certificate});
        grpc::ServerBuilder builder;
        int chosen = 0;
        builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls_options), &chosen);
        builder.RegisterCallbackGenericService(&liar);
        const auto lying = builder.BuildAndStart();
        port = static_cast<std::uint16_t>(chosen);
        auto one = link(fleet().node("node-1"));
        EXPECT_THAT(one->expect<Link::Lost>().why, HasSubstr(row.why)) << row.says;
        one.reset();
        lying->Shutdown(std::chrono::system_clock::now());
    }
}

TEST_F(Line, holds_while_everybody_talks_at_once_and_the_server_goes) {
    control.heartbeat_every = {5};
    start();
    std::vector<auth::KeyPair> nodes;
    for (int i = 0; i < 8; ++i) nodes.push_back(fleet().node("node-" + std::to_string(i % 6)));  // two names twice
    std::atomic<bool> over = false;
    {
        std::vector<std::jthread> agents;
        for (const auth::KeyPair& node : nodes)
            agents.emplace_back([&, this] {
                auto one = link(node);
                std::int64_t number = 0;
                while (!over)
                    if (const auto event = one->next(5ms); event && std::holds_alternative<Link::OrderArrived>(*event))
                        (void)(*one)->report({++number, LeaseReport{1, PartPhase::running, ""}});
            });
        for (int round = 0; round < 200; ++round) {
            for (const Control::Note& note : control.notes())
                if (note.what == "hello") (void)server->send(note.session, some_order(1));
            if (round % 20 == 0) server->close_node("node-3", "for the test");
            std::this_thread::sleep_for(2ms);
        }
        server.reset();
        over = true;
    }
    std::map<std::uint64_t, int> open;
    for (const Control::Note& note : control.notes()) {
        if (note.what == "hello") ++open[note.session];
        if (note.what == "gone") --open[note.session];
        if (note.what == "report" || note.what == "heartbeat") {
            EXPECT_EQ(open[note.session], 1);
        }
    }
    for (const auto& [session, balance] : open) EXPECT_EQ(balance, 0) << "session " << session;
}

}  // namespace
}  // namespace bulkhead::agent
