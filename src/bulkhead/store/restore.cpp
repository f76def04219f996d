// The way back from a backup.
#include <fmt/format.h>

#include "bulkhead/store/backup.hpp"
#include "bulkhead/store/files.hpp"
#include "bulkhead/store/sqlite.hpp"

namespace bulkhead::store {

namespace {

// Every connection to a database with a write-ahead log holds a shared lock on it, so an exclusive one shows that there
// is none. A file too damaged to be locked can only be replaced.
Result<> nobody_has_it_open(const Options& target) {
    const Result<Database> database = Database::open(target.path, target.vfs, {SQLITE_OPEN_READWRITE});
    if (!database) return {};
    const Result<> locked = database->run("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK", "lock");
    if (!locked && locked.error().code == Code::conflict)
        return fail(Code::conflict, fmt::format("{} is open in another process", target.path),
                    "stop the control plane before restoring over its database");
    return {};
}

}  // namespace

Result<Position> Store::copy_from(const std::string& backup_path, const Options& target, Existing existing) {
    const Place place{target.path, target.vfs};
    if (exists(place)) {
        if (existing == Existing::refuse)
            return fail(Code::conflict, fmt::format("{} exists", target.path),
                        "move it away, or say that it may be replaced");
        if (auto free = nobody_has_it_open(target); !free) return std::unexpected(free.error());
    }
    Options source = target;
    source.path = backup_path;
    source.read_only = true;
    Result<Backup> copy = Backup::start_from_copy(source, target.path);
    if (!copy) return std::unexpected(copy.error());
    return copy->finish();
}

}  // namespace bulkhead::store
