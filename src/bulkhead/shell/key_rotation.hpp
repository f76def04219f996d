// The log gets another key. The server makes it, and nobody ever sees it: who may ask for the change cannot sign, and
// who runs the machine cannot ask. In order, each step durable before the next:
//   1. the new key is on disk, and cosigns every checkpoint from here on;
//   2. the change is a record of the log;
//   3. a checkpoint over that record is published, signed by both;
//   4. record and proof are in the history that everybody may read;
//   5. the new key signs alone, and the old one is gone.
// A start finds out which was the last: before 2 the change is given up, after it, it is brought to its end.
#pragma once

#include <mutex>
#include <string>

#include "bulkhead/shell/certificates.hpp"
#include "bulkhead/shell/log.hpp"
#include "bulkhead/shell/log_key_files.hpp"
#include "bulkhead/shell/log_proofs.hpp"
#include "bulkhead/shell/log_publisher.hpp"
#include "bulkhead/shell/loop.hpp"

namespace bulkhead::shell {

class KeyRotation {
public:
    struct Parts {  // all outlive it
        LogPublisher& publisher;
        Certificates& certificates;
        LogProofs& proofs;
        Loop& loop;
        Log& log;
    };
    // `next`: what the start found on disk, with which the publisher cosigns already.
    static Result<std::unique_ptr<KeyRotation>> open(LogKeyFiles files, evidence::VerifierKey key,
                                                     std::optional<NextLogKey> next, Parts parts);

    // After a start, when the loop runs and the log is being published: what a crash left is settled.
    Result<> resume();
    Result<evidence::VerifierKey> rotate(const std::string& actor);

    evidence::VerifierKey key() const;
    std::string history() const;  // JSON

private:
    KeyRotation(LogKeyFiles files, evidence::VerifierKey key, evidence::KeyHistory history,
                std::optional<NextLogKey> next, Parts parts);
    Result<> settle();
    Result<std::optional<std::int64_t>> leaf_of_change() const;
    Result<> complete(std::int64_t leaf);
    evidence::KeyChange change() const;

    const LogKeyFiles files_;
    const Parts parts_;
    std::mutex changing_;  // held by whoever changes the key
    std::optional<NextLogKey> next_;

    mutable std::mutex mutex_;  // of what is told to others
    evidence::VerifierKey key_;
    evidence::KeyHistory history_;
};

}  // namespace bulkhead::shell
