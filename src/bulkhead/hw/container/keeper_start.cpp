#include <fcntl.h>
#include <fmt/core.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <limits>
#include <string>
#include <vector>

#include "bulkhead/hw/container/cgroup.hpp"
#include "bulkhead/hw/container/durable.hpp"
#include "bulkhead/hw/container/keeper.hpp"

namespace bulkhead::container {

namespace {

struct Birth {  // all that the child needs, made before there is one
    std::vector<int> doors;
    int lock = -1, ready = -1, nothing = -1;
    const char* program = nullptr;
    char* const* arguments = nullptr;
};

// Between fork and exec of a program with threads: system calls alone, nothing that could wait for a lock.
[[noreturn]] void be_born(const Birth& birth) {
    ::setsid();
    for (const int door : birth.doors)
        if (::write(door, "0", 1) != 1) ::_exit(1);
    // Every number is 10 or above, so none is overwritten before it is copied.
    if (::dup2(birth.nothing, 0) < 0 || ::dup2(birth.nothing, 1) < 0 || ::dup2(birth.nothing, 2) < 0 ||
        ::dup2(birth.lock, lock_fd) < 0 || ::dup2(birth.ready, ready_fd) < 0)
        ::_exit(1);
    ::syscall(SYS_close_range, ready_fd + 1, std::numeric_limits<unsigned>::max(), 0);
    for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    std::array<char*, 1> no_environment{nullptr};
    ::execve(birth.program, birth.arguments, no_environment.data());
    ::_exit(1);
}

Fd moved_up(const Fd& fd) { return Fd{::fcntl(*fd, F_DUPFD_CLOEXEC, 10)}; }

}  // namespace

Result<Fd> start_beside(std::vector<std::string> words, const LeaseCgroup& group, Fd lock) {
    const std::string program = words.front();
    if (::access(program.c_str(), X_OK) != 0)
        return cannot("run", program, "install bulkhead-tenant beside bulkhead, or name it");
    auto ready = make_pipe();
    auto doors = group.doors(Room::keeper);
    auto nothing = open_file("/dev/null", O_RDWR);
    if (!ready) return std::unexpected(ready.error());
    if (!doors) return std::unexpected(doors.error());
    if (!nothing) return std::unexpected(nothing.error());
    const Fd high_lock = moved_up(lock), high_ready = moved_up(ready->write), high_nothing = moved_up(*nothing);
    std::vector<Fd> high_doors;
    for (const Fd& door : *doors) high_doors.push_back(moved_up(door));
    lock.close();
    ready->write.close();

    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    Birth birth{{}, *high_lock, *high_ready, *high_nothing, program.c_str(), arguments.data()};
    for (const Fd& door : high_doors) birth.doors.push_back(*door);

    // Twice, so that it is nobody's child: the same before and after the agent is started anew.
    const pid_t between = ::fork();
    if (between < 0) return cannot("start", program);
    if (between == 0) {
        const pid_t keeper = ::fork();
        if (keeper == 0) be_born(birth);
        ::_exit(keeper < 0 ? 1 : 0);
    }
    int status = 0;
    while (::waitpid(between, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return fail(Code::exhausted, fmt::format("cannot start {}: no more processes", program),
                    "see ulimit -u and pids.max");
    return std::move(ready->read);
}

}  // namespace bulkhead::container
