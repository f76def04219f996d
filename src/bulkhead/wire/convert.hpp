// Between the messages of agent.proto and ours. Reading is strict about everything the layout allows and we do not: a
// oneof that is not set, an enum value nobody has named, a number too wide for its field, a field nobody knows.
#pragma once

#include "bulkhead/base/result.hpp"
#include "bulkhead/wire/agent.pb.h"
#include "bulkhead/wire/message.hpp"

namespace bulkhead::wire {

namespace proto = bulkhead::agent::v1;

void to_proto(const AgentMessage& from, proto::AgentMessage& to);
void to_proto(const ControlMessage& from, proto::ControlMessage& to);
Result<AgentMessage> from_proto(proto::AgentMessage&& from);
Result<ControlMessage> from_proto(proto::ControlMessage&& from);

}  // namespace bulkhead::wire
