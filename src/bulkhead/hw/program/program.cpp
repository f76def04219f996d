#include "bulkhead/hw/program/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "bulkhead/hw/program/environment.hpp"

namespace bulkhead::program {

namespace {

constexpr std::size_t output_max = 1 << 20;

using Clock = std::chrono::steady_clock;

class Pipe {
public:
    Pipe() {
        if (::pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
    }
    ~Pipe() {
        close(0);
        close(1);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    int end(std::size_t which) const { return ends_[which]; }
    void close(std::size_t which) {
        if (ends_[which] >= 0) ::close(ends_[which]);
        ends_[which] = -1;
    }
    bool is_open() const { return ends_[0] >= 0; }

private:
    std::array<int, 2> ends_{-1, -1};
};

int status_of(int waited) {
    return WIFEXITED(waited) ? WEXITSTATUS(waited) : 128 + (WIFSIGNALED(waited) ? WTERMSIG(waited) : 0);
}

// A daemon keeps our pipe open when it forks; so the end of the program counts, not the end of its output.
Result<Ran> wait_for(pid_t child, Pipe& output, Clock::time_point until, const std::string& name) {
    Ran ran;
    std::array<char, 4096> buffer{};
    int waited = 0;
    bool ended = false;
    while (true) {
        pollfd reading{.fd = output.end(0), .events = POLLIN, .revents = 0};
        ::poll(&reading, 1, ended ? 0 : 20);
        bool got = false;
        if ((reading.revents & POLLIN) != 0)
            if (const ssize_t count = ::read(output.end(0), buffer.data(), buffer.size()); count > 0) {
                got = true;
                if (ran.output.size() < output_max) ran.output.append(buffer.data(), static_cast<std::size_t>(count));
            }
        if (ended && !got) break;
        if (!ended && ::waitpid(child, &waited, WNOHANG) == child) ended = true;
        if (!ended && Clock::now() > until) {
            ::kill(child, SIGKILL);
            ::waitpid(child, &waited, 0);
            return fail(Code::timeout, fmt::format("{} did not end in time", name),
                        "look at what it waits for, and try again");
        }
        if (!ended && (reading.revents & (POLLHUP | POLLERR)) != 0 && !got)
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    ran.status = status_of(waited);
    return ran;
}

std::unexpected<Error> no_pipe() {
    return fail(Code::exhausted, fmt::format("no pipe: {}", std::strerror(errno)), "raise the limit of open files");
}

std::unexpected<Error> not_started(const std::string& name, int error) {
    return fail(Code::unavailable, fmt::format("{} cannot be started: {}", name, std::strerror(error)),
                "see that it is installed and on the PATH");
}

struct Tied {
    char* const* arguments;
    char* const* variables;
    int in, out, lock, refusals;
    pid_t parent;
};

// After the fork, beside threads that are not there any more: system calls alone.
[[noreturn]] void become(const Tied& tied) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != tied.parent) ::_exit(127);  // it has ended already
    ::dup2(tied.in, 0);
    ::dup2(tied.out, 1);
    ::dup2(tied.out, 2);
    if (tied.lock >= 0) ::fcntl(tied.lock, F_SETFD, 0);
    ::execvpe(tied.arguments[0], tied.arguments, tied.variables);
    const int error = errno;
    (void)!::write(tied.refusals, &error, sizeof error);
    ::_exit(127);
}

}  // namespace

Result<Ran> run(const std::vector<std::string>& command,
                const std::vector<std::pair<std::string, std::string>>& environment, const std::string& input,
                std::chrono::milliseconds patience) {
    Pipe in, out;
    if (!in.is_open() || !out.is_open()) return no_pipe();
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in.end(0), 0);
    ::posix_spawn_file_actions_adddup2(&actions, out.end(1), 1);
    ::posix_spawn_file_actions_adddup2(&actions, out.end(1), 2);
    std::vector<std::string> arguments = command, variables = environment_with(environment);
    pid_t child = 0;
    const int spawned = ::posix_spawnp(&child, command.front().c_str(), &actions, nullptr,
                                       pointers_to(arguments).data(), pointers_to(variables).data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (spawned != 0) return not_started(command.front(), spawned);
    in.close(0);
    out.close(1);
    // Commands are short: they fit into a pipe, whoever reads them or not.
    if (!input.empty() && ::write(in.end(1), input.data(), input.size()) < 0 && errno != EPIPE)
        return fail(Code::unavailable,
                    fmt::format("{} cannot be told anything: {}", command.front(), std::strerror(errno)));
    in.close(1);
    return wait_for(child, out, Clock::now() + patience, command.front());
}

Result<Ran> run_tied(const std::vector<std::string>& command, int lock, std::chrono::milliseconds patience) {
    Pipe in, out, refusals;
    if (!in.is_open() || !out.is_open() || !refusals.is_open()) return no_pipe();
    std::vector<std::string> words = command, variables = environment_with({});
    const std::vector<char*> arguments = pointers_to(words), environment = pointers_to(variables);
    const Tied tied{.arguments = arguments.data(),
                    .variables = environment.data(),
                    .in = in.end(0),
                    .out = out.end(1),
                    .lock = lock,
                    .refusals = refusals.end(1),
                    .parent = ::getpid()};
    const pid_t child = ::fork();
    if (child == 0) become(tied);
    if (child < 0) return not_started(command.front(), errno);
    for (Pipe* const pipe : {&out, &refusals}) pipe->close(1);
    in.close(0);
    in.close(1);
    // Closed by its exec, or by its end.
    int error = 0;
    if (::read(refusals.end(0), &error, sizeof error) == sizeof error) {
        ::waitpid(child, nullptr, 0);
        return not_started(command.front(), error);
    }
    return wait_for(child, out, Clock::now() + patience, command.front());
}

}  // namespace bulkhead::program
