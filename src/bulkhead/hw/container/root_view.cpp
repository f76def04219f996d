#include "bulkhead/hw/container/root_view.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::container {

namespace {

namespace fs = std::filesystem;

constexpr unsigned long bare = MS_NOSUID | MS_NODEV | MS_NOEXEC;

Result<> mount_at(const char* source, const std::string& target, const char* type, unsigned long flags,
                  const std::string& data) {
    if (::mount(source, target.c_str(), type, flags, data.empty() ? nullptr : data.c_str()) != 0)
        return cannot(fmt::format("mount {} at", source), target);
    return {};
}

Result<> make_parents(const std::string& path) {
    std::error_code wrong;
    fs::create_directories(fs::path{path}.parent_path(), wrong);
    if (wrong) return cannot(wrong.value(), "make the directories above", path);
    return {};
}

Result<> place_for(const std::string& source, const std::string& target) {
    if (std::error_code wrong; fs::exists(target, wrong)) return {};  // it may lie in what is read-only already
    if (auto made = make_parents(target); !made) return made;
    std::error_code wrong;
    if (fs::is_directory(source, wrong)) return make_directory(target, 0755);
    auto file = open_file(target, O_WRONLY | O_CREAT, 0644);
    return file ? Result<>{} : std::unexpected(file.error());
}

// Flags of a bind mount count only when set again, and for what is mounted below only one by one: with mount_setattr.
Result<> bind_at(const std::string& source, const std::string& target, unsigned long attributes) {
    if (auto made = place_for(source, target); !made) return made;
    if (auto bound = mount_at(source.c_str(), target, nullptr, MS_BIND | MS_REC, ""); !bound) return bound;
    mount_attr wanted{};
    wanted.attr_set = attributes;
    wanted.propagation = MS_PRIVATE;
    if (::syscall(SYS_mount_setattr, AT_FDCWD, target.c_str(), AT_RECURSIVE, &wanted, sizeof wanted) != 0)
        return cannot("set the flags of the mount at", target, "Linux 5.12 or later is needed");
    return {};
}

Result<> bind_read_only(const std::string& source, const std::string& target) {
    return bind_at(source, target, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

Result<> write_text(const std::string& path, std::string_view text) {
    auto file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (!file) return std::unexpected(file.error());
    if (::write(**file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return cannot("write", path);
    return {};
}

// /usr, and what today's systems keep as links into it.
Result<> show_programs(const std::string& root) {
    if (auto bound = bind_read_only("/usr", root + "/usr"); !bound) return bound;
    for (const char* name : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
        std::error_code wrong;
        if (fs::is_symlink(name, wrong)) {
            const fs::path to = fs::read_symlink(name, wrong);
            if (wrong || ::symlink(to.c_str(), (root + name).c_str()) != 0) return cannot("link", root + name);
        } else if (fs::is_directory(name, wrong)) {
            if (auto bound = bind_read_only(name, root + name); !bound) return bound;
        }
    }
    return {};
}

Result<> show_etc(const TenantSpec& spec, const std::string& root) {
    if (auto made = make_directory(root + "/etc", 0755); !made) return made;
    for (const std::string& path : shared_etc()) {
        std::error_code wrong;
        if (!fs::exists(path, wrong)) continue;
        if (auto bound = bind_read_only(path, root + path); !bound) return bound;
    }
    if (spec.network == Network::host)
        if (std::error_code wrong; fs::exists("/etc/resolv.conf", wrong))
            if (auto bound = bind_read_only("/etc/resolv.conf", root + "/etc/resolv.conf"); !bound) return bound;
    if (auto ok = write_text(root + "/etc/passwd", passwd_for(spec, spec.ids.first)); !ok) return ok;
    if (auto ok = write_text(root + "/etc/group", group_for(spec, spec.ids.first)); !ok) return ok;
    if (auto ok = write_text(root + "/etc/hostname", fmt::format("lease-{}\n", spec.lease)); !ok) return ok;
    return write_text(root + "/etc/hosts", fmt::format("127.0.0.1 localhost lease-{}\n::1 localhost\n", spec.lease));
}

Result<> make_devices(const TenantSpec& spec, const std::string& root) {
    const std::string dev = root + "/dev";
    if (auto made = make_directory(dev, 0755); !made) return made;
    if (auto ok = mount_at("tmpfs", dev, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k,nr_inodes=1k"); !ok)
        return ok;
    const auto add = [&](const DeviceNode& node, unsigned mode, std::uint32_t owner) -> Result<> {
        const std::string path = root + node.path;
        if (auto made = make_parents(path); !made) return made;
        const mode_t type = node.type == 'b' ? S_IFBLK : S_IFCHR;
        if (::mknod(path.c_str(), type | mode, ::makedev(node.major, node.minor)) != 0 ||
            ::chmod(path.c_str(), mode) != 0 || ::chown(path.c_str(), owner, owner) != 0)
            return cannot("make the device", node.path);
        return {};
    };
    for (const DeviceNode& node : common_devices())
        if (auto ok = add(node, 0666, 0); !ok) return ok;
    for (const DeviceNode& node : spec.devices)
        if (auto ok = add(node, 0600, spec.ids.first); !ok) return ok;
    for (const auto& [to, name] : {std::pair{"/proc/self/fd", "/fd"},
                                   {"/proc/self/fd/0", "/stdin"},
                                   {"/proc/self/fd/1", "/stdout"},
                                   {"/proc/self/fd/2", "/stderr"}})
        if (::symlink(to, (dev + name).c_str()) != 0) return cannot("link", name);
    if (auto made = make_directory(dev + "/shm", 01777); !made) return made;
    // Its pages count against the tenant's memory limit, as those of /tmp do.
    if (auto ok =
            mount_at("tmpfs", dev + "/shm", "tmpfs", bare, fmt::format("mode=1777,size={}", spec.limits.memory_bytes));
        !ok)
        return ok;
    return mount_at("tmpfs", dev, "tmpfs", MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NOEXEC, "");
}

// What is not there need not be hidden.
Result<> hide(const std::vector<std::string>& paths, const std::string& root) {
    for (const std::string& path : paths) {
        std::error_code wrong;
        const auto status = fs::symlink_status(root + path, wrong);
        if (wrong || !fs::exists(status)) continue;
        auto hidden = fs::is_directory(status)
                          ? mount_at("tmpfs", root + path, "tmpfs", bare | MS_RDONLY, "size=0,mode=555")
                          : mount_at((root + "/dev/null").c_str(), root + path, nullptr, MS_BIND, "");
        if (!hidden) return hidden;
    }
    return {};
}

Result<> show_kernel(const std::string& root) {
    for (const char* name : {"/proc", "/sys"})
        if (auto made = make_directory(root + name, 0555); !made) return made;
    // Of other users' processes (there should be none) not even the names.
    if (auto ok = mount_at("proc", root + "/proc", "proc", bare, "hidepid=invisible"); !ok) return ok;
    if (auto ok = mount_at("sysfs", root + "/sys", "sysfs", bare | MS_RDONLY, ""); !ok) return ok;
    for (const std::string& path : read_only_paths()) {
        std::error_code wrong;
        if (!fs::exists(root + path, wrong)) continue;
        if (auto bound = bind_at(root + path, root + path,
                                 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
            !bound)
            return bound;
    }
    return hide(hidden_paths(), root);
}

Result<> make_own_places(const TenantSpec& spec, const std::string& root) {
    const std::string size = fmt::format("size={}", spec.limits.memory_bytes);
    for (const char* name : {"/tmp", "/run", "/var", "/var/tmp"})
        if (auto made = make_directory(root + name, 0755); !made) return made;
    for (const char* name : {"/tmp", "/var/tmp"})
        if (auto ok = mount_at("tmpfs", root + name, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777," + size); !ok)
            return ok;
    if (!spec.work_dir.empty()) return bind_at(spec.work_dir, root + "/job", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (auto made = make_directory(root + "/job", 0755); !made) return made;
    return mount_at("tmpfs", root + "/job", "tmpfs", MS_NOSUID | MS_NODEV,
                    fmt::format("mode=700,uid={0},gid={0},{1}", spec.ids.first, size));
}

Result<> move_into(const std::string& root) {
    if (::chdir(root.c_str()) != 0) return cannot("enter", root);
    // Onto itself: the old root then lies over the new one, and is taken off.
    if (::syscall(SYS_pivot_root, ".", ".") != 0) return cannot("make a root of", root);
    if (::umount2(".", MNT_DETACH) != 0) return cannot("leave", "the host's root");
    if (::chdir("/") != 0) return cannot("enter", "/");
    return mount_at("tmpfs", "/", "tmpfs", MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, "");
}

}  // namespace

std::vector<std::string> shared_etc() {
    return {"/etc/ld.so.cache",   "/etc/ld.so.conf",     "/etc/ld.so.conf.d", "/etc/nsswitch.conf",
            "/etc/localtime",     "/etc/alternatives",   "/etc/ssl/certs",    "/etc/ca-certificates",
            "/etc/pki/tls/certs", "/etc/OpenCL/vendors", "/etc/protocols",    "/etc/services",
            "/etc/os-release",    "/etc/debian_version", "/etc/libibverbs.d"};
}

std::vector<std::string> hidden_paths() {
    return {"/proc/acpi", "/proc/asound", "/proc/kallsyms", "/proc/kcore", "/proc/keys", "/proc/key-users",
            "/proc/kmsg", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/proc/latency_stats",
            "/proc/sched_debug", "/proc/schedstat", "/proc/scsi", "/proc/slabinfo", "/proc/sysrq-trigger",
            "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo", "/proc/pagetypeinfo", "/proc/config.gz",
            "/proc/diskstats", "/sys/firmware", "/sys/fs/bpf", "/sys/kernel/debug", "/sys/kernel/tracing",
            "/sys/kernel/security", "/sys/devices/virtual/powercap",
            // Files of every RDMA device of the machine, by name: of these lists alone the kernel makes no namespace's
            // own. Programs find their own device by netlink.
            "/sys/class/infiniband_verbs", "/sys/devices/virtual/infiniband_verbs", "/sys/class/infiniband_mad",
            "/sys/devices/virtual/infiniband_mad"};
}

std::vector<std::string> read_only_paths() { return {"/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs"}; }

std::string passwd_for(const TenantSpec&, std::uint32_t id) {
    return fmt::format("root:x:0:0:root:/:/usr/sbin/nologin\n{}nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
                       id == 0 ? std::string{} : fmt::format("tenant:x:{0}:{0}:tenant:/job:/bin/sh\n", id));
}

std::string group_for(const TenantSpec&, std::uint32_t id) {
    return fmt::format("root:x:0:\n{}nogroup:x:65534:\n", id == 0 ? std::string{} : fmt::format("tenant:x:{}:\n", id));
}

Result<> enter_root_view(const TenantSpec& spec, const std::string& scratch) {
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
        return cannot("part from", "the host's mounts");
    const mode_t before = ::umask(0);
    if (auto ok = mount_at("tmpfs", scratch, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m,nr_inodes=4k"); !ok)
        return ok;
    if (auto ok = show_programs(scratch); !ok) return ok;
    if (auto ok = show_etc(spec, scratch); !ok) return ok;
    if (auto ok = make_devices(spec, scratch); !ok) return ok;
    if (auto ok = show_kernel(scratch); !ok) return ok;
    if (auto ok = make_own_places(spec, scratch); !ok) return ok;
    for (const ReadOnlyMount& mount : spec.mounts)
        if (auto bound = bind_read_only(mount.source, scratch + mount.target); !bound) return bound;
    if (auto ok = hide(spec.hidden, scratch); !ok) return ok;
    if (auto ok = move_into(scratch); !ok) return ok;
    ::umask(before);
    return {};
}

}  // namespace bulkhead::container
