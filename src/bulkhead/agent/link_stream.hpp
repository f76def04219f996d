// One attempt at a session: a gRPC stream and its two queues. Everything that happens goes into an inbox, under the
// number of the attempt; link.cpp makes sense of it.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/wire/message.hpp"
#include "bulkhead/wire/pieces.hpp"

namespace bulkhead::agent {

struct Admitted {};  // the server has answered: it knows our certificate
struct Ended {
    Code code{};
    std::string why;
};

class LinkStream;

struct Inbox {
    struct Item {
        std::uint64_t attempt = 0;
        std::variant<Admitted, wire::ControlMessage, Ended> what;
    };
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Item> items;
    bool woken = false;
    std::uint64_t paused = 0;  // the attempt that reads no further until the items are taken
    int streams = 0;           // whose last word is still due
    // Streams whose last word is among the items. Whoever takes the items destroys them: a channel that is destroyed by
    // one of gRPC's own threads may be the last of the process, and then that thread would wait for itself.
    std::vector<std::shared_ptr<LinkStream>> finished;

    // False when it is full: read no further, whoever empties it calls read_on.
    bool put(Item item);
};

class LinkStream final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
public:
    static std::shared_ptr<LinkStream> begin(std::shared_ptr<grpc::Channel> channel, std::uint64_t attempt,
                                             std::shared_ptr<Inbox> inbox);

    // False when more waits to be sent than is reasonable: the server does not read.
    bool send(std::string bytes);
    void read_on();  // once after the inbox was full
    // Ends it from our side; its Ended still comes, with this reason.
    void end(Code code, std::string why);

    void OnReadInitialMetadataDone(bool ok) override;
    void OnReadDone(bool ok) override;
    void OnWriteDone(bool ok) override;
    void OnDone(const grpc::Status& status) override;

private:
    LinkStream(std::shared_ptr<grpc::Channel> channel, std::uint64_t attempt, std::shared_ptr<Inbox> inbox)
        : channel_(std::move(channel)), stub_(channel_), attempt_(attempt), inbox_(std::move(inbox)) {}
    void let_go();      // no further operation will be started from outside; locked
    void write_next();  // locked

    std::shared_ptr<grpc::Channel> channel_;
    grpc::GenericStub stub_;
    grpc::ClientContext context_;
    const std::uint64_t attempt_;
    const std::shared_ptr<Inbox> inbox_;
    std::shared_ptr<LinkStream> self_;  // until OnDone
    grpc::ByteBuffer incoming_;
    wire::Assembly assembly_;

    std::mutex mutex_;
    grpc::ByteBuffer outgoing_buffer_;
    wire::Outbox outbox_;
    bool writing_ = false;
    bool held_ = true;
    Ended ended_;  // our own reason, when we ended it
};

}  // namespace bulkhead::agent
