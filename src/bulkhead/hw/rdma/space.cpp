#include "bulkhead/hw/rdma/space.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#ifndef NSFS_MAGIC
#define NSFS_MAGIC 0x6e736673
#endif

namespace bulkhead::rdma {

namespace {

constexpr const char* own_path = "/proc/thread-self/ns/net";
constexpr const char* needs_root = "network namespaces take CAP_SYS_ADMIN and CAP_NET_ADMIN: run as root";

Result<> in_thread(const std::function<Result<>()>& what) {
    Result<> done;
    std::thread{[&] { done = what(); }}.join();
    return done;
}

bool is_namespace(const std::string& path) {
    struct statfs of{};
    return ::statfs(path.c_str(), &of) == 0 && of.f_type == NSFS_MAGIC;
}

bool is_sysfs(const std::string& path) {
    struct statfs of{};
    return ::statfs(path.c_str(), &of) == 0 && of.f_type == SYSFS_MAGIC;
}

}  // namespace

Result<Space> Space::of(const std::string& path) {
    Descriptor fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!fd) return refused(errno, "open the network namespace", path, needs_root);
    struct statfs of{};
    if (::fstatfs(*fd, &of) != 0 || of.f_type != NSFS_MAGIC)
        return fail(Code::invalid, path + " is no namespace", "name a file like /proc/1/ns/net");
    return Space{std::move(fd)};
}

Result<Space> Space::own() { return of(own_path); }

Result<Space> Space::unnamed() {
    Result<Space> made = fail(Code::unavailable, "no namespace", needs_root);
    if (auto ok = in_thread([&]() -> Result<> {
            if (::unshare(CLONE_NEWNET) != 0) return refused(errno, "make", "a network namespace", needs_root);
            made = of(own_path);
            return {};
        });
        !ok)
        return std::unexpected(ok.error());
    return made;
}

Result<Space> Space::make_named(const std::string& path) {
    if (is_namespace(path)) return of(path);
    std::error_code wrong;
    std::filesystem::create_directories(std::filesystem::path{path}.parent_path(), wrong);
    if (wrong) return refused(wrong.value(), "make the folder of", path, "see its file system");
    const Descriptor place{::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0444)};
    if (!place) return refused(errno, "make", path, "see its file system");
    if (auto ok = in_thread([&]() -> Result<> {
            if (::unshare(CLONE_NEWNET) != 0) return refused(errno, "make", "a network namespace", needs_root);
            if (::mount(own_path, path.c_str(), nullptr, MS_BIND, nullptr) != 0)
                return refused(errno, "keep a network namespace at", path, needs_root);
            return {};
        });
        !ok)
        return std::unexpected(ok.error());
    return of(path);
}

Result<> Space::remove_named(const std::string& path) {
    // Somebody may have mounted it twice; as long as one is there, so is the namespace.
    while (is_namespace(path))
        if (::umount2(path.c_str(), MNT_DETACH) != 0)
            return refused(errno, "let go of the network namespace", path, needs_root);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return refused(errno, "remove", path, "see its file system");
    return {};
}

Result<> Space::show_sysfs(const std::string& folder) const {
    if (is_sysfs(folder)) return {};
    if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return refused(errno, "make", folder, needs_root);
    return run([&]() -> Result<> {
        if (::mount("sysfs", folder.c_str(), "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
            return refused(errno, "show the devices of a namespace at", folder, needs_root);
        return {};
    });
}

Result<> Space::hide_sysfs(const std::string& folder) {
    while (is_sysfs(folder))
        if (::umount2(folder.c_str(), MNT_DETACH) != 0) return refused(errno, "unmount", folder, needs_root);
    if (::rmdir(folder.c_str()) != 0 && errno != ENOENT) return refused(errno, "remove", folder, "see what is in it");
    return {};
}

Result<Space> Space::again() const {
    Descriptor fd{::fcntl(*fd_, F_DUPFD_CLOEXEC, 0)};
    if (!fd) return refused(errno, "hold", "a network namespace", "see how many files are open");
    return Space{std::move(fd)};
}

bool Space::is_there(const std::string& path) { return is_namespace(path); }

Result<> Space::run(const std::function<Result<>()>& what) const {
    return in_thread([&]() -> Result<> {
        if (::setns(*fd_, CLONE_NEWNET) != 0) return refused(errno, "enter", "a network namespace", needs_root);
        return what();
    });
}

bool Space::is_same_as(const Space& other) const {
    struct stat one{}, two{};
    return ::fstat(*fd_, &one) == 0 && ::fstat(*other.fd_, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

}  // namespace bulkhead::rdma
