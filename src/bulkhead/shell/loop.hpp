// The commit loop: one thread that owns the core and the store. It takes what is waiting, applies it in order, makes
// all that follows durable in one transaction, and only then tells anyone: readers, agents, the log's publisher,
// callers. When a commit fails the core is dropped and built anew from the disk; until a write has worked again,
// nothing changes and everything can still be read.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/core/core.hpp"
#include "bulkhead/shell/log.hpp"
#include "bulkhead/store/store.hpp"

namespace bulkhead::shell {

// Told what is durable, by the loop's thread and in the order of commits. Must not wait for anything.
class Follower {
public:
    virtual ~Follower() = default;
    struct Reign {
        std::int64_t epoch = 0;
        std::int64_t log_size = 0;
        std::span<const Row> rows;  // all there are
    };
    virtual void loaded(const Reign&) {}  // at the start, and whenever the core was built anew
    virtual void committed(const Batch&) {}
    virtual void allowed(const Effects&) {}  // orders, welcomes and acknowledgements may leave; answers are not here
};

enum class LoopState : std::uint8_t {
    running,
    read_only,  // the disk refuses writes; tried again until it does not
    fenced,     // another control plane has taken over: for good
    stopped,
};
constexpr auto words(LoopState) {
    return std::to_array<std::string_view>({"running", "read-only", "fenced", "stopped"});
}

// Who asks, for the log, and what they may do.
struct Asker {
    Asker(std::string who, Rights may) : actor{std::move(who)}, rights{std::move(may)} {}
    Asker(std::string own) : actor{std::move(own)} {}  // the server itself
    Asker(const char* own) : actor{own} {}
    std::string actor;
    Rights rights = Rights::everything();
};

class Loop {
public:
    struct Settings {
        store::Options store;
        CoreSettings core;
        Duration tick{1000};
        Duration retry{1000};                         // between attempts to write again
        std::size_t queue = 4096;                     // events waiting; more are refused
        std::size_t batch = 512;                      // events in one transaction at most
        std::function<Instant()> clock;               // empty: the machine's
        std::function<void(const Error&)> on_fenced;  // once, by the loop's thread
    };
    struct Meter {  // of the whole life; read by any thread
        std::atomic<std::uint64_t> events{0}, refused{0}, commits{0}, failed_commits{0}, log_size{0}, epoch{0};
        // How long commits took: counts of those not above each bound, in microseconds, and the sum.
        static constexpr std::array<std::int64_t, 10> bounds_us{100,   250,    500,    1'000,   2'500,
                                                                5'000, 10'000, 50'000, 250'000, 1'000'000};
        std::array<std::atomic<std::uint64_t>, bounds_us.size() + 1> commit_us{};
        std::atomic<std::uint64_t> commit_us_sum{0};
    };

    // Opens the store unless it is handed in, starts a reign, loads the core, and runs. The followers outlive the loop.
    static Result<std::unique_ptr<Loop>> start(Settings settings, std::vector<Follower*> followers, Log& log,
                                               std::optional<store::Store> opened = std::nullopt);
    ~Loop();  // stops

    using Done = std::function<void(Answer)>;  // by the loop's thread; must not wait

    // Rows that are the shell's own, made durable with the command unless that is refused.
    // `exhausted` when too much is waiting, `unavailable` while nothing can be written; then `done` is not called.
    Result<> submit(Asker asker, decltype(Command::what) what, Done done, std::vector<Row> also = {});
    // Something from a node. Refused likewise; a node says everything again until it is acknowledged.
    Result<> tell(Event event);
    // Waits for the answer: for the start, and for tests.
    Answer ask(Asker asker, decltype(Command::what) what);

    LoopState state() const;
    std::size_t waiting() const;
    const Meter& meter() const;
    void stop();  // what was taken is committed and answered; what waits is refused

private:
    Result<> enqueue(Event event, Done done, std::vector<Row> also);

    struct State;
    explicit Loop(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace bulkhead::shell
