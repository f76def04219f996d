#include "bulkhead/audit/tile_reader.hpp"

#include <fmt/core.h>

#include "bulkhead/audit/published.hpp"

namespace bulkhead::audit {

using namespace evidence;

namespace {

SubtreeReader subtrees(std::shared_ptr<const Files> files, std::uint64_t size) {
    return subtrees_from_tiles(size,
                               [files = std::move(files)](const TileId& tile) { return read_tile(*files, tile); });
}

}  // namespace

Result<TileReader> TileReader::open(const std::string& directory) {
    Result<std::unique_ptr<Files>> files = open_directory(directory);
    if (!files) return std::unexpected(files.error());
    return TileReader{std::move(*files)};
}

Result<std::string> TileReader::note() const {
    Result<std::optional<std::string>> note = files_->read(checkpoint_path);
    if (!note) return std::unexpected(note.error());
    if (!*note)
        return fail(Code::not_found, "there is no checkpoint here", "give the directory in which the log is published");
    return std::move(**note);
}

Result<Checkpoint> TileReader::checkpoint(const VerifierKey& log) const {
    const Result<std::string> found = note();
    if (!found) return std::unexpected(found.error());
    return open_checkpoint(*found, log);
}

Result<std::string> TileReader::entry(std::uint64_t index, std::uint64_t size) const {
    if (index >= size)
        return fail(Code::not_found, fmt::format("a log of {} leaves has no leaf {}", size, index),
                    "leaves are counted from 0");
    Result<std::vector<std::string>> entries =
        read_bundle(*files_, *tile_at(TileId::Holds::entries, 0, index / tile_width, size));
    if (!entries) return std::unexpected(entries.error());
    return std::move((*entries)[index % tile_width]);
}

Result<std::vector<Hash>> TileReader::prove(std::uint64_t index, std::uint64_t size) const {
    return prove_inclusion(index, size, subtrees(files_, size));
}

Result<std::vector<Hash>> TileReader::prove_consistency(Sizes sizes) const {
    return evidence::prove_consistency(sizes, subtrees(files_, sizes.newer));
}

}  // namespace bulkhead::audit
