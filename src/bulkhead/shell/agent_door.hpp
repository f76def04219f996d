// Between the agents' sessions and the commit loop: who may connect, what they say becomes events, and what the core
// decided leaves once it is durable.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "bulkhead/auth/ca.hpp"
#include "bulkhead/core/persisted.hpp"
#include "bulkhead/shell/issuer.hpp"
#include "bulkhead/shell/loop.hpp"
#include "bulkhead/shell/telemetry_board.hpp"
#include "bulkhead/wire/agent_server.hpp"

namespace bulkhead::shell {

// Which certificates are good: those that the enrolled, unrevoked keys were enrolled with, and those that follow them
// and were not used yet.
class NodeRegistry final : public Follower {
public:
    void loaded(const Reign& reign) override;
    void committed(const Batch& batch) override;
    // `denied`: the node is unknown, revoked, or has a newer certificate.
    Result<auth::PeerIdentity> admit(std::string_view certificate) const;

private:
    void take(const Row& row);

    mutable std::mutex mutex_;
    std::map<std::int64_t, std::string> names_;                    // node row to name
    std::map<std::string, std::int64_t, std::less<>> rows_;        // and back
    std::map<std::int64_t, std::map<std::int64_t, KeyRow>> keys_;  // node row to key rows
    std::map<std::int64_t, std::int64_t> key_nodes_;               // key row to node row
};

class AgentDoor final : public Follower, public wire::AgentServer::Handler {
public:
    AgentDoor(const NodeRegistry& registry, Duration heartbeat_every, Log& log)
        : registry_{registry}, heartbeat_every_{heartbeat_every}, log_{log} {}

    // Sessions wait until both are there.
    void open(Loop& loop, wire::AgentServer& server, Issuer issuer);

    void loaded(const Reign& reign) override;
    void allowed(const Effects& effects) override;

    Result<wire::AgentServer::Peer> admit(std::string_view certificate) override;
    void on_hello(const wire::AgentServer::Peer& peer, std::uint64_t session, Hello&& hello) override;
    void on_report(const std::string& node, std::uint64_t session, Report&& report) override;
    void on_heartbeat(const std::string& node, std::uint64_t session, wire::Heartbeat&& heartbeat) override;
    void on_renewal(const std::string& node, std::uint64_t session, std::string&& request) override;
    void on_output(const std::string& node, std::uint64_t session, wire::Output&& output) override;
    void on_gone(const std::string& node, std::uint64_t session, std::string_view why) override;

    // Asks a node for what a command prints there. Answered once, from any thread: by the node, or because it is gone.
    using OutputAnswer = std::function<void(Result<OutputPiece>)>;
    void read_output(const std::string& node, const OutputPlace& place, const OutputAnswer& answer);

    // What connected nodes measure of their devices.
    const TelemetryBoard& telemetry() const { return telemetry_; }
    // Until when the certificates are good that connected nodes came with, by node.
    std::map<std::string, Instant> certificate_ends();

private:
    // False: the node has asked not long ago.
    bool may_ask_for_renewal(const std::string& node);

    const NodeRegistry& registry_;
    const Duration heartbeat_every_;
    Log& log_;
    std::atomic<Loop*> loop_{nullptr};
    std::atomic<wire::AgentServer*> server_{nullptr};
    std::atomic<std::int64_t> epoch_{0};
    std::mutex mutex_;
    std::map<std::uint64_t, wire::AgentServer::Peer> sessions_;
    std::set<std::uint64_t> welcomed_;
    std::map<std::string, Instant> certificate_ends_;  // by fingerprint
    TelemetryBoard telemetry_;
    std::map<std::string, std::chrono::steady_clock::time_point> renewal_asked_;  // by node
    struct Asked {
        std::uint64_t session = 0;
        OutputAnswer answer;
        std::chrono::steady_clock::time_point at;
    };
    std::map<std::uint64_t, Asked> asked_;  // for output, by number
    std::uint64_t asked_last_ = 0;
    std::optional<Issuer> issuer_;  // as server_: once
};

}  // namespace bulkhead::shell
