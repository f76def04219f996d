// Proofs for whoever asks, out of the tiles as they are published: that an entry is in the log, and that the log
// continues what it was. Everybody may ask; nothing is told but hashes.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/audit/tile_reader.hpp"
#include "bulkhead/evidence/log_proof.hpp"

namespace bulkhead::shell {

class LogProofs {
public:
    static Result<LogProofs> open(const std::string& tiles, evidence::VerifierKey log);

    void trust(evidence::VerifierKey log);  // the log has another key

    struct Inclusion {
        std::uint64_t size = 0;
        Hash root{};
        std::string entry;
        evidence::LogProof proof;  // without a checkpoint when another size was asked for than the newest
    };
    // In the tree of that size, or in that of the newest checkpoint.
    Result<Inclusion> inclusion(std::uint64_t index, std::optional<std::uint64_t> size);
    struct Consistency {
        evidence::Sizes sizes;
        Hash older_root{}, newer_root{};
        std::vector<Hash> hashes;
        std::string checkpoint;  // over the newer; empty as above
    };
    Result<Consistency> consistency(std::uint64_t from, std::optional<std::uint64_t> to);
    // Where the log has this entry; the first place, if it has it twice.
    Result<std::uint64_t> index_of(const Hash& entry);

    LogProofs(LogProofs&& other) noexcept : tiles_{std::move(other.tiles_)}, log_{std::move(other.log_)} {}

private:
    LogProofs(audit::TileReader tiles, evidence::VerifierKey log) : tiles_{std::move(tiles)}, log_{std::move(log)} {}
    struct Newest {
        std::string note;
        evidence::Checkpoint checkpoint;
    };
    Result<Newest> newest();
    Result<Hash> root_at(evidence::Sizes sizes, const Newest& newest) const;

    audit::TileReader tiles_;
    std::mutex mutex_;
    evidence::VerifierKey log_;
    // The first bytes of each entry and where it is, in order: 16 bytes a leaf, from the first such question on.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> places_;
};

}  // namespace bulkhead::shell
