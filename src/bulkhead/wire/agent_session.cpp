#include <fmt/format.h>

#include <utility>

#include "bulkhead/wire/agent_server_state.hpp"
#include "bulkhead/wire/buffer.hpp"
#include "bulkhead/wire/check.hpp"

namespace bulkhead::wire {

void Session::begin() {
    const std::lock_guard lock{mutex_};
    if (closing_) return;        // the server is stopping
    StartSendInitialMetadata();  // tells the agent that it was admitted
    StartRead(&incoming_);
}

// Numbered under the lock, so that the numbers go out in order.
Result<> Session::send(const Order& order) {
    const std::lock_guard lock{mutex_};
    if (closing_) return {};
    auto bytes = encode(ControlMessage{NumberedOrder{orders_sent_ + 1, order}});
    if (!bytes) return std::unexpected(bytes.error());
    ++orders_sent_;
    enqueue(std::move(*bytes));
    return {};
}

void Session::send(const ControlMessage& message) {
    auto bytes = encode(message);
    invariant(bytes.has_value(), "what is said of our own accord is always within the limits");
    const std::lock_guard lock{mutex_};
    if (!closing_) enqueue(std::move(*bytes));
}

void Session::close(Code code, std::string_view why) {
    const std::lock_guard lock{mutex_};
    begin_closing(code, why);
}

void Session::cut_off() {
    const std::lock_guard lock{mutex_};
    if (!done_) context_.TryCancel();
}

void Session::OnReadDone(bool ok) {
    if (!ok) return close(Code::unavailable, "the agent ended the stream");
    if (auto whole = from_buffer(incoming_, [&](std::string_view bytes) { return assembly_.add(bytes); }); !whole)
        close(whole.error().code, whole.error().what);
    else if (!*whole)
        ;  // more is to come
    else if (auto message = decode_agent_message(**whole); !message)
        close(message.error().code, message.error().what);
    else
        hear(std::move(*message));
    const std::lock_guard lock{mutex_};
    if (!closing_) StartRead(&incoming_);
}

void Session::OnWriteDone(bool ok) {
    const std::lock_guard lock{mutex_};
    writing_ = false;
    outgoing_buffer_.Clear();
    if (closing_) return finish(ok ? Line::good : Line::broken);
    if (!ok) return begin_closing(Code::unavailable, "the line to the agent broke", Line::broken);
    write_next();
}

void Session::OnCancel() { close(Code::unavailable, "the line to the agent broke"); }

void Session::OnDone() {
    {
        const std::lock_guard lock{mutex_};
        done_ = true;
    }
    if (said_hello()) owner_.handler.on_gone(node(), number_, why_closed_);
    owner_.leave(*this);  // deletes this
}

void Session::hear(AgentMessage&& message) {
    {
        const std::lock_guard lock{mutex_};
        if (closing_) return;
    }
    if (Hello* hello = std::get_if<Hello>(&message)) {
        if (said_hello()) return close(Code::invalid, "the agent said hello twice");
        const std::lock_guard order{owner_.hello_order};
        if (const auto replaced = owner_.enter(shared_from_this()))
            replaced->close(Code::conflict, "the node has opened a newer session");
        owner_.handler.on_hello(peer_, number_, std::move(*hello));
    } else if (!said_hello()) {
        close(Code::invalid, "the agent spoke before its hello");
    } else if (Report* report = std::get_if<Report>(&message)) {
        owner_.handler.on_report(node(), number_, std::move(*report));
    } else if (Output* output = std::get_if<Output>(&message)) {
        owner_.handler.on_output(node(), number_, std::move(*output));
    } else if (RenewalRequest* renewal = std::get_if<RenewalRequest>(&message)) {
        owner_.handler.on_renewal(node(), number_, std::move(renewal->request));
    } else {
        owner_.handler.on_heartbeat(node(), number_, std::move(std::get<Heartbeat>(message)));
    }
}

void Session::enqueue(std::string&& bytes) {
    outbox_.put(std::move(bytes));
    if (outbox_.messages() > owner_.options.queued_messages_max || outbox_.bytes() > owner_.options.queued_bytes_max)
        return begin_closing(Code::exhausted, fmt::format("the agent does not read: {} messages of {} bytes wait",
                                                          outbox_.messages(), outbox_.bytes()));
    if (!writing_) write_next();
}

void Session::write_next() {
    if (outbox_.empty()) return;
    outgoing_buffer_ = to_buffer(outbox_.take());
    writing_ = true;
    StartWrite(&outgoing_buffer_, one_by_one());
}

void Session::begin_closing(Code code, std::string_view why, Line line) {
    if (closing_) return;
    closing_ = true;
    code_ = code;
    why_closed_ = presentable(why);
    outbox_.clear();
    if (!writing_) finish(line);  // otherwise when the write is done: gRPC takes one at a time
    owner_.watch(shared_from_this(), true);
}

void Session::finish(Line line) {
    const grpc::Status status = status_of(code_, why_closed_);
    auto words = encode(ControlMessage{GoAway{why_closed_}});
    if (line == Line::broken || !words) return Finish(status);
    outgoing_buffer_ = to_buffer(*words);
    StartWriteAndFinish(&outgoing_buffer_, {}, status);
}

}  // namespace bulkhead::wire
