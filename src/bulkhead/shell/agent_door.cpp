#include "bulkhead/shell/agent_door.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/auth/ca.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/shell/catalog.hpp"
#include "bulkhead/shell/machine_clock.hpp"

namespace bulkhead::shell {

void NodeRegistry::take(const Row& row) {
    if (row.table == Table::node) {
        if (const auto old = names_.find(row.key); old != names_.end()) {
            if (!row.erased) return;  // a node keeps its name
            rows_.erase(old->second);
            names_.erase(old);
        } else if (!row.erased) {
            const auto object = read_object(row);
            invariant(object.has_value(), "a stored node can be read");
            names_[row.key] = (*object)->name;
            rows_[(*object)->name] = row.key;
        }
    } else if (row.table == Table::key) {
        if (const auto old = key_nodes_.find(row.key); old != key_nodes_.end()) {
            keys_[old->second].erase(row.key);
            key_nodes_.erase(old);
        }
        if (row.erased) return;
        auto key = from_json<KeyRow>("a node's key", row.body, own_text);
        invariant(key.has_value(), "a stored key can be read");
        key_nodes_[row.key] = key->node;
        keys_[key->node].insert_or_assign(row.key, *std::move(key));
    }
}

void NodeRegistry::loaded(const Reign& reign) {
    const std::lock_guard lock{mutex_};
    names_.clear();
    rows_.clear();
    keys_.clear();
    key_nodes_.clear();
    for (const Row& row : reign.rows) take(row);
}

void NodeRegistry::committed(const Batch& batch) {
    const std::lock_guard lock{mutex_};
    for (const Row& row : batch.rows) take(row);
}

Result<auth::PeerIdentity> NodeRegistry::admit(std::string_view certificate) const {
    auto peer = auth::read_peer(certificate);
    if (!peer) return fail(Code::denied, peer.error().what, "enrol the node");
    const std::lock_guard lock{mutex_};
    const auto row = rows_.find(peer->node);
    if (row == rows_.end())
        return fail(Code::denied, fmt::format("node {} is not enrolled here", peer->node), "enrol it");
    if (const auto keys = keys_.find(row->second); keys != keys_.end())
        for (const auto& [number, key] : keys->second)
            if (!key.retired && (key.certificate == peer->fingerprint || key.renewed == peer->fingerprint)) return peer;
    return fail(Code::denied, fmt::format("the certificate of node {} is not good any more", peer->node),
                "it was revoked, or the node has a newer one: use that, or enrol it again");
}

void AgentDoor::open(Loop& loop, wire::AgentServer& server, Issuer issuer) {
    issuer_.emplace(std::move(issuer));
    loop_.store(&loop);
    server_.store(&server);
    server_.notify_all();
}

// The core knows no session any more: whoever is connected says hello again.
void AgentDoor::loaded(const Reign& reign) {
    epoch_.store(reign.epoch);
    wire::AgentServer* const server = server_.load();
    if (server == nullptr) return;
    std::map<std::uint64_t, wire::AgentServer::Peer> open;
    {
        const std::lock_guard lock{mutex_};
        open = sessions_;
    }
    for (const auto& [session, peer] : open) server->close(session, "the control plane starts anew; come back");
}

void AgentDoor::allowed(const Effects& effects) {
    wire::AgentServer* const server = server_.load();
    if (server == nullptr) return;
    for (const Effects::Welcome& welcome : effects.welcomes) {
        server->welcome(welcome.session, epoch_.load(), heartbeat_every_);
        const std::lock_guard lock{mutex_};
        if (sessions_.contains(welcome.session)) welcomed_.insert(welcome.session);
    }
    for (const Effects::Acknowledge& ack : effects.acknowledgements) server->acknowledge(ack.session, ack.number);
    for (const Effects::ToNode& order : effects.orders)
        if (const auto sent = server->send(order.session, order.order); !sent)
            log_.error("an order cannot be sent", {{"node", order.node}, {"what", sent.error().what}});
    for (const Effects::Close& close : effects.closes) server->close(close.session, close.why);
}

Result<wire::AgentServer::Peer> AgentDoor::admit(std::string_view certificate) {
    server_.wait(nullptr);  // only in the moment between listening and open()
    auto peer = registry_.admit(certificate);
    if (!peer) {
        log_.warning("an agent was turned away", {{"what", peer.error().what}});
        return std::unexpected(peer.error());
    }
    {
        const std::lock_guard lock{mutex_};
        certificate_ends_[peer->fingerprint] = peer->validity.until;
    }
    return wire::AgentServer::Peer{std::move(peer->node), std::move(peer->fingerprint)};
}

void AgentDoor::on_hello(const wire::AgentServer::Peer& peer, std::uint64_t session, Hello&& hello) {
    {
        const std::lock_guard lock{mutex_};
        sessions_[session] = peer;
    }
    log_.info("an agent says hello",
              {{"node", peer.node}, {"session", static_cast<std::int64_t>(session)}, {"version", hello.agent_version}});
    if (const auto told = loop_.load()->tell(AgentHello{peer.node, session, std::move(hello), peer.certificate}); !told)
        server_.load()->close(session, told.error().what);
}

void AgentDoor::on_report(const std::string& node, std::uint64_t session, Report&& report) {
    // What does not get in is sent again after the next hello: everything not acknowledged is.
    if (const auto told = loop_.load()->tell(AgentReport{node, session, std::move(report)}); !told)
        server_.load()->close(session, told.error().what);
}

void AgentDoor::on_heartbeat(const std::string& node, std::uint64_t session, wire::Heartbeat&& heartbeat) {
    if (heartbeat.telemetry) telemetry_.put(node, session, std::move(*heartbeat.telemetry), machine_clock());
    static_cast<void>(loop_.load()->tell(AgentHeartbeat{node, session}));  // the next one will do
}

bool AgentDoor::may_ask_for_renewal(const std::string& node) {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock{mutex_};
    const auto [asked, first] = renewal_asked_.emplace(node, now);
    if (!first && now - asked->second < std::chrono::milliseconds{issuer_->between_renewals().ms}) return false;
    asked->second = now;
    return true;
}

// The certificate leaves when it is durable that it is good; whether this session may ask is the core's to say, after
// everything that happened before.
void AgentDoor::on_renewal(const std::string& node, std::uint64_t session, std::string&& request) {
    wire::AgentServer& server = *server_.load();
    if (!may_ask_for_renewal(node))  // without a line in our log: it could be filled that way
        return server.not_renewed(session, fmt::format("node {} asks for a certificate too often: once in {} is enough",
                                                       node, print(issuer_->between_renewals())));
    const auto refuse = [this, &server, node, session](const Error& why) {
        log_.warning("a certificate is not renewed", {{"node", node}, {"what", why.what}});
        if (why.code == Code::unavailable || why.code == Code::exhausted) {  // nothing that the node has done
            const std::lock_guard lock{mutex_};
            renewal_asked_.erase(node);
        }
        server.not_renewed(session, why.what);
    };
    auto issued = issuer_->issue(request, node, machine_clock());
    if (!issued) return refuse(issued.error());
    std::string shown;
    {
        const std::lock_guard lock{mutex_};
        if (const auto peer = sessions_.find(session); peer != sessions_.end()) shown = peer->second.certificate;
    }
    const auto taken = loop_.load()->submit(
        "node:" + node,
        command::Renew{.node = node, .session = session, .shown = shown, .renewed = issued->fingerprint},
        [this, &server, node, session, refuse, certificate = std::move(issued->certificate)](const Answer& answer) {
            if (!answer.outcome) return refuse(answer.outcome.error());
            log_.info("a certificate is renewed", {{"node", node}, {"session", static_cast<std::int64_t>(session)}});
            server.renewed(session, certificate);
        });
    if (!taken) refuse(taken.error());
}

void AgentDoor::read_output(const std::string& node, const OutputPlace& place, const OutputAnswer& answer) {
    constexpr std::ptrdiff_t asked_max = 8;  // of one node: its answers share a line with its reports
    constexpr std::chrono::seconds patience{20};
    std::uint64_t session = 0, request = 0;
    bool full = false;
    std::vector<OutputAnswer> late;
    {
        const std::lock_guard lock{mutex_};
        const auto now = std::chrono::steady_clock::now();
        for (auto asked = asked_.begin(); asked != asked_.end();) {
            if (now - asked->second.at < patience) break;  // they are in order
            late.push_back(std::move(asked->second.answer));
            asked = asked_.erase(asked);
        }
        for (const auto& [number, peer] : sessions_)
            if (peer.node == node && welcomed_.contains(number)) session = number;  // the newest
        full = std::ranges::count(asked_, session, [](const auto& asked) { return asked.second.session; }) >= asked_max;
        if (session != 0 && !full) {
            request = ++asked_last_;
            asked_[request] = {session, answer, now};
        }
    }
    for (const OutputAnswer& unheard : late) unheard(fail(Code::timeout, "the node did not answer", "ask again"));
    if (session != 0 && full)
        return answer(fail(Code::exhausted,
                           fmt::format("node {} is asked for output {} times already", node, asked_max), "ask again"));
    if (session == 0)
        return answer(fail(Code::unavailable, fmt::format("node {} is not connected", node),
                           "its command goes on; ask again when `bulkhead fleet` shows the node"));
    server_.load()->ask(session, {request, place});
}

void AgentDoor::on_output(const std::string& node, std::uint64_t session, wire::Output&& output) {
    OutputAnswer answer;
    {
        const std::lock_guard lock{mutex_};
        const auto asked = asked_.find(output.request);
        if (asked == asked_.end() || asked->second.session != session) return;  // nobody asked this node for it
        answer = std::move(asked->second.answer);
        asked_.erase(asked);
    }
    if (output.why.empty()) return answer(std::move(output.piece));
    answer(fail(Code::not_found, fmt::format("node {}: {}", node, output.why), ""));
}

std::map<std::string, Instant> AgentDoor::certificate_ends() {
    const std::lock_guard lock{mutex_};
    std::map<std::string, Instant> out;
    std::map<std::string, Instant> still;
    for (const auto& [session, peer] : sessions_)
        if (const auto ends = certificate_ends_.find(peer.certificate); ends != certificate_ends_.end()) {
            out[peer.node] = ends->second;  // of the newest session
            still.insert(*ends);
        }
    // Those that nobody is connected with are forgotten, but for the few who are just coming in.
    if (certificate_ends_.size() > 2 * still.size() + 64) certificate_ends_ = std::move(still);
    return out;
}

void AgentDoor::on_gone(const std::string& node, std::uint64_t session, std::string_view why) {
    telemetry_.forget(node, session);
    std::vector<OutputAnswer> unanswered;
    {
        const std::lock_guard lock{mutex_};
        sessions_.erase(session);
        welcomed_.erase(session);
        for (auto asked = asked_.begin(); asked != asked_.end();) {
            if (asked->second.session != session) {
                ++asked;
                continue;
            }
            unanswered.push_back(std::move(asked->second.answer));
            asked = asked_.erase(asked);
        }
    }
    for (const OutputAnswer& answer : unanswered)
        answer(fail(Code::unavailable, fmt::format("node {} went away", node), "ask again when it is back"));
    log_.info("an agent is gone", {{"node", node}, {"session", static_cast<std::int64_t>(session)}, {"why", why}});
    static_cast<void>(loop_.load()->tell(AgentGone{node, session}));  // a core that is being rebuilt knows no session
}

}  // namespace bulkhead::shell
