// Where agents call: one gRPC stream each, over mutual TLS. Who is calling comes from the certificate and never from a
// message. Nothing is decided here: what arrives is checked and handed on, what is handed in is numbered and sent.
//
// Every queue has an end. An agent that does not read what it is sent is disconnected with a reason; it comes back, and
// everything that is still open is sent again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/node/order.hpp"
#include "bulkhead/node/report.hpp"
#include "bulkhead/wire/message.hpp"

namespace bulkhead::wire {

class AgentServer {
public:
    struct Peer {
        std::string node;
        std::string certificate;  // which of the node's it is: its fingerprint
    };

    // Called from several threads at once, but for one session by one at a time and in this order: admit, hello, any
    // number of reports, heartbeats and requests for renewal, gone. The first may come before start() has returned:
    // admit may wait for that. Otherwise return soon; calling back into the server from here is fine.
    struct Handler {
        virtual ~Handler() = default;
        // The node with this certificate (PEM; TLS has verified it against the fleet's CA), unless it is unknown or
        // revoked: auth::read_peer, then a look at the enrolled fingerprint.
        virtual Result<Peer> admit(std::string_view certificate) = 0;
        // The node's newest session; an older one of the same node is closed by itself. Answer with welcome or close.
        virtual void on_hello(const Peer& peer, std::uint64_t session, Hello&& hello) = 0;
        virtual void on_report(const std::string& node, std::uint64_t session, Report&& report) = 0;
        virtual void on_heartbeat(const std::string& node, std::uint64_t session, Heartbeat&& heartbeat) = 0;
        // The node asks for a new certificate (PKCS#10, PEM). Answer with renewed or not_renewed.
        virtual void on_renewal(const std::string& node, std::uint64_t session, std::string&& request) = 0;
        // What output_wanted asked for.
        virtual void on_output(const std::string& node, std::uint64_t session, Output&& output) = 0;
        // After every hello exactly once, whoever ended the session.
        virtual void on_gone(const std::string& node, std::uint64_t session, std::string_view why) = 0;
    };

    struct Options {
        std::string address = "0.0.0.0:0";        // port 0: any that is free
        std::string ca;                           // PEM: whose certificates are accepted
        std::string certificate;                  // PEM: the server's own
        std::string key;                          // PEM
        std::uint64_t first_session = 1;          // sessions are numbered upwards from here
        std::size_t sessions_max = 20'000;        // streams at once
        std::size_t queued_messages_max = 1'024;  // per session, waiting to be sent
        std::size_t queued_bytes_max = 1 << 20;
        Duration hello_within{10'000};  // of connecting; and how long closing waits for an agent that does not read
        ByteSize memory_max{0};         // of everything gRPC buffers; 0: 256 MiB and 256 KiB for each session
    };

    // The handler must outlive the server.
    static Result<std::unique_ptr<AgentServer>> start(const Options& options, Handler& handler);
    ~AgentServer();  // closes every session, waits for its on_gone, then returns

    std::uint16_t port() const;
    std::size_t sessions() const;  // that have said hello

    // To a session that is gone, all of these do nothing. What a session is sent arrives in the order of the calls.
    void welcome(std::uint64_t session, std::int64_t epoch, Duration heartbeat_every);
    // `invalid` when the order breaks a limit of the protocol (message.hpp): it can never be sent.
    Result<> send(std::uint64_t session, const Order& order);
    void acknowledge(std::uint64_t session, std::int64_t up_to);
    void renewed(std::uint64_t session, std::string certificate);  // PEM
    void not_renewed(std::uint64_t session, std::string_view why);
    void ask(std::uint64_t session, const OutputWanted& wanted);
    void close(std::uint64_t session, std::string_view why);
    // Whatever session the node has, welcome or not: for revocation.
    void close_node(std::string_view node, std::string_view why);

    struct State;

private:
    explicit AgentServer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace bulkhead::wire
