// What SQLite asks of an open file: bytes, locks, and the memory that the connections to one database share.
#include <algorithm>
#include <cstring>

#include "bulkhead/store/files.hpp"
#include "sim/disk/state.hpp"

namespace bulkhead::sim {

namespace {

// Counts a use against a fault that comes after so many more.
bool spent(std::optional<std::uint64_t>& left) {
    if (!left) return false;
    if (*left == 0) return true;
    --*left;
    return false;
}

int close(sqlite3_file* raw) {
    Handle& handle = handle_of(raw);
    std::erase(handle.file->handles, &handle);
    if (!handle.remove_on_close.empty() && !handle.dead())
        handle.disk->change({Naming::Kind::removed, handle.remove_on_close, {}, handle.file});
    --handle.disk->open_handles;
    handle.~Handle();
    return SQLITE_OK;
}

int read(sqlite3_file* raw, void* to, int count, sqlite3_int64 offset) {
    Handle& handle = handle_of(raw);
    if (handle.dead() || spent(handle.disk->reads_left)) return SQLITE_IOERR_READ;
    const std::string& now = handle.file->image.now();
    const auto at = std::min(static_cast<std::size_t>(offset), now.size());
    const auto wanted = static_cast<std::size_t>(count), there = std::min(wanted, now.size() - at);
    std::memcpy(to, now.data() + at, there);
    if (there == wanted) return SQLITE_OK;
    std::memset(static_cast<char*>(to) + there, 0, wanted - there);
    return SQLITE_IOERR_SHORT_READ;
}

int write(sqlite3_file* raw, const void* from, int count, sqlite3_int64 offset) {
    Handle& handle = handle_of(raw);
    Disk::State& disk = *handle.disk;
    if (handle.dead()) return SQLITE_IOERR_WRITE;
    if (!handle.writable) return SQLITE_READONLY;
    const Power power = disk.boundary();
    if (disk.read_only || spent(disk.writes_left)) return SQLITE_IOERR_WRITE;
    const auto at = static_cast<std::uint64_t>(offset), size = static_cast<std::uint64_t>(count);
    const std::uint64_t old_size = handle.file->image.now().size();
    const std::uint64_t growth = at + size > old_size ? at + size - old_size : 0;
    if (disk.room) {
        if (growth > *disk.room) return SQLITE_FULL;
        *disk.room -= growth;
    }
    handle.file->image.write(at, {static_cast<const char*>(from), static_cast<std::size_t>(count)});
    return power == Power::on ? SQLITE_OK : SQLITE_IOERR_WRITE;
}

int truncate(sqlite3_file* raw, sqlite3_int64 size) {
    Handle& handle = handle_of(raw);
    if (handle.dead()) return SQLITE_IOERR_TRUNCATE;
    if (!handle.writable) return SQLITE_READONLY;
    const Power power = handle.disk->boundary();
    if (handle.disk->read_only || spent(handle.disk->writes_left)) return SQLITE_IOERR_TRUNCATE;
    const auto wanted = static_cast<std::uint64_t>(size), old_size = handle.file->image.now().size();
    if (wanted < old_size) handle.disk->give_back(old_size - wanted);
    handle.file->image.truncate(wanted);
    return power == Power::on ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

int sync(sqlite3_file* raw, int) {
    Handle& handle = handle_of(raw);
    Disk::State& disk = *handle.disk;
    if (handle.dead() || disk.boundary() != Power::on) return SQLITE_IOERR_FSYNC;
    if (disk.read_only) return SQLITE_IOERR_FSYNC;
    if (disk.sync_fault != Disk::SyncFault::none) {
        if (disk.sync_fault == Disk::SyncFault::loses) handle.file->image.forget_unsynced();
        return SQLITE_IOERR_FSYNC;
    }
    handle.file->image.sync();
    if (handle.syncs_directory) disk.sync_names();
    handle.syncs_directory = false;
    return SQLITE_OK;
}

int file_size(sqlite3_file* raw, sqlite3_int64* size) {
    Handle& handle = handle_of(raw);
    if (handle.dead()) return SQLITE_IOERR_FSTAT;
    *size = static_cast<sqlite3_int64>(handle.file->image.now().size());
    return SQLITE_OK;
}

// The levels of SQLite's file lock: any number may be SHARED, one of them RESERVED (it means to write), PENDING (nobody
// new may come), and EXCLUSIVE once it is alone.
int highest_level_of_others(const Handle& handle) {
    int highest = SQLITE_LOCK_NONE;
    for (const Handle* other : handle.file->handles)
        if (other != &handle) highest = std::max(highest, other->level);
    return highest;
}

int lock(sqlite3_file* raw, int wanted) {
    Handle& handle = handle_of(raw);
    if (handle.dead()) return SQLITE_IOERR_LOCK;
    if (wanted <= handle.level) return SQLITE_OK;
    const int others = highest_level_of_others(handle);
    if (wanted == SQLITE_LOCK_SHARED && others >= SQLITE_LOCK_PENDING) return SQLITE_BUSY;
    if (wanted >= SQLITE_LOCK_RESERVED && others >= SQLITE_LOCK_RESERVED) return SQLITE_BUSY;
    if (wanted == SQLITE_LOCK_EXCLUSIVE && others >= SQLITE_LOCK_SHARED) {
        handle.level = SQLITE_LOCK_PENDING;
        return SQLITE_BUSY;
    }
    handle.level = wanted;
    return SQLITE_OK;
}

int unlock(sqlite3_file* raw, int wanted) {
    Handle& handle = handle_of(raw);
    handle.level = std::min(handle.level, wanted);
    return SQLITE_OK;
}

int check_reserved(sqlite3_file* raw, int* reserved) {
    Handle& handle = handle_of(raw);
    if (handle.dead()) return SQLITE_IOERR_CHECKRESERVEDLOCK;
    *reserved = std::max(handle.level, highest_level_of_others(handle)) >= SQLITE_LOCK_RESERVED;
    return SQLITE_OK;
}

int rename(Handle& handle, const char* to) {
    Disk::State& disk = *handle.disk;
    if (handle.dead()) return SQLITE_IOERR;
    const auto old = std::ranges::find(disk.names, handle.file, [](const auto& entry) { return entry.second; });
    if (old == disk.names.end()) return SQLITE_IOERR;
    const Power power = disk.boundary();
    if (disk.read_only) return SQLITE_IOERR;
    disk.change({Naming::Kind::renamed, old->first, to, handle.file});
    if (power != Power::on) return SQLITE_IOERR;
    disk.sync_names();
    return SQLITE_OK;
}

int file_control(sqlite3_file* raw, int operation, void* argument) {
    if (operation == store::rename_file_control) return rename(handle_of(raw), static_cast<const char*>(argument));
    return SQLITE_NOTFOUND;
}

int sector_size(sqlite3_file*) { return 4096; }  // as on Linux
// As on Linux: a write changes no byte beside it, even when the power goes.
int device_characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int memory_map(sqlite3_file* raw, int region, int size, int extend, void volatile** address) {
    Handle& handle = handle_of(raw);
    *address = nullptr;
    if (handle.dead()) return SQLITE_IOERR_SHMMAP;
    if (!handle.memory) {
        if (!handle.file->memory) {
            // Linux keeps it in a file beside the database, which cannot be made here.
            if (handle.disk->read_only) return SQLITE_CANTOPEN;
            handle.file->memory = std::make_shared<SharedMemory>();
        }
        handle.memory = handle.file->memory;
        ++handle.memory->users;
    }
    auto& regions = handle.memory->regions;
    const auto index = static_cast<std::size_t>(region);
    if (index >= regions.size() && extend == 0) return SQLITE_OK;
    while (index >= regions.size()) regions.push_back(std::make_unique<char[]>(static_cast<std::size_t>(size)));
    *address = regions[index].get();
    return SQLITE_OK;
}

int memory_lock(sqlite3_file* raw, int first, int count, int flags) {
    Handle& handle = handle_of(raw);
    const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
    const unsigned mask = ((1u << count) - 1) << first;
    if (!handle.memory) return SQLITE_IOERR_SHMLOCK;
    auto& locks = handle.memory->locks;
    const auto each = [&](auto visit) {
        for (int i = first; i < first + count; ++i) visit(locks[static_cast<std::size_t>(i)], 1u << i);
    };
    if ((flags & SQLITE_SHM_UNLOCK) != 0) {
        each([&](SharedMemory::Lock& one, unsigned bit) {
            if ((handle.reading & bit) != 0) --one.readers;
            if ((handle.writing & bit) != 0) one.writer = nullptr;
        });
        handle.reading &= ~mask;
        handle.writing &= ~mask;
        return SQLITE_OK;
    }
    if (handle.dead()) return SQLITE_IOERR_SHMLOCK;
    bool taken = false;
    each([&](const SharedMemory::Lock& one, unsigned bit) {
        const bool mine = (handle.reading & bit) != 0;
        if (one.writer != nullptr && one.writer != &handle) taken = true;
        if (exclusive && one.readers > (mine ? 1 : 0)) taken = true;
    });
    if (taken) return SQLITE_BUSY;
    each([&](SharedMemory::Lock& one, unsigned bit) {
        if (exclusive)
            one.writer = &handle;
        else if ((handle.reading & bit) == 0)
            ++one.readers;
    });
    (exclusive ? handle.writing : handle.reading) |= mask;
    return SQLITE_OK;
}

void memory_barrier(sqlite3_file*) {}  // one thread

int memory_unmap(sqlite3_file* raw, int) {
    Handle& handle = handle_of(raw);
    if (!handle.memory) return SQLITE_OK;
    memory_lock(raw, 0, SQLITE_SHM_NLOCK, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
    // The first to come after the last has left starts from nothing, as on Linux.
    if (--handle.memory->users == 0 && handle.file->memory == handle.memory) handle.file->memory.reset();
    handle.memory.reset();
    return SQLITE_OK;
}

}  // namespace

const sqlite3_io_methods file_methods{
    .iVersion = 2,
    .xClose = close,
    .xRead = read,
    .xWrite = write,
    .xTruncate = truncate,
    .xSync = sync,
    .xFileSize = file_size,
    .xLock = lock,
    .xUnlock = unlock,
    .xCheckReservedLock = check_reserved,
    .xFileControl = file_control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = device_characteristics,
    .xShmMap = memory_map,
    .xShmLock = memory_lock,
    .xShmBarrier = memory_barrier,
    .xShmUnmap = memory_unmap,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

}  // namespace bulkhead::sim
