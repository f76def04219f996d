// The limits of message.hpp, over the messages themselves: asked before sending and after reading, so that neither side
// ever sends what the other would refuse.
#pragma once

#include "bulkhead/base/result.hpp"
#include "bulkhead/wire/message.hpp"

namespace bulkhead::wire {

// The first limit that is broken, if any.
Result<> check(const AgentMessage& message);
Result<> check(const ControlMessage& message);

// A reason, fit to be sent: one line of UTF-8 that is not too long. Whatever the words, the event must get through.
std::string presentable(std::string_view why);

}  // namespace bulkhead::wire
