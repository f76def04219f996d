#include "bulkhead/agent/disk.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace bulkhead::agent {

std::unexpected<Error> disk_error(std::string_view verb, const std::filesystem::path& path) {
    const int number = errno;
    const Code code = number == ENOSPC || number == EDQUOT ? Code::exhausted : Code::unavailable;
    return fail(code, fmt::format("cannot {} {}: {}", verb, path.string(), std::strerror(number)),
                number == ENOSPC ? "make room on that file system" : "check the folder, its owner and the disk");
}

Result<std::string> read_all(int file, const std::filesystem::path& path) {
    struct stat status{};
    if (::fstat(file, &status) != 0) return disk_error("look at", path);
    std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
    for (std::size_t have = 0; have < bytes.size();) {
        const ssize_t got = ::pread(file, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return disk_error("read", path);
        if (got == 0) return fail(Code::corrupt, fmt::format("{} became shorter while it was read", path.string()));
        have += static_cast<std::size_t>(got);
    }
    return bytes;
}

Result<> write_at(int file, std::size_t offset, std::string_view bytes, const std::filesystem::path& path) {
    while (!bytes.empty()) {
        const ssize_t put = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return disk_error("write", path);
        offset += static_cast<std::size_t>(put);
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
}

Result<> sync_directory(const std::filesystem::path& path) {
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle < 0) return disk_error("open", folder);
    Result<> done;
    if (::fsync(handle) != 0) done = disk_error("sync", folder);
    ::close(handle);
    return done;
}

Result<> write_whole(const std::filesystem::path& path, std::string_view bytes) {
    const std::filesystem::path beside = path.string() + ".new";
    const int file = ::open(beside.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return disk_error("open", beside);
    Result<> done = write_at(file, 0, bytes, beside);
    if (done && ::fdatasync(file) != 0) done = disk_error("sync", beside);
    ::close(file);
    if (done && ::rename(beside.c_str(), path.c_str()) != 0) done = disk_error("rename", beside);
    return done;
}

}  // namespace bulkhead::agent
