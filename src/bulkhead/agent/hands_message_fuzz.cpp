// Whatever an agent that is no longer ours says to its hands: no crash, no hang, no throw; and what is taken for a
// request says the same when it is written and read again. Answers are read the same way.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bulkhead/agent/hands_message.hpp"

using namespace bulkhead;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    if (const auto request = agent::hands::read_request(bytes)) {
        invariant(agent::hands::to_bytes(*request) == bytes, "a request has one spelling");
        if (const auto* begin = std::get_if<agent::hands::Begin>(&*request))
            if (const auto sound = agent::hands::check(*begin); !sound)
                invariant(sound.error().code == Code::invalid, "a limit that is broken says so");
        if (const auto* attack = std::get_if<agent::hands::AttackFences>(&*request))
            if (const auto sound = agent::hands::check(*attack); !sound)
                invariant(sound.error().code == Code::invalid, "a limit that is broken says so");
    } else {
        invariant(!request.error().what.empty(), "an error has words");
    }
    if (const auto answer = agent::hands::read_answer(bytes))
        invariant(agent::hands::to_bytes(*answer) == bytes, "an answer has one spelling");
    return 0;
}
