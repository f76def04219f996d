// The files of a published log, read back: where each lies, and the full tile where its partial version is gone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/audit/files.hpp"
#include "bulkhead/evidence/tile.hpp"

namespace bulkhead::audit {

inline const std::string checkpoint_path = "checkpoint";

// The file of this tile; where that is a partial one and gone, as much of the full tile. Errors name the file.
Result<std::vector<Hash>> read_tile(const Files& files, const evidence::TileId& tile);
Result<std::vector<std::string>> read_bundle(const Files& files, const evidence::TileId& tile);

// The partial tiles that a tree of this size ends in, entries included.
std::vector<evidence::TileId> edge_of(std::uint64_t size);
// The directory of all partial versions of a tile: "tile/0/067.p".
std::string partials_of(const evidence::TileId& tile);

}  // namespace bulkhead::audit
