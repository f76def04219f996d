// kill -9 between any two system calls of a start, first of the agent, then of the keeper, at every one of them. After
// each: whatever ran is known, whatever runs is in the lease's control group, and asking again starts it, once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <set>

#include "bulkhead/hw/container/keeper.hpp"
#include "bulkhead/hw/container/node_test.hpp"

namespace bulkhead::container {

namespace {

// Sanitizers make every fork slow; there a part of the points has to do.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int stride = 9;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int stride = 9;
#else
constexpr int stride = 1;
#endif
#else
constexpr int stride = 1;
#endif

class Killed : public Node {
protected:
    // Runs `work` in a child and kills it after that many system calls; false: it ended before.
    static bool kill_after(int calls, const std::function<void()>& work) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
            ::raise(SIGSTOP);
            work();
            ::_exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        // Stops come in pairs, before and after a call; those it starts itself run free.
        for (int stops = 0; stops < 2 * calls; ++stops) {
            ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
            ::waitpid(child, &status, 0);
            if (WIFEXITED(status) || WIFSIGNALED(status)) return false;
        }
        ::kill(child, SIGKILL);
        ::waitpid(child, &status, 0);
        return true;
    }

    TenantSpec marking() {
        TenantSpec spec = Node::spec(1, "echo ran >> /job/marks");
        spec.work_dir = places.directory + "/job";
        std::filesystem::remove_all(spec.work_dir);
        std::filesystem::create_directory(spec.work_dir);
        EXPECT_EQ(::chown(spec.work_dir.c_str(), spec.ids.first, spec.ids.first), 0);
        // Who is killed leaves processes to the machine's init, and they count as their user's until that has taken
        // note.
        spec.limits.pids = 4'096;
        return spec;
    }

    std::string marks() const { return read_whole(places.directory + "/job/marks").value_or(""); }

    // Processes of the lease's user that are not where they belong.
    std::size_t outside(const TenantSpec& spec) const {
        std::size_t found = 0;
        std::error_code wrong;
        for (const auto& entry : std::filesystem::directory_iterator{"/proc", wrong}) {
            struct stat status{};
            if (::stat(entry.path().c_str(), &status) != 0 || status.st_uid != spec.ids.first) continue;
            // One that has ended is in no group any more, until somebody takes note of its end.
            const std::string state = read_whole(entry.path().string() + "/stat").value_or("");
            const std::size_t name_ends = state.rfind(") ");
            if (name_ends == std::string::npos || state[name_ends + 2] == 'Z' || state[name_ends + 2] == 'X') continue;
            const auto groups = read_whole(entry.path().string() + "/cgroup");
            if (groups && !groups->contains(places.cgroup_parent + "/lease-1/tenant")) ++found;
        }
        return found;
    }

    void clear(Tenants& tenants) {
        ASSERT_TRUE(tenants.begin_stop(1, Duration{0}));
        ASSERT_TRUE(eventually([&] { return tenants.stopped(1).value_or(false); }));
        ASSERT_TRUE(tenants.remove(1));
    }
};

TEST_F(Killed, an_agent_leaves_a_tenant_that_is_known_or_none) {
    std::set<Look::State> seen_states;
    int calls = 1;
    for (bool killed = true; killed; calls += stride) {
        SCOPED_TRACE(fmt::format("killed after {} system calls", calls));
        const TenantSpec spec = marking();
        killed = kill_after(calls, [&] { (void)opened().begin_start(spec); });
        Tenants next = opened();
        ASSERT_EQ(outside(spec), 0u);
        Look seen;
        ASSERT_TRUE(eventually([&] {
            seen = next.look(1).value();
            return seen.state != Look::State::starting && seen.state != Look::State::running;
        }));
        seen_states.insert(seen.state);
        if (seen.state == Look::State::unknown) {
            ASSERT_EQ(marks(), "");
        } else {
            ASSERT_EQ(seen.state, Look::State::exited);
            ASSERT_EQ(marks(), "ran\n");
        }
        const Result<> again = next.start(spec);
        ASSERT_TRUE(again) << words_of(again.error());
        ASSERT_EQ(end_of(next, 1).exit.code, 0);
        ASSERT_EQ(marks(), "ran\n") << "once, and not twice";
        clear(next);
    }
    EXPECT_GT(calls, 50);
    EXPECT_EQ(seen_states, (std::set{Look::State::unknown, Look::State::exited})) << "both ends of it were met";
}

TEST_F(Killed, a_keeper_leaves_nothing_running_and_no_doubt_whether_it_ran) {
    std::set<Look::State> seen_states;
    std::string last_failure;
    int calls = 1;
    for (bool killed = true; killed; calls += stride) {
        SCOPED_TRACE(fmt::format("killed after {} system calls", calls));
        const TenantSpec spec = marking();
        const LeaseFiles files{places.directory + "/lease-1"};
        const LeaseCgroup group{*find_hierarchies(), places.cgroup_parent, 1};
        ASSERT_TRUE(files.make());
        ASSERT_TRUE(group.create(spec.limits, spec.devices));
        ASSERT_TRUE(files.write(spec));
        killed = kill_after(calls, [&] {
            const Result<std::vector<Fd>> doors = group.doors(Room::keeper);
            for (const Fd& door : *doors)
                if (::write(*door, "0", 1) != 1) ::_exit(1);
            Result<std::optional<Fd>> lock = files.lock();
            Result<Pipe> ready = make_pipe();
            const int high_lock = ::fcntl(***lock, F_DUPFD_CLOEXEC, 20),
                      high_ready = ::fcntl(*ready->write, F_DUPFD_CLOEXEC, 20);
            ::dup2(high_lock, lock_fd);
            ::dup2(high_ready, ready_fd);
            for (int fd = ready_fd + 1; fd < 64; ++fd) ::close(fd);
            keep({files.directory(), places.cgroup_parent, places.runtime});
        });
        Tenants next = opened();
        Look seen;
        ASSERT_TRUE(eventually([&] {  // its first process ends by itself when its keeper is gone
            seen = next.look(1).value();
            return next.stopped(1).value() && seen.state != Look::State::starting && seen.state != Look::State::running;
        }));
        ASSERT_EQ(outside(spec), 0u);
        seen_states.insert(seen.state);
        if (seen.state == Look::State::failed) last_failure = seen.error.what;
        if (!marks().empty()) {
            ASSERT_TRUE(seen.state == Look::State::exited || seen.state == Look::State::lost);
        }
        if (seen.state == Look::State::exited) {
            ASSERT_EQ(marks(), "ran\n");
        }
        clear(next);
    }
    EXPECT_GT(calls, 80);
    EXPECT_EQ(seen_states, (std::set{Look::State::unknown, Look::State::exited, Look::State::lost})) << last_failure;
}

}  // namespace

}  // namespace bulkhead::container
