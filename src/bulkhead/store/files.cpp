#include "bulkhead/store/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "bulkhead/store/sqlite.hpp"

namespace bulkhead::store {

namespace {

constexpr std::string_view remedy = "check the directory's permissions and free space, then try again";

std::unexpected<Error> system_failure(std::string_view doing, std::string_view path) {
    const Code code = errno == ENOSPC || errno == EDQUOT ? Code::exhausted : Code::unavailable;
    return fail(code, fmt::format("cannot {} {}: {}", doing, path, std::strerror(errno)), std::string{remedy});
}

sqlite3_vfs* vfs_of(const Place& file) { return sqlite3_vfs_find(file.vfs.empty() ? nullptr : file.vfs.c_str()); }

// SQLite's files want absolute names; relative ones are resolved as it would.
Result<std::string> full_name(const Place& file) {
    sqlite3_vfs* vfs = vfs_of(file);
    if (vfs == nullptr)
        return fail(Code::invalid, fmt::format("there is no VFS named {}", file.vfs), "register it first");
    std::string name(static_cast<std::size_t>(vfs->mxPathname) + 1, '\0');
    const int code = vfs->xFullPathname(vfs, file.path.c_str(), static_cast<int>(name.size()), name.data());
    if ((code & 0xFF) != SQLITE_OK) return std::unexpected(error_of(code, sqlite3_errstr(code), "find", file.path));
    name.resize(std::strlen(name.c_str()));
    return name;
}

Result<> remove_one(const Place& file) {
    const Result<std::string> name = full_name(file);
    if (!name) return std::unexpected(name.error());
    sqlite3_vfs* vfs = vfs_of(file);
    const int code = vfs->xDelete(vfs, name->c_str(), 1);
    if (code == SQLITE_OK || code == SQLITE_IOERR_DELETE_NOENT) return {};
    return std::unexpected(error_of(code, sqlite3_errstr(code), "remove", file.path));
}

Result<> sync_directory_of(const std::string& path) {
    std::filesystem::path directory = std::filesystem::path{path}.parent_path();
    if (directory.empty()) directory = ".";
    const int handle = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle < 0) return system_failure("open", directory.string());
    const bool synced = ::fsync(handle) == 0;
    const Result<> outcome = synced ? Result<>{} : system_failure("sync", directory.string());
    ::close(handle);
    return outcome;
}

}  // namespace

bool exists(const Place& file) {
    const Result<std::string> name = full_name(file);
    if (!name) return false;
    sqlite3_vfs* vfs = vfs_of(file);
    int there = 0;
    return vfs->xAccess(vfs, name->c_str(), SQLITE_ACCESS_EXISTS, &there) == SQLITE_OK && there != 0;
}

Result<> remove_leftovers(const Place& file) {
    for (const char* ending : {"-wal", "-shm", "-journal"})
        if (auto done = remove_one({file.path + ending, file.vfs}); !done) return done;
    return {};
}

Result<> remove_database(const Place& file) {
    if (auto done = remove_one(file); !done) return done;
    return remove_leftovers(file);
}

Result<> move_into_place(const Place& from, const std::string& to) {
    if (!from.vfs.empty()) {
        const Result<Database> database = Database::open(from.path, from.vfs, {SQLITE_OPEN_READWRITE});
        if (!database) return std::unexpected(database.error());
        std::string name = to;
        const int code = sqlite3_file_control(database->raw(), "main", rename_file_control, name.data());
        if (code != SQLITE_OK) return std::unexpected(error_of(code, sqlite3_errstr(code), "rename", from.path));
        return {};
    }
    if (std::rename(from.path.c_str(), to.c_str()) != 0) return system_failure("rename", from.path);
    return sync_directory_of(to);
}

}  // namespace bulkhead::store
