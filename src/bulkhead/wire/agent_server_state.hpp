// The inside of the server: every stream with its queue, and what they have in common. agent_session.cpp is one stream,
// agent_server.cpp is all of them.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "bulkhead/wire/agent_server.hpp"
#include "bulkhead/wire/message.hpp"
#include "bulkhead/wire/pieces.hpp"

namespace bulkhead::wire {

// One stream, from the certificate to the last byte. gRPC calls the On... functions, one at a time for reading and one
// for writing; everybody else calls send and close.
class Session final : public grpc::ServerGenericBidiReactor, public std::enable_shared_from_this<Session> {
public:
    Session(AgentServer::State& owner, grpc::CallbackServerContext& context, AgentServer::Peer peer)
        : owner_(owner), context_(context), peer_(std::move(peer)) {}

    void begin();
    const std::string& node() const { return peer_.node; }
    std::uint64_t number() const { return number_; }
    void set_number(std::uint64_t number) { number_ = number; }
    bool said_hello() const { return number_ != 0; }

    Result<> send(const Order& order);
    void send(const ControlMessage& message);
    void close(Code code, std::string_view why);
    void cut_off();  // an agent that does not read cannot be told why

    void OnReadDone(bool ok) override;
    void OnWriteDone(bool ok) override;
    void OnCancel() override;
    void OnDone() override;

private:
    enum class Line : std::uint8_t { good, broken };
    void hear(AgentMessage&& message);
    // All of these with the lock held.
    void enqueue(std::string&& bytes);
    void write_next();
    void begin_closing(Code code, std::string_view why, Line line = Line::good);
    void finish(Line line);

    AgentServer::State& owner_;
    grpc::CallbackServerContext& context_;  // until OnDone
    const AgentServer::Peer peer_;
    std::atomic<std::uint64_t> number_ = 0;  // written once
    grpc::ByteBuffer incoming_;
    Assembly assembly_;

    std::mutex mutex_;
    grpc::ByteBuffer outgoing_buffer_;
    Outbox outbox_;
    std::int64_t orders_sent_ = 0;
    bool writing_ = false;
    bool closing_ = false;  // Finish has been called, or will be when the write under way is done
    bool done_ = false;     // the context is gone
    Code code_{};
    std::string why_closed_;
};

// Every stream, and the sessions among them by number and by node. Locks are taken in this order: the hello order, one
// session, here; and while the handler runs, none but the hello order.
struct AgentServer::State {
    State(const Options& given, Handler& told) : options(given), handler(told) {}

    struct Service final : grpc::CallbackGenericService {
        explicit Service(State& owner) : state(owner) {}
        grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
            return state.receive(*context);
        }
        State& state;
    };

    grpc::ServerGenericBidiReactor* receive(grpc::GenericCallbackServerContext& context);
    std::shared_ptr<Session> find(std::uint64_t session) const;
    // A session that has said hello gets its number here; the one it replaces comes back, to be closed.
    std::shared_ptr<Session> enter(const std::shared_ptr<Session>& session);
    void leave(Session& session);
    void watch(const std::shared_ptr<Session>& session, bool closing);
    void watch_deadlines(const std::stop_token& stop);

    const Options options;
    Handler& handler;
    Service service{*this};
    std::unique_ptr<grpc::Server> server;
    int port = 0;

    std::mutex hello_order;  // held from giving a number to handing on the hello: nodes' hellos arrive in that order
    mutable std::mutex mutex;
    std::condition_variable_any changed;
    bool stopping = false;
    std::uint64_t next_session = options.first_session;
    std::unordered_map<Session*, std::shared_ptr<Session>> streams;
    std::unordered_map<std::uint64_t, std::shared_ptr<Session>> by_number;
    std::map<std::string, std::uint64_t, std::less<>> by_node;  // the newest of each
    struct Deadline {
        std::chrono::steady_clock::time_point at;
        std::weak_ptr<Session> session;
    };
    std::deque<Deadline> hello_due, close_due;  // each has one length, so each is in order
    std::jthread watcher;
};

}  // namespace bulkhead::wire
