#include "bulkhead/hw/container/confine.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "bulkhead/hw/container/durable.hpp"
#include "bulkhead/hw/container/system_calls.hpp"

namespace bulkhead::container {

namespace {

// Never above what this process may have itself: raising takes a capability that agents in containers lack.
Result<> limit_resource(__rlimit_resource which, rlim_t soft, rlim_t hard) {
    rlimit now{};
    if (::getrlimit(which, &now) != 0) return cannot("read", "resource limits");
    const rlimit wanted{std::min(soft, now.rlim_max), std::min(hard, now.rlim_max)};
    if (::setrlimit(which, &wanted) != 0) return cannot("set", "resource limits");
    return {};
}

Result<> limit_resources(const TenantSpec& spec) {
    const auto memory = static_cast<rlim_t>(spec.limits.memory_bytes);
    if (auto ok = limit_resource(RLIMIT_CORE, 0, 0); !ok) return ok;  // a core file is a copy of somebody's memory
    if (auto ok = limit_resource(RLIMIT_NOFILE, 65'536, 1'048'576); !ok) return ok;
    if (auto ok = limit_resource(RLIMIT_MEMLOCK, memory, memory); !ok) return ok;  // pinned for RDMA, within its limit
    if (auto ok = limit_resource(RLIMIT_MSGQUEUE, 819'200, 819'200); !ok) return ok;
    if (auto ok = limit_resource(RLIMIT_SIGPENDING, 65'536, 65'536); !ok) return ok;
    return limit_resource(RLIMIT_NPROC, static_cast<rlim_t>(spec.limits.pids), static_cast<rlim_t>(spec.limits.pids));
}

Result<> drop_bounding_set() {
    for (unsigned long capability = 0; capability <= CAP_LAST_CAP; ++capability)
        if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EINVAL)  // this kernel may know fewer
            return cannot("drop from the bounding set", "a capability");
    return {};
}

Result<> become(UserAndGroup ids) {
    if (::setgroups(0, nullptr) != 0 || ::setresgid(ids.group, ids.group, ids.group) != 0 ||
        ::setresuid(ids.user, ids.user, ids.user) != 0)
        return cannot("become", fmt::format("user {}", ids.user));
    return {};
}

Result<> drop_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const std::array<__user_cap_data_struct, 2> none{};
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL)
        return cannot("clear", "ambient capabilities");
    if (::syscall(SYS_capset, &header, none.data()) != 0) return cannot("drop", "all capabilities");
    return {};
}

}  // namespace

Result<> enter_network(const std::string& space) {
    const auto file = open_file(space, O_RDONLY);
    if (!file) return std::unexpected(file.error());
    if (::setns(**file, CLONE_NEWNET) != 0)
        return cannot("enter the network namespace", space, "it is made before the tenant, and kept while it runs");
    return {};
}

Result<> raise_loopback() {
    const Fd line{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    if (!line) return cannot("open", "a socket");
    ifreq loopback{};
    loopback.ifr_name[0] = 'l';
    loopback.ifr_name[1] = 'o';
    loopback.ifr_flags = IFF_UP | IFF_RUNNING;
    if (::ioctl(*line, SIOCSIFFLAGS, &loopback) != 0) return cannot("raise", "the loopback");
    return {};
}

Result<> give_up_root(UserAndGroup ids) {
    if (auto ok = drop_bounding_set(); !ok) return ok;
    // Locked: becoming user 0, if that ever happened, would bring nothing back.
    constexpr unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
                                   SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                                   SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    if (::prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) != 0) return cannot("lock", "the secure bits");
    if (auto ok = become(ids); !ok) return ok;
    if (auto ok = drop_capabilities(); !ok) return ok;
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return cannot("set", "no_new_privs");
    return {};
}

Result<> confine(const TenantSpec& spec) {
    if (auto ok = limit_resources(spec); !ok) return ok;
    if (auto ok = give_up_root({spec.ids.first, spec.ids.first}); !ok) return ok;
    return filter_system_calls();
}

void close_all_but(std::span<const int> kept) {
    unsigned from = 3;
    for (const int fd : kept) {
        if (static_cast<unsigned>(fd) > from) ::syscall(SYS_close_range, from, static_cast<unsigned>(fd) - 1, 0);
        from = static_cast<unsigned>(fd) + 1;
    }
    ::syscall(SYS_close_range, from, std::numeric_limits<unsigned>::max(), 0);
}

}  // namespace bulkhead::container
