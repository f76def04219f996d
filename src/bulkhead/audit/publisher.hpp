// Publishes the log: tiles and a signed checkpoint in a directory that any web server can serve and any tlog-tiles
// client can read. The store is where leaves are safe; what lies here can always be written again from it, except that
// nothing once signed for may ever change. So every checkpoint continues the one before, or is not signed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/audit/files.hpp"
#include "bulkhead/evidence/checkpoint.hpp"
#include "bulkhead/evidence/tile.hpp"

namespace bulkhead::audit {

using EntryReader = std::function<Result<Hash>(std::uint64_t index)>;

class Publisher {
public:
    // The origin names the log and the key; it never changes. What is in the directory is read and checked up to its
    // right edge: a checkpoint of another log or key, or tiles that do not give its root, are refused. A directory
    // without a checkpoint is a log of size 0.
    static Result<Publisher> open(const std::string& directory, std::string origin, evidence::SigningKey key);
    static Result<Publisher> open(std::unique_ptr<Files> files, std::string origin, evidence::SigningKey key);
    // When tiles are damaged and open refuses: everything is computed anew from the store's entries and written, unless
    // that contradicts the checkpoint on disk. `size` is at least the checkpoint's.
    static Result<Publisher> rebuild(std::unique_ptr<Files> files, std::string origin, evidence::SigningKey key,
                                     std::uint64_t size, const EntryReader& entry_at);

    // After a start: appends the entries that the store has and this directory does not, and checks that the newest
    // that both have are the same. Refused when the store has fewer than were signed for: it was restored from an older
    // copy, and goes on only after reading the entries it lost from here (TileReader::entry).
    Result<> catch_up(std::uint64_t size, const EntryReader& entry_at);

    // The next leaf, which must be durable in the store. In memory only, until publish.
    void append(const Hash& entry);
    // Tiles first, then the checkpoint over all that was appended. On an error nothing wrong has been signed; the same
    // call may be tried again. Without new leaves it does nothing, except for the first checkpoint of an empty log.
    Result<> publish();

    // From here on every checkpoint carries the signature of the key that is to follow as well; nothing: only its own.
    void cosign(std::optional<evidence::SigningKey> next) { next_ = std::move(next); }
    // The key that has cosigned signs alone. Refused unless the checkpoint on disk has its signature: whoever reads it
    // must be able to believe it under either key.
    Result<> change_key();

    std::uint64_t size() const { return frontier_.size(); }                  // appended
    std::uint64_t published() const { return signed_ ? signed_->size : 0; }  // signed for
    const std::string& checkpoint() const { return note_; }  // the signed note on disk; empty before the first
    Hash root() const { return frontier_.root(); }           // of all that was appended
    evidence::VerifierKey verifier_key() const { return {origin_, key_.public_key()}; }

private:
    Publisher(std::unique_ptr<Files> files, std::string origin, evidence::SigningKey key);
    Result<> read_checkpoint();
    Result<> read_edge();
    Result<> sweep_edge();
    Result<> check_store_has(std::uint64_t size) const;
    Result<> check_newest(const EntryReader& entry_at) const;
    Result<> check_disk();
    Result<> append_from(std::uint64_t size, const EntryReader& entry_at);
    Result<> write_tiles();
    std::string bytes_for(const evidence::TileId& tile) const;
    void forget_full_tiles();
    void adopt_attempt();

    // The hashes of one level that are not in full tiles on disk.
    struct Level {
        std::uint64_t first = 0;  // which hash of the level comes first here; a multiple of 256
        std::vector<Hash> hashes;
    };
    struct Attempt {
        evidence::Checkpoint checkpoint;
        std::string note;
    };

    std::unique_ptr<Files> files_;
    std::string origin_;
    evidence::SigningKey key_;
    std::optional<evidence::SigningKey> next_;
    evidence::Frontier frontier_;
    std::vector<Level> levels_;
    std::vector<Hash> entries_;                   // of the hashes of level 0
    std::uint64_t written_ = 0;                   // leaves whose tiles are on disk
    std::optional<evidence::Checkpoint> signed_;  // the newest on disk, as far as we know
    std::string note_;
    std::optional<Attempt> attempted_;  // signed, and perhaps on disk: writing it failed
};

}  // namespace bulkhead::audit
