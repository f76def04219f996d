// The auditor's pass over a published log: every tile computed anew from the entries, and what to say at the first
// difference.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "bulkhead/audit/published.hpp"
#include "bulkhead/audit/tile_reader.hpp"

namespace bulkhead::audit {

using namespace evidence;

namespace {

std::unexpected<Error> found(std::string what) {
    return fail(Code::corrupt, std::move(what),
                "keep the directory as it is and compare it with a copy; the log is not what its operator signed");
}

class Pass {
public:
    Pass(const TileReader& log, const Files& files, const Checkpoint& checkpoint, std::uint64_t older_size)
        : log_{log}, files_{files}, signed_{checkpoint}, older_size_{older_size} {}

    Result<> run() {
        note_older();
        for (std::uint64_t i = 0; const auto tile = tile_at(TileId::Holds::entries, 0, i, signed_.size); ++i)
            if (Result<> same = check_bundle(*tile); !same) return same;
        for (unsigned level = 1; level < levels_.size(); ++level)
            if (!levels_[level].empty())
                if (Result<> same = check_level(level); !same) return same;
        return {};
    }

    Hash root() const { return frontier_.root(); }
    Hash older_root() const { return older_root_; }
    std::uint64_t tiles() const { return tiles_; }

private:
    Result<> check_bundle(const TileId& bundle) {
        const std::uint64_t first = bundle.index * tile_width;
        const Result<std::vector<std::string>> entries = read_bundle(files_, bundle);
        if (!entries)
            return found(fmt::format("entries {} to {} cannot be read: {}", first, first + bundle.width - 1,
                                     entries.error().what));
        const TileId tile{TileId::Holds::hashes, 0, bundle.index, bundle.width};
        const Result<std::vector<Hash>> stored = read_tile(files_, tile);
        if (!stored) return found(stored.error().what);

        for (std::size_t i = 0; i < bundle.width; ++i) {
            const Hash leaf = leaf_hash((*entries)[i]);
            if (leaf != (*stored)[i]) return found(blame_leaf(first + i, leaf, (*stored)[i], bundle, tile));
            if (Result<> same = append(leaf); !same) return same;
        }
        tiles_ += 2;
        if (Result<> same = check_partials(
                bundle, [&](std::size_t n) { return encode_bundle(std::span{*entries}.first(n)).value_or(""); });
            !same)
            return same;
        return check_partials(tile, [&](std::size_t n) { return encode_tile(std::span{*stored}.first(n)); });
    }

    Result<> append(const Hash& leaf) {
        frontier_.append(leaf, [&](unsigned level, const Hash& root) {
            if (level == 0 || level % tile_height != 0) return;
            if (levels_.size() <= level / tile_height) levels_.resize(level / tile_height + 1);
            levels_[level / tile_height].push_back(root);
        });
        note_older();
        for (unsigned level = 1; level < levels_.size(); ++level)
            if (levels_[level].size() == tile_width)
                if (Result<> same = check_level(level); !same) return same;
        return {};
    }

    void note_older() {
        if (frontier_.size() == older_size_) older_root_ = frontier_.root();
    }

    // Compares what was computed of the level's current tile with what is stored, and begins the next.
    Result<> check_level(unsigned level) {
        const std::vector<Hash> computed = std::exchange(levels_[level], {});
        const std::uint64_t first = hashes_at(level, frontier_.size()) - computed.size();
        const TileId tile{TileId::Holds::hashes, level, first / tile_width, static_cast<unsigned>(computed.size())};
        const Result<std::vector<Hash>> stored = read_tile(files_, tile);
        if (!stored) return found(stored.error().what);
        const auto differs = std::ranges::mismatch(computed, *stored).in1;
        if (differs != computed.end())
            return found(blame_node(tile, first + static_cast<std::uint64_t>(differs - computed.begin())));
        ++tiles_;
        return check_partials(tile, [&](std::size_t n) { return encode_tile(std::span{computed}.first(n)); });
    }

    // Older partial versions may still be asked for by someone with an older checkpoint.
    Result<> check_partials(const TileId& tile, const std::function<std::string(std::size_t)>& bytes_of_first) {
        const std::string directory = partials_of(tile);
        const Result<std::vector<std::string>> names = files_.list(directory);
        if (!names) return std::unexpected(names.error());
        for (const std::string& name : *names) {
            const auto version = parse_tile_path(fmt::format("{}/{}", directory, name));
            if (!version || version->width >= tile.width) continue;  // not ours, just read, or not signed for yet
            const auto stored = files_.read(path_of(*version));
            if (!stored) return std::unexpected(stored.error());
            if (*stored != bytes_of_first(version->width))
                return found(
                    fmt::format("{} is not the beginning of {}: it was edited", path_of(*version), path_of(tile)));
            ++tiles_;
        }
        return {};
    }

    bool is_signed(std::uint64_t index, const Hash& leaf) const {
        const auto proof = log_.prove(index, signed_.size);
        return proof && verify_inclusion({index, signed_.size, leaf, signed_.root}, *proof);
    }

    // Where the tree has this leaf, if anywhere.
    std::optional<std::uint64_t> place_of(const Hash& leaf) const {
        for (std::uint64_t i = 0; const auto tile = tile_at(TileId::Holds::hashes, 0, i, signed_.size); ++i) {
            const auto stored = read_tile(files_, *tile);
            if (!stored) continue;
            if (const auto at = std::ranges::find(*stored, leaf); at != stored->end())
                return i * tile_width + static_cast<std::uint64_t>(at - stored->begin());
        }
        return std::nullopt;
    }

    std::string blame_leaf(std::uint64_t index, const Hash& of_entry, const Hash& in_tile, const TileId& bundle,
                           const TileId& tile) const {
        if (is_signed(index, of_entry))
            return fmt::format("{} was edited: entry {} is what was signed, and its hash there is not", path_of(tile),
                               index);
        const bool tile_is_signed = is_signed(index, in_tile);
        if (const auto place = place_of(of_entry))
            return fmt::format("the order was changed in {}: at {} stands entry {}", path_of(bundle), index, *place);
        if (tile_is_signed)
            return fmt::format("{} was edited: entry {} is not the one that was signed", path_of(bundle), index);
        return fmt::format("entry {} in {} does not hash to what {} has, and neither is what was signed", index,
                           path_of(bundle), path_of(tile));
    }

    std::string blame_node(const TileId& tile, std::uint64_t node) const {
        const unsigned height = tile.level * tile_height;
        const std::uint64_t first = node << height, last = ((node + 1) << height) - 1;
        const auto leaf = log_.entry(first, signed_.size);
        if (leaf && is_signed(first, leaf_hash(*leaf)))
            return fmt::format("{} was edited: its hash over entries {} to {} is not that of these entries",
                               path_of(tile), first, last);
        return fmt::format("entries {} to {} were rewritten together with their tiles: {} still has the hash of others",
                           first, last, path_of(tile));
    }

    const TileReader& log_;
    const Files& files_;
    const Checkpoint& signed_;
    std::uint64_t older_size_;
    Hash older_root_{};
    Frontier frontier_;
    std::vector<std::vector<Hash>> levels_;  // of each, the tile that is being filled; level 0 is compared leaf by leaf
    std::uint64_t tiles_ = 0;
};

}  // namespace

Result<TileReader::Audit> TileReader::verify_all(const LogKeys& log,
                                                 const std::optional<std::string>& older_note) const {
    Result<Checkpoint> current = checkpoint(log);
    if (!current) return std::unexpected(current.error());
    std::optional<Checkpoint> older;
    if (older_note) {
        Result<Checkpoint> opened = open_checkpoint(*older_note, log);
        if (!opened)
            return fail(opened.error().code, "the older checkpoint: " + opened.error().what, opened.error().remedy);
        older = std::move(*opened);
        if (older->size > current->size)
            return found(fmt::format("the log was rolled back: its checkpoint covers {} entries, and an older one {}",
                                     current->size, older->size));
        if (older->size == current->size && older->root != current->root)
            return found(
                fmt::format("the log was forked: two checkpoints over {} entries are signed, with roots {} and {}",
                            current->size, to_hex(bytes_of(older->root)), to_hex(bytes_of(current->root))));
    }

    const TileReader as_it_is_now{files_};
    Pass pass{as_it_is_now, *files_, *current, older ? older->size : 0};
    if (Result<> same = pass.run(); !same) return std::unexpected(same.error());
    const bool continues = older && pass.older_root() == older->root;
    if (pass.root() != current->root) {
        std::string where;
        if (older)
            where = continues ? fmt::format(", from entry {} on", older->size)
                              : fmt::format(", before entry {}", older->size);
        return found(
            fmt::format("entries and tiles fit each other and give root {}, and {} was signed: they were "
                        "rewritten{}",
                        to_hex(bytes_of(pass.root())), to_hex(bytes_of(current->root)), where));
    }
    if (older && !continues)
        return found(
            fmt::format("the log was forked: its first {} entries give root {}, and an older checkpoint over "
                        "them has {}",
                        older->size, to_hex(bytes_of(pass.older_root())), to_hex(bytes_of(older->root))));
    return Audit{std::move(*current), pass.tiles(), continues};
}

}  // namespace bulkhead::audit
