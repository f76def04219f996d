// What is on disk of a lease: what was to run, and what became of it. JSON of our own making; a file that reads
// otherwise is damage, never a guess.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/spec.hpp"

namespace bulkhead::container {

struct Exit {
    int code = 0;                   // of a process that ended by itself; of a failed start: 126, 127, or 0
    int signal = 0;                 // else what ended it
    std::int64_t memory_kills = 0;  // how often the memory limit chose a victim, from the first process on
    Instant when;
    friend bool operator==(const Exit&, const Exit&) = default;
};

struct Outcome {
    enum class State : std::uint8_t { launched, failed, exited };
    State state = State::launched;
    Exit exit;    // of one that exited
    Error error;  // of one that failed: none of the tenant's code ran
    friend bool operator==(const Outcome&, const Outcome&) = default;
};

// What came of saving a tenant's work.
struct Checkpoint {
    bool saved = false;
    std::string words;  // what its command printed, for the next run; or why the work is not saved
    friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

std::string record_of(const TenantSpec& spec);
Result<TenantSpec> spec_of(std::string_view record);
std::string record_of(const Outcome& outcome);
Result<Outcome> outcome_of(std::string_view record);
std::string record_of(const Checkpoint& checkpoint);
Result<Checkpoint> checkpoint_of(std::string_view record);

}  // namespace bulkhead::container
