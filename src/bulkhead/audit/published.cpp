#include "bulkhead/audit/published.hpp"

#include <fmt/core.h>

namespace bulkhead::audit {

using namespace evidence;

namespace {

struct Found {
    std::string path, bytes;
    unsigned width = 0;  // that the file has
};

TileId full(TileId tile) {
    tile.width = tile_width;
    return tile;
}

Result<Found> find(const Files& files, const TileId& tile) {
    for (const TileId& version : {tile, full(tile)}) {
        Result<std::optional<std::string>> bytes = files.read(path_of(version));
        if (!bytes) return std::unexpected(bytes.error());
        if (*bytes) return Found{path_of(version), std::move(**bytes), version.width};
    }
    return fail(Code::corrupt, fmt::format("{} is missing", path_of(tile)), "restore it, or rebuild from the store");
}

// Reads the file that is there, whatever its width, and takes as much as was asked for.
template <class T>
Result<std::vector<T>> read(const Files& files, const TileId& tile,
                            Result<std::vector<T>> (*decode)(std::string_view, unsigned)) {
    const Result<Found> found = find(files, tile);
    if (!found) return std::unexpected(found.error());
    Result<std::vector<T>> all = decode(found->bytes, found->width);
    if (!all) return fail(Code::corrupt, fmt::format("{}: {}", found->path, all.error().what), all.error().remedy);
    all->resize(tile.width);
    return all;
}

}  // namespace

Result<std::vector<Hash>> read_tile(const Files& files, const TileId& tile) {
    return read<Hash>(files, tile, decode_tile);
}

Result<std::vector<std::string>> read_bundle(const Files& files, const TileId& tile) {
    return read<std::string>(files, tile, decode_bundle);
}

std::vector<TileId> edge_of(std::uint64_t size) {
    std::vector<TileId> edge;
    const auto add = [&](TileId::Holds holds, unsigned level) {
        const std::uint64_t hashes = hashes_at(level, size);
        if (hashes % tile_width != 0) edge.push_back(*tile_at(holds, level, hashes / tile_width, size));
    };
    add(TileId::Holds::entries, 0);
    for (unsigned level = 0; hashes_at(level, size) > 0; ++level) add(TileId::Holds::hashes, level);
    return edge;
}

std::string partials_of(const TileId& tile) { return path_of(full(tile)) + ".p"; }

}  // namespace bulkhead::audit
