#include "bulkhead/wire/pieces.hpp"

#include <fmt/format.h>

#include <utility>

#include "bulkhead/wire/agent.pb.h"
#include "bulkhead/wire/message.hpp"

namespace bulkhead::wire {
namespace {

namespace proto = bulkhead::agent::v1;

// `piece` has one number in both directions, and so one set of bytes.
constexpr int piece_field = proto::ControlMessage::kPieceFieldNumber;
static_assert(int{proto::AgentMessage::kPieceFieldNumber} == piece_field && piece_field < 16);
constexpr char piece_tag = static_cast<char>(piece_field << 3 | 2);

}  // namespace

void Outbox::put(std::string&& message) {
    bytes_ += message.size();
    waiting_.push_back(std::move(message));
}

void Outbox::clear() {
    waiting_.clear();
    bytes_ = taken_ = 0;
}

std::string Outbox::take() {
    std::string& first = waiting_.front();
    std::string out;
    if (first.size() <= piece_bytes_max) {
        bytes_ -= first.size();
        out = std::move(first);
        waiting_.pop_front();
        return out;
    }
    const std::string_view part = std::string_view{first}.substr(taken_, piece_bytes_max);
    taken_ += part.size();
    bytes_ -= part.size();
    proto::ControlMessage piece;
    piece.mutable_piece()->set_bytes(part.data(), part.size());
    piece.mutable_piece()->set_last(taken_ == first.size());
    piece.SerializeToString(&out);
    if (taken_ == first.size()) {
        waiting_.pop_front();
        taken_ = 0;
    }
    return out;
}

Result<std::optional<std::string>> Assembly::add(std::string_view arrived) {
    if (arrived.empty() || arrived.front() != piece_tag) {
        begun_ = {};
        return std::string{arrived};
    }
    proto::ControlMessage message;
    if (!message.ParseFromArray(arrived.data(), static_cast<int>(arrived.size())) || !message.has_piece() ||
        message.piece().bytes().empty())
        return fail(Code::invalid, fmt::format("{} bytes are not a piece of a message", arrived.size()));
    if (begun_.size() + message.piece().bytes().size() > message_bytes_max)
        return fail(Code::invalid, fmt::format("the pieces of a message have more than {} bytes", message_bytes_max));
    begun_ += message.piece().bytes();
    if (!message.piece().last()) return std::nullopt;
    return std::exchange(begun_, {});
}

}  // namespace bulkhead::wire
