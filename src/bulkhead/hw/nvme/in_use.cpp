#include "bulkhead/hw/nvme/in_use.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <sstream>

#include "bulkhead/hw/nvme/sysfs.hpp"

namespace bulkhead::nvme {

namespace {

namespace fs = std::filesystem;

struct Mount {
    DeviceNumber device;
    std::string at, type, source;
};

// mountinfo: id parent major:minor root point options [fields] - type source options
std::vector<Mount> parse_mounts(const std::string& text) {
    std::vector<Mount> mounts;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words{line};
        std::string id, parent, device, root, at, word, type, source;
        words >> id >> parent >> device >> root >> at;
        while (words >> word && word != "-") {
        }
        words >> type >> source;
        if (const auto number = parse_device_number(device)) mounts.push_back({*number, at, type, source});
    }
    return mounts;
}

std::string last_word(std::string_view path) { return std::string{path.substr(path.rfind('/') + 1)}; }

// Devices of one drive: its namespaces and their partitions. By number wherever there is one: anybody may give a file
// of his own a drive's name (/dev/shm is everybody's), and nobody but the kernel gives it a number.
class Devices {
public:
    Devices(const Tree& tree, const Drive& drive) {
        for (const NamespaceBlock& one : drive.namespaces) {
            add(one.device);
            // The same without a block layer: ng0n1.
            const std::string generic = "ng" + one.device.name.substr(std::string_view{"nvme"}.size());
            if (const auto number =
                    parse_device_number(first_line_of(tree.sys + "/class/nvme-generic/" + generic + "/dev")))
                generics_[*number] = one.device.name;
            for (const BlockDevice& part : one.partitions) add(part);
        }
    }
    const std::string* by(DeviceNumber number) const { return name_in(blocks_, number); }
    const std::string* by_generic(DeviceNumber number) const { return name_in(generics_, number); }
    // What the kernel tells by name alone, and only of what root has set up.
    const std::string* by_path(std::string_view path) const { return name_in(paths_, std::string{path}); }

private:
    template <class Key>
    static const std::string* name_in(const std::map<Key, std::string>& names, const Key& key) {
        const auto found = names.find(key);
        return found != names.end() ? &found->second : nullptr;
    }
    void add(const BlockDevice& device) {
        blocks_[{device.major, device.minor}] = device.name;
        paths_["/dev/" + device.name] = device.name;
    }
    std::map<DeviceNumber, std::string> blocks_, generics_;
    std::map<std::string, std::string> paths_;
};

std::vector<std::string> processes(const Tree& tree) {
    std::vector<std::string> found = names_in(tree.proc);
    std::erase_if(found, [](const std::string& name) { return !parse_number(name); });
    return found;
}

// Kinds of file systems for whose mounts the source is anybody's text: those that need no device. Among them are all
// that a user may mount in a user namespace of his own.
std::set<std::string> kinds_without_device(const Tree& tree) {
    std::set<std::string> kinds;
    std::istringstream lines{text_of(tree.proc + "/filesystems")};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words{line};
        std::string nodev, kind;
        if (words >> nodev >> kind && nodev == "nodev") kinds.insert(kind);
    }
    return kinds;
}

void look_at_mounts(const Tree& tree, const Devices& devices, std::vector<std::string>& users) {
    const std::set<std::string> without = kinds_without_device(tree);
    std::set<std::string> seen;  // namespaces: most processes share one
    for (const std::string& process : processes(tree)) {
        const std::string folder = tree.proc + "/" + process;
        const std::string space = link_name(folder + "/ns/mnt");
        if (!space.empty() && !seen.insert(space).second) continue;
        for (const Mount& mount : parse_mounts(text_of(folder + "/mountinfo"))) {
            const std::string* name = devices.by(mount.device);
            // File systems of several devices have numbers of their own. "fuse.x" is a fuse.
            if (name == nullptr && !without.contains(mount.type.substr(0, mount.type.find('.'))))
                name = devices.by_path(mount.source);
            if (name != nullptr)
                users.push_back(fmt::format("{} is mounted on {} (of process {})", *name, mount.at, process));
        }
    }
}

void look_at_files(const Tree& tree, const Devices& devices, std::vector<std::string>& users) {
    for (const std::string& process : processes(tree)) {
        const std::string folder = tree.proc + "/" + process + "/fd";
        for (const std::string& number : names_in(folder)) {
            const std::string path = folder + "/" + number;
            struct statx file{};
            // Nobody is asked who might not answer, as the server of a file system that is away.
            if (::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &file) != 0) continue;
            const DeviceNumber device{file.stx_rdev_major, file.stx_rdev_minor};
            const std::string* name = nullptr;
            if (S_ISBLK(file.stx_mode)) name = devices.by(device);
            if (S_ISCHR(file.stx_mode)) name = devices.by_generic(device);
            if (name == nullptr) continue;
            users.push_back(fmt::format("{} is open in process {} ({})", *name, process,
                                        first_line_of(tree.proc + "/" + process + "/comm")));
            break;
        }
    }
}

// nvmet opens what it exports without asking to be alone and in no process. Its path is what root wrote, often a link
// of udev's; a controller may be exported as a whole.
void look_at_exports(const Tree& tree, const Drive& drive, const Devices& devices, std::vector<std::string>& users) {
    const std::string root = tree.sys + "/kernel/config/nvmet/subsystems/";
    const auto exported = [&](const std::string& folder) -> std::string {
        const std::string path = first_line_of(folder + "/device_path");
        if (first_line_of(folder + "/enable") != "1" || !path.starts_with("/dev/")) return {};
        std::error_code failed;
        const fs::path dev = fs::canonical(tree.dev, failed);
        const fs::path real = fs::canonical(tree.dev + path.substr(std::string_view{"/dev"}.size()), failed);
        const std::string device = failed ? path : "/dev/" + real.lexically_relative(dev).string();
        if (device == "/dev/" + drive.controller) return drive.controller;
        const std::string* name = devices.by_path(device);
        return name != nullptr ? *name : std::string{};
    };
    for (const std::string& subsystem : names_in(root)) {
        std::vector<std::string> folders{root + subsystem + "/passthru"};
        for (const std::string& space : names_in(root + subsystem + "/namespaces"))
            folders.push_back(root + subsystem + "/namespaces/" + space);
        for (const std::string& folder : folders)
            if (const std::string name = exported(folder); !name.empty())
                users.push_back(fmt::format("{} is exported by nvmet as {}", name, subsystem));
    }
}

std::vector<std::string> swaps(const Tree& tree) {
    std::vector<std::string> found;
    std::istringstream lines{text_of(tree.proc + "/swaps")};
    std::string line;
    std::getline(lines, line);  // what the columns are
    while (std::getline(lines, line)) found.push_back(line.substr(0, line.find_first_of(" \t")));
    return found;
}

std::string folder_of(const Tree& tree, const std::string& name, const NamespaceBlock& one) {
    const std::string disk = tree.sys + "/block/" + one.device.name;
    return name == one.device.name ? disk : disk + "/" + name;
}

// The disks below a block device: itself, its disk where it is a partition, or what it is made of.
void add_disks(const Tree& tree, const std::string& folder, std::set<std::string>& disks, int depth) {
    if (depth > 8) return;
    std::error_code failed;
    const fs::path real = fs::canonical(folder, failed);
    if (failed) return;
    const std::string slaves = real.string() + "/slaves";
    const std::vector<std::string> below = names_in(slaves);
    for (const std::string& name : below) add_disks(tree, slaves + "/" + name, disks, depth + 1);
    if (!below.empty()) return;
    const bool is_part = fs::exists(real / "partition", failed);
    disks.insert(is_part ? real.parent_path().filename().string() : real.filename().string());
}

}  // namespace

std::vector<std::string> users_of(const Tree& tree, const Drive& drive) {
    std::vector<std::string> users;
    const Devices devices{tree, drive};
    for (const NamespaceBlock& one : drive.namespaces) {
        std::vector<std::string> all{one.device.name};
        for (const BlockDevice& part : one.partitions) all.push_back(part.name);
        for (const std::string& name : all)
            for (const std::string& holder : names_in(folder_of(tree, name, one) + "/holders"))
                users.push_back(fmt::format("{} is part of {}", name, holder));
    }
    for (const std::string& swap : swaps(tree))
        if (const std::string* name = devices.by_path(swap)) users.push_back(fmt::format("{} is swap", *name));
    for (const std::string& block : names_in(tree.sys + "/block"))
        if (block.starts_with("loop"))
            if (const std::string* name =
                    devices.by_path(first_line_of(tree.sys + "/block/" + block + "/loop/backing_file")))
                users.push_back(fmt::format("{} is what {} reads", *name, block));
    look_at_exports(tree, drive, devices, users);
    look_at_mounts(tree, devices, users);
    look_at_files(tree, devices, users);
    return users;
}

bool sees_all_processes(const Tree& tree) {
    return std::ranges::none_of(processes(tree), [&](const std::string& process) {
        std::error_code failed;
        const fs::directory_iterator files{tree.proc + "/" + process + "/fd", failed};
        return failed == std::errc::permission_denied;
    });
}

std::set<std::string> system_disks(const Tree& tree) {
    constexpr auto places =
        std::to_array<std::string_view>({"/", "/usr", "/boot", "/boot/efi", "/efi", "/var", "/var/lib", "/etc", "/home",
                                         "/nix", "/ostree", "/sysroot"});
    std::set<std::string> disks;
    const auto add = [&](DeviceNumber number) {
        add_disks(tree, fmt::format("{}/dev/block/{}:{}", tree.sys, number.major, number.minor), disks, 0);
    };
    for (const std::string_view process : {"1", "self"})
        for (const Mount& mount : parse_mounts(text_of(fmt::format("{}/{}/mountinfo", tree.proc, process)))) {
            if (std::ranges::find(places, mount.at) == places.end()) continue;
            add(mount.device);
            if (mount.source.starts_with("/dev/"))  // file systems of several devices have numbers of their own
                add_disks(tree, tree.sys + "/class/block/" + last_word(mount.source), disks, 0);
        }
    for (const std::string& swap : swaps(tree))
        if (swap.starts_with("/dev/")) add_disks(tree, tree.sys + "/class/block/" + last_word(swap), disks, 0);
    return disks;
}

}  // namespace bulkhead::nvme
