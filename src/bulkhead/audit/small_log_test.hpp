// A log whose entries are known without a store, and the key that signs it.
#pragma once

#include <string>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/evidence/keys_test.hpp"
#include "bulkhead/evidence/note.hpp"

namespace bulkhead::audit {

using evidence::key_of_seed;

const std::string origin = "log.example/fleet";

inline evidence::VerifierKey vkey() { return {origin, key_of_seed('L').public_key()}; }
inline Hash entry(std::uint64_t index) { return sha256("entry " + std::to_string(index)); }
inline Result<Hash> store(std::uint64_t index) { return entry(index); }

}  // namespace bulkhead::audit
