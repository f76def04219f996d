// Whatever the bytes: a log proof or a history of keys that is read is written back as the same, and every refusal has
// words.
#include <cstddef>
#include <cstdint>

#include "bulkhead/evidence/key_history.hpp"
#include "bulkhead/evidence/log_proof.hpp"

using namespace bulkhead;
using namespace bulkhead::evidence;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    static const VerifierKey key{"audit.example/gpu-plane",
                                 SigningKey::from_seed(std::string(32, '\x42'))->public_key()};
    if (const auto proof = parse_log_proof(bytes)) {
        invariant(print(*proof) == bytes, "a log proof has one spelling");
        const auto verified = verify_log_proof(*proof, "entry", key);
        invariant(verified || !verified.error().what.empty(), "every refusal has words");
    }
    if (const auto history = read_key_history(bytes)) {
        invariant(read_key_history(print(*history)) == *history, "a key history is read as it was printed");
        const auto keys = keys_of(*history, key);
        invariant(keys || !keys.error().what.empty(), "every refusal has words");
    }
    return 0;
}
