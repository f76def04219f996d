// The control plane as one thing that starts and stops: store, core, audit log, HTTPS for people, gRPC for agents.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/shell/log.hpp"
#include "bulkhead/shell/oidc_options.hpp"

namespace bulkhead::shell {

struct ServerOptions {
    std::string data;                   // directory; made with mode 0700 when it is missing
    std::string address = "127.0.0.1";  // to listen on
    std::uint16_t port = 7443;          // HTTPS; 0: any free one
    std::uint16_t agent_port = 7444;    // gRPC; 0: any free one
    std::vector<std::string> names;     // under which clients and agents reach it, besides localhost and the address
    std::string log_origin;             // of the audit log; empty: "bulkhead/" and a random name, made once
    Duration tick{1000};
    Duration silent_after{30'000};           // a node not heard of for so long is fenced
    Duration lost_after{300'000};            // and its leases are placed elsewhere
    bool simulated_fleet = false;            // the word of simulated nodes stands for evidence; the grade says so
    bool sync = true;                        // false: a power cut may lose everything; for tests
    std::int64_t requests_per_second = 200;  // of one token; twice as many at once
    // A minute to ten years. Nodes renew theirs in time.
    Duration node_certificate_lasts = Duration::days(365);
    OidcOptions oidc;
};

// Before a backup is put in the store's place: whoever starts next, after whatever crash, leases nothing before every
// node was heard of. The server takes the mark away when the store itself remembers it.
std::string restored_mark(const std::string& data);
Result<> mark_restored(const std::string& data);

class Server {
public:
    // Makes what the first start needs (keys, certificate authority, bootstrap token), then opens all doors.
    static Result<std::unique_ptr<Server>> start(ServerOptions options, Log& log);
    ~Server();  // stops

    std::uint16_t port() const;
    std::uint16_t agent_port() const;
    std::string url() const;           // "https://127.0.0.1:7443"
    std::string token_file() const;    // the bootstrap token, mode 0600
    std::string ca_file() const;       // PEM
    std::string verifier_key() const;  // of the audit log, as others are told to trust it
    std::string tiles() const;         // where it is published

    // SIGINT and SIGTERM wait for wait(). Before start(), so that every thread inherits it.
    static void hold_signals();
    // Blocks until one of them arrives, or another control plane has taken over: then the error says so.
    Result<> wait();
    void stop();

private:
    struct State;
    explicit Server(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace bulkhead::shell
