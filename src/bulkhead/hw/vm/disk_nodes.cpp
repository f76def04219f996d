#include "bulkhead/hw/vm/disk_nodes.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace bulkhead::vm {

namespace {

std::unexpected<Error> cannot_node(std::string_view act, const std::string& path) {
    return fail(Code::unavailable, fmt::format("could not {} {}: {}", act, path, std::strerror(errno)), "");
}

// Passed through by QEMU's users, written by root alone.
Result<> make_passage(const std::string& path) {
    if (::mkdir(path.c_str(), 0711) != 0 && errno != EEXIST) return cannot_node("make", path);
    struct stat found{};
    if (::lstat(path.c_str(), &found) != 0) return cannot_node("look at", path);
    if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 022) != 0)
        return fail(Code::denied, fmt::format("{} is no folder that only the agent's user can write", path),
                    "remove it: the agent makes it");
    return ::chmod(path.c_str(), 0711) == 0 ? Result<>{} : cannot_node("open up", path);
}

}  // namespace

Result<> make_disk_nodes(const std::string& folder, const std::vector<DiskNode>& nodes) {
    if (nodes.empty()) return {};
    if (auto made = make_passage(std::filesystem::path{folder}.parent_path()); !made) return made;
    if (auto made = make_passage(folder); !made) return made;
    for (const DiskNode& node : nodes) {
        const std::string path = folder + "/" + node.name;
        if (::unlink(path.c_str()) != 0 && errno != ENOENT) return cannot_node("replace", path);
        if (::mknod(path.c_str(), S_IFBLK | 0600, ::makedev(node.major, node.minor)) != 0)
            return cannot_node("make", path);
    }
    return {};
}

Result<> remove_disk_nodes(const std::string& folder) {
    std::error_code failed;
    std::filesystem::remove_all(folder, failed);
    if (failed) return fail(Code::unavailable, fmt::format("{} cannot be removed: {}", folder, failed.message()), "");
    return {};
}

}  // namespace bulkhead::vm
