#include "bulkhead/audit/files.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

namespace bulkhead::audit {

namespace {

namespace fs = std::filesystem;

// Files are written here and renamed to where they belong; what a crash leaves is swept away by the next writer.
constexpr const char* unfinished = ".unfinished";
constexpr const char* lock_name = ".lock";

class Handle {
public:
    explicit Handle(int fd) : fd_{fd} {}
    Handle(Handle&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    Handle& operator=(Handle&&) = delete;
    ~Handle() {
        if (fd_ >= 0) ::close(fd_);
    }
    int operator*() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

private:
    int fd_;
};

Handle open_file(const fs::path& path, int flags) { return Handle{::open(path.c_str(), flags | O_CLOEXEC, 0644)}; }

std::unexpected<Error> failed(std::string_view doing, const fs::path& path, int error = errno) {
    const Code code = error == ENOSPC || error == EDQUOT ? Code::exhausted : Code::unavailable;
    return fail(code, fmt::format("cannot {} {}: {}", doing, path.string(), std::strerror(error)),
                code == Code::exhausted ? "free space on that disk; publishing goes on by itself"
                                        : "check the disk and who may write there");
}

Result<> sync_directory(const fs::path& path) {
    const Handle directory = open_file(path, O_RDONLY | O_DIRECTORY);
    if (!directory || ::fsync(*directory) != 0) return failed("sync", path);
    return {};
}

Result<> write_durably(const fs::path& path, std::string_view bytes) {
    const Handle file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file) return failed("create", path);
    while (!bytes.empty()) {
        const ssize_t written = ::write(*file, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return failed("write", path);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::fdatasync(*file) != 0) return failed("sync", path);
    return {};
}

class Directory final : public Files {
public:
    Directory(fs::path root, std::optional<Handle> lock) : root_{std::move(root)}, lock_{std::move(lock)} {}

    Result<std::optional<std::string>> read(const std::string& path) const override {
        const Handle file = open_file(root_ / path, O_RDONLY);
        if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
        if (!file) return failed("open", root_ / path);
        std::string bytes;
        while (true) {
            char part[16 * 1024];
            const ssize_t got = ::read(*file, part, sizeof part);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return failed("read", root_ / path);
            if (got == 0) return bytes;
            bytes.append(part, static_cast<std::size_t>(got));
        }
    }

    Result<std::vector<std::string>> list(const std::string& directory) const override {
        std::error_code error;
        std::vector<std::string> names;
        for (fs::directory_iterator it{root_ / directory, error}, end; !error && it != end; it.increment(error))
            names.push_back(it->path().filename().string());
        if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
            return failed("list", root_ / directory, error.value());
        std::ranges::sort(names);
        return names;
    }

    Result<> put(std::span<const NewFile> files) override {
        if (!lock_) return read_only();
        std::set<fs::path> changed;  // directories with a new name in them
        for (std::size_t i = 0; i < files.size(); ++i)
            if (Result<> written = write_durably(temporary(i), files[i].bytes); !written) return written;
        for (std::size_t i = 0; i < files.size(); ++i) {
            const fs::path target = root_ / files[i].path;
            if (Result<> made = make_directories(target.parent_path(), changed); !made) return made;
            if (::rename(temporary(i).c_str(), target.c_str()) != 0) return failed("rename to", target);
            changed.insert(target.parent_path());
        }
        for (const fs::path& directory : changed)
            if (Result<> synced = sync_directory(directory); !synced) return synced;
        return {};
    }

    Result<> remove(const std::string& path) override {
        if (!lock_) return read_only();
        std::error_code error;
        fs::remove_all(root_ / path, error);
        if (error) return failed("remove", root_ / path, error.value());
        return {};
    }

private:
    fs::path temporary(std::size_t i) const { return root_ / unfinished / std::to_string(i); }

    Result<> read_only() const {
        return fail(Code::denied, fmt::format("{} was opened to be read", root_.string()), "open it for publishing");
    }

    static Result<> make_directories(const fs::path& path, std::set<fs::path>& changed) {
        if (::mkdir(path.c_str(), 0755) == 0) {
            changed.insert(path.parent_path());
            return {};
        }
        if (errno == EEXIST) return {};
        if (errno != ENOENT) return failed("create", path);
        if (Result<> made = make_directories(path.parent_path(), changed); !made) return made;
        return make_directories(path, changed);
    }

    fs::path root_;
    std::optional<Handle> lock_;  // held as long as this lives; without it, only reading
};

}  // namespace

Result<std::unique_ptr<Files>> open_directory(const std::string& directory) {
    if (!fs::is_directory(directory))
        return fail(Code::not_found, fmt::format("{} is no directory", directory), "give the directory of the log");
    return std::make_unique<Directory>(directory, std::nullopt);
}

Result<std::unique_ptr<Files>> hold_directory(const std::string& directory) {
    const fs::path root{directory};
    std::error_code error;
    fs::create_directories(root / unfinished, error);
    if (error) return failed("create", root / unfinished, error.value());
    for (const fs::path& made : {root, fs::absolute(root).parent_path()})
        if (Result<> synced = sync_directory(made); !synced) return std::unexpected(synced.error());
    Handle lock = open_file(root / lock_name, O_RDWR | O_CREAT);
    if (!lock) return failed("open", root / lock_name);
    if (::flock(*lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) return failed("lock", root / lock_name);
        return fail(Code::conflict, fmt::format("another process publishes into {}", directory),
                    "stop it first: one log has one writer");
    }
    for (fs::directory_iterator it{root / unfinished, error}, end; !error && it != end; it.increment(error))
        fs::remove(it->path(), error);
    if (error) return failed("sweep", root / unfinished, error.value());
    return std::make_unique<Directory>(root, std::optional<Handle>{std::move(lock)});
}

}  // namespace bulkhead::audit
