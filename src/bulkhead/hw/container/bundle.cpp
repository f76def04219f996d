// The bundle of a container: who may be trusted to have written what. An image is the tenant's, so nothing in it is
// followed or made; where no image is given, the root is ours, made of empty places for the host's own.
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>

#include "bulkhead/hw/container/root_view.hpp"
#include "bulkhead/hw/container/runtime.hpp"

namespace bulkhead::container {

namespace {

namespace fs = std::filesystem;

// A link in an image, followed by root, would lead anywhere on the host.
Result<> check_image(const std::string& rootfs) {
    const auto root = open_file(rootfs, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (!root) return std::unexpected(root.error());
    for (const char* name : {"proc", "sys", "dev", "tmp", "job"}) {
        open_how how{};
        how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
        how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
        const Fd place{static_cast<int>(::syscall(SYS_openat2, **root, name, &how, sizeof how))};
        if (!place)
            return fail(Code::invalid,
                        fmt::format("the root file system {} has no directory /{} of its own", rootfs, name),
                        "make proc, sys, dev, tmp and job in it when unpacking the image");
    }
    return {};
}

Result<> put(const std::string& path, std::string_view text, unsigned mode = 0644) {
    auto file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    if (!file) return std::unexpected(file.error());
    if (::write(**file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return cannot("write", path);
    return {};
}

// An empty place of the same kind for what will be mounted there.
Result<> stand_in(const std::string& root, const std::string& source, const std::string& target) {
    std::error_code wrong;
    fs::create_directories(fs::path{root + target}.parent_path(), wrong);
    if (wrong) return cannot(wrong.value(), "make the directories above", root + target);
    if (fs::is_directory(source, wrong)) return make_directory(root + target, 0755);
    return put(root + target, "");
}

Result<std::vector<ReadOnlyMount>> make_root(const TenantSpec& spec, const std::string& root) {
    std::vector<ReadOnlyMount> shared{{"/usr", "/usr"}};
    if (auto made = make_directory(root, 0755); !made) return std::unexpected(made.error());
    for (const char* name : {"/usr", "/etc", "/proc", "/sys", "/dev", "/tmp", "/run", "/var", "/job"})
        if (auto made = make_directory(root + name, 0755); !made) return std::unexpected(made.error());
    if (::symlink("/tmp", (root + "/var/tmp").c_str()) != 0 && errno != EEXIST)
        return std::unexpected(cannot("link", root + "/var/tmp").error());
    std::error_code wrong;
    for (const std::string name : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
        if (fs::is_symlink(name, wrong)) {
            if (::symlink(fs::read_symlink(name, wrong).c_str(), (root + name).c_str()) != 0 && errno != EEXIST)
                return std::unexpected(cannot("link", root + name).error());
        } else if (fs::is_directory(name, wrong)) {
            shared.push_back({name, name});
        }
    }
    for (const std::string& path : shared_etc())
        if (fs::exists(path, wrong)) shared.push_back({path, path});
    if (spec.network == Network::host && fs::exists("/etc/resolv.conf", wrong))
        shared.push_back({"/etc/resolv.conf", "/etc/resolv.conf"});
    for (const ReadOnlyMount& mount : shared)
        if (auto made = stand_in(root, mount.source, mount.target); !made) return std::unexpected(made.error());
    for (const ReadOnlyMount& mount : spec.mounts)
        if (!mount.target.starts_with("/usr/"))
            if (auto made = stand_in(root, mount.source, mount.target); !made) return std::unexpected(made.error());
    for (const auto& [name, text] :
         {std::pair{"/etc/passwd", passwd_for(spec, 0)},
          {"/etc/group", group_for(spec, 0)},
          {"/etc/hosts", fmt::format("127.0.0.1 localhost lease-{}\n::1 localhost\n", spec.lease)}})
        if (auto ok = put(root + name, text); !ok) return std::unexpected(ok.error());
    return shared;
}

}  // namespace

Result<> write_bundle(const TenantSpec& spec, const LeaseFiles& files, const std::string& cgroup) {
    ::umask(022);
    OciPlace place{.root = spec.rootfs, .cgroup = "/" + cgroup, .shared = {}};
    if (rlimit own{}; ::getrlimit(RLIMIT_NOFILE, &own) == 0 && own.rlim_max < static_cast<rlim_t>(place.open_files_max))
        place.open_files_max = static_cast<std::int64_t>(own.rlim_max);
    if (spec.rootfs.empty()) {
        place.root = files.bundle() + "/rootfs";
        auto shared = make_root(spec, place.root);
        if (!shared) return std::unexpected(shared.error());
        place.shared = std::move(*shared);
    } else if (auto sound = check_image(spec.rootfs); !sound) {
        return sound;
    }
    std::string config = oci_config(spec, place);
    if (const LeasedDevice device = leased_device(spec); !device.empty()) {
        auto edited = with_cdi(config, cdi_text(device));
        if (!edited) return std::unexpected(edited.error());
        config = std::move(*edited);
    }
    return put(files.bundle() + "/config.json", config, 0600);  // the environment is the tenant's
}

Result<> write_hook(const TenantSpec& spec, const LeaseFiles& files) {
    const auto config = read_whole(files.bundle() + "/config.json");
    if (!config) return std::unexpected(config.error());
    // The container's first process is the command itself.
    auto process = process_beside(*config, spec.checkpoint, {{"BULKHEAD_PID", "1"}});
    if (!process) return std::unexpected(process.error());
    return put(files.bundle() + "/save.json", *process, 0600);
}

}  // namespace bulkhead::container
