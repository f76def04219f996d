// How a log came to its key: for each change the record of it, proven under a checkpoint that both keys have signed.
// Who trusts any one of these keys can trust the others, each for its time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/evidence/certificate.hpp"
#include "bulkhead/evidence/log_keys.hpp"

namespace bulkhead::evidence {

inline constexpr std::string_view key_history_version = "bulkhead.dev/log-keys/v1";

struct KeyHistory {
    std::string version{key_history_version};
    std::string first;                   // the verifier key that the log began with
    std::vector<Certificate> rotations;  // of records of kind log-key-rotated, the oldest first

    static constexpr void describe(auto&& field) {
        field("version", &KeyHistory::version, "The form of this history.",
              Rule{.required = true, .format = Format::line});
        field("first", &KeyHistory::first, "The verifier key that the log began with.",
              Rule{.required = true, .format = Format::line});
        field("rotations", &KeyHistory::rotations, "Each change of the key, the oldest first.");
    }
    friend bool operator==(const KeyHistory&, const KeyHistory&) = default;
};

std::string print(const KeyHistory& history);  // indented JSON
Result<KeyHistory> read_key_history(std::string_view json);

// The record of a change, and the keys in it.
struct KeyChange {
    VerifierKey before, after;
    friend bool operator==(const KeyChange&, const KeyChange&) = default;
};
Record log_key_rotated(const KeyChange& change);  // time and actor are the writer's to fill in
Result<KeyChange> key_change_of(const Record& log_key_rotated);

// All keys of the history, each with its end. Refused unless every change is proven by both keys it is about, they
// follow each other, and the key that is trusted is one of them.
Result<LogKeys> keys_of(const KeyHistory& history, const VerifierKey& trusted);

}  // namespace bulkhead::evidence
