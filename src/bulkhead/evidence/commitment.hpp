// What the log publishes of a record: a salted hash. Whoever holds salt and payload can show what was recorded; from
// the entry alone nothing can be guessed, and dropping the salt forgets the payload without touching the tree.
#pragma once

#include <string_view>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/base/result.hpp"

namespace bulkhead::evidence {

inline constexpr std::size_t salt_size = 16;

// SHA-256(salt, payload): the entry whose leaf_hash is in the tree. The salt has exactly 16 bytes, so that no part of a
// payload can pass for a salt.
Hash commit_to(std::string_view salt, std::string_view payload);
// That the entry commits to this payload under this salt.
Result<> open_commitment(const Hash& entry, std::string_view salt, std::string_view payload);

}  // namespace bulkhead::evidence
