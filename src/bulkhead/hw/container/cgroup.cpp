#include "bulkhead/hw/container/cgroup.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <set>

#include "bulkhead/hw/container/device_filter.hpp"

namespace bulkhead::container {

namespace {

namespace fs = std::filesystem;

constexpr auto both_rooms = std::to_array<Room>({Room::keeper, Room::tenant});
constexpr std::int64_t cpu_period_us = 100'000;

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::vector<std::string> with_children(const std::string& group) {  // children before their parents
    std::vector<std::string> groups;
    std::error_code gone;
    for (fs::recursive_directory_iterator at{group, gone}, end; !gone && at != end; at.increment(gone))
        if (at->is_directory(gone)) groups.push_back(at->path().string());
    std::ranges::sort(groups, std::greater{}, &std::string::size);
    groups.push_back(group);
    return groups;
}

Result<> add_pids(const std::string& group, std::set<pid_t>& pids) {
    const auto text = read_whole(group + "/cgroup.procs");
    if (!text) {
        // Removed a moment ago, or by a runtime just now: nobody can be in it.
        if (text.error().code == Code::not_found || !is_there(group)) return {};
        return std::unexpected(text.error());
    }
    for (const char *at = text->data(), *end = at + text->size(); at < end;) {
        pid_t pid = 0;
        const auto [next, wrong] = std::from_chars(at, end, pid);
        if (wrong == std::errc{} && pid > 0) pids.insert(pid);
        at = std::max(next, at) + 1;
    }
    return {};
}

// A number that was read a moment ago may be somebody else's now: hold the process, look again, then send.
void signal_if_inside(const LeaseCgroup& group, Room room, pid_t pid, int signal) {
    const Fd process{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
    if (!process) return;
    const auto now = read_whole(fmt::format("/proc/{}/cgroup", pid));
    if (!now || (!now->contains(group.name(room) + "\n") && !now->contains(group.name(room) + "/"))) return;
    ::syscall(SYS_pidfd_send_signal, *process, signal, nullptr, 0);
}

std::string_view field_of(std::string_view status, std::string_view name) {
    const std::size_t at = status.find(name);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = status.substr(at + name.size());
    return rest.substr(0, rest.find('\n'));
}

bool could_hear(std::string_view status, int signal) {
    const std::string_view numbers = field_of(status, "\nNSpid:");  // "4711\t1": on the host, and where it lives
    const std::size_t last = numbers.rfind('\t');
    if (last == std::string_view::npos || last == 0 || numbers.substr(last + 1) != "1") return true;
    // Blocked ones wait until somebody asks for them.
    for (const std::string_view name : {"\nSigCgt:\t", "\nSigBlk:\t"}) {
        const std::string_view text = field_of(status, name);
        std::uint64_t mask = ~std::uint64_t{0};
        std::from_chars(text.data(), text.data() + text.size(), mask, 16);
        if ((mask >> (signal - 1) & 1) != 0) return true;
    }
    return false;
}

// What a thread waits for in sigwait is not blocked while it does.
bool waits_for_signals(pid_t pid) {
    const std::string waits = fmt::format("{} ", SYS_rt_sigtimedwait);
    std::error_code gone;
    for (fs::directory_iterator at{fmt::format("/proc/{}/task", pid), gone}, end; !gone && at != end;
         at.increment(gone))
        if (const auto call = read_whole(at->path() / "syscall"); !call || call->starts_with(waits)) return true;
    return false;
}

}  // namespace

LeaseCgroup::LeaseCgroup(Hierarchies trees, std::string parent, LeaseKey lease)
    : trees_{std::move(trees)}, lease_{fmt::format("{}/lease-{}", parent, lease)} {}

std::string LeaseCgroup::name(Room room) const { return lease_ + (room == Room::keeper ? "/keeper" : "/tenant"); }

Result<> LeaseCgroup::create(const Limits& limits, std::span<const DeviceNode> devices) const {
    for (const std::string& tree : trees_.ours()) {
        for (std::size_t slash = lease_.find('/'); slash != std::string::npos; slash = lease_.find('/', slash + 1))
            if (auto made = make_directory(tree + "/" + lease_.substr(0, slash), 0755); !made) return made;
        if (auto made = make_directory(tree + "/" + lease_, 0755); !made) return made;
        for (const Room room : both_rooms)
            if (auto made = make_directory(path(tree, room), 0755); !made) return made;
    }
    if (auto limited = limit(limits); !limited) return limited;
    std::vector<DeviceNode> allowed = common_devices();
    allowed.insert(allowed.end(), devices.begin(), devices.end());
    const auto v1 = trees_.v1.find("devices");
    if (v1 == trees_.v1.end()) return allow_only(path(trees_.v2, Room::tenant), allowed);
    const std::string group = path(v1->second, Room::tenant);
    if (auto denied = write_once(group + "/devices.deny", "a"); !denied) return denied;
    for (const DeviceNode& node : allowed)  // m: our own setup makes the nodes; a tenant has no capability to
        if (auto ok =
                write_once(group + "/devices.allow", fmt::format("{} {}:{} rwm", node.type, node.major, node.minor));
            !ok)
            return ok;
    return {};
}

// Version 2 hands a controller down level by level.
Result<> LeaseCgroup::hand_down(const char* controller) const {
    for (std::size_t slash = 0; slash != std::string::npos; slash = lease_.find('/', slash + 1)) {
        const std::string level = trees_.v2 + "/" + lease_.substr(0, slash);
        if (auto ok = write_once(level + "/cgroup.subtree_control", fmt::format("+{}", controller)); !ok) return ok;
    }
    return write_once(trees_.v2 + "/" + lease_ + "/cgroup.subtree_control", fmt::format("+{}", controller));
}

// Without the controller a lease could use up its NIC, neighbours' functions and all: then it is not started.
Result<> LeaseCgroup::limit_rdma(std::span<const RdmaLimit> limits) const {
    if (limits.empty()) return {};
    if (!trees_.v2_controllers.contains("rdma"))
        return fail(Code::unavailable,
                    fmt::format("{} cannot be limited: this kernel has no rdma controller in the tree of version 2",
                                limits.front().device),
                    "boot with cgroup version 2 and CONFIG_CGROUP_RDMA");
    if (auto ok = hand_down("rdma"); !ok) return ok;
    const std::string file = path(trees_.v2, Room::tenant) + "/rdma.max";
    for (const RdmaLimit& limit : limits) {
        const std::string line =
            fmt::format("{} hca_handle={} hca_object={}", limit.device, limit.handles, limit.objects);
        if (auto ok = write_once(file, line); !ok) return ok;
        const auto now = read_whole(file);
        if (!now || !now->contains(line))
            return fail(Code::unavailable, fmt::format("{} was told '{}' and does not show it", file, line),
                        "see `rdma dev`");
    }
    return {};
}

Result<> LeaseCgroup::limit(const Limits& limits) const {
    for (const char* controller : {"memory", "cpu", "pids"}) {
        if (trees_.v1.contains(controller)) continue;
        if (auto ok = hand_down(controller); !ok) return ok;
    }
    if (auto ok = limit_rdma(limits.rdma); !ok) return ok;
    if (auto ok = limit_memory(limits.memory_bytes); !ok) return ok;
    const std::int64_t quota_us = limits.cpu_thousandths * cpu_period_us / 1'000;
    const std::string cpu = path(trees_.of("cpu"), Room::tenant);
    if (trees_.v1.contains("cpu")) {
        if (auto ok = write_once(cpu + "/cpu.cfs_period_us", fmt::format("{}", cpu_period_us)); !ok) return ok;
        if (auto ok = write_once(cpu + "/cpu.cfs_quota_us", fmt::format("{}", quota_us)); !ok) return ok;
    } else if (auto ok = write_once(cpu + "/cpu.max", fmt::format("{} {}", quota_us, cpu_period_us)); !ok) {
        return ok;
    }
    return write_once(path(trees_.of("pids"), Room::tenant) + "/pids.max", fmt::format("{}", limits.pids));
}

Result<> LeaseCgroup::limit_memory(std::int64_t bytes) const {
    const std::string memory = path(trees_.of("memory"), Room::tenant);
    const std::string value = fmt::format("{}", bytes);
    if (!trees_.v1.contains("memory")) {
        if (auto ok = write_once(memory + "/memory.max", value); !ok) return ok;
        // No swap file, no file: a limit that swap could lift would be none.
        return is_there(memory + "/memory.swap.max") ? write_once(memory + "/memory.swap.max", "0") : Result<>{};
    }
    const std::string with_swap = memory + "/memory.memsw.limit_in_bytes";
    if (is_there(with_swap)) (void)write_once(with_swap, "-1");  // must never be the lower one, not even in passing
    if (auto ok = write_once(memory + "/memory.limit_in_bytes", value); !ok) return ok;
    return is_there(with_swap) ? write_once(with_swap, value) : Result<>{};
}

Result<std::vector<Fd>> LeaseCgroup::doors(Room room) const {
    std::vector<Fd> doors;
    for (const std::string& tree : trees_.ours()) {
        auto door = open_file(path(tree, room) + "/cgroup.procs", O_WRONLY);
        if (!door) return std::unexpected(door.error());
        doors.push_back(std::move(*door));
    }
    return doors;
}

bool LeaseCgroup::holds(pid_t process, Room room) const {
    return std::ranges::all_of(trees_.ours(), [&](const std::string& tree) {
        std::set<pid_t> inside;
        for (const std::string& group : with_children(path(tree, room)))
            if (!add_pids(group, inside)) return false;
        return inside.contains(process);
    });
}

Result<std::vector<pid_t>> LeaseCgroup::processes(Room room) const {
    std::set<pid_t> pids;
    for (const std::string& tree : trees_.all())
        for (const std::string& group : with_children(path(tree, room)))
            if (auto added = add_pids(group, pids); !added) return std::unexpected(added.error());
    return std::vector(pids.begin(), pids.end());
}

Result<> LeaseCgroup::signal(Room room, int signal) const {
    const auto inside = processes(room);
    if (!inside) return std::unexpected(inside.error());
    for (const pid_t pid : *inside) signal_if_inside(*this, room, pid, signal);
    return {};
}

Result<bool> LeaseCgroup::hears(Room room, int signal) const {
    const auto inside = processes(room);
    if (!inside) return std::unexpected(inside.error());
    return std::ranges::any_of(*inside, [&](pid_t pid) {
        const auto status = read_whole(fmt::format("/proc/{}/status", pid));
        return status && (could_hear(*status, signal) || waits_for_signals(pid));  // one without status has ended
    });
}

Result<> LeaseCgroup::kill(Room room) const {
    const std::string pids_max = path(trees_.of("pids"), room) + "/pids.max";
    if (is_there(pids_max)) (void)write_once(pids_max, "0");  // who is being born now is listed; nobody comes after
    const std::string at_once = path(trees_.v2, room) + "/cgroup.kill";
    if (!trees_.v2.empty() && is_there(at_once)) (void)write_once(at_once, "1");
    return signal(room, SIGKILL);
}

Result<> LeaseCgroup::remove() const {
    for (const std::string& tree : trees_.all()) {
        if (!is_there(tree + "/" + lease_)) continue;
        for (const std::string& group : with_children(tree + "/" + lease_)) {
            if (::rmdir(group.c_str()) == 0 || errno == ENOENT) continue;
            if (errno == EBUSY)
                return fail(Code::conflict, fmt::format("the control group {} still holds processes", group),
                            "stop the lease and wait until it is gone");
            return cannot("remove", group);
        }
    }
    return {};
}

std::int64_t LeaseCgroup::memory_kills() const {
    const bool v1 = trees_.v1.contains("memory");
    const auto events =
        read_whole(path(trees_.of("memory"), Room::tenant) + (v1 ? "/memory.oom_control" : "/memory.events"));
    if (!events) return 0;
    const std::size_t at = events->find("oom_kill ");
    std::int64_t count = 0;
    if (at != std::string::npos) std::from_chars(events->data() + at + 9, events->data() + events->size(), count);
    return count;
}

}  // namespace bulkhead::container
