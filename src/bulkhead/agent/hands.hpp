// The privileged half of an agent, as the other half sees it: hardware in another process, which is root, holds no
// socket but the line to us, and does the operations of node/operation.hpp and nothing else. docs/threat-model.md lists
// what each of them takes root for.
//
//     agent:  auto hands = Hands::start({"/proc/self/exe", "agent-hands", ...}), before any thread and any network;
//             then gives up root for itself (line_account.hpp, line_calls.hpp)
//     hands:  serve_hands(line, hardware), until the line is closed
//
// When they die, every later call is `unavailable`, and the runner ends the agent; the next one takes up the journal.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bulkhead/agent/hands_line.hpp"
#include "bulkhead/agent/hands_message.hpp"
#include "bulkhead/agent/hardware.hpp"

namespace bulkhead::agent {

class Hands final : public Hardware {
public:
    static constexpr int line_number = 3;  // the descriptor that they find the line at

    // Asked now and then while one waits; true: whoever started them does not want them any more.
    using GiveUp = std::function<bool()>;

    // The program and its arguments. Returns when the hardware is open, or says why it is not. That can take as long as
    // hands of an earlier agent take to finish. None: it was given up first, and they end.
    static Result<std::unique_ptr<Hands>> start(std::vector<std::string> command, const GiveUp& give_up = {});
    // Somebody who serves already: a process, or a thread of a test (0).
    static Result<std::unique_ptr<Hands>> meet(container::Fd line, pid_t process, const GiveUp& give_up = {});
    // They finish what is under way.
    ~Hands() override;

    Result<GpuNodeStatus> inventory() override;
    std::string boot_id() override { return met_.boot; }
    Grade grade() const override { return met_.grade; }
    Result<> begin(Instant now, const Operation& operation) override;
    Result<News> poll(Instant now) override;
    Result<OutputPiece> output(const OutputPlace& place) override;
    Result<std::optional<Telemetry>> telemetry() override;
    Result<> test_fabric(const FabricTestOrder& order) override;
    std::optional<Instant> next_due() const override { return due_; }

    bool have_network() const { return met_.has_network; }

private:
    Hands(container::Fd line, pid_t process) : line_{std::move(line)}, process_{process} {}
    template <class Wanted>
    Result<Wanted> ask(const hands::Request& request);
    template <class Wanted>
    Result<Wanted> answer();
    Error gone();

    HandsLine line_;
    pid_t process_ = 0;
    hands::Met met_;
    std::optional<Instant> due_;
};

// The other side: answers until the line is closed; an error means that what came was no request, and ends them too.
Result<> serve_hands(HandsLine& line, Hardware& hardware, bool has_network);
// For hands that have no hardware to serve: whoever meets them is told why.
void explain_no_hands(HandsLine& line, const Error& why);

}  // namespace bulkhead::agent
