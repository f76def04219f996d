#include "bulkhead/agent/hands.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <limits>

#include "bulkhead/hw/program/environment.hpp"

namespace bulkhead::agent {

namespace {

// After the fork: system calls alone. A session of its own, so that an interrupt from the keyboard reaches the agent
// only, which then closes the line.
[[noreturn]] void become_hands(int line, char* const* arguments) {
    ::setsid();
    if (::dup2(line, Hands::line_number) < 0) ::_exit(126);
    ::syscall(SYS_close_range, Hands::line_number + 1, std::numeric_limits<unsigned>::max(), 0);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execv(arguments[0], arguments);
    ::_exit(127);
}

}  // namespace

Result<std::unique_ptr<Hands>> Hands::start(std::vector<std::string> command, const GiveUp& give_up) {
    auto lines = make_hands_lines();
    if (!lines) return std::unexpected(lines.error());
    // Not the number it is about to get: a descriptor that is copied onto itself would still be closed by exec.
    container::Fd theirs{::fcntl(*lines->hands, F_DUPFD_CLOEXEC, line_number + 1)};
    if (!theirs) return container::cannot("open", "a line to the hands", "raise the limit of open files");
    lines->hands.close();
    const std::vector<char*> arguments = program::pointers_to(command);
    const pid_t process = ::fork();
    if (process < 0) return container::cannot("start", "the agent's hands", "see `ulimit -u`");
    if (process == 0) become_hands(*theirs, arguments.data());
    theirs.close();  // or the line would never seem closed from their side
    return meet(std::move(lines->agent), process, give_up);
}

Result<std::unique_ptr<Hands>> Hands::meet(container::Fd line, pid_t process, const GiveUp& give_up) {
    std::unique_ptr<Hands> hands{new Hands{std::move(line), process}};
    if (const auto sent = hands->line_.send(hands::to_bytes(hands::Request{hands::Meet{}})); !sent)
        return std::unexpected(hands->gone());
    while (give_up && !hands->line_.has_news(std::chrono::milliseconds{100}))
        if (give_up()) return nullptr;
    auto met = hands->answer<hands::Met>();
    if (!met) return std::unexpected(met.error());
    hands->met_ = *std::move(met);
    return hands;
}

Hands::~Hands() {
    line_.close();
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
}

// Why nobody answers. They are our child, so that we learn how they ended.
Error Hands::gone() {
    int status = 0;
    std::string how = "nobody knows how";
    if (process_ > 0 && ::waitpid(process_, &status, 0) == process_) {
        process_ = 0;
        how = WIFSIGNALED(status) ? fmt::format("killed by signal {}", WTERMSIG(status))
                                  : fmt::format("with status {}", WEXITSTATUS(status));
    }
    return {Code::unavailable, fmt::format("the agent's hands, which do the work on this node, have ended: {}", how),
            "start the agent again, which takes up its journal; `dmesg` tells whether the kernel killed them"};
}

template <class Wanted>
Result<Wanted> Hands::ask(const hands::Request& request) {
    if (const auto sent = line_.send(hands::to_bytes(request)); !sent) return std::unexpected(gone());
    return answer<Wanted>();
}

template <class Wanted>
Result<Wanted> Hands::answer() {
    // `invalid` is what the hands say of one operation; a line that cannot be understood is another matter.
    const auto unheard = [](Error why) {
        if (why.code == Code::invalid) why.code = Code::corrupt;
        return std::unexpected(std::move(why));
    };
    const auto heard = line_.receive(hands::answer_bytes_max);
    if (!heard) return unheard(heard.error());
    if (!*heard) return std::unexpected(gone());
    auto answer = hands::read_answer(**heard);
    if (!answer) return unheard(answer.error());
    if (auto* error = std::get_if<Error>(&*answer)) return std::unexpected(std::move(*error));
    if (auto* wanted = std::get_if<Wanted>(&*answer)) return std::move(*wanted);
    return fail(Code::corrupt, "the agent's hands have answered another question than the one they were asked",
                "start the agent again");
}

Result<GpuNodeStatus> Hands::inventory() { return ask<GpuNodeStatus>(hands::TakeStock{}); }

Result<> Hands::begin(Instant now, const Operation& operation) {
    const auto begun = ask<hands::Begun>(hands::Begin{now, operation});
    if (!begun) return std::unexpected(begun.error());
    return {};
}

Result<OutputPiece> Hands::output(const OutputPlace& place) { return ask<OutputPiece>(hands::ReadOutput{place}); }

Result<std::optional<Telemetry>> Hands::telemetry() {
    auto measures = ask<hands::Measures>(hands::ReadTelemetry{});
    if (!measures) return std::unexpected(measures.error());
    return std::move(measures->newest);
}

Result<> Hands::test_fabric(const FabricTestOrder& order) {
    if (auto begun = ask<hands::Begun>(hands::AttackFences{order}); !begun) return std::unexpected(begun.error());
    return {};
}

Result<Hardware::News> Hands::poll(Instant now) {
    auto polled = ask<hands::Polled>(hands::Poll{now});
    if (!polled) return std::unexpected(polled.error());
    met_.boot = std::move(polled->boot);
    due_ = polled->due;
    return std::move(polled->news);
}

}  // namespace bulkhead::agent
