// A published log read back, offline: entries, proofs, and the auditor's question, whether all of it is what was
// signed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/audit/files.hpp"
#include "bulkhead/audit/tile_cache.hpp"
#include "bulkhead/evidence/checkpoint.hpp"
#include "bulkhead/evidence/tile.hpp"

namespace bulkhead::audit {

class TileReader {
public:
    static Result<TileReader> open(const std::string& directory);
    explicit TileReader(std::shared_ptr<const Files> files)
        : files_{std::move(files)}, cache_{std::make_shared<TileCache>(files_)} {}

    Result<std::string> note() const;  // the checkpoint as it lies there, signature unchecked
    Result<evidence::Checkpoint> checkpoint(const evidence::LogKeys& log) const;

    // All of these in a tree of the given size, which a checkpoint has vouched for. What proofs need of tiles is kept:
    // to see whether somebody has changed them, open the log anew.
    Result<std::string> entry(std::uint64_t index, std::uint64_t size) const;
    Result<std::vector<Hash>> prove(std::uint64_t index, std::uint64_t size) const;
    Result<std::vector<Hash>> prove_consistency(evidence::Sizes sizes) const;

    // The right edge of the tree as it was at the older size, out of the tiles of the newer.
    Result<evidence::Frontier> frontier(evidence::Sizes sizes) const;
    // Entries [first, end), bundle by bundle; stops at the first error.
    Result<> each_entry(std::uint64_t first, std::uint64_t end,
                        const std::function<void(std::uint64_t index, const std::string& entry)>& each) const;

    struct Audit {
        evidence::Checkpoint checkpoint;
        std::uint64_t tiles = 0;       // files that were read and match
        bool continues_older = false;  // an older checkpoint was given, and this tree continues it
    };
    // Computes every tile and the root anew from the entries, and names the first place that is not what was signed:
    // edited, missing, cut short, in another order; or a checkpoint that does not continue the older one.
    Result<Audit> verify_all(const evidence::LogKeys& log,
                             const std::optional<std::string>& older_note = std::nullopt) const;

private:
    std::shared_ptr<const Files> files_;
    std::shared_ptr<TileCache> cache_;
};

}  // namespace bulkhead::audit
