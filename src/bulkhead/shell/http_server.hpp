// HTTPS for people and programs: TLS 1.2 or newer, HTTP/1.1 with keep-alive, and an end to everything: headers, bodies,
// patience, connections. What a request means is the door's business; this is only how it arrives and leaves.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "bulkhead/auth/token.hpp"
#include "bulkhead/base/quantity.hpp"
#include "bulkhead/shell/http.hpp"
#include "bulkhead/shell/log.hpp"

namespace bulkhead::shell {

// Where a request is worked on. Each lane has threads and a length of its own, so that whoever asks for something large
// waits behind others who did the same, and not in the way of anything else.
enum class Lane : std::uint8_t {
    quick,   // at once, on the thread that read it
    write,   // parses what is to be applied
    enrol,   // the same, of strangers
    read,    // takes disk, or much parsing and thought
    backup,  // takes as long as it takes
};
inline constexpr std::size_t lanes = 5;

// A request that may come in: which route, and who asks.
struct Admission {
    std::size_t route = 0;  // of the door's own table
    std::map<std::string, std::string, std::less<>> parameters;
    auth::Caller caller;  // without a token_id: a stranger
    Lane lane = Lane::quick;
    std::size_t body_max = 0;
};

class HttpDoor {
public:
    virtual ~HttpDoor() = default;
    // Before the body is read. A refusal is sent as it is.
    virtual std::expected<Admission, Response> admit(const Head& head) = 0;
    // Answers once, at once or later, on any thread.
    virtual void handle(const Admission& admission, Request request, Respond respond) = 0;
    // What was answered, for the counters. `admission` null: it was refused before.
    virtual void note(const Admission* admission, int status, std::int64_t microseconds) = 0;
};

class HttpServer {
public:
    struct Options {
        std::string address = "127.0.0.1";
        std::uint16_t port = 0;   // 0: any that is free
        std::string certificate;  // PEM, the chain up to the fleet's CA
        std::string key;          // PEM
        int threads = 2;
        int readers = 2;  // threads of that lane; the others have one each
        std::size_t header_bytes_max = 16 << 10;
        std::size_t body_bytes_max = 4 << 20;
        std::size_t connections_max = 1024;
        std::size_t strangers_max = 768;  // connections that have not shown a token
        std::size_t strangers_of_one_address_max = 64;
        std::size_t lane_max = 64;        // requests in one lane, from taken to answered
        std::size_t lane_share_max = 16;  // of one token among them
        std::size_t streams_max = 512;
        Duration handshake_within{10'000};
        Duration header_within{10'000};  // from its first byte
        Duration body_within{30'000};
        Duration answer_within{60'000};  // except for backups
        Duration write_within{30'000};   // one answer, or one piece of a stream
        Duration idle{60'000};           // between two requests
        Duration stream_pulse{15'000};   // a sign of life on a stream that has nothing to say
    };

    // The door must outlive the server.
    static Result<std::unique_ptr<HttpServer>> start(Options options, HttpDoor& door, Log& log);
    ~HttpServer();

    std::uint16_t port() const;
    std::size_t connections() const;
    std::size_t streams() const;
    // No new connections; those that wait are closed, answers under way get a moment. Threads have ended on return.
    void stop();

    struct State;

private:
    explicit HttpServer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace bulkhead::shell
