#include "bulkhead/hw/container/keeper.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "bulkhead/hw/container/cgroup.hpp"
#include "bulkhead/hw/container/first_process.hpp"
#include "bulkhead/hw/container/lease_files.hpp"
#include "bulkhead/hw/container/log_files.hpp"
#include "bulkhead/hw/container/near.hpp"
#include "bulkhead/hw/container/runtime.hpp"

namespace bulkhead::container {

namespace {

Instant now() {
    using namespace std::chrono;
    return {duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

// Everything a line says until it ends.
std::string read_to_end(int line) {
    std::string said;
    std::array<char, 4'096> piece{};
    for (;;) {
        const ssize_t got = ::read(line, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return said;
        said.append(piece.data(), static_cast<std::size_t>(got));
    }
}

class Printed {  // what the tenant prints, on its way into files
public:
    Printed(const LeaseFiles& files, std::int64_t bytes_max)
        : writers_{LogWriter{files.log(), Stream::out, bytes_max}, LogWriter{files.log(), Stream::err, bytes_max}} {}

    Result<Streams> open() {
        for (Pipe& pipe : pipes_) {
            auto made = make_pipe();
            if (!made) return std::unexpected(made.error());
            pipe = std::move(*made);
            ::fcntl(*pipe.read, F_SETFL, O_NONBLOCK);
        }
        return Streams{*pipes_[0].write, *pipes_[1].write};
    }
    void leave_writing_to_others() {
        for (Pipe& pipe : pipes_) pipe.write.close();
    }
    // Copies until both have ended or `end` has something to say.
    void copy_until(int end) {
        for (;;) {
            std::array<pollfd, 3> wait{pollfd{end, POLLIN, 0}, pollfd{*pipes_[0].read, POLLIN, 0},
                                       pollfd{*pipes_[1].read, POLLIN, 0}};
            if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return;
            for (std::size_t at : {0U, 1U})
                if (wait[at + 1].revents != 0) copy(at);
            if (wait[0].revents != 0) return;
        }
    }
    void copy_rest() {
        for (std::size_t at : {0U, 1U})
            while (copy(at)) {
            }
    }

private:
    bool copy(std::size_t at) {
        std::array<char, 65'536> piece{};
        const ssize_t got = ::read(*pipes_[at].read, piece.data(), piece.size());
        if (got > 0) writers_[at].write({piece.data(), static_cast<std::size_t>(got)});
        if (got == 0) pipes_[at].read.close();  // poll leaves out a negative number
        return got > 0;
    }
    std::array<LogWriter, 2> writers_;
    std::array<Pipe, 2> pipes_;
};

// The status of a program that could not be executed, or 0.
Outcome failed(Error error, int program = 0) { return {Outcome::State::failed, {.code = program}, std::move(error)}; }

Outcome exited(int status, const LeaseCgroup& group) {
    return {Outcome::State::exited,
            {WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
             group.memory_kills(), now()},
            {}};
}

// The last moment at which nothing of the tenant has run: it is where it belongs, it is on record, nobody wants it to
// stop.
Result<> clear_to_go(const LeaseFiles& files, const LeaseCgroup& group, pid_t first) {
    if (!group.holds(first, Room::tenant))
        return fail(Code::conflict,
                    fmt::format("process {} is not in {} in every tree", first, group.name(Room::tenant)),
                    "somebody moves processes between control groups: find out who");
    if (auto written = files.write(Outcome{}); !written) return written;
    const auto stop = files.stop();
    if (!stop) return std::unexpected(stop.error());
    if (*stop) return fail(Code::conflict, "it was told to stop before it had begun", "nothing of it ran");
    return {};
}

int wait_for(pid_t process) {
    int status = 0;
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

Outcome run_process(const TenantSpec& spec, const LeaseFiles& files, const LeaseCgroup& group) {
    Printed printed{files, spec.limits.log_bytes};
    const auto streams = printed.open();
    if (!streams) return failed(streams.error());
    auto first = start_first_process(spec, group, files.scratch(), *streams);
    if (!first) return failed(first.error());
    printed.leave_writing_to_others();
    const auto end = [&](Error error, int program = 0) {
        first->lifeline.close();
        wait_for(first->pid);
        return failed(std::move(error), program);
    };
    char word = 0;
    if (::read(*first->news, &word, 1) != 1 || word != 'w') return end(refusal_of(word + read_to_end(*first->news)));
    if (const auto clear = clear_to_go(files, group, first->pid); !clear) return end(clear.error());
    if (::write(*first->lifeline, "g", 1) != 1) return end(refusal_of(""));
    if (const std::string said = read_to_end(*first->news); !said.empty())
        return end(refusal_of(said), status_of_program(said));
    ::close(ready_fd);
    printed.copy_until(*first->status);
    const int own = wait_for(first->pid);  // when it has ended, so has everything in its pid namespace
    printed.copy_rest();
    int status = 0;
    if (::read(*first->status, &status, sizeof status) != sizeof status) status = own;  // killed, with all the rest
    return exited(status, group);
}

Outcome run_container(const TenantSpec& spec, const Runtime& runtime, const LeaseFiles& files,
                      const LeaseCgroup& group) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0,
            0);  // the container's first process comes to us when the runtime has ended
    Printed printed{files, spec.limits.log_bytes};
    const auto streams = printed.open();
    if (!streams) return failed(streams.error());
    if (const auto version = runtime.version(); !version) return failed(version.error());
    if (const auto written = write_bundle(spec, files, group.name(Room::tenant)); !written)
        return failed(written.error());
    const auto first = runtime.create(*streams, group);
    printed.leave_writing_to_others();
    const auto end = [&](Error error) {
        (void)group.kill(Room::tenant);
        (void)runtime.remove();
        return failed(std::move(error));
    };
    if (!first) {
        const int program = status_of_refused_program(first.error().what);
        Outcome outcome = end(first.error());
        outcome.exit.code = program;
        return outcome;
    }
    if (const auto clear = clear_to_go(files, group, *first); !clear) return end(clear.error());
    const Fd alive{static_cast<int>(::syscall(SYS_pidfd_open, *first, 0))};
    if (const auto started = runtime.start(); !started) return end(started.error());
    ::close(ready_fd);
    printed.copy_until(*alive);
    const int status = wait_for(*first);
    printed.copy_rest();
    Outcome outcome = exited(status, group);
    // A runtime that will not clean up leaves files; the processes are gone, and `stopped` looks for itself.
    (void)runtime.remove();
    return outcome;
}

Result<Outcome> run_recorded(const KeeperPlace& place) {
    const LeaseFiles files{place.directory};
    const auto spec = files.spec();
    if (!spec) return std::unexpected(spec.error());
    if (!*spec)
        return fail(Code::not_found, place.directory + " has no record of a lease",
                    "bulkhead-tenant is started by the agent");
    auto trees = find_hierarchies();
    if (!trees) return failed(trees.error());
    const std::string hidden_tree = trees->v1.empty() ? std::string{} : trees->v2;
    const LeaseCgroup group{std::move(*trees), place.cgroup_parent, (*spec)->lease};
    stay_near((*spec)->cpus);
    if ((*spec)->tier == Tier::process) return run_process(**spec, files, group);
    return run_container(**spec, Runtime{{place.runtime, hidden_tree}, files, (*spec)->lease}, files, group);
}

}  // namespace

int keep(const KeeperPlace& place) {
    // It ends when the tenant has, or by SIGKILL; a signal meant for others must not cost an exit status.
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    ::fcntl(lock_fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(ready_fd, F_SETFD, FD_CLOEXEC);
    const auto outcome = run_recorded(place);
    const LeaseFiles files{place.directory};
    return outcome && files.write(*outcome) ? 0 : 1;
}

}  // namespace bulkhead::container
