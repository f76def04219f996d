// What no hardware did is not signed as if it had: a server has a second key, its lab's, and signs certificates of
// simulated and emulated wipes with that one alone. Who trusts the log's key and nothing else does not take such a
// certificate, as it was given away, for a real one. The log stays one log: its checkpoints are the log's key's, and a
// lab's certificate has the text of one of them under the other signature, with a note in which the log's key says
// whose that is. Checkpoints are public: against somebody who puts the log's own in its place only the grade helps,
// which every verifier must hold against the key (certificate.cpp).
#pragma once

#include <string>
#include <string_view>

#include "bulkhead/evidence/checkpoint.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::evidence {

// Made by software that plays a device. What is only documented or assumed may well have been hardware, and says so.
constexpr bool of_a_lab(Grade grade) { return grade == Grade::emulated || grade == Grade::simulated; }

std::string lab_name(std::string_view log);  // "log.example/fleet/lab"

// "This is the key of my lab", for the log's key to sign: "bulkhead.dev/lab-key/v1", and the verifier key. Two lines,
// and therefore never a checkpoint.
Note introduced(const VerifierKey& lab);
Result<VerifierKey> introduced_in(const Note& introduction);

// The text of the log's checkpoint, signed by its lab and by nobody else.
std::string signed_by_lab(std::string_view checkpoint_text, std::string_view log, const SigningKey& lab);

struct LabCheckpoint {
    Checkpoint checkpoint;
    VerifierKey lab;
};
// A checkpoint of that log, signed by a key that the log's key of its time has introduced as its lab's.
Result<LabCheckpoint> open_lab_checkpoint(std::string_view note, std::string_view introduction, const LogKeys& log);

}  // namespace bulkhead::evidence
