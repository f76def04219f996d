#include "bulkhead/agent/link_stream.hpp"

#include <fmt/format.h>

#include <utility>

#include "bulkhead/wire/buffer.hpp"

namespace bulkhead::agent {
namespace {

constexpr std::size_t queued_messages_max = 65'536;
constexpr std::size_t queued_bytes_max = 16 << 20;
constexpr std::size_t inbox_items_max = 1'024;

}  // namespace

bool Inbox::put(Item item) {
    const std::lock_guard lock{mutex};
    const bool full = items.size() >= inbox_items_max;
    if (full) paused = item.attempt;
    items.push_back(std::move(item));
    changed.notify_all();
    return !full;
}

std::shared_ptr<LinkStream> LinkStream::begin(std::shared_ptr<grpc::Channel> channel, std::uint64_t attempt,
                                              std::shared_ptr<Inbox> inbox) {
    {
        const std::lock_guard lock{inbox->mutex};
        ++inbox->streams;
    }
    std::shared_ptr<LinkStream> stream{new LinkStream{std::move(channel), attempt, std::move(inbox)}};
    stream->self_ = stream;
    stream->stub_.PrepareBidiStreamingCall(&stream->context_, wire::session_method, {}, stream.get());
    stream->AddHold();
    stream->StartRead(&stream->incoming_);
    stream->StartCall();
    return stream;
}

bool LinkStream::send(std::string bytes) {
    const std::lock_guard lock{mutex_};
    if (!held_) return true;  // it is over, and its Ended is on the way
    outbox_.put(std::move(bytes));
    if (outbox_.messages() > queued_messages_max || outbox_.bytes() > queued_bytes_max) return false;
    if (!writing_) write_next();
    return true;
}

void LinkStream::write_next() {
    if (outbox_.empty() || !held_) return;
    outgoing_buffer_ = wire::to_buffer(outbox_.take());
    writing_ = true;
    StartWrite(&outgoing_buffer_, wire::one_by_one());
}

void LinkStream::read_on() {
    const std::lock_guard lock{mutex_};
    if (held_) StartRead(&incoming_);
}

void LinkStream::end(Code code, std::string why) {
    const std::lock_guard lock{mutex_};
    if (ended_.why.empty()) ended_ = {code, std::move(why)};
    context_.TryCancel();
    let_go();
}

void LinkStream::let_go() {
    if (std::exchange(held_, false)) RemoveHold();
}

void LinkStream::OnReadInitialMetadataDone(bool ok) {
    if (!ok) return;
    const std::lock_guard lock{inbox_->mutex};
    inbox_->items.push_back({attempt_, Admitted{}});
    inbox_->changed.notify_all();
}

void LinkStream::OnReadDone(bool ok) {
    if (!ok) {
        const std::lock_guard lock{mutex_};
        let_go();
        return;
    }
    const auto no_message = [&](const Error& error) {
        end(error.code, "the server sent what is no message: " + error.what);
    };
    auto whole = wire::from_buffer(incoming_, [&](std::string_view bytes) { return assembly_.add(bytes); });
    if (!whole) return no_message(whole.error());
    if (!*whole) return read_on();  // more is to come
    auto message = wire::decode_control_message(**whole);
    if (!message) return no_message(message.error());
    if (inbox_->put({attempt_, std::move(*message)})) read_on();
}

void LinkStream::OnWriteDone(bool ok) {
    const std::lock_guard lock{mutex_};
    writing_ = false;
    outgoing_buffer_.Clear();
    if (!ok)
        let_go();
    else
        write_next();
}

void LinkStream::OnDone(const grpc::Status& status) {
    Ended ended;
    {
        const std::lock_guard lock{mutex_};
        ended = ended_.why.empty() ? Ended{wire::code_of(status.error_code()), status.error_message()} : ended_;
    }
    if (ended.why.empty()) ended.why = "the server ended the session";
    const std::shared_ptr<Inbox> inbox = inbox_;  // from here on this stream may be destroyed at any time
    const std::lock_guard lock{inbox->mutex};
    inbox->items.push_back({attempt_, std::move(ended)});
    inbox->finished.push_back(std::move(self_));
    --inbox->streams;
    inbox->changed.notify_all();
}

}  // namespace bulkhead::agent
