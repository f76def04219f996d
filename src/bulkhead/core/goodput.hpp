// What came of the GPU time of a lease that is closed, as far as anybody knows.
//
// Goodput is GPU time in which work ran that was not lost later: what is `kept` here. Whether the work was any good,
// and how busy it kept its GPUs, is not in it: nobody told the control plane.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bulkhead/evidence/record.hpp"
#include "bulkhead/model/lease.hpp"

namespace bulkhead {

enum class Fate : std::uint8_t {
    kept,       // the work ended with status 0, was deleted by its owner, or was saved before it was stopped
    failed,     // its command ended with another status
    lost,       // it was stopped, to be run again, since its work was last saved
    preparing,  // bound and not yet active: slices are cut, nothing of the tenant's runs
    ending,     // saving, stopping, wiping
};
constexpr auto words(Fate) { return std::to_array<Words>({"kept", "failed", "lost", "preparing", "ending"}); }

// A measurement follows from the control plane's own clock and from what nodes reported. An estimate leans on how often
// the work says it saves itself, or on nothing: then all since its start counts as lost, which is the most it can be.
enum class Knowledge : std::uint8_t { measurement, estimate };
constexpr auto words(Knowledge) { return std::to_array<Words>({"measurement", "estimate"}); }

struct GpuTime {
    Fate fate{};
    Knowledge kind{};
    std::int64_t unit_ms = 0;  // Gpus::units times milliseconds: exact

    std::int64_t micros() const { return unit_ms / (gpu_unit / 1000); }  // millionths of a GPU-second, rounded down

    friend bool operator==(const GpuTime&, const GpuTime&) = default;
};
// All of it, from bound to closed; the parts add up. `closing` is the log's lease-closed record of this lease.
std::vector<GpuTime> divide_time(const GpuLeaseStatus& status, const evidence::Record& closing);

// Why a lease ended, by the words that the core gives as its reason.
enum class EndCause : std::uint8_t {
    owner,      // deleted, or its command ended
    reclaimed,  // somebody is owed what was lent
    preempted,  // work of the same tenant with a higher priority
    moved,      // it goes on in another place: the capacity around it was needed as a whole
    drained,    // an operator closed the node
    policy,     // the tenant was frozen, or trust was withdrawn
    device,     // it failed, or was exchanged
    node,       // it fell silent, was removed, or could not prepare or keep it
    other,
};
constexpr auto words(EndCause) {
    return std::to_array<Words>(
        {"owner", "reclaimed", "preempted", "moved", "drained", "policy", "device", "node", "other"});
}
EndCause cause_of_end(std::string_view why);

}  // namespace bulkhead
