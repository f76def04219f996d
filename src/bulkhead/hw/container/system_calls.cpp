#include "bulkhead/hw/container/system_calls.hpp"

#include <fmt/core.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::container {

namespace {

static_assert(namespace_flags == (CLONE_NEWTIME | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                  CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET));

constexpr std::string_view mounts_why = "changes what paths mean";
constexpr std::string_view host_why = "administers the host";
constexpr std::string_view surface_why = "large parts of the kernel behind one door; a way out before";
constexpr std::string_view others_why = "reaches into other processes";
constexpr std::string_view old_why = "obsolete; nobody's program needs it";

constexpr auto denied_list = std::to_array<Denied>({
    {"mount", EPERM, mounts_why},
    {"umount", EPERM, mounts_why},
    {"umount2", EPERM, mounts_why},
    {"pivot_root", EPERM, mounts_why},
    {"chroot", EPERM, mounts_why},
    {"move_mount", EPERM, mounts_why},
    {"mount_setattr", EPERM, mounts_why},
    {"open_tree", EPERM, mounts_why},
    {"fsopen", EPERM, mounts_why},
    {"fsconfig", EPERM, mounts_why},
    {"fsmount", EPERM, mounts_why},
    {"fspick", EPERM, mounts_why},
    {"unshare", EPERM, "new namespaces bring capabilities within them, and the kernel code behind those"},
    {"setns", EPERM, "joins other namespaces"},
    {"clone3", ENOSYS, "its flags lie in memory, where no filter can read them; libraries fall back to clone"},
    {"name_to_handle_at", EPERM, "handles open files by number, past every path"},
    {"open_by_handle_at", EPERM, "handles open files by number, past every path"},
    {"ptrace", EPERM, others_why},
    {"kcmp", EPERM, others_why},
    {"process_madvise", EPERM, others_why},
    {"bpf", EPERM, surface_why},
    {"perf_event_open", EPERM, "counters of the machine tell of neighbours"},
    {"userfaultfd", EPERM, "holds the kernel still in the middle of a copy: the tool of many exploits"},
    {"io_uring_setup", ENOSYS, surface_why},
    {"io_uring_enter", ENOSYS, surface_why},
    {"io_uring_register", ENOSYS, surface_why},
    {"add_key", EPERM, "keyrings are not divided by namespaces"},
    {"keyctl", EPERM, "keyrings are not divided by namespaces"},
    {"request_key", EPERM, "keyrings are not divided by namespaces"},
    {"fanotify_init", EPERM, host_why},
    {"fanotify_mark", EPERM, host_why},
    {"init_module", EPERM, host_why},
    {"finit_module", EPERM, host_why},
    {"delete_module", EPERM, host_why},
    {"kexec_load", EPERM, host_why},
    {"kexec_file_load", EPERM, host_why},
    {"reboot", EPERM, host_why},
    {"swapon", EPERM, host_why},
    {"swapoff", EPERM, host_why},
    {"acct", EPERM, host_why},
    {"quotactl", EPERM, host_why},
    {"quotactl_fd", EPERM, host_why},
    {"syslog", EPERM, "the kernel's log has addresses and neighbours in it"},
    {"sethostname", EPERM, host_why},
    {"setdomainname", EPERM, host_why},
    {"settimeofday", EPERM, host_why},
    {"clock_settime", EPERM, host_why},
    {"clock_adjtime", EPERM, host_why},
    {"adjtimex", EPERM, host_why},
    {"stime", EPERM, host_why},
    {"vhangup", EPERM, host_why},
    {"iopl", EPERM, host_why},
    {"ioperm", EPERM, host_why},
    {"modify_ldt", EPERM, old_why},
    {"create_module", ENOSYS, old_why},
    {"get_kernel_syms", ENOSYS, old_why},
    {"query_module", ENOSYS, old_why},
    {"lookup_dcookie", ENOSYS, old_why},
    {"nfsservctl", ENOSYS, old_why},
    {"_sysctl", ENOSYS, old_why},
    {"sysfs", ENOSYS, old_why},
    {"uselib", ENOSYS, old_why},
    {"ustat", ENOSYS, old_why},
    {"vserver", ENOSYS, old_why},
    {"afs_syscall", ENOSYS, old_why},
    {"tuxcall", ENOSYS, old_why},
    {"security", ENOSYS, old_why},
    {"getpmsg", ENOSYS, old_why},
    {"putpmsg", ENOSYS, old_why},
});

constexpr auto by_argument = std::to_array<std::string_view>({"clone", "socket", "personality"});
// Local, IP, and netlink, with which the C library lists interfaces. Not the crypto, packet, VM and radio families.
constexpr auto families = std::to_array<int>({AF_UNIX, AF_INET, AF_INET6, AF_NETLINK});
constexpr auto personalities = std::to_array<unsigned>({0, 0xffff'ffff});  // ours, and asking which

using Filter = std::unique_ptr<void, decltype([](void* filter) { seccomp_release(filter); })>;

int number_of(std::string_view name) { return seccomp_syscall_resolve_name(std::string{name}.c_str()); }

// By the first argument.
int allow_when(scmp_filter_ctx filter, std::string_view name, scmp_arg_cmp condition) {
    return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number_of(name), 1, &condition);
}

int add_rules(scmp_filter_ctx filter) {
    int wrong = 0;
    for (const std::string& name : allowed_calls())
        if (wrong == 0) wrong = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number_of(name), 0, nullptr);
    for (const Denied& call : denied_list)  // those told "not implemented" are told so by the rule for all others
        if (const int at = number_of(call.name); wrong == 0 && at >= 0 && call.error != ENOSYS)
            wrong =
                seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(static_cast<std::uint16_t>(call.error)), at, 0, nullptr);
    if (wrong == 0) wrong = allow_when(filter, "clone", {0, SCMP_CMP_MASKED_EQ, namespace_flags, 0});
    for (const int family : families)
        if (wrong == 0) wrong = allow_when(filter, "socket", {0, SCMP_CMP_EQ, static_cast<scmp_datum_t>(family), 0});
    for (const unsigned personality : personalities)
        if (wrong == 0) wrong = allow_when(filter, "personality", {0, SCMP_CMP_EQ, personality, 0});
    return wrong;
}

}  // namespace

std::span<const Denied> denied_calls() { return denied_list; }
std::span<const int> allowed_socket_families() { return families; }
std::span<const unsigned> allowed_personalities() { return personalities; }

std::vector<std::string> allowed_calls() {
    std::vector<std::string> names;
    for (int number = 0; number <= last_considered; ++number) {
        char* known = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
        if (known == nullptr) continue;
        std::string name{known};
        std::free(known);  // NOLINT(cppcoreguidelines-no-malloc): the library hands it over so
        if (std::ranges::find(denied_list, name, &Denied::name) != denied_list.end()) continue;
        if (std::ranges::find(by_argument, name) == by_argument.end()) names.push_back(std::move(name));
    }
    std::ranges::sort(names);
    return names;
}

Result<> filter_system_calls() {
    // Calls of another architecture (32-bit, x32) end the process: the library's default.
    const Filter filter{seccomp_init(SCMP_ACT_ERRNO(ENOSYS))};
    if (!filter) return fail(Code::exhausted, "no memory for the filter of system calls", "free memory");
    if (const int wrong = add_rules(filter.get()); wrong != 0)
        return cannot(-wrong, "write", "the filter of system calls");
    if (const int wrong = seccomp_load(filter.get()); wrong != 0)
        return cannot(-wrong, "load", "the filter of system calls", "tenants need a kernel with CONFIG_SECCOMP_FILTER");
    return {};
}

}  // namespace bulkhead::container
