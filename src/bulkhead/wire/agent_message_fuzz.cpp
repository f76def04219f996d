// Whatever the bytes: reading them as a message ends in a message or an error; and a message that was accepted can be
// said again and is then read as it was.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"
#include "bulkhead/wire/message.hpp"
#include "bulkhead/wire/pieces.hpp"

using namespace bulkhead;
using namespace bulkhead::wire;

namespace {

template <class Message>
void say_again(const Result<Message>& message, Result<Message> (*decode)(std::string_view)) {
    if (!message) {
        invariant(!message.error().what.empty(), "every refusal has words");
        return;
    }
    const auto bytes = encode(*message);
    invariant(bytes.has_value(), "what was accepted can be said");
    const auto again = decode(*bytes);
    invariant(again && *again == *message, "what was said is heard as it was");
}

// What was cut up is whole again; and what is no piece is refused or handed on.
void hear_in_pieces(std::string_view bytes) {
    std::string large{bytes};
    while (!bytes.empty() && large.size() <= piece_bytes_max) large += bytes;
    Outbox outbox;
    outbox.put(std::string{large});
    Assembly assembly;
    if (const auto whole = assembly.add(bytes); whole && *whole)
        invariant(**whole == bytes || bytes.size() > (*whole)->size(), "a message is handed on as it is");
    Result<std::optional<std::string>> whole = std::nullopt;
    Assembly fresh;
    while (!outbox.empty()) whole = fresh.add(outbox.take());
    invariant(bytes.empty() || (whole && *whole && **whole == large), "pieces make the message they were cut from");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view bytes{reinterpret_cast<const char*>(data) + 1, size - 1};
    hear_in_pieces(bytes);
    if (data[0] % 2 == 0)
        say_again(decode_agent_message(bytes), decode_agent_message);
    else
        say_again(decode_control_message(bytes), decode_control_message);
    return 0;
}
