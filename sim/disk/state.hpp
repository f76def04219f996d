// What a Disk is made of: files, their names, the handles SQLite holds, and the faults to come. Private to this folder.
#pragma once

#include <sqlite3.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/disk/disk.hpp"
#include "sim/disk/image.hpp"

namespace bulkhead::sim {

struct Handle;

// The memory that connections to one database share, and the eight locks on it.
struct SharedMemory {
    struct Lock {
        int readers = 0;
        const Handle* writer = nullptr;
    };
    std::vector<std::unique_ptr<char[]>> regions;
    std::array<Lock, SQLITE_SHM_NLOCK> locks{};
    int users = 0;
};

struct File {
    Image image;
    std::vector<Handle*> handles;  // whose lock levels are the file's locks
    std::shared_ptr<SharedMemory> memory;
};

// A change of the directory. Those of one name survive a power cut in their order, those of different names in any.
struct Naming {
    enum class Kind : std::uint8_t { made, removed, renamed };
    Kind kind;
    std::string name, to;
    std::shared_ptr<File> file;
};
using Names = std::map<std::string, std::shared_ptr<File>, std::less<>>;

enum class Power : std::uint8_t { on, going, off };

struct Disk::State {
    std::string name;
    sqlite3_vfs vfs{};
    Names names, durable_names;
    std::vector<Naming> unsynced_namings;
    std::uint64_t generation = 0;  // of handles; older ones are dead
    std::uint64_t writes = 0;
    std::optional<std::uint64_t> crash_at, room, writes_left, reads_left;
    bool power_lost = false, read_only = false;
    SyncFault sync_fault = SyncFault::none;
    Instant clock;
    int open_handles = 0;

    Power boundary();
    void change(Naming naming);
    void sync_names();
    std::shared_ptr<File> find(std::string_view path) const;
    void lose_handles();
    void give_back(std::uint64_t bytes) {
        if (room) *room += bytes;
    }
};

struct Handle {
    sqlite3_file base{};  // first: SQLite knows only this
    Disk::State* disk = nullptr;
    std::shared_ptr<File> file;
    std::shared_ptr<SharedMemory> memory;  // kept while mapped: SQLite reads it without asking
    std::string remove_on_close;
    std::uint64_t generation = 0;
    int level = SQLITE_LOCK_NONE;
    unsigned reading = 0, writing = 0;  // locks held on the shared memory, one bit each
    bool writable = false, syncs_directory = false;

    bool dead() const { return disk->power_lost || generation != disk->generation; }
};

inline Handle& handle_of(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }

extern const sqlite3_io_methods file_methods;  // file.cpp
void fill_in(sqlite3_vfs& vfs);                // vfs.cpp

}  // namespace bulkhead::sim
