// The log's key on disk, and how it is replaced so that whenever the machine stops, the next start knows where it was:
//   log.seed     the key that signs
//   log.next     the one that is to follow, from before its record is in the log until it is the one that signs
//   log.history  each change with its proof, for everybody; what is in there is done
//   log.vkey     the verifier key, for people
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bulkhead/evidence/key_history.hpp"

namespace bulkhead::shell {

struct NextLogKey {
    evidence::SigningKey key;
    std::string seed;
    std::int64_t since = 0;  // how many leaves the log had: its record can only be later
};

class LogKeyFiles {
public:
    explicit LogKeyFiles(std::string directory) : directory_{std::move(directory)} {}

    // Before anybody reads the seed: a change that is in the history becomes the key. Nothing to do is fine.
    Result<> roll_forward() const;

    Result<std::optional<NextLogKey>> next() const;
    Result<NextLogKey> begin(const std::string& seed, std::int64_t since) const;
    Result<> abandon() const;
    // `first`: the log's key as long as it has not changed.
    Result<evidence::KeyHistory> history(const evidence::VerifierKey& first) const;
    // The change is in it: from here on there is no way back.
    Result<> keep(const evidence::KeyHistory& history) const;

private:
    std::string path(const char* name) const { return directory_ + '/' + name; }
    std::string directory_;
};

}  // namespace bulkhead::shell
