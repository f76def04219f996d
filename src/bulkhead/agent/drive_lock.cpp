#include "bulkhead/agent/drive_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

#include "bulkhead/agent/disk.hpp"

namespace bulkhead::agent {

namespace {

// Of the open file, not of the process: two in one process are two, and a look does not have to take it.
struct flock whole_file() {
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    return lock;
}

}  // namespace

Result<container::Fd> take_drive_lock(const std::string& folder, const std::string& serial) {
    if (serial.empty() || serial.starts_with('.') || serial.find('/') != std::string::npos)
        return fail(Code::invalid, fmt::format("\"{}\" is no serial number that a file can be called by", serial),
                    "leave that drive out of --tenant-drive");
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed)
        return fail(Code::unavailable, fmt::format("{} cannot be made: {}", folder, failed.message()), "run as root");
    const std::string path = folder + "/" + serial;
    container::Fd file{::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)};
    if (!file) return disk_error("open", path);
    struct flock lock = whole_file();
    if (::fcntl(*file, F_OFD_SETLK, &lock) == 0) return file;
    if (errno != EAGAIN && errno != EACCES) return disk_error("lock", path);
    return fail(Code::conflict, fmt::format("{} is in the hands of another agent, or is being erased", serial),
                "`bulkhead drives` says which are; stop that agent, or leave the drive out of its --tenant-drive");
}

bool is_drive_taken(const std::string& folder, const std::string& serial) {
    if (serial.find('/') != std::string::npos) return false;
    const std::string path = folder + "/" + serial;
    const container::Fd file{::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC)};
    if (!file) return false;
    struct flock lock = whole_file();
    return ::fcntl(*file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace bulkhead::agent
