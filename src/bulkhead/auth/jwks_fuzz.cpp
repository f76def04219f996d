// Whatever a provider answers: a key set or an error; and every key that is kept can be used without harm.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bulkhead/auth/jwks.hpp"

using namespace bulkhead;
using namespace bulkhead::auth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    const auto set = read_key_set(text);
    if (!set) return 0;
    invariant(!set->keys.empty(), "a set has keys");
    for (const VerifyKey& key : set->keys) {
        invariant(!key.id.empty() && key.id.size() <= key_name_bytes_max && key.key != nullptr, "a key is whole");
        for (const Algorithm algorithm : every<Algorithm>()) {
            const VerifyKey* found = set->find(key.id, algorithm);
            invariant(found == nullptr || found->kind == kind_for(algorithm), "a key is for its own algorithms");
            // An odd length that no algorithm's signature has.
            invariant(!verify_signature(key, algorithm, "text", "no"), "nothing is signed by chance");
        }
    }
    return 0;
}
