#include "bulkhead/audit/tile_reader.hpp"

#include <fmt/core.h>

#include "bulkhead/audit/published.hpp"

namespace bulkhead::audit {

using namespace evidence;

namespace {

// How large the log says it is now. Unverified: it only tells which tiles there may be, and a proof is checked anyway.
std::uint64_t size_now(const TileReader& log) {
    const auto text = log.note();
    const auto note = text ? parse_note(*text) : Result<Note>{std::unexpected(text.error())};
    const auto checkpoint = note ? parse_checkpoint(note->text) : Result<Checkpoint>{std::unexpected(note.error())};
    return checkpoint ? checkpoint->size : 0;
}

// The last tiles of a tree are there only if it was published at that very size; a later tree has all of them.
template <class Prove>
Result<std::vector<Hash>> prove_in(const TileReader& log, TileCache& cache, std::uint64_t size, const Prove& prove) {
    Result<std::vector<Hash>> proof = prove(cache.subtrees(size));
    if (proof || proof.error().code != Code::corrupt) return proof;
    const std::uint64_t newest = size_now(log);
    return newest > size ? prove(cache.subtrees(newest)) : proof;
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

Result<Checkpoint> TileReader::checkpoint(const LogKeys& log) const {
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
    return prove_in(*this, *cache_, size,
                    [&](const SubtreeReader& subtree) { return prove_inclusion(index, size, subtree); });
}

Result<std::vector<Hash>> TileReader::prove_consistency(Sizes sizes) const {
    return prove_in(*this, *cache_, sizes.newer,
                    [&](const SubtreeReader& subtree) { return evidence::prove_consistency(sizes, subtree); });
}

Result<Frontier> TileReader::frontier(Sizes sizes) const {
    const std::uint64_t size = sizes.older;
    const SubtreeReader subtree = cache_->subtrees(sizes.newer);
    std::vector<Hash> edge;
    for (unsigned level = 64; level-- > 0;) {
        if ((size >> level & 1) == 0) continue;
        // The subtrees before it have taken all leaves of the higher bits.
        const std::uint64_t before = level == 63 ? 0 : size >> (level + 1) << (level + 1);
        const Result<Hash> root = subtree(level, before >> level);
        if (!root) return std::unexpected(root.error());
        edge.push_back(*root);
    }
    return Frontier::restore(size, std::move(edge));
}

Result<> TileReader::each_entry(std::uint64_t first, std::uint64_t end,
                                const std::function<void(std::uint64_t, const std::string&)>& each) const {
    for (std::uint64_t index = first; index < end;) {
        const std::uint64_t bundle = index / tile_width;
        const Result<std::vector<std::string>> entries =
            read_bundle(*files_, *tile_at(TileId::Holds::entries, 0, bundle, end));
        if (!entries) return std::unexpected(entries.error());
        for (; index < end && index / tile_width == bundle; ++index) each(index, (*entries)[index % tile_width]);
    }
    return {};
}

}  // namespace bulkhead::audit
