// kill -9 at a system call of one's choice: a process and all that it starts are followed with ptrace, and one of them
// is killed before its n-th call is made. Whoever follows ends with that, and the rest run free again.
#pragma once

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <string>

namespace bulkhead::cli {

struct KillPoint {
    unsigned generation = 0;  // 0: the first process; 1: one that it has started; 2: one that such a one has started
    int call = 0;             // of that process and all of its threads, counted from when the first raises SIGUSR1
};

struct Followed {
    bool killed = false;  // otherwise the first process came to its end before
    int calls = 0;
};

namespace kill_point {

struct Parents {
    pid_t process = 0, parent = 0;
};
inline Parents parents_of(pid_t thread) {
    std::ifstream status{"/proc/" + std::to_string(thread) + "/status"};
    Parents found;
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("Tgid:")) found.process = std::stoi(line.substr(5));
        if (line.starts_with("PPid:")) found.parent = std::stoi(line.substr(5));
    }
    return found;
}

class Pursuit {
public:
    Pursuit(pid_t first, KillPoint point) : first_{first}, point_{point} {
        processes_[first] = 0;
        threads_[first] = first;
    }

    // Seized, and not stopped by signals: one that came as we leave would stop somebody for good.
    bool seize() {
        constexpr unsigned long options =
            PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
        return ::ptrace(PTRACE_SEIZE, first_, nullptr, options) == 0 &&
               ::ptrace(PTRACE_INTERRUPT, first_, nullptr, nullptr) == 0;
    }
    Followed follow() {
        for (int status = 0;;) {
            const pid_t thread = ::waitpid(-1, &status, __WALL);
            if (thread < 0) return {false, calls_};
            if (WIFSTOPPED(status) && !threads_.contains(thread)) {
                meet(thread);
                go_on(thread, 0);  // the stop that every new one begins with
            } else if (WIFSTOPPED(status)) {
                if (stopped(thread, status)) return {true, calls_};
            } else if (thread == first_) {
                return {false, calls_};
            }
        }
    }

private:
    void meet(pid_t thread) {
        const Parents found = parents_of(thread);
        threads_[thread] = found.process;
        if (!processes_.contains(found.process)) processes_[found.process] = processes_[found.parent] + 1;
    }
    bool is_victim(pid_t thread) { return processes_[threads_[thread]] == point_.generation; }
    void go_on(pid_t thread, int signal) {
        ::ptrace(is_victim(thread) ? PTRACE_SYSCALL : PTRACE_CONT, thread, nullptr, static_cast<long>(signal));
    }
    static bool is_before_a_call(pid_t thread) {
        std::array<unsigned long, 16> info{};  // enough for a __ptrace_syscall_info, whose first byte is what we want
        ::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, info.data());
        return (info[0] & 0xFF) == PTRACE_SYSCALL_INFO_ENTRY;
    }
    // Whether that was the end of it.
    bool stopped(pid_t thread, int status) {
        const int signal = WSTOPSIG(status);
        if (signal == (SIGTRAP | 0x80)) {
            if (counting_ && is_victim(thread) && is_before_a_call(thread) && ++calls_ == point_.call) {
                ::kill(threads_[thread], SIGKILL);
                return true;
            }
            go_on(thread, 0);
        } else if (status >> 16 != 0) {
            go_on(thread, 0);
        } else if (thread == first_ && signal == SIGUSR1) {
            counting_ = true;
            go_on(thread, 0);
        } else {
            go_on(thread, signal);
        }
        return false;
    }

    pid_t first_;
    KillPoint point_;
    std::map<pid_t, unsigned> processes_;  // their generations
    std::map<pid_t, pid_t> threads_;       // whose they are
    bool counting_ = false;
    int calls_ = 0;
};

}  // namespace kill_point

// Runs `work` in a child, which raises SIGUSR1 where calls begin to count. Returns when somebody was killed, or when
// the child has ended by itself; what is then left of them is for whoever reaps orphans here.
inline Followed follow_and_kill(KillPoint point, const std::function<void()>& work) {
    std::array<int, 2> answer{}, begin{};
    if (::pipe(answer.data()) != 0 || ::pipe(begin.data()) != 0) return {};
    const pid_t follower = ::fork();
    if (follower == 0) {
        ::close(answer[0]);
        const pid_t first = ::fork();
        char word = 0;
        if (first == 0) {
            for (const int theirs : {answer[1], begin[1]}) ::close(theirs);
            if (::read(begin[0], &word, 1) == 1) work();
            ::_exit(0);
        }
        kill_point::Pursuit pursuit{first, point};
        Followed followed;
        if (pursuit.seize() && ::write(begin[1], &word, 1) == 1) followed = pursuit.follow();
        ::_exit(::write(answer[1], &followed, sizeof followed) == sizeof followed ? 0 : 1);
    }
    for (const int theirs : {answer[1], begin[0], begin[1]}) ::close(theirs);
    Followed followed;
    if (::read(answer[0], &followed, sizeof followed) != sizeof followed) followed = {};
    ::close(answer[0]);
    ::waitpid(follower, nullptr, 0);
    return followed;
}

}  // namespace bulkhead::cli
