// That an entry is in a log, as one text that others read too (c2sp.org/tlog-proof@v1): its index, its way to the root,
// and the signed checkpoint with that root.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/evidence/checkpoint.hpp"

namespace bulkhead::evidence {

inline constexpr std::string_view log_proof_version = "c2sp.org/tlog-proof@v1";

struct LogProof {
    std::string extra;  // bytes that nobody has signed for; empty: none
    std::uint64_t index = 0;
    std::vector<Hash> hashes;  // from the leaf's sibling up
    std::string checkpoint;    // the note, as the log published it
    friend bool operator==(const LogProof&, const LogProof&) = default;
};

std::string print(const LogProof& proof);
Result<LogProof> parse_log_proof(std::string_view text);  // only what print would have written

// That the log has signed for a tree with this entry at that index; what it has signed.
Result<Checkpoint> verify_log_proof(const LogProof& proof, std::string_view entry, const LogKeys& log);

}  // namespace bulkhead::evidence
