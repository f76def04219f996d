// The agent's line to the control plane: keeps one session open, for as long as it takes. The owner's loop calls
// wait(), and everything happens in there: connecting, heartbeats, coming back after a loss. A loop that hangs falls
// silent, as it should; gRPC's threads only fill and empty queues.
//
//     for (;;)
//         for (Link::Event& event : link->wait(timeout)) std::visit(..., event);
//
// Coming back: each attempt waits for a time drawn from a span that begins with `retry_min` and doubles up to
// `retry_max`, and then has `connect_within` for its handshake, twice that after it was not enough. So a fleet arrives
// over five to twenty seconds after a restart, and waits in line rather than begins again while the server works
// through the handshakes. link_bench.cpp measures what one costs and how long it takes a thousand agents to be back.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/model/telemetry.hpp"
#include "bulkhead/node/order.hpp"
#include "bulkhead/node/report.hpp"

namespace bulkhead::agent {

class Link {
public:
    struct Options {
        std::string address;      // host:port
        std::string server_name;  // in the server's certificate, where it is not the host of the address
        std::string ca;           // PEM
        std::string certificate;  // PEM: the node's own
        std::string key;          // PEM
        std::uint64_t seed = 0;   // of the spread of attempts; 0: from the operating system
        Duration retry_min{5'000};
        Duration retry_max{20'000};
        Duration connect_within{
            60'000};                 // as long as the server allows a handshake: ten thousand at once take it a while
        Duration quiet_max{30'000};  // no sign of life from the other end's TCP or HTTP/2: the line counts as lost
    };

    struct Connected {};  // the server knows this node: say hello
    struct Welcome {      // reports are heard from now on; send again what was not acknowledged
        std::int64_t epoch = 0;
        std::uint64_t session = 0;
    };
    struct OrderArrived {
        Order order;
    };
    struct Acked {  // reports up to this number are durable
        std::int64_t number = 0;
    };
    struct Renewed {              // what renew() asked for
        std::string certificate;  // PEM
    };
    struct NotRenewed {  // the session goes on under the old certificate
        std::string why;
    };
    struct OutputWanted {  // somebody wants to see what a command prints: answer with output()
        std::uint64_t request = 0;
        OutputPlace place;
    };
    struct Lost {     // the session is over, or an attempt failed; the next one is under way by itself
        Code code{};  // denied: the server does not want this node (revoked, expired, unknown)
        std::string why;
        Duration next_attempt_in;
    };
    using Event = std::variant<Connected, Welcome, OrderArrived, Acked, Renewed, NotRenewed, OutputWanted, Lost>;

    static Result<std::unique_ptr<Link>> open(const Options& options);
    ~Link();

    // Everything that happened, in order; as soon as there is something, or after the timeout.
    std::vector<Event> wait(std::chrono::milliseconds timeout);
    // Makes a wait() of another thread return now: for a signal, or a finished operation.
    void wake();

    // After Connected, once. `invalid`: it breaks a limit of the protocol. `unavailable`: not connected, or no longer;
    // then a Lost is among the events, and that is all there is to do.
    Result<> hello(const Hello& hello);
    // After Welcome; otherwise, and when the session is lost before it is acknowledged, it is the owner's to send
    // again.
    Result<> report(const Report& report);

    // After Welcome: asks for a new certificate (PKCS#10, PEM). One answer follows, Renewed or NotRenewed, unless the
    // session is lost before. `conflict`: it was asked already.
    Result<> renew(const std::string& request);

    // An answer to OutputWanted: a piece, or why there is none.
    Result<> output(std::uint64_t request, const Result<OutputPiece>& piece);

    // Asked before each heartbeat, by wait(), for what goes with it. Nothing, or what breaks a limit of the protocol,
    // and the heartbeat goes alone.
    using Measure = std::function<std::optional<Telemetry>()>;
    void measure_with(Measure measure);

    // For a renewed certificate: used from the next attempt on.
    void set_identity(std::string certificate, std::string key);
    // Gives the session up and begins anew.
    void reconnect(std::string why);

    struct State;

private:
    explicit Link(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace bulkhead::agent
