#include "bulkhead/hw/vm/presence.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace bulkhead::vm {

namespace {

namespace fs = std::filesystem;

// What can be read of it: a process that ends meanwhile takes the rest along.
std::string whole_file(const fs::path& path) {
    std::string text;
    const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (handle < 0) return text;
    char piece[4096];
    for (ssize_t got = 0; (got = ::read(handle, piece, sizeof piece)) > 0;)
        text.append(piece, static_cast<std::size_t>(got));
    ::close(handle);
    return text;
}

// QEMU's words are "... -name guest=NAME,debug-threads=on ..."; the name has no comma in it.
bool runs_machine(const std::string& words, const std::string& machine) {
    std::string_view left = words;
    while (!left.empty()) {
        const std::string_view word = left.substr(0, left.find('\0'));
        left.remove_prefix(std::min(left.size(), word.size() + 1));
        if (!word.starts_with("guest=")) continue;
        const std::string_view name =
            word.substr(6, word.find(',') == std::string_view::npos ? word.npos : word.find(',') - 6);
        if (name == machine) return true;
    }
    return false;
}

// libvirt calls a machine's group machine-qemu\x2dID\x2dNAME.scope or qemu-ID-NAME.libvirt-qemu, and cuts long names.
bool is_group_of(const std::string& folder, const std::string& machine) {
    if (!folder.contains("qemu")) return false;
    std::string escaped;
    for (const char c : machine) escaped += c == '-' ? std::string{"\\x2d"} : std::string{c};
    return folder.contains("-" + machine + ".") || folder.contains("\\x2d" + escaped + ".");
}

// Processes may be in groups below it alone: "populated" counts those, cgroup.procs does not. Version 1 has no such
// file.
bool is_populated(const fs::path& group) {
    const std::string events = whole_file(group / "cgroup.events");
    return events.contains("populated 1") || !whole_file(group / "cgroup.procs").empty();
}

}  // namespace

Result<Presence> presence_of(const std::string& machine, const std::string& proc, const std::string& cgroups) {
    Presence found;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator{proc, failed}) {
        const std::string name = entry.path().filename().string();
        pid_t process = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
        if (error != std::errc{} || end != name.data() + name.size()) continue;
        if (runs_machine(whole_file(entry.path() / "cmdline"), machine)) found.processes.push_back(process);
    }
    if (failed) return fail(Code::unavailable, fmt::format("{} cannot be listed: {}", proc, failed.message()), "");
    // A group that goes while it is looked at ends the walk: whoever asks looks again.
    const fs::recursive_directory_iterator end;
    for (fs::recursive_directory_iterator at{cgroups, fs::directory_options::skip_permission_denied, failed};
         !failed && at != end; at.increment(failed)) {
        std::error_code vanished;
        if (at->is_directory(vanished) && is_group_of(at->path().filename().string(), machine) &&
            is_populated(at->path()))
            found.groups.push_back(at->path().string());
    }
    if (failed && failed != std::errc::no_such_file_or_directory)
        return fail(Code::unavailable, fmt::format("{} cannot be listed: {}", cgroups, failed.message()), "");
    if (failed && fs::exists(cgroups))
        return fail(Code::unavailable, "control groups changed while they were looked at", "");
    std::ranges::sort(found.processes);
    std::ranges::sort(found.groups);
    return found;
}

}  // namespace bulkhead::vm
