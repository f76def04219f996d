// Whatever the bytes: notes, checkpoints and verifier keys that are read are written back as the same bytes.
#include <cstddef>
#include <cstdint>

#include "bulkhead/evidence/checkpoint.hpp"

using namespace bulkhead;
using namespace bulkhead::evidence;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    if (const auto note = parse_note(bytes)) {
        invariant(print(*note) == bytes, "a note has one spelling");
        static const VerifierKey key{"audit.example/gpu-plane",
                                     SigningKey::from_seed(std::string(32, '\x42'))->public_key()};
        if (!open_checkpoint(bytes, key)) (void)verify_note(*note, {&key, 1});
        if (const auto checkpoint = parse_checkpoint(note->text))
            invariant(print(*checkpoint) == note->text, "a checkpoint in a note has one spelling");
    }
    if (const auto checkpoint = parse_checkpoint(bytes))
        invariant(print(*checkpoint) == bytes, "a checkpoint has one spelling");
    if (const auto key = parse_verifier_key(bytes)) invariant(print(*key) == bytes, "a verifier key has one spelling");
    return 0;
}
