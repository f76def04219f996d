#include "bulkhead/store/backup.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "bulkhead/store/connection.hpp"
#include "bulkhead/store/files.hpp"

namespace bulkhead::store {

namespace {

constexpr std::string_view copying = "copy into";

struct FinishCopy {
    void operator()(sqlite3_backup* raw) const noexcept { sqlite3_backup_finish(raw); }
};

Result<> sync_file(const Database& database) {
    sqlite3_file* file = nullptr;
    sqlite3_file_control(database.raw(), "main", SQLITE_FCNTL_FILE_POINTER, static_cast<void*>(&file));
    invariant(file != nullptr && file->pMethods != nullptr, "a database that was written has a file");
    const int code = file->pMethods->xSync(file, SQLITE_SYNC_FULL);
    if (code != SQLITE_OK) return std::unexpected(error_of(code, sqlite3_errstr(code), "sync", database.path()));
    return {};
}

}  // namespace

struct Backup::State {
    Connection source;
    Place part;  // what is being written, until it takes the target's name
    std::string target;
    Position position;
    Database copy;
    std::unique_ptr<sqlite3_backup, FinishCopy> work;
    bool done = false;

    Result<> begin(const Options& options);
    Result<Progress> step(int pages);
    Result<> verify_and_place();
    void abandon();
};

Result<> Backup::State::begin(const Options& options) {
    if (auto removed = remove_database(part); !removed) return removed;
    if (part.vfs.empty()) {
        // The copy holds the same keys and tokens as the database.
        const int file = ::open(part.path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        if (file >= 0) ::close(file);
    }
    auto opened = Database::open(part.path, part.vfs, {SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE});
    if (!opened) return std::unexpected(opened.error());
    copy = std::move(*opened);
    // A copy that is cut short is thrown away, so it needs no journal.
    if (auto set = copy.run("PRAGMA journal_mode = OFF; PRAGMA synchronous = FULL", copying); !set) return set;

    // Holding one read transaction from here to the end keeps the copy at one moment, whatever is committed meanwhile.
    if (auto begun = source.database.run("BEGIN", "read"); !begun) return begun;
    const Result<Position> at = source.position();
    if (!at) return std::unexpected(at.error());
    position = *at;
    work.reset(sqlite3_backup_init(copy.raw(), "main", source.database.raw(), "main"));
    if (!work) return std::unexpected(copy.last_error(copying));
    sqlite3_busy_timeout(copy.raw(), static_cast<int>(options.busy.ms));
    return {};
}

Result<Backup::Progress> Backup::State::step(int pages) {
    if (done) return Progress{.done = true};
    if (!work) return fail(Code::conflict, fmt::format("the copy into {} has failed", target), "start another");
    const int code = sqlite3_backup_step(work.get(), pages);
    Progress progress{sqlite3_backup_pagecount(work.get()), sqlite3_backup_remaining(work.get())};
    if (code == SQLITE_OK) return progress;
    if (code != SQLITE_DONE) {
        const Error error = error_of(code, sqlite3_errstr(code), copying, part.path);
        abandon();
        return std::unexpected(error);
    }
    if (auto placed = verify_and_place(); !placed) {
        abandon();
        return std::unexpected(placed.error());
    }
    progress.done = true;
    return progress;
}

Result<> Backup::State::verify_and_place() {
    work.reset();
    if (auto ended = source.database.run("ROLLBACK", "read"); !ended) return ended;
    if (auto synced = sync_file(copy); !synced) return synced;
    copy = {};
    {
        Options options{.path = part.path, .vfs = part.vfs};
        Result<Connection> written = Connection::open(options, Access::still);
        if (!written) return std::unexpected(written.error());
        if (auto sound = quick_check(written->database); !sound) return sound;
        const Result<Position> at = written->position();
        if (!at) return std::unexpected(at.error());
        if (*at != position)
            return fail(Code::corrupt, fmt::format("the copy at {} is not of the moment it was taken of", part.path),
                        "check the disk, then start another backup");
    }
    // A log left beside an old file of this name would be replayed into the new one.
    if (auto removed = remove_leftovers({target, part.vfs}); !removed) return removed;
    if (auto moved = move_into_place(part, target); !moved) return moved;
    done = true;
    return {};
}

void Backup::State::abandon() {
    work.reset();
    copy = {};
    // If the disk refuses even that, the next backup tries again.
    [[maybe_unused]] const Result<> removed = remove_database(part);
}

namespace {

Result<Backup> refused(const Error& error) { return std::unexpected(error); }

}  // namespace

Result<Backup> Backup::start(const Options& source, std::string target) {
    Result<Connection> connection = Connection::open(source, Access::read);
    if (!connection) return refused(connection.error());
    auto state = std::make_unique<State>();
    state->source = std::move(*connection);
    state->part = {target + ".part", source.vfs};
    state->target = std::move(target);
    Backup backup{std::move(state)};  // from here on, leaving early cleans up
    if (auto begun = backup.state_->begin(source); !begun) return refused(begun.error());
    return backup;
}

Result<Backup> Backup::start_from_copy(const Options& source, std::string target) {
    // With a write-ahead log beside it, it was no finished copy but a database that was in use.
    const bool in_use = exists({source.path + "-wal", source.vfs});
    Result<Connection> connection = Connection::open(source, in_use ? Access::read : Access::still);
    if (!connection) return refused(connection.error());
    const Result<std::vector<std::string>> complaints = examine(*connection);
    if (!complaints) return refused(complaints.error());
    if (!complaints->empty())
        return refused(
            {Code::corrupt,
             fmt::format("{} is damaged: {} ({} findings)", source.path, complaints->front(), complaints->size()),
             "take an older backup"});
    auto state = std::make_unique<State>();
    state->source = std::move(*connection);
    state->part = {target + ".part", source.vfs};
    state->target = std::move(target);
    Backup backup{std::move(state)};
    if (auto begun = backup.state_->begin(source); !begun) return refused(begun.error());
    return backup;
}

Backup::Backup(std::unique_ptr<State> state) : state_(std::move(state)) {}
Backup::Backup(Backup&&) noexcept = default;
Backup& Backup::operator=(Backup&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}
Backup::~Backup() {
    if (state_ && !state_->done) state_->abandon();
}

Result<Backup::Progress> Backup::step(int pages) { return state_->step(pages); }

Result<Position> Backup::finish() {
    for (;;) {
        const Result<Progress> progress = step();
        if (!progress) return std::unexpected(progress.error());
        if (progress->done) return position();
    }
}

Position Backup::position() const { return state_->position; }

}  // namespace bulkhead::store
