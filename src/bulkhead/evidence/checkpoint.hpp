// What a log says of itself at one moment (c2sp.org/tlog-checkpoint): its name, how many leaves, and their root. Signed
// as a note whose signer has the log's name. A log never signs two that contradict each other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/evidence/log_keys.hpp"

namespace bulkhead::evidence {

struct Checkpoint {
    std::string origin;
    std::uint64_t size = 0;
    Hash root{};
    std::vector<std::string> extensions;  // further lines, which we keep and never write
    friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

std::string print(const Checkpoint& checkpoint);                                   // the text of the note
Result<Checkpoint> parse_checkpoint(std::string_view text);                        // only what print would have written
std::string sign_checkpoint(const Checkpoint& checkpoint, const SigningKey& key);  // the note, as published
// By several keys of the log: while one replaces another.
std::string sign_checkpoint(const Checkpoint& checkpoint, std::span<const SigningKey> keys);
// Signed by that log, of that name, and well formed.
Result<Checkpoint> open_checkpoint(std::string_view note, const LogKeys& log);

}  // namespace bulkhead::evidence
