#include "bulkhead/hw/container/runtime.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>

namespace bulkhead::container {

std::string last_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.substr(text.rfind('\n') + 1);
}

int status_of_refused_program(std::string_view words) {
    const auto says = [&](std::string_view part) { return words.find(part) != std::string_view::npos; };
    const bool by_crun = says(": executable file `") && says("` not found");
    const bool by_runc =
        says("exec: \"") && (says("executable file not found in $PATH") || says(": no such file or directory"));
    if (by_crun || by_runc) return not_found_status;
    if (says(": open executable: ") || (says("exec: \"") && says(": permission denied"))) return not_executable_status;
    return 0;
}

Runtime::Runtime(Where where, const LeaseFiles& files, LeaseKey lease)
    : program_{std::move(where.program)},
      hidden_tree_{std::move(where.hidden_tree)},
      directory_{files.runtime()},
      bundle_{files.bundle()},
      name_{fmt::format("lease-{}", lease)} {}

Result<Runtime::Said> Runtime::call(std::vector<std::string> words, const Around& around) const {
    auto nothing = open_file("/dev/null", O_RDWR);
    auto answer = make_pipe();
    // Not /dev/null: crun gives the three streams to the container's user, and that one is the host's.
    auto empty = make_pipe();
    if (!nothing) return std::unexpected(nothing.error());
    if (!answer) return std::unexpected(answer.error());
    if (!empty) return std::unexpected(empty.error());
    words.insert(words.begin(), program_);
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    std::string path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
    std::array<char*, 2> environment{path.data(), nullptr};
    const Streams& streams = around.streams;
    const int out = streams.out >= 0 ? streams.out : *answer->write, err = streams.err >= 0 ? streams.err : **nothing;
    const pid_t child = ::fork();  // the keeper has one thread
    if (child < 0) return cannot("start", program_);
    if (child == 0) {
        for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
        for (const Fd& door : around.doors)
            if (::write(*door, "0", 1) != 1) ::_exit(125);
        if (!hidden_tree_.empty() &&
            (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
             ::umount2(hidden_tree_.c_str(), MNT_DETACH) != 0))
            ::_exit(124);
        if (::dup2(*empty->read, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(126);
        ::execve(program_.c_str(), pointers.data(), environment.data());
        ::_exit(127);
    }
    answer->write.close();
    Said said;
    std::array<char, 4'096> piece{};
    for (ssize_t got = 0; (got = ::read(*answer->read, piece.data(), piece.size())) > 0;)
        said.words.append(piece.data(), static_cast<std::size_t>(got));
    while (::waitpid(child, &said.status, 0) < 0 && errno == EINTR) {
    }
    return said;
}

Result<> Runtime::ask(std::vector<std::string> words, const Around& around) const {
    const std::string log = directory_ + "/words", what = words.front();
    ::unlink(log.c_str());
    std::vector<std::string> all{"--root", directory_, "--log", log};
    if (program_.ends_with("crun")) all.insert(all.end(), {"--cgroup-manager", "disabled"});
    all.insert(all.end(), words.begin(), words.end());
    const auto said = call(std::move(all), around);
    if (!said) return std::unexpected(said.error());
    if (WIFEXITED(said->status) && WEXITSTATUS(said->status) == 0) return {};
    const auto why = read_whole(log);
    return fail(Code::unavailable,
                fmt::format("{} {} {}: {}", program_, what, name_,
                            why && !why->empty() ? last_line(*why) : fmt::format("status {}, no words", said->status)),
                "read the bundle's config.json; the command and every mount must be there");
}

Result<std::string> Runtime::version() const {
    const auto said = call({"--version"}, {});
    if (!said) return std::unexpected(said.error());
    std::string line = said->words.substr(0, said->words.find('\n'));
    if (said->status == 0 && (line.starts_with("crun version ") || line.starts_with("runc version "))) return line;
    return fail(Code::unavailable, fmt::format("{} is not crun or runc: it says '{}'", program_, line),
                "install crun, or name the runtime");
}

Result<pid_t> Runtime::create(Streams streams, const LeaseCgroup& group) const {
    auto doors = group.doors(Room::tenant);
    if (!doors) return std::unexpected(doors.error());
    const std::string pid_file = directory_ + "/pid";
    if (auto ok = ask({"create", "--bundle", bundle_, "--pid-file", pid_file, name_}, {streams, std::move(*doors)});
        !ok)
        return std::unexpected(ok.error());
    const auto text = read_whole(pid_file);
    if (!text) return std::unexpected(text.error());
    pid_t pid = 0;
    std::from_chars(text->data(), text->data() + text->size(), pid);
    if (pid <= 0)
        return fail(Code::corrupt, fmt::format("{} wrote '{}' as a process number", program_, *text), "report this");
    return pid;
}

Result<> Runtime::start() const { return ask({"start", name_}, {}); }

Result<int> Runtime::run_hook(Streams streams, const LeaseCgroup& group) const {
    auto doors = group.doors(Room::tenant);
    if (!doors) return std::unexpected(doors.error());
    std::vector<std::string> words{"--root", directory_};
    if (program_.ends_with("crun")) words.insert(words.end(), {"--cgroup-manager", "disabled"});
    words.insert(words.end(), {"exec", "--process", bundle_ + "/save.json", name_});
    const auto said = call(std::move(words), {streams, std::move(*doors)});
    if (!said) return std::unexpected(said.error());
    return WIFEXITED(said->status) ? WEXITSTATUS(said->status) : 128 + WTERMSIG(said->status);
}

Result<> Runtime::remove() const {
    if (::access((directory_ + "/" + name_).c_str(), F_OK) != 0) return {};
    return ask({"delete", "--force", name_}, {});
}

}  // namespace bulkhead::container
