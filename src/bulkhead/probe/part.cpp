#include "bulkhead/probe/part.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "bulkhead/hw/program/environment.hpp"

namespace bulkhead::probe {

namespace {

constexpr uid_t nobody = 65534;

// Between fork and exec: nothing here may allocate.
[[noreturn]] void become(const std::vector<char*>& arguments, const std::vector<char*>& environment, int in, int out,
                         bool as_nobody, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a probe that is interrupted leaves nobody behind
    if (::getppid() != parent) ::_exit(125);
    if (::dup2(in, 0) < 0 || ::dup2(out, 1) < 0) ::_exit(126);
    if (as_nobody && ::geteuid() == 0 && (::setgid(nobody) != 0 || ::setuid(nobody) != 0)) ::_exit(126);
    ::execve(arguments[0], arguments.data(), environment.data());
    ::_exit(127);
}

}  // namespace

Result<Part> Part::start(const Options& options, const std::vector<std::string>& role, const Environment& environment,
                         bool as_nobody) {
    std::array<int, 2> in{}, out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0)
        return fail(Code::exhausted, fmt::format("no pipe: {}", std::strerror(errno)), "raise the limit of open files");
    std::vector<std::string> words = options.self;
    words.insert(words.end(), {"--cuda", options.cuda, "--nvml", options.nvml});
    words.insert(words.end(), role.begin(), role.end());
    Environment all{{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}, {"CUDA_VISIBLE_DEVICES", options.gpu}};
    all.insert(all.end(), environment.begin(), environment.end());
    std::vector<std::string> variables = program::environment_with(all);
    const std::vector<char*> arguments = program::pointers_to(words), environ_of = program::pointers_to(variables);
    const pid_t parent = ::getpid(), child = ::fork();
    if (child == 0) become(arguments, environ_of, in[0], out[1], as_nobody, parent);
    ::close(in[0]);
    ::close(out[1]);
    Part part;
    part.pid_ = child;
    part.to_ = in[1];
    part.from_ = out[0];
    part.role_ = fmt::format("{}", fmt::join(role, " "));
    if (child < 0)
        return fail(Code::exhausted, fmt::format("no process: {}", std::strerror(errno)),
                    "raise the limit of processes");
    return part;
}

Part::Part(Part&& other) noexcept
    : pid_{std::exchange(other.pid_, -1)},
      to_{std::exchange(other.to_, -1)},
      from_{std::exchange(other.from_, -1)},
      heard_{std::move(other.heard_)},
      role_{std::move(other.role_)} {}

Part& Part::operator=(Part&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(to_, other.to_);
    std::swap(from_, other.from_);
    std::swap(heard_, other.heard_);
    std::swap(role_, other.role_);
    return *this;
}

Part::~Part() {
    kill();
    if (to_ >= 0) ::close(to_);
    if (from_ >= 0) ::close(from_);
}

Result<std::string> Part::hear(std::chrono::milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (true) {
        if (const std::size_t end = heard_.find('\n'); end != std::string::npos) {
            std::string line = heard_.substr(0, end);
            heard_.erase(0, end + 1);
            if (line.starts_with("error: "))
                return fail(Code::unavailable, fmt::format("{}: {}", role_, line.substr(7)),
                            "see what the driver says in dmesg");
            return line;
        }
        pollfd reading{.fd = from_, .events = POLLIN, .revents = 0};
        ::poll(&reading, 1, 100);
        std::array<char, 4096> buffer{};
        if ((reading.revents & (POLLIN | POLLHUP)) != 0) {
            const ssize_t count = ::read(from_, buffer.data(), buffer.size());
            if (count <= 0)
                return fail(Code::unavailable, fmt::format("the part `{}` ended without an answer", role_),
                            "run it alone to see why");
            heard_.append(buffer.data(), static_cast<std::size_t>(count));
        }
        if (std::chrono::steady_clock::now() > until)
            return fail(Code::timeout, fmt::format("the part `{}` does not answer", role_),
                        "see whether the GPU still does: nvidia-smi");
    }
}

Result<> Part::say(const std::string& line) {
    const std::string text = line + "\n";
    if (::write(to_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return fail(Code::unavailable, fmt::format("the part `{}` has ended", role_), "run it alone to see why");
    return {};
}

Result<> Part::end() {
    if (to_ >= 0) ::close(std::exchange(to_, -1));
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{30};
    int status = 0;
    while (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == 0) {
        if (std::chrono::steady_clock::now() > until) {
            kill();
            return fail(Code::timeout, fmt::format("the part `{}` did not end, and was killed", role_),
                        "see whether the GPU still answers");
        }
        ::usleep(2'000);
    }
    pid_ = -1;
    return {};
}

void Part::kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
}

Result<std::int64_t> number_in(const std::string& line, std::string_view name) {
    const std::string key = fmt::format(" {}=", name), text = " " + line;
    const std::size_t at = text.find(key);
    std::int64_t value = 0;
    if (at != std::string::npos) {
        const char* const begin = text.data() + at + key.size();
        if (std::from_chars(begin, text.data() + text.size(), value).ec == std::errc{}) return value;
    }
    return fail(Code::corrupt, fmt::format("a part answered \"{}\", without a number for {}", line, name),
                "both must be of one version");
}

}  // namespace bulkhead::probe
