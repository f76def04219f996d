// What SQLite asks of the machine: to open, find and remove files, and the time.
#include <algorithm>
#include <cstring>
#include <new>

#include "sim/disk/state.hpp"

namespace bulkhead::sim {

namespace {

Disk::State& state_of(sqlite3_vfs* vfs) { return *static_cast<Disk::State*>(vfs->pAppData); }

int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* raw, int flags, int* out_flags) {
    Disk::State& disk = state_of(vfs);
    raw->pMethods = nullptr;
    if (disk.power_lost) return SQLITE_IOERR;
    std::shared_ptr<File> file = name == nullptr ? std::make_shared<File>() : disk.find(name);
    bool made = false;
    if (!file) {
        if ((flags & SQLITE_OPEN_CREATE) == 0 || disk.read_only) return SQLITE_CANTOPEN;
        const Power power = disk.boundary();
        file = std::make_shared<File>();
        made = true;
        disk.change({Naming::Kind::made, name, {}, file});
        if (power != Power::on) return SQLITE_IOERR;
    } else if ((flags & SQLITE_OPEN_EXCLUSIVE) != 0 && name != nullptr) {
        return SQLITE_CANTOPEN;
    }
    auto* handle = new (raw) Handle;
    handle->base.pMethods = &file_methods;
    handle->disk = &disk;
    handle->generation = disk.generation;
    handle->writable = (flags & SQLITE_OPEN_READWRITE) != 0 && !disk.read_only;
    // SQLite on Linux syncs the directory with the first sync of a log or journal it has made, and not otherwise.
    constexpr int logs = SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL;
    handle->syncs_directory = made && (flags & logs) != 0;
    if ((flags & SQLITE_OPEN_DELETEONCLOSE) != 0 && name != nullptr) handle->remove_on_close = name;
    file->handles.push_back(handle);
    handle->file = std::move(file);
    ++disk.open_handles;
    if (out_flags != nullptr)
        *out_flags =
            handle->writable ? flags : (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    return SQLITE_OK;
}

int remove_file(sqlite3_vfs* vfs, const char* name, int sync_directory) {
    Disk::State& disk = state_of(vfs);
    if (disk.power_lost) return SQLITE_IOERR_DELETE;
    const std::shared_ptr<File> file = disk.find(name);
    if (!file) return SQLITE_IOERR_DELETE_NOENT;
    const Power power = disk.boundary();
    if (disk.read_only) return SQLITE_IOERR_DELETE;
    disk.give_back(file->image.now().size());
    disk.change({Naming::Kind::removed, name, {}, file});
    if (power != Power::on) return SQLITE_IOERR_DELETE;
    if (sync_directory != 0 && disk.sync_fault != Disk::SyncFault::none) return SQLITE_IOERR_DIR_FSYNC;
    if (sync_directory != 0) disk.sync_names();
    return SQLITE_OK;
}

int access(sqlite3_vfs* vfs, const char* name, int asked, int* answer) {
    Disk::State& disk = state_of(vfs);
    if (disk.power_lost) return SQLITE_IOERR_ACCESS;
    const std::shared_ptr<File> file = disk.find(name);
    if (asked == SQLITE_ACCESS_EXISTS)
        *answer = file != nullptr && !file->image.now().empty();  // as on Linux
    else
        *answer = file != nullptr && (asked == SQLITE_ACCESS_READ || !disk.read_only);
    return SQLITE_OK;
}

int full_path(sqlite3_vfs*, const char* name, int size, char* out) {
    if (std::strlen(name) >= static_cast<std::size_t>(size)) return SQLITE_CANTOPEN;
    std::strcpy(out, name);
    return SQLITE_OK;
}

// Only names of temporary files are drawn from it, and those are kept in memory here.
int randomness(sqlite3_vfs*, int count, char* out) {
    std::memset(out, 0x5A, static_cast<std::size_t>(count));
    return count;
}

int sleep(sqlite3_vfs*, int microseconds) { return microseconds; }  // whoever holds the lock is this very thread

int current_time(sqlite3_vfs* vfs, sqlite3_int64* julian_ms) {
    *julian_ms = state_of(vfs).clock.ms + 210'866'760'000'000;  // SQLite counts from 4714 B.C.
    return SQLITE_OK;
}

int current_days(sqlite3_vfs* vfs, double* days) {
    *days = static_cast<double>(state_of(vfs).clock.ms + 210'866'760'000'000) / 86'400'000.0;
    return SQLITE_OK;
}

int last_error(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

void fill_in(sqlite3_vfs& vfs) {
    vfs.iVersion = 2;
    vfs.szOsFile = sizeof(Handle);
    vfs.mxPathname = 512;
    vfs.xOpen = open;
    vfs.xDelete = remove_file;
    vfs.xAccess = access;
    vfs.xFullPathname = full_path;
    vfs.xRandomness = randomness;
    vfs.xSleep = sleep;
    vfs.xCurrentTime = current_days;
    vfs.xGetLastError = last_error;
    vfs.xCurrentTimeInt64 = current_time;
}

}  // namespace bulkhead::sim
