#include "bulkhead/wire/agent_server.hpp"

#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <malloc.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "bulkhead/wire/agent_server_state.hpp"
#include "bulkhead/wire/buffer.hpp"
#include "bulkhead/wire/check.hpp"

namespace bulkhead::wire {
namespace {

using Clock = std::chrono::steady_clock;

// A caller that is turned away at the door.
class Refusal final : public grpc::ServerGenericBidiReactor {
public:
    explicit Refusal(const grpc::Status& status) { Finish(status); }
    void OnDone() override { delete this; }
};

std::string peer_certificate(const grpc::CallbackServerContext& context) {
    const auto auth = context.auth_context();
    if (!auth || !auth->IsPeerAuthenticated()) return {};
    const auto found = auth->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
    return found.size() == 1 ? std::string{found[0].data(), found[0].size()} : std::string{};
}

// An idle agent should cost as little as can be: no compression, no tracing, small buffers, windows that do not grow.
void make_frugal(grpc::ServerBuilder& builder) {
    for (const auto& [name, value] : std::initializer_list<std::pair<const char*, int>>{
             {GRPC_ARG_MAX_CONCURRENT_STREAMS, 4},
             {GRPC_ARG_HTTP2_BDP_PROBE, 0},
             {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65'535},
             {GRPC_ARG_HTTP2_HPACK_TABLE_SIZE_DECODER, 0},
             {GRPC_ARG_HTTP2_HPACK_TABLE_SIZE_ENCODER, 0},
             {GRPC_ARG_MAX_METADATA_SIZE, 4'096},
             {GRPC_ARG_TCP_READ_CHUNK_SIZE, 1'024},
             {GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, 256},
             {GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 16'384},
             {GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0},
             {GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0},
             {GRPC_ARG_ENABLE_CHANNELZ, 0},
             {GRPC_ARG_MAX_CHANNEL_TRACE_EVENT_MEMORY_PER_NODE, 0},
             // Agents ping; a line that is dead without a word is found from this side too.
             {GRPC_ARG_KEEPALIVE_TIME_MS, 120'000},
             {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000},
             {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000},
             // For those who connect and say nothing we understand; not shorter, because after a restart a whole fleet
             // waits in line for its handshakes.
             {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 60'000},
             // Two servers on one port would each get half of the agents.
             {GRPC_ARG_ALLOW_REUSEPORT, 0},
         })
        builder.AddChannelArgument(name, value);
}

}  // namespace

grpc::ServerGenericBidiReactor* AgentServer::State::receive(grpc::GenericCallbackServerContext& context) {
    if (context.method() != session_method)
        return new Refusal{{grpc::StatusCode::UNIMPLEMENTED, "agents speak on " + std::string{session_method}}};
    const std::string certificate = peer_certificate(context);
    if (certificate.empty()) return new Refusal{status_of(Code::denied, "show a certificate of the fleet")};
    auto peer = handler.admit(certificate);
    if (!peer) return new Refusal{status_of(peer.error().code, presentable(peer.error().what))};

    // Not make_shared: its memory would stay for as long as a deadline remembers it.
    std::shared_ptr<Session> session{new Session{*this, context, std::move(*peer)}};
    {
        const std::lock_guard lock{mutex};
        if (stopping) return new Refusal{status_of(Code::unavailable, "the control plane is stopping")};
        if (streams.size() >= options.sessions_max)
            return new Refusal{
                status_of(Code::exhausted, fmt::format("{} agents are connected, and no more fit", streams.size()))};
        streams.emplace(session.get(), session);
    }
    watch(session, false);
    session->begin();
    return session.get();
}

std::shared_ptr<Session> AgentServer::State::find(std::uint64_t session) const {
    const std::lock_guard lock{mutex};
    const auto found = by_number.find(session);
    return found == by_number.end() ? nullptr : found->second;
}

std::shared_ptr<Session> AgentServer::State::enter(const std::shared_ptr<Session>& session) {
    const std::lock_guard lock{mutex};
    session->set_number(next_session++);
    by_number.emplace(session->number(), session);
    const auto [place, first] = by_node.emplace(session->node(), session->number());
    if (first) return nullptr;
    const auto replaced = by_number.find(std::exchange(place->second, session->number()));
    return replaced == by_number.end() ? nullptr : replaced->second;
}

void AgentServer::State::leave(Session& session) {
    std::shared_ptr<Session> last;  // goes outside the lock
    const std::lock_guard lock{mutex};
    if (session.said_hello()) {
        by_number.erase(session.number());
        const auto newest = by_node.find(session.node());
        if (newest != by_node.end() && newest->second == session.number()) by_node.erase(newest);
    }
    const auto stream = streams.find(&session);
    last = std::move(stream->second);
    streams.erase(stream);
    changed.notify_all();
}

void AgentServer::State::watch(const std::shared_ptr<Session>& session, bool closing) {
    const std::lock_guard lock{mutex};
    (closing ? close_due : hello_due)
        .push_back({Clock::now() + std::chrono::milliseconds{options.hello_within.ms}, session});
    changed.notify_all();
}

void AgentServer::State::watch_deadlines(const std::stop_token& stop) {
    std::unique_lock lock{mutex};
    while (!stop.stop_requested()) {
        Clock::time_point next = Clock::time_point::max();
        std::vector<std::shared_ptr<Session>> silent, stuck;
        const auto collect = [&](std::deque<Deadline>& due, std::vector<std::shared_ptr<Session>>& late) {
            while (!due.empty() && due.front().at <= Clock::now()) {
                if (auto session = due.front().session.lock()) late.push_back(std::move(session));
                due.pop_front();
            }
            if (!due.empty()) next = std::min(next, due.front().at);
        };
        collect(hello_due, silent);
        collect(close_due, stuck);
        if (!silent.empty() || !stuck.empty()) {
            lock.unlock();
            for (const auto& session : silent)
                if (!session->said_hello()) session->close(Code::timeout, "the agent did not say hello in time");
            for (const auto& session : stuck) session->cut_off();
            silent.clear();
            stuck.clear();
            lock.lock();
        } else if (next == Clock::time_point::max()) {
            changed.wait(lock, stop, [&] { return !hello_due.empty() || !close_due.empty(); });
        } else {
            changed.wait_until(lock, stop, next, [] { return false; });
        }
    }
}

Result<std::unique_ptr<AgentServer>> AgentServer::start(const Options& options, Handler& handler) {
    // As Debian builds it, gRPC looks for deadlocks among its own locks whenever it takes one, in a graph of them all:
    // memory and time for every agent that is connected.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    // A node that asks for exactly the right number of answers can still have gRPC send it memory that was never
    // written to (pieces.hpp). So nothing of anybody else's is ever found in there: larger pieces of memory are
    // overwritten when they are handed out.
    mallopt(M_PERTURB, 0x5a);
    auto state = std::make_unique<State>(options, handler);
    grpc::SslServerCredentialsOptions tls{GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY};
    tls.pem_root_certs = options.ca;
    tls.pem_key_cert_pairs.push_back({options.key, options.certificate});
    grpc::ServerBuilder builder;
    make_frugal(builder);
    builder.SetMaxReceiveMessageSize(static_cast<int>(written_bytes_max));
    const std::int64_t memory = options.memory_max.bytes != 0
                                    ? options.memory_max.bytes
                                    : (std::int64_t{256} << 20) + static_cast<std::int64_t>(options.sessions_max << 18);
    builder.SetResourceQuota(grpc::ResourceQuota{"agents"}.Resize(static_cast<std::size_t>(memory)));
    builder.AddListeningPort(options.address, grpc::SslServerCredentials(tls), &state->port);
    builder.RegisterCallbackGenericService(&state->service);
    state->server = builder.BuildAndStart();
    if (!state->server || state->port == 0)
        return fail(Code::unavailable, fmt::format("agents cannot be served on {}", options.address),
                    "is the port taken, or one of certificate, key and CA damaged?");
    state->watcher = std::jthread{[&held = *state](const std::stop_token& stop) { held.watch_deadlines(stop); }};
    return std::unique_ptr<AgentServer>{new AgentServer{std::move(state)}};
}

AgentServer::AgentServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

AgentServer::~AgentServer() {
    std::vector<std::shared_ptr<Session>> open;
    {
        const std::lock_guard lock{state_->mutex};
        state_->stopping = true;
        for (const auto& [key, session] : state_->streams) open.push_back(session);
    }
    for (const auto& session : open) session->close(Code::unavailable, "the control plane is stopping");
    open.clear();
    state_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds{1});
    {
        std::unique_lock lock{state_->mutex};
        state_->changed.wait(lock, [&] { return state_->streams.empty(); });
    }
    state_->server->Wait();
}

std::uint16_t AgentServer::port() const { return static_cast<std::uint16_t>(state_->port); }

std::size_t AgentServer::sessions() const {
    const std::lock_guard lock{state_->mutex};
    return state_->by_number.size();
}

void AgentServer::welcome(std::uint64_t session, std::int64_t epoch, Duration heartbeat_every) {
    if (const auto found = state_->find(session)) found->send(Welcome{epoch, session, heartbeat_every});
}

Result<> AgentServer::send(std::uint64_t session, const Order& order) {
    const auto found = state_->find(session);
    return found ? found->send(order) : Result<>{};
}

void AgentServer::acknowledge(std::uint64_t session, std::int64_t up_to) {
    if (const auto found = state_->find(session)) found->send(Acknowledged{up_to});
}

void AgentServer::renewed(std::uint64_t session, std::string certificate) {
    if (const auto found = state_->find(session)) found->send(Renewed{std::move(certificate)});
}

void AgentServer::not_renewed(std::uint64_t session, std::string_view why) {
    if (const auto found = state_->find(session)) found->send(NotRenewed{std::string{why}});
}

void AgentServer::ask(std::uint64_t session, const OutputWanted& wanted) {
    if (const auto found = state_->find(session)) found->send(wanted);
}

void AgentServer::close(std::uint64_t session, std::string_view why) {
    if (const auto found = state_->find(session)) found->close(Code::unavailable, why);
}

void AgentServer::close_node(std::string_view node, std::string_view why) {
    std::vector<std::shared_ptr<Session>> its;
    {
        const std::lock_guard lock{state_->mutex};
        for (const auto& [key, session] : state_->streams)
            if (session->node() == node) its.push_back(session);
    }
    for (const auto& session : its) session->close(Code::denied, why);
}

}  // namespace bulkhead::wire
