// Everything agent and control plane say to each other, as bytes and back (agent.proto is the layout). Bytes come from
// outside: whatever is not exactly a message within these limits is refused with the place and the number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/model/telemetry.hpp"
#include "bulkhead/node/order.hpp"
#include "bulkhead/node/report.hpp"

namespace bulkhead::wire {

// The control plane is upgraded first: it speaks to agents of its own protocol version and of the two before. A version
// may add fields and messages; each side sends only what the version in the hello knows, and refuses what it does not.
inline constexpr std::int64_t protocol_newest = agent_protocol;
inline constexpr std::int64_t protocol_oldest = agent_protocol_oldest;

struct Heartbeat {
    std::optional<Telemetry> telemetry = {};  // since version 3
    friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};
struct RenewalRequest {   // for a new certificate, within the session that the old one opened
    std::string request;  // PKCS#10, PEM
    friend bool operator==(const RenewalRequest&, const RenewalRequest&) = default;
};
struct Output {  // what was asked for by that number
    std::uint64_t request = 0;
    OutputPiece piece;
    std::string why;  // not empty: there is none, and why
    friend bool operator==(const Output&, const Output&) = default;
};
using AgentMessage = std::variant<Hello, Report, Heartbeat, RenewalRequest, Output>;

struct Welcome {  // the session is open: reports are heard, orders follow
    std::int64_t epoch = 0;
    std::uint64_t session = 0;
    Duration heartbeat_every{10'000};
    friend bool operator==(const Welcome&, const Welcome&) = default;
};
struct NumberedOrder {
    std::int64_t sequence = 0;  // 1, 2, 3, ... within the session
    Order order;
    friend bool operator==(const NumberedOrder&, const NumberedOrder&) = default;
};
struct Acknowledged {  // reports up to this number are durable
    std::int64_t number = 0;
    friend bool operator==(const Acknowledged&, const Acknowledged&) = default;
};
struct GoAway {  // the session is over
    std::string why;
    friend bool operator==(const GoAway&, const GoAway&) = default;
};
struct Renewed {              // both certificates are good, until the first hello under the new one
    std::string certificate;  // PEM
    friend bool operator==(const Renewed&, const Renewed&) = default;
};
struct NotRenewed {  // the session goes on as it is
    std::string why;
    friend bool operator==(const NotRenewed&, const NotRenewed&) = default;
};
struct OutputWanted {  // somebody wants to see what a command prints; one Output follows
    std::uint64_t request = 0;
    OutputPlace place;
    friend bool operator==(const OutputWanted&, const OutputWanted&) = default;
};
using ControlMessage = std::variant<Welcome, NumberedOrder, Acknowledged, GoAway, Renewed, NotRenewed, OutputWanted>;

// What a message may hold at most.
inline constexpr std::size_t message_bytes_max = 2 << 20;
inline constexpr std::size_t inventory_bytes_max = 1 << 20;
inline constexpr std::size_t name_bytes_max = 253;   // of tenants, workloads, versions, profiles
inline constexpr std::size_t why_bytes_max = 4'096;  // longer ones are cut when sent
inline constexpr std::size_t statement_bytes_max = 64 << 10;
inline constexpr std::size_t pem_bytes_max = 4'096;  // of a certificate, and of the request for one
inline constexpr std::size_t gpu_parts_max = 256;
inline constexpr std::int64_t save_ms_max = 3'600'000;
inline constexpr std::size_t command_words_max = 256, command_word_bytes_max = 4 << 10;
inline constexpr std::size_t sampled_gpus_max = 64, sampled_instances_max = 16,
                             sampled_name_bytes_max = 96;  // of a node, and of each of them
inline constexpr std::size_t devices_max = 4'096;          // drives or functions of one lease, or of a node
inline constexpr std::size_t node_gpus_max = 256, bridges_max = 32,
                             node_facts_max = 256;  // of an inventory; above each device; capabilities and versions
inline constexpr std::size_t wipes_max = 8'192;
inline constexpr std::size_t tenants_of_a_wipe_max = 64;
inline constexpr std::size_t known_leases_max = 8'192;
inline constexpr std::size_t known_units_max = 16'384;  // of the hello, and of each lease in it

// `invalid` when a limit is broken: the other side would refuse it.
Result<std::string> encode(const AgentMessage& message);
Result<std::string> encode(const ControlMessage& message);
Result<AgentMessage> decode_agent_message(std::string_view bytes);
Result<ControlMessage> decode_control_message(std::string_view bytes);

}  // namespace bulkhead::wire
