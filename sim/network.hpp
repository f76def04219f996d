// Messages between servers and agents, in sessions. Inside one session a stream delivers in order or breaks, as TCP
// does: what the network loses or reorders shows as a gap, and whoever sees a gap drops the session. What was sent in
// an old session may still arrive while a new one is open.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "bulkhead/node/order.hpp"
#include "bulkhead/node/report.hpp"

namespace bulkhead::sim {

struct Beat {};
struct WelcomeMessage {
    std::int64_t epoch = 0;
};
struct AckMessage {
    std::int64_t number = 0;
};
struct CloseMessage {
    std::string why;
};

struct Message {
    std::uint32_t server = 0, agent = 0;
    bool to_server = false;
    std::uint64_t session = 0;
    std::uint64_t sequence = 0;
    std::variant<Hello, Report, Beat, WelcomeMessage, Order, AckMessage, CloseMessage> what;
};

}  // namespace bulkhead::sim
