#include "bulkhead/hw/container/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "bulkhead/hw/container/cgroup.hpp"
#include "bulkhead/hw/container/confine.hpp"
#include "bulkhead/hw/container/first_process.hpp"
#include "bulkhead/hw/container/lease_files.hpp"
#include "bulkhead/hw/container/runtime.hpp"

namespace bulkhead::container {

namespace {

constexpr std::size_t complaint_bytes_max = 512;  // of what it printed to stderr: the end

// Process 1 of the process tier: the tenant's only process that is the keeper's child.
Result<pid_t> first_of(const LeaseCgroup& group) {
    const auto keepers = group.processes(Room::keeper), tenants = group.processes(Room::tenant);
    if (!keepers) return std::unexpected(keepers.error());
    if (!tenants) return std::unexpected(tenants.error());
    for (const pid_t process : *tenants) {
        const auto stat = read_whole(fmt::format("/proc/{}/stat", process));
        const std::size_t name_end = stat ? stat->rfind(") ") : std::string::npos;
        if (name_end == std::string::npos || name_end + 4 >= stat->size()) continue;
        pid_t parent = 0;  // after the state, a letter
        std::from_chars(stat->data() + name_end + 4, stat->data() + stat->size(), parent);
        if (std::ranges::find(*keepers, parent) != keepers->end()) return process;
    }
    return fail(Code::not_found, "the tenant's first process is not there", "it has ended meanwhile");
}

[[noreturn]] void give_up(const Error& error) {
    (void)!::write(2, error.what.data(), error.what.size());
    ::_exit(125);
}

struct World {  // of the tenant: what to go through to be in it
    std::vector<Fd> doors;
    Fd first;
    int namespaces = 0;
};

Result<World> world_of(const TenantSpec& spec, const LeaseCgroup& group) {
    const auto first = first_of(group);
    if (!first) return std::unexpected(first.error());
    World world{.doors = {}, .first = Fd{static_cast<int>(::syscall(SYS_pidfd_open, *first, 0))}};
    world.namespaces = CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWPID | CLONE_NEWNS |
                       (spec.network == Network::host ? 0 : CLONE_NEWNET);
    // Asked again now that it is held: its number is not another's.
    if (!world.first || !group.holds(*first, Room::tenant)) return cannot("hold on to", "the tenant's first process");
    auto doors = group.doors(Room::tenant);
    if (!doors) return std::unexpected(doors.error());
    world.doors = std::move(*doors);
    return world;
}

// In a child of its own. Becomes root inside first, which the tenant cannot look into, and then the tenant.
[[noreturn]] void run_in_world(const TenantSpec& spec, World world) {
    for (Fd& door : world.doors) {
        if (::write(*door, "0", 1) != 1) give_up(cannot("enter", "the lease's control group").error());
        door.close();
    }
    if (::setns(*world.first, world.namespaces) != 0)
        give_up(cannot("enter", "the tenant's namespaces", "they end with its first process").error());
    const pid_t command = ::fork();  // who entered a pid namespace is in it by its children
    if (command < 0) give_up(cannot("start", "the checkpoint command").error());
    if (command == 0) {
        ::setsid();
        close_all_but({});
        if (auto ok = confine(spec); !ok) give_up(ok.error());
        Environment environment = spec.environment;
        environment.emplace_back("BULKHEAD_PID", "2");  // the one that process 1 started
        give_up(run_command(spec.checkpoint, environment));
    }
    int status = 0;
    while (::waitpid(command, &status, 0) < 0 && errno == EINTR) {
    }
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

struct Heard {
    std::string out, err;
};

// Until both lines have ended or `over` says so; the end of what there is by then is read as well.
void listen(int over, std::array<Fd, 2>& lines, std::int64_t until_ms, Heard& heard) {
    const auto read_some = [&](std::size_t at) {
        std::array<char, 4'096> piece{};
        const ssize_t got = ::read(*lines[at], piece.data(), piece.size());
        if (got > 0) {
            std::string& text = at == 0 ? heard.out : heard.err;
            text.append(piece.data(), static_cast<std::size_t>(got));
            if (at == 0 && text.size() > checkpoint_bytes_max + 1) text.resize(checkpoint_bytes_max + 1);
            if (at == 1 && text.size() > complaint_bytes_max) text.erase(0, text.size() - complaint_bytes_max);
        } else if (got == 0) {
            lines[at].close();
        }
        return got > 0;
    };
    for (bool ended = false; !ended;) {
        const std::int64_t left_ms = until_ms - boot_clock_ms();
        if (left_ms <= 0) return;
        std::array<pollfd, 3> wait{pollfd{over, POLLIN, 0}, pollfd{*lines[0], POLLIN, 0}, pollfd{*lines[1], POLLIN, 0}};
        if (::poll(wait.data(), wait.size(), static_cast<int>(std::min<std::int64_t>(left_ms, 60'000))) < 0) continue;
        ended = wait[0].revents != 0;
        for (const std::size_t at : {0U, 1U})
            if (wait[at + 1].revents != 0 || (ended && lines[at]))
                // What it left in the pipe; who goes on writing after its end is not waited for.
                for (int pieces = ended ? 32 : 1; pieces > 0 && lines[at] && read_some(at); --pieces) {
                }
    }
}

Checkpoint judged(int status, Heard heard) {
    while (!heard.out.empty() && heard.out.back() == '\n') heard.out.pop_back();
    if (status != 0)
        return {false, fmt::format("its checkpoint command ended with status {}{}{}", status,
                                   heard.err.empty() ? "" : ": ", last_line(heard.err))};
    if (heard.out.size() > checkpoint_bytes_max)
        return {false, fmt::format("its checkpoint command printed more than {} bytes: print where the work is, not "
                                   "the work",
                                   checkpoint_bytes_max)};
    return {true, std::move(heard.out)};
}

Result<Checkpoint> run_hook(const KeeperPlace& place, Duration within) {
    const std::int64_t until_ms = boot_clock_ms() + within.ms;
    const LeaseFiles files{place.directory};
    const auto spec = files.spec();
    if (!spec) return std::unexpected(spec.error());
    if (!*spec || (*spec)->checkpoint.empty())
        return fail(Code::not_found, place.directory + " names no checkpoint command", "");
    auto trees = find_hierarchies();
    if (!trees) return std::unexpected(trees.error());
    const std::string hidden_tree = trees->v1.empty() ? std::string{} : trees->v2;
    const LeaseCgroup group{std::move(*trees), place.cgroup_parent, (*spec)->lease};
    const Runtime runtime{{place.runtime, hidden_tree}, files, (*spec)->lease};
    World world;
    if ((*spec)->tier == Tier::process) {
        auto found = world_of(**spec, group);
        if (!found) return std::unexpected(found.error());
        world = std::move(*found);
    } else if (auto written = write_hook(**spec, files); !written) {
        return std::unexpected(written.error());
    }
    auto out = make_pipe(), err = make_pipe();
    auto nothing = open_file("/dev/null", O_RDONLY);
    if (!out) return std::unexpected(out.error());
    if (!err) return std::unexpected(err.error());
    if (!nothing) return std::unexpected(nothing.error());
    const pid_t child = ::fork();
    if (child < 0) return cannot("start", "the checkpoint command");
    if (child == 0) {
        for (const int held : {lock_fd, ready_fd}) ::close(held);  // what says that saving goes on is the parent's
        for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
        if (::dup2(**nothing, 0) < 0 || ::dup2(*out->write, 1) < 0 || ::dup2(*err->write, 2) < 0) ::_exit(125);
        if ((*spec)->tier == Tier::process) run_in_world(**spec, std::move(world));
        const auto status = runtime.run_hook({1, 2}, group);
        if (!status) give_up(status.error());
        ::_exit(*status);
    }
    out->write.close();
    err->write.close();
    const Fd over{static_cast<int>(::syscall(SYS_pidfd_open, child, 0))};
    std::array<Fd, 2> lines{std::move(out->read), std::move(err->read)};
    for (const Fd& line : lines) ::fcntl(*line, F_SETFL, O_NONBLOCK);
    Heard heard;
    listen(*over, lines, until_ms, heard);
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == 0) {
        // What it started is the tenant's, and goes with the tenant.
        ::kill(child, SIGKILL);
        ::waitpid(child, &status, 0);
        return Checkpoint{false, fmt::format("its checkpoint command took longer than {} ms", within.ms)};
    }
    return judged(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), std::move(heard));
}

}  // namespace

int save_work(const KeeperPlace& place, Duration within) {
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    for (const int fd : {lock_fd, ready_fd}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    auto checkpoint = run_hook(place, within);
    if (!checkpoint) checkpoint = Checkpoint{false, checkpoint.error().what};
    return LeaseFiles{place.directory}.write(*checkpoint) ? 0 : 1;
}

}  // namespace bulkhead::container
