#include "bulkhead/hw/container/spec.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "bulkhead/hw/container/near.hpp"

namespace bulkhead::container {

namespace {

constexpr std::uint32_t first_id_min = 65'536;  // below are the host's accounts
constexpr std::uint32_t id_max = 2'147'483'647;
constexpr std::int64_t memory_bytes_min = 8 << 20;
constexpr std::int64_t pids_min = 4;  // one is ours: the tenant's first process

std::unexpected<Error> refused(const TenantSpec& spec, std::string what, std::string remedy) {
    return fail(Code::invalid, fmt::format("lease {} of {}: {}", spec.lease, spec.tenant, what), std::move(remedy));
}

// A path that means the same to everybody who reads it.
bool plain_path(std::string_view path) {
    if (path.size() < 2 || path.size() > 4'000 || path.front() != '/' || path.back() == '/') return false;
    if (path.contains('\0') || path.contains("//")) return false;
    for (std::string_view rest = path; !rest.empty();) {
        const std::size_t slash = rest.find('/', 1);
        const std::string_view part = rest.substr(1, slash == rest.npos ? rest.npos : slash - 1);
        if (part == "." || part == "..") return false;
        rest = slash == rest.npos ? std::string_view{} : rest.substr(slash);
    }
    return true;
}

bool under(std::string_view path, std::string_view top) {
    return path == top || (path.starts_with(top) && path.size() > top.size() && path[top.size()] == '/');
}

Result<> check_who(const TenantSpec& spec) {
    if (spec.lease <= 0)
        return refused(spec, "a lease is named by a number above 0", "hand over the lease's key, as orders carry it");
    if (spec.tenant.empty() || spec.tenant.size() > 253 || spec.tenant.contains('\0'))
        return refused(spec,
                       fmt::format("the tenant's name has {} characters; 1 to 253 are allowed", spec.tenant.size()),
                       "hand over the tenant's name as the contract has it");
    if (spec.tier != Tier::process && spec.tier != Tier::container)
        return refused(
            spec,
            fmt::format("the tier {} is no matter of processes", words(spec.tier)[static_cast<std::size_t>(spec.tier)]),
            "process and container are started here; a VM is started by a hypervisor");
    if (spec.ids.first < first_id_min || spec.ids.count == 0 || spec.ids.first > id_max - (spec.ids.count - 1))
        return refused(spec,
                       fmt::format("user ids {} and {} more do not lie within {} to {}", spec.ids.first, spec.ids.count,
                                   first_id_min, id_max),
                       "give each lease a range of its own, for instance 65536 ids from 200000000 on");
    return {};
}

Result<> check_command(const TenantSpec& spec) {
    const std::string program = spec.command.empty() ? std::string{} : spec.command.front();
    const bool by_path = program.contains('/');  // else it is looked for in the tenant's PATH
    if (program.empty() || (by_path && !plain_path(program)))
        return refused(spec,
                       spec.command.empty()
                           ? "there is no command"
                           : fmt::format("the command '{}' is neither an absolute path nor a name", program),
                       "name the program as the tenant sees it, for instance /usr/bin/python3 or python3");
    const std::string saver = spec.checkpoint.empty() ? std::string{"none"} : spec.checkpoint.front();
    if (saver.empty() || (saver.contains('/') && !plain_path(saver)))
        return refused(spec, fmt::format("the checkpoint command '{}' is neither an absolute path nor a name", saver),
                       "name the program as the tenant sees it, for instance /usr/bin/python3 or python3");
    std::size_t bytes = 0;
    for (const std::string& word : spec.checkpoint)
        if (word.contains('\0')) return refused(spec, "the checkpoint command contains a NUL byte", "remove it");
    for (const std::string& word : spec.command) {
        if (word.contains('\0')) return refused(spec, "the command contains a NUL byte", "remove it");
        bytes += word.size() + 1;
    }
    for (const auto& [name, value] : spec.environment) {
        if (name.empty() || name.contains('=') || name.contains('\0') || value.contains('\0'))
            return refused(
                spec, fmt::format("'{}' is no name of an environment variable, or its value holds a NUL byte", name),
                "a name has at least one character and no '='");
        bytes += name.size() + value.size() + 2;
    }
    if (bytes > 128 << 10)
        return refused(spec, fmt::format("command and environment take {} bytes; {} are allowed", bytes, 128 << 10),
                       "pass long values in a file in the work directory");
    return {};
}

Result<> check_devices(const TenantSpec& spec) {
    std::set<std::string> seen;
    for (const DeviceNode& node : common_devices()) seen.insert(node.path);
    for (const DeviceNode& node : spec.devices) {
        if (!plain_path(node.path) || !under(node.path, "/dev") || node.path == "/dev")
            return refused(spec, fmt::format("the device '{}' is not a path below /dev", node.path),
                           "name it as the host does, for instance /dev/nvidia0");
        if (under(node.path, "/dev/shm") || under(node.path, "/dev/fd"))
            return refused(spec, fmt::format("{} is a place of its own, not a device", node.path), "leave it out");
        if (node.type != 'c' && node.type != 'b')
            return refused(spec, fmt::format("the device {} is of type '{}'", node.path, node.type), "say 'c' or 'b'");
        if (node.major > 4'095 || node.minor > 1'048'575)
            return refused(
                spec,
                fmt::format("the device {} is {}:{}; numbers end at 4095:1048575", node.path, node.major, node.minor),
                "read them again from the node");
        if (!seen.insert(node.path).second)
            return refused(spec, fmt::format("the device {} is named twice", node.path),
                           "name each once; null, zero, full, random and urandom are always there");
    }
    if (spec.devices.size() > 256)
        return refused(spec, fmt::format("{} devices; 256 are allowed", spec.devices.size()), "split the lease");
    return {};
}

Result<> check_places(const TenantSpec& spec) {
    constexpr auto ours = std::to_array<std::string_view>({"/proc", "/sys", "/dev", "/tmp", "/job", "/run"});
    std::set<std::string> seen;
    for (const ReadOnlyMount& mount : spec.mounts) {
        if (!plain_path(mount.source) || !plain_path(mount.target))
            return refused(spec,
                           fmt::format("the mount '{}' at '{}' is not from one absolute path to another", mount.source,
                                       mount.target),
                           "write both without '.', '..' and a slash at the end");
        for (const std::string_view place : ours)
            if (under(mount.target, place))
                return refused(spec, fmt::format("the mount at {} would lie over {}", mount.target, place),
                               "mount it elsewhere, for instance below /usr/local or /opt");
        if (!seen.insert(mount.target).second)
            return refused(spec, fmt::format("two mounts share the target {}", mount.target), "give each its own");
    }
    for (const std::string& path : spec.hidden)
        if (!plain_path(path) || path == "/")
            return refused(spec, fmt::format("what to hide, '{}', is not an absolute path", path),
                           "write it without '.', '..' and a slash at the end");
    if (!spec.work_dir.empty() && !plain_path(spec.work_dir))
        return refused(spec, fmt::format("the work directory '{}' is not an absolute path", spec.work_dir),
                       "name a directory of the host, or none");
    if (!spec.rootfs.empty() && (spec.tier != Tier::container || !plain_path(spec.rootfs)))
        return refused(spec,
                       fmt::format("the root file system '{}' {}", spec.rootfs,
                                   spec.tier == Tier::container ? "is not an absolute path"
                                                                : "goes with the container tier alone"),
                       "unpack the image to a directory and name that, or leave it out");
    return {};
}

Result<> check_network(const TenantSpec& spec) {
    const bool is_prepared = spec.network == Network::prepared;
    if (is_prepared == !spec.network_space.empty() && (!is_prepared || plain_path(spec.network_space))) return {};
    return refused(spec,
                   fmt::format("the network '{}' goes with the network namespace '{}'",
                               words(spec.network)[static_cast<std::size_t>(spec.network)], spec.network_space),
                   "a prepared network, and no other, has a namespace: name it by its absolute path");
}

Result<> check_limits(const TenantSpec& spec) {
    const Limits& limits = spec.limits;
    if (limits.memory_bytes < memory_bytes_min)
        return refused(spec,
                       fmt::format("a memory limit of {} bytes; at least {} are needed to start anything",
                                   limits.memory_bytes, memory_bytes_min),
                       "say how much host memory the lease has; there is no unlimited");
    if (limits.cpu_thousandths < 10 || limits.cpu_thousandths > 4'096'000)
        return refused(spec,
                       fmt::format("a CPU limit of {} thousandths; 10 to 4096000 are allowed", limits.cpu_thousandths),
                       "say how many CPUs the lease has; there is no unlimited");
    if (!parse_cpus(spec.cpus))
        return refused(spec, fmt::format("'{}' is no list of CPUs", spec.cpus), "write it as 0-15,64-79, up to 4095");
    if (limits.pids < pids_min || limits.pids > 4'194'304)
        return refused(spec, fmt::format("a limit of {} processes; {} to 4194304 are allowed", limits.pids, pids_min),
                       "threads count too: a framework wants some thousands");
    for (const RdmaLimit& rdma : limits.rdma)
        if (rdma.device.empty() || rdma.device.size() > 63 || rdma.device.contains(' ') || rdma.device.contains('\n') ||
            rdma.handles == 0 || rdma.objects == 0)
            return refused(spec,
                           fmt::format("a limit of {} handles and {} objects for the RDMA device '{}'", rdma.handles,
                                       rdma.objects, rdma.device),
                           "name the device as `rdma dev` does, and let it be of some use");
    if (limits.log_bytes < 4'096 || limits.log_bytes > std::int64_t{1} << 40)
        return refused(spec, fmt::format("logs of {} bytes; 4096 to 2^40 are allowed", limits.log_bytes),
                       "16777216 keeps the last 16 MiB of each stream");
    return {};
}

}  // namespace

Result<> check(const TenantSpec& spec) {
    for (const auto rule : {check_who, check_command, check_devices, check_places, check_network, check_limits})
        if (auto held = rule(spec); !held) return held;
    return {};
}

std::vector<DeviceNode> common_devices() {
    return {{"/dev/null", 'c', 1, 3},
            {"/dev/zero", 'c', 1, 5},
            {"/dev/full", 'c', 1, 7},
            {"/dev/random", 'c', 1, 8},
            {"/dev/urandom", 'c', 1, 9}};
}

}  // namespace bulkhead::container
