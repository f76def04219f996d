#include "bulkhead/wire/message.hpp"

#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <google/protobuf/stubs/logging.h>

#include "bulkhead/wire/check.hpp"
#include "bulkhead/wire/convert.hpp"

namespace bulkhead::wire {
namespace {

// The words of a refusal or failure are the world's, and may be any bytes; the event they come with must arrive.
AgentMessage with_presentable_words(const AgentMessage& message) {
    AgentMessage out = message;
    if (Report* report = std::get_if<Report>(&out))
        std::visit([](auto& what) { what.why = presentable(what.why); }, report->what);
    if (Output* output = std::get_if<Output>(&out)) output->why = presentable(output->why);
    return out;
}
ControlMessage with_presentable_words(const ControlMessage& message) {
    ControlMessage out = message;
    if (GoAway* go_away = std::get_if<GoAway>(&out)) go_away->why = presentable(go_away->why);
    if (NotRenewed* refusal = std::get_if<NotRenewed>(&out)) refusal->why = presentable(refusal->why);
    return out;
}

template <class Proto, class Message>
Result<std::string> encoded(const Message& raw) {
    const Message message = with_presentable_words(raw);
    if (auto good = check(message); !good) return std::unexpected(good.error());
    google::protobuf::Arena arena;
    Proto& proto = *google::protobuf::Arena::CreateMessage<Proto>(&arena);
    to_proto(message, proto);
    std::string bytes;
    // What was just checked can still be too large as a whole.
    if (proto.ByteSizeLong() > message_bytes_max)
        return fail(Code::invalid, fmt::format("the message has {} bytes; at most {} are allowed", proto.ByteSizeLong(),
                                               message_bytes_max));
    if (!proto.SerializeToString(&bytes)) return fail(Code::invalid, "the message cannot be written");
    return bytes;
}

template <class Message, class Proto>
Result<Message> decoded(std::string_view bytes) {
    // protobuf would write to stderr what we return as an error: whoever sends rubbish could fill the log with it.
    [[maybe_unused]] static auto* const silenced = google::protobuf::SetLogHandler(nullptr);
    if (bytes.size() > message_bytes_max)
        return fail(Code::invalid,
                    fmt::format("the message has {} bytes; at most {} are allowed", bytes.size(), message_bytes_max));
    google::protobuf::Arena arena;
    Proto& proto = *google::protobuf::Arena::CreateMessage<Proto>(&arena);
    if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
        return fail(Code::invalid, fmt::format("{} bytes are not a message of this protocol", bytes.size()));
    Result<Message> message = from_proto(std::move(proto));
    if (!message) return message;
    if (auto good = check(*message); !good) return std::unexpected(good.error());
    return message;
}

}  // namespace

Result<std::string> encode(const AgentMessage& message) { return encoded<proto::AgentMessage>(message); }
Result<std::string> encode(const ControlMessage& message) { return encoded<proto::ControlMessage>(message); }
Result<AgentMessage> decode_agent_message(std::string_view bytes) {
    return decoded<AgentMessage, proto::AgentMessage>(bytes);
}
Result<ControlMessage> decode_control_message(std::string_view bytes) {
    return decoded<ControlMessage, proto::ControlMessage>(bytes);
}

}  // namespace bulkhead::wire
