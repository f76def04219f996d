// Who signs for a log: one key, or several that followed each other. Each but the last has an end: trees with more
// leaves than that it may no longer sign alone, so that a key that gets lost after it was replaced is worth nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/evidence/note.hpp"

namespace bulkhead::evidence {

class LogKeys {
public:
    struct Term {
        VerifierKey key;
        std::uint64_t most = std::numeric_limits<std::uint64_t>::max();  // leaves of a tree that it signs alone
        friend bool operator==(const Term&, const Term&) = default;
    };

    // One key for all time: what most people are given, and therefore what this may be written as.
    LogKeys(VerifierKey only) : terms_{{std::move(only)}} {}  // NOLINT(google-explicit-constructor)
    // In their order, all of one name; the last has no end.
    explicit LogKeys(std::vector<Term> terms);

    const std::string& name() const { return terms_.front().key.name; }
    const VerifierKey& newest() const { return terms_.back().key; }
    std::span<const Term> terms() const { return terms_; }

    // That a key whose time covers a tree of this size has signed, and no signature of one of them is false.
    Result<> verify(const Note& note, std::uint64_t size) const;

    friend bool operator==(const LogKeys&, const LogKeys&) = default;

private:
    std::vector<Term> terms_;
};

}  // namespace bulkhead::evidence
