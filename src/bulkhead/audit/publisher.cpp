#include "bulkhead/audit/publisher.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "bulkhead/audit/published.hpp"
#include "bulkhead/evidence/merkle.hpp"

namespace bulkhead::audit {

using namespace evidence;

namespace {

constexpr std::uint64_t leaves_in_memory = 65'536;  // while catching up; then their tiles are written

// Subtrees of the right edge, largest first, out of the last tile of each level.
Result<Frontier> frontier_of(std::uint64_t size, std::span<const std::vector<Hash>> last_tiles) {
    std::vector<Hash> subtrees;
    for (std::size_t level = last_tiles.size(); level-- > 0;) {
        const std::vector<Hash>& hashes = last_tiles[level];
        std::size_t at = 0;
        for (std::size_t count = tile_width / 2; count > 0; count /= 2) {
            if ((hashes.size() & count) == 0) continue;
            Frontier subtree;
            for (std::size_t i = 0; i < count; ++i) subtree.append(hashes[at++]);
            subtrees.push_back(subtree.root());
        }
    }
    return Frontier::restore(size, std::move(subtrees));
}

}  // namespace

Publisher::Publisher(std::unique_ptr<Files> files, std::string origin, SigningKey key)
    : files_{std::move(files)}, origin_{std::move(origin)}, key_{std::move(key)} {}

Result<Publisher> Publisher::open(const std::string& directory, std::string origin, SigningKey key) {
    Result<std::unique_ptr<Files>> files = hold_directory(directory);
    if (!files) return std::unexpected(files.error());
    return open(std::move(*files), std::move(origin), std::move(key));
}

Result<Publisher> Publisher::open(std::unique_ptr<Files> files, std::string origin, SigningKey key) {
    Publisher publisher{std::move(files), std::move(origin), std::move(key)};
    if (Result<> read = publisher.read_checkpoint(); !read) return std::unexpected(read.error());
    if (Result<> read = publisher.read_edge(); !read) return std::unexpected(read.error());
    if (Result<> swept = publisher.sweep_edge(); !swept) return std::unexpected(swept.error());
    return publisher;
}

Result<> Publisher::read_checkpoint() {
    if (!is_key_name(origin_))
        return fail(Code::invalid, fmt::format("\"{}\" cannot name a log", origin_),
                    "a name without spaces or '+', such as log.example/fleet");
    const auto note = files_->read(checkpoint_path);
    if (!note) return std::unexpected(note.error());
    if (!*note) return {};
    Result<Checkpoint> checkpoint = open_checkpoint(**note, verifier_key());
    if (!checkpoint)
        return fail(checkpoint.error().code,
                    "the checkpoint on disk is not one of this log: " + checkpoint.error().what,
                    "a log that does not know what it has signed must not sign: give it its own key, name and "
                    "directory, or restore the checkpoint from a copy");
    signed_ = std::move(*checkpoint);
    note_ = **note;
    return {};
}

Result<> Publisher::read_edge() {
    const std::uint64_t size = published();
    std::vector<std::vector<Hash>> last_tiles;
    for (unsigned level = 0; hashes_at(level, size) > 0; ++level) {
        const std::uint64_t hashes = hashes_at(level, size), partial = hashes % tile_width;
        Level& edge = levels_.emplace_back(Level{.first = hashes - partial, .hashes = {}});
        if (partial != 0) {
            Result<std::vector<Hash>> tile =
                read_tile(*files_, *tile_at(TileId::Holds::hashes, level, hashes / tile_width, size));
            if (!tile) return std::unexpected(tile.error());
            edge.hashes = std::move(*tile);
        }
        last_tiles.push_back(edge.hashes);
    }
    Result<Frontier> frontier = frontier_of(size, last_tiles);
    if (!frontier) return std::unexpected(frontier.error());
    if (signed_ && frontier->root() != signed_->root)
        return fail(Code::corrupt,
                    fmt::format("the tiles on disk give root {} for {} leaves, and {} was signed",
                                to_hex(bytes_of(frontier->root())), size, to_hex(bytes_of(signed_->root))),
                    "run `bulkhead audit verify` to see where; rebuild the tiles from the store");
    frontier_ = std::move(*frontier);
    written_ = size;

    if (size % tile_width == 0) return {};
    const TileId bundle = *tile_at(TileId::Holds::entries, 0, size / tile_width, size);
    const Result<std::vector<std::string>> entries = read_bundle(*files_, bundle);
    if (!entries) return std::unexpected(entries.error());
    for (std::size_t i = 0; i < entries->size(); ++i) {
        const auto entry = hash_from((*entries)[i]);
        if (!entry || leaf_hash((*entries)[i]) != levels_[0].hashes[i])
            return fail(
                Code::corrupt,
                fmt::format("entry {} in {} is not the one that was signed for", levels_[0].first + i, path_of(bundle)),
                "rebuild the tiles from the store");
        entries_.push_back(*entry);
    }
    return {};
}

// Partial tiles of a size that was written and, because of a crash, never signed for.
Result<> Publisher::sweep_edge() {
    for (const TileId& tile : edge_of(published())) {
        const Result<std::vector<std::string>> names = files_->list(partials_of(tile));
        if (!names) return std::unexpected(names.error());
        for (const std::string& name : *names) {
            const auto version = parse_tile_path(partials_of(tile) + '/' + name);
            if (version && version->width <= tile.width) continue;
            if (Result<> removed = files_->remove(partials_of(tile) + '/' + name); !removed) return removed;
        }
    }
    return {};
}

Result<Publisher> Publisher::rebuild(std::unique_ptr<Files> files, std::string origin, SigningKey key,
                                     std::uint64_t size, const EntryReader& entry_at) {
    Publisher publisher{std::move(files), std::move(origin), std::move(key)};
    if (Result<> read = publisher.read_checkpoint(); !read) return std::unexpected(read.error());
    if (Result<> enough = publisher.check_store_has(size); !enough) return std::unexpected(enough.error());
    // Everything is compared with what was signed before anything is written.
    Frontier known;
    while (known.size() < publisher.published()) {
        const Result<Hash> entry = entry_at(known.size());
        if (!entry) return std::unexpected(entry.error());
        known.append(leaf_hash(bytes_of(*entry)));
    }
    if (publisher.signed_ && known.root() != publisher.signed_->root)
        return fail(Code::conflict,
                    fmt::format("the store's first {} entries give root {}, and {} was signed", known.size(),
                                to_hex(bytes_of(known.root())), to_hex(bytes_of(publisher.signed_->root))),
                    "this store belongs to another log or was changed; rebuilding would fork the log");
    for (const TileId& tile : edge_of(publisher.published()))
        if (Result<> removed = publisher.files_->remove(partials_of(tile)); !removed)
            return std::unexpected(removed.error());
    if (Result<> appended = publisher.append_from(size, entry_at); !appended) return std::unexpected(appended.error());
    if (Result<> written = publisher.write_tiles(); !written) return std::unexpected(written.error());
    return publisher;
}

Result<> Publisher::check_store_has(std::uint64_t size) const {
    if (size >= published()) return {};
    return fail(
        Code::conflict,
        fmt::format("the store has {} entries, and {} were signed for: it was restored from an older copy", size,
                    published()),
        fmt::format("read entries {} to {} back from the published log before going on", size, published() - 1));
}

Result<> Publisher::catch_up(std::uint64_t size, const EntryReader& entry_at) {
    if (Result<> enough = check_store_has(size); !enough) return enough;
    if (size < this->size())
        return fail(Code::conflict, fmt::format("{} entries were appended, and the store has {}", this->size(), size),
                    "append only what the store holds");
    if (Result<> same = check_newest(entry_at); !same) return same;
    return append_from(size, entry_at);
}

// The last bundle is enough to notice another log's store; an auditor reads them all.
Result<> Publisher::check_newest(const EntryReader& entry_at) const {
    if (published() == 0) return {};
    const std::uint64_t bundle = (published() - 1) / tile_width;
    const Result<std::vector<std::string>> entries =
        read_bundle(*files_, *tile_at(TileId::Holds::entries, 0, bundle, published()));
    if (!entries) return std::unexpected(entries.error());
    for (std::size_t i = 0; i < entries->size(); ++i) {
        const std::uint64_t index = bundle * tile_width + i;
        const Result<Hash> stored = entry_at(index);
        if (!stored) return std::unexpected(stored.error());
        if (bytes_of(*stored) != (*entries)[i])
            return fail(Code::conflict,
                        fmt::format("entry {} is {} in the store, and {} was published", index,
                                    to_hex(bytes_of(*stored)), to_hex((*entries)[i])),
                        "store and directory belong to different logs, or one was changed: find out before going on");
    }
    return {};
}

Result<> Publisher::append_from(std::uint64_t size, const EntryReader& entry_at) {
    while (this->size() < size) {
        const Result<Hash> entry = entry_at(this->size());
        if (!entry) return std::unexpected(entry.error());
        append(*entry);
        if (this->size() - written_ >= leaves_in_memory)
            if (Result<> written = write_tiles(); !written) return written;
    }
    return {};
}

void Publisher::append(const Hash& entry) {
    entries_.push_back(entry);
    frontier_.append(leaf_hash(bytes_of(entry)), [this](unsigned level, const Hash& root) {
        if (level % tile_height != 0) return;
        if (levels_.size() == level / tile_height) levels_.emplace_back();
        levels_[level / tile_height].hashes.push_back(root);
    });
}

Result<> Publisher::publish() {
    if (signed_ && signed_->size == size()) return {};
    if (Result<> known = check_disk(); !known) return known;
    if (Result<> written = write_tiles(); !written) return written;
    Checkpoint next{.origin = origin_, .size = size(), .root = frontier_.root(), .extensions = {}};
    std::vector<SigningKey> keys{key_};
    if (next_) keys.push_back(*next_);
    attempted_ = Attempt{next, sign_checkpoint(next, keys)};
    const NewFile file{checkpoint_path, attempted_->note};
    if (Result<> put = files_->put({&file, 1}); !put) return put;
    adopt_attempt();
    return {};
}

Result<> Publisher::change_key() {
    if (!next_) return fail(Code::conflict, "no key is to follow the one the log has", "begin with a new key");
    if (const auto both = open_checkpoint(note_, VerifierKey{origin_, next_->public_key()}); !both)
        return fail(Code::conflict, "the checkpoint on disk does not have the new key's signature",
                    "publish another before the key is changed");
    key_ = *std::exchange(next_, std::nullopt);
    return {};
}

// What lies there must be what we signed last, or the next checkpoint might contradict one that others have seen.
Result<> Publisher::check_disk() {
    const auto note = files_->read(checkpoint_path);
    if (!note) return std::unexpected(note.error());
    if (attempted_ && *note == attempted_->note) adopt_attempt();  // an earlier error came after the file was in place
    attempted_.reset();
    if (note->value_or("") == note_) return {};
    return fail(Code::conflict,
                *note ? "the checkpoint on disk is not the one this log signed last"
                      : fmt::format("the checkpoint over {} leaves is gone from disk", published()),
                "someone else wrote there; restart to read what is there now, and find out who it was");
}

void Publisher::adopt_attempt() {
    signed_ = std::move(attempted_->checkpoint);
    note_ = std::move(attempted_->note);
    attempted_.reset();
}

Result<> Publisher::write_tiles() {
    const std::vector<TileId> tiles = tiles_between({written_, size()}), old_edge = edge_of(written_);
    const auto was_begun = [&](const TileId& tile) {
        return std::ranges::any_of(old_edge, [&](const TileId& old) { return partials_of(old) == partials_of(tile); });
    };
    std::vector<NewFile> files;
    files.reserve(tiles.size());
    for (const TileId& tile : tiles) {
        files.push_back({path_of(tile), bytes_for(tile)});
        // Partial versions of a tile that nobody has signed for: a crash left them.
        if (was_begun(tile)) continue;
        if (Result<> removed = files_->remove(partials_of(tile)); !removed) return removed;
    }
    if (Result<> put = files_->put(files); !put) return put;
    // A full tile makes its partial versions needless. They go before the next checkpoint comes, so that a crash here
    // is repeated from the same size and leaves none behind.
    for (const TileId& tile : tiles) {
        if (tile.width != tile_width || !was_begun(tile)) continue;
        if (Result<> removed = files_->remove(partials_of(tile)); !removed) return removed;
    }
    written_ = size();
    forget_full_tiles();
    return {};
}

std::string Publisher::bytes_for(const TileId& tile) const {
    const Level& level = levels_[tile.level];
    const std::size_t from = tile.index * tile_width - level.first;
    if (tile.holds == TileId::Holds::hashes) return encode_tile(std::span{level.hashes}.subspan(from, tile.width));
    std::string bytes;
    bytes.reserve(tile.width * (2 + sizeof(Hash)));
    for (std::size_t i = from; i < from + tile.width; ++i) {
        bytes += {'\0', static_cast<char>(sizeof(Hash))};
        bytes += bytes_of(entries_[i]);
    }
    return bytes;
}

void Publisher::forget_full_tiles() {
    for (std::size_t i = 0; i < levels_.size(); ++i) {
        Level& level = levels_[i];
        const auto full = static_cast<std::ptrdiff_t>(level.hashes.size() / tile_width * tile_width);
        level.hashes.erase(level.hashes.begin(), level.hashes.begin() + full);
        if (i == 0) entries_.erase(entries_.begin(), entries_.begin() + full);
        level.first += static_cast<std::uint64_t>(full);
    }
}

}  // namespace bulkhead::audit
