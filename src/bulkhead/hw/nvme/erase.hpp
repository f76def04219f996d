// Erasing one drive: looks at what it says of itself, plans (node/erase_plan.hpp), remembers what is there by keyed
// hashes, sends the commands, waits for what goes on in the background, and has the controller forget; then reads it
// back. Nothing is decided here: a method that fails has failed, and no other is tried in its place.
//
// Sanitize survives a loss of power and goes on by itself. One that is under way when a drive is looked at is waited
// for, and counts when its log names the very command that was planned, says that nothing was written since, and the
// drive reads as empty: what it held before is no longer known. Otherwise the command is sent again.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bulkhead/hw/nvme/identify.hpp"
#include "bulkhead/hw/nvme/sanitize_log.hpp"
#include "bulkhead/hw/nvme/transport.hpp"
#include "bulkhead/node/erase_plan.hpp"
#include "bulkhead/node/erase_sample.hpp"
#include "bulkhead/node/erase_verdict.hpp"

namespace bulkhead::nvme {

struct EraseClock {
    std::function<std::chrono::steady_clock::time_point()> now = [] { return std::chrono::steady_clock::now(); };
    std::function<void(std::chrono::milliseconds)> sleep;  // empty: as long as it says
    // True: whoever asked is going. What is under way is given up between two commands, reads or writes; a command that
    // the kernel has passed on is not called back. Empty: nobody is.
    std::function<bool()> stop = {};
    bool stopped() const { return stop && stop(); }
};

// All of an erase ends by then: whoever ordered it (node/executor.hpp) waits for six hours.
inline constexpr std::chrono::seconds erase_at_most{5 * 3600};

struct DriveFacts {
    Controller controller;
    DriveClaims claims;
    std::map<std::uint32_t, NamespacePage> pages;  // of every namespace, attached or not
    std::uint64_t bytes() const;
};
Result<DriveFacts> look_at(Transport& drive);
Result<SanitizeLog> read_sanitize_log(Transport& drive);

struct EraseSettings {
    ErasePolicy policy;
    std::size_t samples = 2000;  // at random, of each namespace, before; and as many others after
};
struct EraseSecret {  // of one wipe; from the system's randomness, so that no drive foresees where it is looked at
    std::string key;
    std::uint64_t seed = 0;
};

struct Erasure {
    bool done = false;
    std::string why;         // not
    bool untouched = false;  // of one that is not: no command was sent that changes anything
    DriveFacts facts;
    EraseMethod method{};
    bool planned = false;  // `method` and `skipped` say something
    std::vector<SkippedMethod> skipped;
    std::vector<std::uint32_t> covers;
    std::string command, status;  // as sent, and as answered
    BeforeImages before{""};
};
// Whoever calls has seen that nobody uses the drive. Its namespaces stay held by `drive`, until that is gone.
Erasure erase(Transport& drive, const EraseSettings& settings, const EraseSecret& secret, const EraseClock& clock);

// Reads the places that were looked at before, both ends, and as many others that the seed chooses.
EraseVerdict verify(Transport& drive, const Erasure& erasure, std::size_t samples, std::uint64_t seed,
                    const EraseClock& clock = {});
// "2010 places looked at before, 1990 of them not empty, ..."; and how likely it is that all places at random which
// could have told would have missed a hundredth of the namespace that was looked at least.
std::string print_samples(const Erasure& erasure, const EraseVerdict& verdict);

}  // namespace bulkhead::nvme
