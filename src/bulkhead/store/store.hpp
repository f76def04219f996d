// Where what the core keeps becomes durable: one SQLite file. A commit is one transaction, on the disk when it returns,
// and only for whoever holds the newest epoch: a control plane that was replaced while it slept is refused. Bodies and
// payloads are bytes nobody here looks into; each carries a checksum, so that a flipped bit is refused, not decided on.
//
// One thread at a time uses a Store. Other threads read the log through a Reader (reader.hpp) of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/base/quantity.hpp"
#include "bulkhead/base/result.hpp"
#include "bulkhead/core/rows.hpp"

namespace bulkhead::store {

// How far the store has come.
struct Position {
    std::int64_t epoch = 0;  // the newest one given out; 0: none yet
    Instant clock;           // core time of the last commit
    std::int64_t log_size = 0;
    friend bool operator==(const Position&, const Position&) = default;
};

enum class Sync : std::uint8_t {
    full,  // every commit is on the disk when it returns
    off,   // a power cut loses commits and may ruin the file: for scratch databases only
};

struct Options {
    std::string path;
    std::string vfs;  // empty: the machine's own files
    bool read_only = false;
    bool create = true;  // make the database where there is none
    Sync sync = Sync::full;
    Duration busy{250};           // how long to wait for another process that is writing
    int checkpoint_pages = 1000;  // of the write-ahead log; then they move into the main file
    // The row tables are checked at every open; the log too, while the file is not larger than this (about a second).
    ByteSize check_whole_up_to{std::int64_t{512} << 20};
    std::string secret_if_new;  // 32 bytes, kept with a new database; empty: drawn from the kernel
};

class Store {
public:
    // Makes, migrates and checks. Refused: what is damaged, what another application made, what a newer version made.
    static Result<Store> open(Options options);
    Store(Store&&) noexcept;
    Store& operator=(Store&&) noexcept;
    ~Store();

    // Starts a reign: the new epoch is above every one given out here and above `at_least`. Older holders can no
    // longer commit.
    Result<std::int64_t> raise_epoch(std::int64_t at_least = 0);

    Result<Position> position() const;
    // 32 random bytes, made with the database and never changed.
    const std::string& secret() const;
    // Every row, by table and then key, and the position they belong to. Stops at the first error of the visitor.
    Result<Position> load(const std::function<Result<>(Row&&)>& visit) const;

    // All of it or none, durable when it returns. Several batches become one transaction, for one wait on the disk.
    //   conflict     the epoch is not the newest, the log does not continue, the clock runs back, or another process
    //                is writing: nothing has changed, and the store can be used on
    //   exhausted    the disk is full: nothing has changed, and the store can be used on
    //   unavailable  the disk failed or is read-only. Whether this batch survives is known only after opening anew
    //                (whole or not at all); until then every call is refused. Reading to the end what a new Store
    //                shows and raising the epoch on it settles the question for good
    //   corrupt      the file is damaged; every call is refused
    Result<> commit(const Batch& batch) { return commit({&batch, 1}); }
    Result<> commit(std::span<const Batch> batches);

    // `conflict` when somebody has raised the epoch above this one since. What is answered without a commit is asked
    // for here first: a master that was replaced knows nothing any more.
    Result<> still_newest(std::int64_t epoch) const;

    // After a restore: entries that others still hold, whose payload is gone. Appended in one transaction.
    Result<> import_lost_leaves(std::int64_t first, std::span<const Hash> entries);

    // From `first` on, at most `count`; fewer at the end of the log. A single one that is not there is `not_found`.
    Result<std::vector<Leaf>> leaves(std::int64_t first, std::int64_t count) const;
    Result<Leaf> leaf(std::int64_t index) const;

    // Reads everything: structure, and the checksum of every row and leaf. Empty when all is well, else what is wrong.
    Result<std::vector<std::string>> check() const;
    bool checked_whole() const;  // at open: false when the log was too large to be checked in passing

    // Moves what is in the write-ahead log into the main file. Commits do it by themselves every so often; doing it
    // in an idle moment keeps the wait out of a commit.
    Result<> checkpoint();

    // A verified copy of this moment at `path`, whole or not there. See backup.hpp for one in small steps.
    Result<Position> backup(const std::string& path) const;
    // The way back: verifies the backup, then puts a copy of it at options.path. A database that stands there is
    // replaced only when told, and never while somebody has it open.
    enum class Existing : std::uint8_t { refuse, replace };
    static Result<Position> copy_from(const std::string& backup_path, const Options& target,
                                      Existing existing = Existing::refuse);

    const Options& options() const;
    // True after a failure that only opening anew can settle.
    bool must_be_reopened() const;

private:
    struct State;
    explicit Store(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace bulkhead::store
