// All that an agent may ask of its hands, and all that they answer. The hands run as root and the agent speaks to a
// network, so a request is outside input: after bytes that are no request they end, and a request that breaks a limit
// they refuse. There is nothing in one that names a file, a program or a setting of the hands themselves: those come
// from their own command line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "bulkhead/agent/hardware.hpp"

namespace bulkhead::agent::hands {

struct Meet {};       // who are you?
struct TakeStock {};  // what does this node have?
struct Begin {        // one of the operations of node/operation.hpp
    Instant now;
    Operation operation;
};
struct Poll {  // what has happened since?
    Instant now;
};
struct ReadOutput {  // what has a tenant's command printed?
    OutputPlace place;
};
struct ReadTelemetry {};  // what do you measure of the devices?
struct AttackFences {     // between two functions that are not among those held
    FabricTestOrder order;
};
using Request = std::variant<Meet, TakeStock, Begin, Poll, ReadOutput, ReadTelemetry, AttackFences>;

struct Met {
    Grade grade{};
    std::string boot;
    bool has_network = true;  // a network namespace could not be had, where there would be none
};
struct Begun {};
struct Polled {
    Hardware::News news;
    std::string boot;
    std::optional<Instant> due;
};
struct Measures {
    std::optional<Telemetry> newest;
};
using Answer = std::variant<Error, Met, GpuNodeStatus, Begun, Polled, OutputPiece, Measures>;

// The longest command an order may carry takes 2 MiB; the output of a thousand tenants that end at once, 16.
inline constexpr std::size_t request_bytes_max = 4 << 20, answer_bytes_max = 64 << 20;

std::string to_bytes(const Request& request);
std::string to_bytes(const Answer& answer);
Result<Request> read_request(std::string_view bytes);  // `invalid`: no request
// Before it is done. One that breaks a limit is refused with `invalid`, and is no reason to end: the order it comes
// from was somebody else's.
Result<> check(const Begin& begin);
Result<> check(const ReadOutput& output);
Result<> check(const AttackFences& attack);
Result<Answer> read_answer(std::string_view bytes);

}  // namespace bulkhead::agent::hands
