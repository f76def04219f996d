#include "bulkhead/cli/children.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

namespace bulkhead::cli {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Result<> Children::start(const std::string& name, std::vector<std::string> arguments, const std::string& log,
                         std::vector<std::string> environment) {
    std::error_code failed;
    const std::string self = std::filesystem::read_symlink("/proc/self/exe", failed);
    if (failed) return fail(Code::unavailable, "this program does not find itself", "is /proc mounted?");
    arguments.insert(arguments.begin(), self);
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    for (char** each = environ; *each != nullptr; ++each) {
        const std::string_view known = *each;
        const std::string_view called = known.substr(0, known.find('=') + 1);
        if (std::ranges::none_of(environment, [&](const std::string& own) { return own.starts_with(called); }))
            environment.emplace_back(known);
    }
    std::vector<char*> variables;
    variables.reserve(environment.size() + 1);
    for (std::string& variable : environment) variables.push_back(variable.data());
    variables.push_back(nullptr);
    const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (output < 0) return fail(Code::unavailable, fmt::format("{} cannot be written", log), "choose another --data");
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
        // Its own group: an interrupt from the keyboard reaches us, and we stop them in order. If we die without a
        // word, so do they.
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (::getppid() != parent) ::_exit(1);
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::dup2(output, STDOUT_FILENO);
        ::dup2(output, STDERR_FILENO);
        ::execve(self.c_str(), argv.data(), variables.data());
        ::_exit(127);
    }
    ::close(output);
    if (child < 0) return fail(Code::unavailable, "no further process can be started", "see `ulimit -u`");
    running_[child] = name;
    return {};
}

std::string Children::ended() {
    int status = 0;
    const pid_t child = ::waitpid(-1, &status, WNOHANG);
    if (child <= 0) return {};
    std::string name = running_[child];
    running_.erase(child);
    return name;
}

void Children::stop(const std::string& name) {
    for (auto child = running_.begin(); child != running_.end();) {
        if (child->second != name) {
            ++child;
            continue;
        }
        ::kill(child->first, SIGKILL);
        ::waitpid(child->first, nullptr, 0);
        child = running_.erase(child);
    }
}

void Children::stop() {
    for (const bool server : {false, true}) {
        const auto meant = [&](const auto& each) { return (each.second == "server") == server; };
        for (const auto& each : running_)
            if (meant(each)) ::kill(each.first, SIGTERM);
        const auto until = Clock::now() + 5s;
        while (Clock::now() < until && std::ranges::any_of(running_, meant))
            if (ended().empty()) std::this_thread::sleep_for(20ms);
    }
    for (const auto& [child, name] : running_) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    }
    running_.clear();
}

}  // namespace bulkhead::cli
