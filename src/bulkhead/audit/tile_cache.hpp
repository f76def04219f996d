// Inner hashes of tiles, kept between proofs. A proof needs one hash of each height of each tile on its way, and most
// of the work is computing the high ones anew; those are few, and a tile of a given width never changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "bulkhead/audit/files.hpp"
#include "bulkhead/evidence/tile.hpp"

namespace bulkhead::audit {

class TileCache {
public:
    explicit TileCache(std::shared_ptr<const Files> files) : files_{std::move(files)} {}

    // Of a tree of that size; may be asked by several threads. Only for a log that is verified elsewhere: what was read
    // once is not read again.
    evidence::SubtreeReader subtrees(std::uint64_t size);

private:
    // About 1 kB for a tile of leaves, 9 kB for one above them, of which there are 256 times fewer.
    struct Tile {
        std::vector<Hash> hashes;                 // all of it; only of tiles above the leaves
        std::vector<std::vector<Hash>> computed;  // roots of complete subtrees, from `kept_from` levels up
    };
    Result<std::shared_ptr<const Tile>> tile(const evidence::TileId& id);

    static constexpr unsigned kept_from = 4;
    static constexpr std::size_t tiles_max = 8192;  // 8 MB; then it begins anew

    const std::shared_ptr<const Files> files_;
    std::mutex mutex_;
    std::map<evidence::TileId, std::shared_ptr<const Tile>> tiles_;
};

}  // namespace bulkhead::audit
