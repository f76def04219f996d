#include "bulkhead/agent/line_calls.hpp"

#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "bulkhead/hw/container/durable.hpp"
#include "bulkhead/hw/container/system_calls.hpp"

// Sanitizer builds look for leaks at the end from a process that they clone, which a filtered agent cannot.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BULKHEAD_LEAKS_ARE_LOOKED_FOR
#endif
#endif
#ifdef BULKHEAD_LEAKS_ARE_LOOKED_FOR
static bool filter_is_loaded = false;
extern "C" int __lsan_is_turned_off() { return filter_is_loaded ? 1 : 0; }
#endif

namespace bulkhead::agent {

namespace {

using container::cannot;

struct Purpose {
    std::string_view what;
    std::string_view calls;
};
constexpr auto allowed = std::to_array<Purpose>({
    {"files: the journal, keys, what the C library reads of /etc; whose they are says who may",
     "access close close_range dup dup2 dup3 faccessat faccessat2 fadvise64 fallocate fcntl fdatasync flock fstat "
     "fstatfs fsync ftruncate getcwd getdents64 lseek lstat mkdir mkdirat newfstatat open openat pipe pipe2 pread64 "
     "pwrite64 read readlink readlinkat readv rename renameat renameat2 stat statfs statx umask unlink unlinkat write "
     "writev"},
    {"the network, outwards: neither listen nor accept",
     "bind connect getpeername getsockname getsockopt recvfrom recvmmsg recvmsg sendmmsg sendmsg sendto setsockopt "
     "shutdown socketpair"},
    {"waiting, for the hands too",
     "epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 poll ppoll pselect6 "
     "select wait4"},
    {"memory", "brk madvise mincore mmap mprotect mremap munmap"},
    {"threads and their signals",
     "arch_prctl exit exit_group futex get_robust_list getcpu gettid membarrier restart_syscall rseq rt_sigaction "
     "rt_sigpending rt_sigprocmask rt_sigreturn rt_sigtimedwait sched_get_priority_max sched_get_priority_min "
     "sched_getaffinity sched_getparam sched_getscheduler sched_yield set_robust_list set_tid_address sigaltstack"},
    {"time",
     "clock_getres clock_gettime clock_nanosleep gettimeofday nanosleep time timerfd_create timerfd_gettime "
     "timerfd_settime"},
    {"who and where we are",
     "getegid geteuid getgid getgroups getpid getppid getrandom getresgid getresuid getrlimit getrusage getuid sysinfo "
     "times uname"},
});

constexpr auto families = std::to_array<int>({AF_UNIX, AF_INET, AF_INET6});
// Asking, of a terminal or a socket; nothing that administers.
constexpr auto controls = std::to_array<unsigned long>({TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO});

using LineFilter = std::unique_ptr<void, decltype([](void* filter) { seccomp_release(filter); })>;

class Rules {
public:
    explicit Rules(scmp_filter_ctx filter) : filter_{filter} {}

    template <class... Conditions>
    void allow(const std::string& name, Conditions... conditions) {
        // A call that this architecture does not have needs no rule.
        const int number = seccomp_syscall_resolve_name(name.c_str());
        if (wrong_ != 0 || number < 0) return;
        const std::array<scmp_arg_cmp, sizeof...(conditions)> all{conditions...};
        wrong_ = seccomp_rule_add_array(filter_, SCMP_ACT_ALLOW, number, sizeof...(conditions), all.data());
    }
    int wrong() const { return wrong_; }

private:
    scmp_filter_ctx filter_;
    int wrong_ = 0;
};

scmp_arg_cmp is(unsigned argument, std::uint64_t value) { return {argument, SCMP_CMP_EQ, value, 0}; }

void add_rules_by_argument(Rules& rules) {
    // Threads, and no processes. clone3, whose flags no filter can read, falls back to this.
    rules.allow("clone", scmp_arg_cmp{0, SCMP_CMP_MASKED_EQ, CLONE_THREAD | container::namespace_flags, CLONE_THREAD});
    for (const int family : families) rules.allow("socket", is(0, static_cast<std::uint64_t>(family)));
    rules.allow("socket", is(0, AF_NETLINK), is(2, 0));  // routes, with which the C library orders addresses
    for (const unsigned long control : controls) rules.allow("ioctl", is(1, control));
    rules.allow("prctl", is(0, PR_SET_NAME));
    rules.allow("prctl", is(0, PR_GET_NAME));
    rules.allow("prlimit64", is(2, 0));  // asking, not setting
    // To abort.
    rules.allow("tgkill", is(0, static_cast<std::uint64_t>(::getpid())));
}

}  // namespace

Result<> filter_line_calls() {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return cannot("set", "no_new_privs");
    const LineFilter filter{seccomp_init(SCMP_ACT_ERRNO(ENOSYS))};
    if (!filter) return fail(Code::exhausted, "no memory for the filter of system calls", "free memory");
    Rules rules{filter.get()};
    for (const Purpose& purpose : allowed) {
        std::istringstream names{std::string{purpose.calls}};
        for (std::string name; names >> name;) rules.allow(name);
    }
    add_rules_by_argument(rules);
    if (rules.wrong() != 0) return cannot(-rules.wrong(), "write", "the filter of system calls");
    if (const int wrong = seccomp_load(filter.get()); wrong != 0)
        return cannot(-wrong, "load", "the filter of system calls", "agents need a kernel with CONFIG_SECCOMP_FILTER");
#ifdef BULKHEAD_LEAKS_ARE_LOOKED_FOR
    filter_is_loaded = true;
#endif
    return {};
}

}  // namespace bulkhead::agent
