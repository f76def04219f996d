#include "bulkhead/hw/vm/machine_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "bulkhead/hw/vm/console.hpp"

namespace bulkhead::vm {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t piece_bytes = 1 << 20;

std::unexpected<Error> cannot_file(std::string_view act, const std::string& path) {
    return fail(Code::unavailable, fmt::format("could not {} {}: {}", act, path, std::strerror(errno)), "");
}

class OwnedFd {
public:
    explicit OwnedFd(int handle) : handle_{handle} {}
    OwnedFd(const OwnedFd&) = delete;
    OwnedFd& operator=(const OwnedFd&) = delete;
    ~OwnedFd() {
        if (handle_ >= 0) ::close(handle_);
    }
    int operator*() const { return handle_; }
    bool valid() const { return handle_ >= 0; }

private:
    int handle_;
};

bool is_plain_name(std::string_view name) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
    };
    return !name.empty() && name.size() <= 63 && name.front() != '.' && std::ranges::all_of(name, plain);
}

// Root's, and nobody else can write it: a tenant that could change what the next one boots would be in its kernel.
Result<bool> is_admitted_file(const std::string& path) {
    struct stat found{};
    if (::lstat(path.c_str(), &found) != 0) return errno == ENOENT ? Result<bool>{false} : cannot_file("look at", path);
    if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 022) != 0)
        return fail(Code::denied, fmt::format("{} is no plain file that only the agent's user can write", path),
                    "chown it to root, and chmod go-w");
    return true;
}

Result<> write_all_bytes(int handle, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(handle, bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return cannot_file("write", path);
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return {};
}

Result<> write_new_file(const std::string& path, std::string_view bytes, mode_t mode) {
    const OwnedFd file{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode)};
    if (!file.valid()) return cannot_file("make", path);
    if (auto wrote = write_all_bytes(*file, bytes, path); !wrote) return wrote;
    return ::fsync(*file) == 0 ? Result<>{} : cannot_file("keep", path);
}

Result<> copy_image(const std::string& from, const std::string& to) {
    const OwnedFd source{::open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
    if (!source.valid()) return cannot_file("open", from);
    const std::string draft = to + ".new";
    const OwnedFd target{::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)};
    if (!target.valid()) return cannot_file("make", draft);
    std::string piece(piece_bytes, '\0');
    while (true) {
        const ssize_t got = ::read(*source, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot_file("read", from);
        if (got == 0) break;
        if (auto wrote = write_all_bytes(*target, {piece.data(), static_cast<std::size_t>(got)}, draft); !wrote)
            return wrote;
    }
    if (::fsync(*target) != 0 || ::rename(draft.c_str(), to.c_str()) != 0) return cannot_file("keep", to);
    return {};
}

// All of it with zeros, past the page cache in the end, and read back. What a file system that writes elsewhere, or a
// drive, keeps of the old blocks is not reached: the drive's own erase is for that.
Result<std::int64_t> overwrite(const std::string& path) {
    const OwnedFd file{::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC)};
    if (!file.valid()) return errno == ENOENT ? Result<std::int64_t>{0} : cannot_file("open", path);
    struct stat found{};
    if (::fstat(*file, &found) != 0 || !S_ISREG(found.st_mode)) return cannot_file("look at", path);
    const std::string zeros(piece_bytes, '\0');
    for (std::int64_t left = found.st_size; left > 0;) {
        const auto now = static_cast<std::size_t>(std::min<std::int64_t>(left, std::ssize(zeros)));
        if (auto wrote = write_all_bytes(*file, std::string_view{zeros}.substr(0, now), path); !wrote)
            return std::unexpected(wrote.error());
        left -= static_cast<std::int64_t>(now);
    }
    if (::fsync(*file) != 0) return cannot_file("keep", path);
    ::posix_fadvise(*file, 0, 0, POSIX_FADV_DONTNEED);
    std::string piece(piece_bytes, '\0');
    std::int64_t read_back = 0;
    for (ssize_t got = 0; (got = ::pread(*file, piece.data(), piece.size(), read_back)) != 0;) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot_file("read back", path);
        if (std::string_view{piece.data(), static_cast<std::size_t>(got)}.find_first_not_of('\0') !=
            std::string_view::npos)
            return fail(Code::corrupt, fmt::format("{} holds something after it was overwritten", path),
                        "take its drive out of use");
        read_back += got;
    }
    if (read_back != found.st_size)
        return fail(Code::corrupt,
                    fmt::format("{} of {} bytes of {} could be read back", read_back, found.st_size, path), "");
    return read_back;
}

}  // namespace

Result<std::vector<std::string>> image_names(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator{folder, failed})
        if (const std::string name = entry.path().filename().string(); is_plain_name(name)) names.push_back(name);
    if (failed)
        return fail(Code::unavailable, fmt::format("images in {} cannot be listed: {}", folder, failed.message()),
                    "make the folder, or name another with --vm-images");
    std::ranges::sort(names);
    return names;
}

Result<Image> find_image(const std::string& folder, const std::string& name) {
    const auto names = image_names(folder);
    if (!names) return std::unexpected(names.error());
    if (std::ranges::find(*names, name) == names->end())
        return fail(Code::not_found, fmt::format("this node admits no image \"{}\"", name),
                    names->empty() ? "it admits none at all: an operator puts them there"
                                   : fmt::format("it admits {}", fmt::join(*names, ", ")));
    const std::string at = folder + "/" + name;
    Image image{.name = name};
    const auto take = [&](const char* file, std::string& path) -> Result<> {
        const auto there = is_admitted_file(at + "/" + file);
        if (!there) return std::unexpected(there.error());
        if (*there) path = at + "/" + file;
        return {};
    };
    std::string command_line;
    for (auto& [file, path] : {std::pair<const char*, std::string*>{"kernel", &image.kernel},
                               {"initrd", &image.initrd},
                               {"disk", &image.disk},
                               {"cmdline", &command_line}})
        if (auto taken = take(file, *path); !taken) return std::unexpected(taken.error());
    if (image.kernel.empty() == image.disk.empty())
        return fail(
            Code::invalid,
            fmt::format("image {} has {} to boot", name, image.kernel.empty() ? "nothing" : "both a kernel and a disk"),
            "kernel and initrd, or disk");
    if (!command_line.empty()) {
        std::ifstream file{command_line};
        std::getline(file, image.command_line);
    }
    return image;
}

Result<> make_machine(const MachineFolder& folder, const Image& image, const Seed& seed) {
    if (::mkdir(folder.path.c_str(), 0711) != 0 && errno != EEXIST) return cannot_file("make", folder.path);
    for (const auto& [from, to] :
         {std::pair{image.kernel, folder.kernel()}, {image.initrd, folder.initrd()}, {image.disk, folder.disk()}})
        if (!from.empty())
            if (auto copied = copy_image(from, to); !copied) return copied;
    if (auto wrote = write_new_file(folder.seed(), seed_disk(seed), 0400); !wrote) return wrote;
    if (auto forgot = Console{folder.console()}.forget(); !forgot) return forgot;
    return write_new_file(folder.console(), "", 0600);
}

Result<MachineWipe> wipe_machine(const MachineFolder& folder) {
    MachineWipe wipe;
    for (const std::string& path : {folder.disk(), folder.disk() + ".new", folder.seed()}) {
        const auto bytes = overwrite(path);
        if (!bytes) return std::unexpected(bytes.error());
        wipe.bytes += *bytes;
        if (::unlink(path.c_str()) != 0 && errno != ENOENT) return cannot_file("remove", path);
    }
    return wipe;
}

Result<> remove_machine(const MachineFolder& folder) {
    std::error_code failed;
    fs::remove_all(folder.path, failed);
    if (failed)
        return fail(Code::unavailable, fmt::format("{} cannot be removed: {}", folder.path, failed.message()), "");
    return {};
}

Result<std::int64_t> free_huge_pages(const std::string& mounts, const std::string& machine) {
    std::int64_t freed = 0;
    std::istringstream lines{mounts};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words{line};
        std::string device, at, type;
        if (!(words >> device >> at >> type) || type != "hugetlbfs") continue;
        std::error_code failed;
        // libvirt's: libvirt/qemu/ID-NAME. It cuts names after 20 characters; ours are shorter.
        for (const auto& entry : fs::directory_iterator{at + "/libvirt/qemu", failed}) {
            const std::string name = entry.path().filename().string();
            if (const std::size_t dash = name.find('-'); dash == std::string::npos || name.substr(dash + 1) != machine)
                continue;
            for (const auto& file : fs::recursive_directory_iterator{entry.path(), failed}) {
                if (!file.is_regular_file(failed)) continue;
                freed += static_cast<std::int64_t>(file.file_size(failed));
                if (::truncate(file.path().c_str(), 0) != 0) return cannot_file("empty", file.path());
            }
            fs::remove_all(entry.path(), failed);
            if (failed)
                return fail(Code::unavailable,
                            fmt::format("{} cannot be removed: {}", entry.path().string(), failed.message()), "");
        }
    }
    return freed;
}

}  // namespace bulkhead::vm
