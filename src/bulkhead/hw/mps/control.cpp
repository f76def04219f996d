#include "bulkhead/hw/mps/control.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "bulkhead/hw/program/program.hpp"

namespace bulkhead::mps {

namespace {

std::vector<pid_t> pids_in(const std::string& text) {
    std::vector<pid_t> pids;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
        pid_t pid = 0;
        const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), pid);
        if (error == std::errc{} && pid > 0 &&
            std::all_of(end, static_cast<const char*>(line.data() + line.size()),
                        [](char c) { return c == ' ' || c == '\r'; }))
            pids.push_back(pid);
    }
    return pids;
}

bool lives(pid_t pid) { return pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM); }

std::string slurp(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

// A number that a file remembers may be somebody else's by now.
bool is_daemon(pid_t pid) {
    return lives(pid) && slurp(fmt::format("/proc/{}/cmdline", pid)).contains("nvidia-cuda-mps-control");
}

std::vector<pid_t> children_of(pid_t pid) {
    std::vector<pid_t> children;
    std::error_code gone;
    namespace fs = std::filesystem;
    for (fs::directory_iterator at{fmt::format("/proc/{}/task", pid), gone}, end; !gone && at != end;
         at.increment(gone)) {
        std::istringstream numbers{slurp(at->path() / "children")};
        for (pid_t child = 0; numbers >> child;) children.push_back(child);
    }
    return children;
}

// Processes as they are now, and nobody who has their number later.
class Held {
public:
    explicit Held(const std::vector<pid_t>& pids) {
        for (const pid_t pid : pids)
            if (const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); handle >= 0)
                handles_.push_back(handle);
    }
    ~Held() {
        for (const int handle : handles_) ::close(handle);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    bool gone_within(std::chrono::milliseconds patience) const {
        const auto until = std::chrono::steady_clock::now() + patience;
        return std::ranges::all_of(handles_, [&](int handle) {
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
            pollfd ended{.fd = handle, .events = POLLIN, .revents = 0};
            return ::poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) == 1;
        });
    }
    void kill() const {
        for (const int handle : handles_) ::syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0);
    }

private:
    std::vector<int> handles_;
};

// As it prints a limit: whole GiB where there are any, and the rest of the number is not told; below that, MiB. What is
// in force is exact all the same (testdata/mps).
bool is_limit(const std::string& text, std::uint64_t mib) {
    return text == fmt::format("{}M", mib) || (mib >= 1024 && text == fmt::format("{}G", mib / 1024));
}

Result<> make_folder(const std::string& path) {
    if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return {};
    return fail(Code::unavailable, fmt::format("{} cannot be made: {}", path, std::strerror(errno)),
                "make the folder above it");
}

// "50.0", as it prints a percentage.
bool is_percentage(const std::string& text, unsigned wanted) {
    double value = -1;
    std::istringstream{text} >> value;
    return value >= static_cast<double>(wanted) - 0.5 && value <= static_cast<double>(wanted) + 0.5;
}

}  // namespace

unsigned clients_max(int capability_major, int cuda_version) {
    if (capability_major < 7) return 16;
    return cuda_version >= 13010 ? 60 : 48;
}

std::vector<std::pair<std::string, std::string>> Control::environment() const {
    return {{"CUDA_MPS_PIPE_DIRECTORY", pipes()}, {"CUDA_MPS_LOG_DIRECTORY", logs()}};
}

std::vector<std::pair<std::string, std::string>> Control::own_environment() const {
    auto all = environment();
    all.emplace_back("CUDA_VISIBLE_DEVICES", settings_.device);
    return all;
}

Result<std::string> Control::say(const std::string& command) {
    const auto ran = program::run({settings_.program}, own_environment(), command + "\n", settings_.patience);
    if (!ran) return std::unexpected(ran.error());
    std::string answer = ran->output;
    while (!answer.empty() && (answer.back() == '\n' || answer.back() == '\r')) answer.pop_back();
    if (ran->status != 0)
        return fail(Code::unavailable,
                    fmt::format("the MPS daemon of {} does not answer `{}`: {}", settings_.device, command, answer),
                    fmt::format("see {}/control.log", logs()));
    if (answer.starts_with("Unknown command"))
        return fail(Code::invalid, fmt::format("this MPS daemon does not know `{}`", command),
                    "it is of another driver: use R450 or later");
    return answer;
}

std::optional<Control> Control::adopt(Settings settings) {
    Control control{std::move(settings)};
    std::ifstream file{control.pipes() + "/nvidia-cuda-mps-control.pid"};
    if (!(file >> control.daemon_) || !is_daemon(control.daemon_)) return std::nullopt;
    return control;
}

bool Control::answers() { return say("get_server_list").has_value(); }

Result<Control> Control::start(Settings settings) {
    if (auto running = adopt(settings)) {
        if (running->answers()) return *std::move(running);
        if (const auto gone = running->stop(); !gone) return std::unexpected(gone.error());
    }
    Control control{std::move(settings)};
    for (const std::string& folder : {control.settings_.folder, control.pipes(), control.logs()})
        if (const auto made = make_folder(folder); !made) return std::unexpected(made.error());
    const auto ran =
        program::run({control.settings_.program, "-d"}, control.own_environment(), "", control.settings_.patience);
    if (!ran) return std::unexpected(ran.error());
    if (ran->status != 0)
        return fail(Code::unavailable,
                    fmt::format("the MPS daemon of {} did not start: {}", control.settings_.device, ran->output),
                    fmt::format("see {}/control.log", control.logs()));
    const auto until = std::chrono::steady_clock::now() + control.settings_.patience;
    while (std::chrono::steady_clock::now() < until) {
        if (auto adopted = adopt(control.settings_); adopted && adopted->answers()) return *std::move(adopted);
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    return fail(Code::timeout,
                fmt::format("the MPS daemon of {} started and does not answer", control.settings_.device),
                fmt::format("see {}/control.log", control.logs()));
}

// The default is what servers begin with that come later; each that there is has its own.
Result<> Control::limit(const Limits& limits) {
    if (const auto kept = keeps("", limits); !kept) return kept;
    const auto running = servers();
    if (!running) return std::unexpected(running.error());
    for (const pid_t server : *running)
        if (const auto kept = keeps(fmt::format(" {}", server), limits); !kept) return kept;
    return {};
}

// It repeats what is in force: a value it does not like is not refused but left out.
Result<> Control::keeps(const std::string& server, const Limits& limits) {
    const char* const whose = server.empty() ? "default_" : "";
    if (limits.thread_percentage) {
        const auto answer =
            say(fmt::format("set_{}active_thread_percentage{} {}", whose, server, *limits.thread_percentage));
        if (!answer) return std::unexpected(answer.error());
        if (!server.empty() && answer->contains("not found")) return {};  // it has ended meanwhile
        if (!is_percentage(*answer, *limits.thread_percentage))
            return fail(Code::invalid,
                        fmt::format("the MPS daemon of {} keeps {} percent of the multiprocessors, not {}",
                                    settings_.device, *answer, *limits.thread_percentage),
                        "ask for 1 to 100");
    }
    if (limits.memory_mib) {
        const auto answer =
            say(fmt::format("set_{}device_pinned_mem_limit{} 0 {}M", whose, server, *limits.memory_mib));
        if (!answer) return std::unexpected(answer.error());
        const auto kept = say(fmt::format("get_{}device_pinned_mem_limit{} 0", whose, server));
        if (!kept) return std::unexpected(kept.error());
        if (!server.empty() && kept->contains("not found")) return {};
        if (!is_limit(*kept, *limits.memory_mib))
            return fail(Code::invalid,
                        fmt::format("the MPS daemon of {} keeps a limit of '{}', not of {} MiB", settings_.device,
                                    *kept, *limits.memory_mib),
                        "ask for no more memory than the device has");
    }
    return {};
}

Result<> Control::serve(uid_t user) {
    const auto answer = say(fmt::format("start_server -uid {}", user));
    if (!answer) return std::unexpected(answer.error());
    return {};
}

Result<std::vector<pid_t>> Control::servers() {
    const auto answer = say("get_server_list");
    if (!answer) return std::unexpected(answer.error());
    return pids_in(*answer);
}

Result<ServerState> Control::state() {
    const auto all = servers();
    if (!all) return std::unexpected(all.error());
    ServerState worst = ServerState::none;
    for (const pid_t server : *all) {
        const auto answer = say(fmt::format("get_server_status {}", server));
        if (!answer) return std::unexpected(answer.error());
        const ServerState state = *answer == "ACTIVE"         ? ServerState::active
                                  : *answer == "INITIALIZING" ? ServerState::initializing
                                                              : ServerState::fault;
        worst = std::max(worst, state);
    }
    return worst;
}

Result<std::vector<Client>> Control::clients() {
    const auto all = servers();
    if (!all) return std::unexpected(all.error());
    std::vector<Client> found;
    for (const pid_t server : *all) {
        const auto answer = say(fmt::format("get_client_list {}", server));
        if (!answer) return std::unexpected(answer.error());
        for (const pid_t pid : pids_in(*answer)) found.push_back({server, pid});
    }
    return found;
}

// Not by a signal: killing a client whose work is queued has no defined result.
Result<> Control::end_client(Client client) {
    const auto answer = say(fmt::format("terminate_client {} {}", client.server, client.pid));
    if (!answer) return std::unexpected(answer.error());
    if (answer->starts_with("Invalid"))
        return fail(Code::not_found, fmt::format("process {} is no client of MPS server {}", client.pid, client.server),
                    "it has ended already");
    return {};
}

Result<> Control::stop() {
    std::vector<pid_t> pids = children_of(daemon_);  // its servers; one that does not answer has them too
    pids.push_back(daemon_);
    const Held all{pids};
    if (!say("quit") || !all.gone_within(settings_.patience)) {
        all.kill();
        if (!all.gone_within(settings_.patience))
            return fail(Code::timeout,
                        fmt::format("the MPS daemon of {} was killed and is still there (process {})", settings_.device,
                                    daemon_),
                        "a process that cannot be killed waits for the driver: see dmesg");
    }
    daemon_ = 0;
    return {};
}

}  // namespace bulkhead::mps
