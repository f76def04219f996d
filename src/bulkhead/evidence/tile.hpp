// Where the tree lies in files (c2sp.org/tlog-tiles): hashes in tiles of 256, entries in bundles of 256, each a static
// file whose name says its place. A full tile never changes; the last of a level may be partial, under a name of its
// own.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/evidence/merkle.hpp"

namespace bulkhead::evidence {

inline constexpr unsigned tile_width = 256;
inline constexpr unsigned tile_height = 8;  // levels of the tree in one tile

struct TileId {
    enum class Holds : std::uint8_t { hashes, entries };
    Holds holds{};
    unsigned level = 0;  // of tiles: 0 has the leaf hashes, 1 the roots of full tiles of level 0; of entries: 0
    std::uint64_t index = 0;
    unsigned width = tile_width;
    friend auto operator<=>(const TileId&, const TileId&) = default;
};

std::string path_of(const TileId& tile);  // "tile/0/x001/067", "tile/1/000.p/17", "tile/entries/x001/067"
std::optional<TileId> parse_tile_path(std::string_view path);  // only what path_of writes

// How many hashes the level has in a tree of that size.
std::uint64_t hashes_at(unsigned level, std::uint64_t size);
// The tile that a tree of that size has at this level and index; nothing when the tree does not reach it.
std::optional<TileId> tile_at(TileId::Holds holds, unsigned level, std::uint64_t index, std::uint64_t size);
// What a log must write when it grows: every tile of the newer size that the older did not have at that width. In the
// order of levels, entries first; all tiles of a tree when the older size is 0.
std::vector<TileId> tiles_between(Sizes sizes);

std::string encode_tile(std::span<const Hash> hashes);
Result<std::vector<Hash>> decode_tile(std::string_view bytes, unsigned width);

// An entry has at most 65535 bytes; larger evidence is logged by its digest.
Result<std::string> encode_bundle(std::span<const std::string> entries);
Result<std::vector<std::string>> decode_bundle(std::string_view bytes, unsigned width);

// Subtrees as the proofs ask for them, out of tiles that someone reads.
using HashTileReader = std::function<Result<std::vector<Hash>>(const TileId&)>;
SubtreeReader subtrees_from_tiles(std::uint64_t size, HashTileReader read);

}  // namespace bulkhead::evidence
