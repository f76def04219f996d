#include "bulkhead/hw/container/durable.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace bulkhead::container {

namespace {

constexpr std::size_t read_bytes_max = 4 << 20;  // our own records and the kernel's lists are far smaller

Result<> sync_directory_of(const std::string& path) {
    const std::string directory = path.substr(0, path.rfind('/'));
    auto opened = open_file(directory, O_RDONLY | O_DIRECTORY);
    if (!opened) return std::unexpected(opened.error());
    // Trees of the kernel (control groups) have nothing to sync and say so.
    if (::fsync(**opened) != 0 && errno != EINVAL) return cannot("sync", directory);
    return {};
}

}  // namespace

void Fd::close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<Pipe> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return cannot("open", "a pipe", "raise the limit of open files");
    return Pipe{Fd{ends[0]}, Fd{ends[1]}};
}

std::unexpected<Error> cannot(int error, std::string_view doing, std::string_view path, std::string remedy) {
    const Code code = error == ENOENT                      ? Code::not_found
                      : error == EPERM || error == EACCES  ? Code::denied
                      : error == ENOSPC || error == EDQUOT ? Code::exhausted
                                                           : Code::unavailable;
    return fail(code, fmt::format("cannot {} {}: {}", doing, path, std::strerror(error)), std::move(remedy));
}

std::unexpected<Error> cannot(std::string_view doing, std::string_view path, std::string remedy) {
    return cannot(errno, doing, path, std::move(remedy));
}

Result<Fd> open_file(const std::string& path, int flags, unsigned mode) {
    Fd fd{::open(path.c_str(), flags | O_CLOEXEC, mode)};
    if (!fd) return cannot("open", path);
    return fd;
}

Result<> write_durably(const std::string& path, std::string_view bytes) {
    const std::string unfinished = path + ".unfinished";
    {
        auto file = open_file(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
        if (!file) return std::unexpected(file.error());
        while (!bytes.empty()) {
            const ssize_t written = ::write(**file, bytes.data(), bytes.size());
            if (written < 0 && errno != EINTR) return cannot("write", unfinished, "free space on that disk");
            if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
        }
        if (::fsync(**file) != 0) return cannot("sync", unfinished, "check the disk");
    }
    if (::rename(unfinished.c_str(), path.c_str()) != 0) return cannot("rename to", path);
    return sync_directory_of(path);
}

Result<> write_once(const std::string& path, std::string_view bytes) {
    auto file = open_file(path, O_WRONLY);
    if (!file) return std::unexpected(file.error());
    if (::write(**file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        return cannot(fmt::format("write '{}' to", bytes), path);
    return {};
}

Result<std::string> read_whole(const std::string& path) {
    auto file = open_file(path, O_RDONLY);
    if (!file) return std::unexpected(file.error());
    std::string bytes;
    std::array<char, 8'192> piece{};
    for (;;) {
        const ssize_t got = ::read(**file, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot("read", path);
        if (got == 0) return bytes;
        bytes.append(piece.data(), static_cast<std::size_t>(got));
        if (bytes.size() > read_bytes_max)
            return fail(Code::corrupt, fmt::format("{} is longer than {} bytes", path, read_bytes_max), "look at it");
    }
}

Result<> make_directory(const std::string& path, unsigned mode) {
    if (::mkdir(path.c_str(), mode) == 0) return sync_directory_of(path);
    if (errno != EEXIST) return cannot("make the directory", path);
    return {};
}

}  // namespace bulkhead::container
