#include "bulkhead/hw/container/oci.hpp"

#include <fmt/core.h>

#include <boost/json.hpp>
#include <cerrno>
#include <exception>
#include <initializer_list>

#include "bulkhead/hw/container/root_view.hpp"
#include "bulkhead/hw/container/system_calls.hpp"

namespace bulkhead::container {

namespace {

namespace json = boost::json;

#if defined(__x86_64__)
constexpr const char* seccomp_architecture = "SCMP_ARCH_X86_64";
#elif defined(__aarch64__)
constexpr const char* seccomp_architecture = "SCMP_ARCH_AARCH64";
#else
#error "name this architecture as libseccomp does"
#endif

json::array texts_of(const std::vector<std::string>& texts) { return json::array(texts.begin(), texts.end()); }

json::object mount_of(std::string_view target, std::string_view type, std::string_view source,
                      std::initializer_list<std::string> options) {
    return {{"destination", std::string{target}},
            {"type", std::string{type}},
            {"source", std::string{source}},
            {"options", json::array(options.begin(), options.end())}};
}

json::object process_of(const TenantSpec& spec, const OciPlace& place) {
    json::array variables;
    for (const auto& [name, value] : spec.environment) variables.push_back(json::string{name + "=" + value});
    const auto limit = [](const char* type, std::int64_t most) {
        return json::object{{"type", type}, {"soft", most}, {"hard", most}};
    };
    // User 0 inside is the lease's first id outside, and has no capability on either side.
    return {{"terminal", false},
            {"user", {{"uid", 0}, {"gid", 0}, {"umask", 022}}},
            {"args", texts_of(spec.command)},
            {"env", variables},
            {"cwd", "/job"},
            {"noNewPrivileges", true},
            {"capabilities",
             {{"bounding", json::array{}},
              {"effective", json::array{}},
              {"permitted", json::array{}},
              {"inheritable", json::array{}},
              {"ambient", json::array{}}}},
            {"rlimits", {limit("RLIMIT_CORE", 0), limit("RLIMIT_NOFILE", place.open_files_max)}}};
}

json::array mounts_of(const TenantSpec& spec, const OciPlace& place) {
    const std::string size = fmt::format("size={}", spec.limits.memory_bytes);
    json::array mounts;
    for (const ReadOnlyMount& shared : place.shared)
        mounts.push_back(mount_of(shared.target, "bind", shared.source, {"ro", "nosuid", "nodev", "rbind"}));
    mounts.push_back(mount_of("/proc", "proc", "proc", {"nosuid", "nodev", "noexec", "hidepid=2"}));
    mounts.push_back(mount_of("/dev", "tmpfs", "tmpfs", {"ro", "nosuid", "noexec", "mode=755", "size=64k"}));
    mounts.push_back(mount_of("/dev/shm", "tmpfs", "shm", {"nosuid", "nodev", "noexec", "mode=1777", size}));
    // A network that is not the container's own has no sysfs it may mount: it sees the host's, or one made for it.
    if (spec.network == Network::none)
        mounts.push_back(mount_of("/sys", "sysfs", "sysfs", {"ro", "nosuid", "nodev", "noexec"}));
    else
        mounts.push_back(mount_of("/sys", "bind",
                                  spec.network == Network::prepared ? spec.network_space + ".sys" : "/sys",
                                  {"ro", "nosuid", "nodev", "noexec", "rbind"}));
    mounts.push_back(mount_of("/tmp", "tmpfs", "tmpfs", {"nosuid", "nodev", "mode=1777", size}));
    if (spec.work_dir.empty())
        mounts.push_back(mount_of("/job", "tmpfs", "tmpfs", {"nosuid", "nodev", "mode=700", size}));
    else
        mounts.push_back(mount_of("/job", "bind", spec.work_dir, {"rw", "nosuid", "nodev", "rbind"}));
    return mounts;
}

json::object seccomp_part() {
    json::array calls;
    const auto rule = [&](json::array names, const char* action) -> json::object& {
        calls.push_back(json::object{{"names", std::move(names)}, {"action", action}});
        return calls.back().as_object();
    };
    const auto when = [](json::object& entry, std::uint64_t value, std::uint64_t second, const char* how) {
        json::object condition{{"index", 0}, {"value", value}, {"op", how}};
        if (second != 0 || std::string_view{how} == "SCMP_CMP_MASKED_EQ") condition["valueTwo"] = second;
        entry["args"] = json::array{condition};
    };
    rule(texts_of(allowed_calls()), "SCMP_ACT_ALLOW");
    // Of a masked comparison the first value is the mask.
    when(rule({"clone"}, "SCMP_ACT_ALLOW"), namespace_flags, 0, "SCMP_CMP_MASKED_EQ");
    for (const int family : allowed_socket_families())
        when(rule({"socket"}, "SCMP_ACT_ALLOW"), static_cast<std::uint64_t>(family), 0, "SCMP_CMP_EQ");
    for (const unsigned personality : allowed_personalities())
        when(rule({"personality"}, "SCMP_ACT_ALLOW"), personality, 0, "SCMP_CMP_EQ");
    json::array refused;
    for (const Denied& call : denied_calls())
        if (call.error == EPERM) refused.push_back(json::string{call.name});
    rule(refused, "SCMP_ACT_ERRNO")["errnoRet"] = EPERM;
    return {{"defaultAction", "SCMP_ACT_ERRNO"},
            {"defaultErrnoRet", ENOSYS},
            {"architectures", {seccomp_architecture}},
            {"syscalls", calls}};
}

json::object linux_part(const TenantSpec& spec, const OciPlace& place) {
    json::array spaces;
    for (const char* type : {"pid", "mount", "ipc", "uts", "cgroup", "user"})
        spaces.push_back(json::object{{"type", type}});
    if (spec.network == Network::none) spaces.push_back(json::object{{"type", "network"}});
    if (spec.network == Network::prepared)
        spaces.push_back(json::object{{"type", "network"}, {"path", spec.network_space}});
    std::vector<std::string> hidden = hidden_paths();
    hidden.insert(hidden.end(), spec.hidden.begin(), spec.hidden.end());
    const json::array ids{{{"containerID", 0}, {"hostID", spec.ids.first}, {"size", spec.ids.count}}};
    return {{"namespaces", spaces},
            {"uidMappings", ids},
            {"gidMappings", ids},
            {"cgroupsPath", place.cgroup},
            {"resources",
             {{"devices", {{{"allow", false}, {"access", "rwm"}}}},
              {"memory", {{"limit", spec.limits.memory_bytes}}},
              {"pids", {{"limit", spec.limits.pids}}},
              {"cpu", {{"quota", spec.limits.cpu_thousandths * 100}, {"period", 100'000}}}}},
            {"rootfsPropagation", "private"},
            {"seccomp", seccomp_part()},
            {"maskedPaths", texts_of(hidden)},
            {"readonlyPaths", texts_of(read_only_paths())}};
}

}  // namespace

std::string oci_config(const TenantSpec& spec, const OciPlace& place) {
    return json::serialize(
        json::object{{"ociVersion", "1.0.2"},
                     {"process", process_of(spec, place)},
                     {"root", {{"path", place.root}, {"readonly", true}}},
                     {"hostname", fmt::format("lease-{}", spec.lease)},
                     {"mounts", mounts_of(spec, place)},
                     {"linux", linux_part(spec, place)},
                     {"annotations",
                      {{"dev.bulkhead.lease", fmt::format("{}", spec.lease)}, {"dev.bulkhead.tenant", spec.tenant}}}});
}

Result<std::string> process_beside(std::string_view config, const std::vector<std::string>& words,
                                   const Environment& more) {
    try {
        json::parse_options options;
        options.allow_invalid_utf8 = true;
        json::value whole = json::parse(json::string_view{config.data(), config.size()}, {}, options);
        json::object& process = whole.at("process").as_object();
        process["args"] = texts_of(words);
        for (const auto& [name, value] : more) process.at("env").as_array().push_back(json::string{name + "=" + value});
        return json::serialize(process);
    } catch (const std::exception& wrong) {
        return fail(
            Code::corrupt,
            fmt::format("the container's configuration of {} bytes does not read: {}", config.size(), wrong.what()),
            "it is of our own making: report this");
    }
}

LeasedDevice leased_device(const TenantSpec& spec) { return {spec.lease, spec.devices, spec.mounts, {}}; }

}  // namespace bulkhead::container
