#include "bulkhead/hw/container/first_process.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "bulkhead/hw/container/confine.hpp"
#include "bulkhead/hw/container/root_view.hpp"

namespace bulkhead::container {

namespace {

struct Lines {  // process 1's ends
    int lifeline = -1, news = -1, status = -1;
};

void say(int line, std::string_view words) { (void)!::write(line, words.data(), words.size()); }

[[noreturn]] void refuse(int news, const Error& error) {
    say(news, refusal_line(error));
    ::_exit(1);
}

// The program itself is the trouble, as opposed to the world around it.
[[noreturn]] void refuse_program(int news, const Error& error) {
    std::string line = refusal_line(error);
    if (error.code == Code::not_found || error.code == Code::denied) line.front() = 'x';
    say(news, line);
    ::_exit(1);
}

Result<> enter(std::vector<Fd>& doors) {
    for (Fd& door : doors) {
        if (::write(*door, "0", 1) != 1) return cannot("enter", "the lease's control group");
        door.close();
    }
    return {};
}

Result<> build_world(const TenantSpec& spec, std::vector<Fd>& doors, const std::string& scratch) {
    // First of all: from here on, whatever goes wrong, this process is where it will be looked for.
    if (auto ok = enter(doors); !ok) return ok;
    if (::unshare(CLONE_NEWCGROUP) != 0) return cannot("unshare", "the control groups");
    const std::string host = fmt::format("lease-{}", spec.lease);
    if (::sethostname(host.data(), host.size()) != 0) return cannot("set", "the host name");
    if (spec.network == Network::none)
        if (auto ok = raise_loopback(); !ok) return ok;
    // Before /sys is mounted: it shows the devices of the namespace that it was mounted in.
    if (spec.network == Network::prepared)
        if (auto ok = enter_network(spec.network_space); !ok) return ok;
    return enter_root_view(spec, scratch);
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

// Until the command has ended or the keeper's line has closed.
[[noreturn]] void reap_until_over(pid_t command, int children, Lines lines) {
    for (;;) {
        std::array<pollfd, 2> wait{pollfd{lines.lifeline, POLLIN, 0}, pollfd{children, POLLIN, 0}};
        if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) ::_exit(1);
        if ((wait[0].revents & (POLLHUP | POLLERR)) != 0) ::_exit(1);
        signalfd_siginfo seen{};
        if ((wait[1].revents & POLLIN) != 0) (void)!::read(children, &seen, sizeof seen);
        int status = 0;
        for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)
            if (ended == command) {
                (void)!::write(lines.status, &status, sizeof status);
                ::_exit(0);
            }
    }
}

[[noreturn]] void first_process(const TenantSpec& spec, std::vector<Fd> doors, const std::string& scratch,
                                Streams streams, Lines lines) {
    std::vector<int> kept{lines.lifeline, lines.news, lines.status, streams.out, streams.err};
    for (const Fd& door : doors) kept.push_back(*door);
    std::ranges::sort(kept);
    close_all_but(kept);  // the keeper's lock and its records above all
    const Fd nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    if (::dup2(*nothing, 0) < 0 || ::dup2(streams.out, 1) < 0 || ::dup2(streams.err, 2) < 0) ::_exit(1);
    for (const int copied : {streams.out, streams.err}) ::close(copied);
    ::setsid();
    for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    if (auto ok = build_world(spec, doors, scratch); !ok) refuse(lines.news, ok.error());
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    const int children = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (auto ok = confine(spec); !ok) refuse(lines.news, ok.error());
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // the tenant, of the same user, must not look into it
    say(lines.news, "w");
    char word = 0;
    if (::read(lines.lifeline, &word, 1) != 1) ::_exit(1);  // the keeper is gone: nothing was started
    const pid_t command = ::fork();
    if (command == 0) refuse_program(lines.news, run_command(spec.command, spec.environment));
    if (command < 0) refuse(lines.news, cannot("start", "the tenant's command").error());
    ::close(lines.news);
    for (const int fd : {1, 2}) ::close(fd);
    reap_until_over(command, children, lines);
}

}  // namespace

Error run_command(const std::vector<std::string>& command, const Environment& environment) {
    ::setsid();
    ::umask(022);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    std::vector<std::string> words = command, variables;
    variables.reserve(environment.size());
    for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
    if (::chdir("/job") != 0) {
        Error error = cannot("enter", "/job").error();
        error.code = Code::unavailable;  // it is ours to make
        return error;
    }
    std::vector<char*> theirs = pointers_to(variables);
    environ = theirs.data();  // whose PATH a bare name is looked for in
    ::execvp(words.front().c_str(), pointers_to(words).data());
    const int why = errno;
    Error error = cannot(why, "run", command.front(), "name a program that the tenant can see and may execute").error();
    error.code = why == ENOENT || why == ENOTDIR ? Code::not_found : Code::denied;
    return error;
}

std::string refusal_line(const Error& error) {
    return fmt::format("e{}{}{}{}", static_cast<char>('0' + static_cast<int>(error.code)), error.what, '\0',
                       error.remedy);
}

Error refusal_of(std::string_view line) {
    if (line.size() < 2 || (line.front() != 'e' && line.front() != 'x'))
        return {Code::unavailable, "the tenant's first process ended before it had said anything",
                "look for a kernel message about memory or a fault"};
    const std::size_t parted = std::min(line.find('\0'), line.size());
    return {static_cast<Code>(line[1] - '0'), std::string{line.substr(2, parted - 2)},
            std::string{line.substr(std::min(parted + 1, line.size()))}};
}

int status_of_program(std::string_view line) {
    if (!line.starts_with('x')) return 0;
    return refusal_of(line).code == Code::not_found ? not_found_status : not_executable_status;
}

Result<FirstProcess> start_first_process(const TenantSpec& spec, const LeaseCgroup& group, const std::string& scratch,
                                         Streams streams) {
    auto lifeline = make_pipe(), news = make_pipe(), status = make_pipe();
    for (const auto* line : {&lifeline, &news, &status})
        if (!*line) return std::unexpected(line->error());
    auto doors = group.doors(Room::tenant);
    if (!doors) return std::unexpected(doors.error());
    clone_args how{};
    how.flags =
        CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | (spec.network == Network::none ? CLONE_NEWNET : 0);
    how.exit_signal = SIGCHLD;
    const long pid = ::syscall(SYS_clone3, &how, sizeof how);  // the keeper has one thread: as good as fork
    if (pid < 0)
        return cannot("start", "a process in namespaces of its own", "the agent must be root, outside of a container");
    if (pid == 0)
        first_process(spec, std::move(*doors), scratch, streams, {*lifeline->read, *news->write, *status->write});
    return FirstProcess{static_cast<pid_t>(pid), std::move(lifeline->write), std::move(news->read),
                        std::move(status->read)};
}

}  // namespace bulkhead::container
