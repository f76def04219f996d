// What dirt attaches to: memory slices of a GPU, drives, virtual functions, the host itself. One table for all four,
// because the gate is one promise: nothing a tenant touched is available again before its wiping was verified.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "bulkhead/lifecycle/table.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead {

enum class UnitKind : std::uint8_t { memory, drive, vf, host };
constexpr auto words(UnitKind) { return std::to_array<Words>({"memory", "drive", "vf", "host"}); }

// One unit of a node. Memory is counted in the GPU's memory slices, so that dirt survives any reshaping above it; a GPU
// that cannot be cut has one slice. The host is its RAM, kernel and firmware modes together.
struct UnitId {
    UnitKind kind{};
    std::uint16_t device = 0;  // index of the GPU, drive or function; 0 for the host
    std::uint8_t slice = 0;    // memory slice; 0 elsewhere
    friend constexpr auto operator<=>(const UnitId&, const UnitId&) = default;
};
// A run of memory slices, or one device, as evidence and the log name it: "gpu3/slices 4-7", "drive0", "vf12", "host".
std::string unit_text(UnitKind kind, unsigned device, unsigned start = 0, unsigned size = 1);

namespace lifecycle {

enum class UnitState : std::uint8_t {
    dirty,        // nobody knows what is on it: a new node, a returned device, a wipe that must be done again
    sanitizing,   // a wipe is ordered, with a ticket
    available,    // wiped, verified, on record
    reserved,     // promised to a lease that is being prepared; no tenant code has touched it
    in_use,       // a tenant's
    quarantined,  // a wipe failed or could not be verified, or the device is broken
    held,         // kept as it is for a legal hold
};
constexpr auto words(UnitState) {
    return std::to_array<Words>({"dirty", "sanitizing", "available", "reserved", "in-use", "quarantined", "held"});
}

enum class UnitEvent : std::uint8_t {
    order_wipe,   // the control plane orders a wipe
    wiped,        // verified, with evidence on record
    wipe_failed,  // failed, or could not be verified
    reserve,      // a lease takes it
    start,        // tenant code may touch it from now on
    release,      // the lease lets go of it
    fault,        // the device fell off the bus, or its node lost track of it
    hold,         // legal hold
    lift,         // the hold is lifted
    repair,       // an operator says it may be wiped again
    doubt,        // its node does not remember the wipe that we do, or says that somebody else was on it
    put_back,     // the hold is lifted, of what was out of use before it, or broke under it
};
constexpr auto words(UnitEvent) {
    return std::to_array<Words>({"order-wipe", "wiped", "wipe-failed", "reserve", "start", "release", "fault", "hold",
                                 "lift", "repair", "doubt", "put-back"});
}

using UnitEdge = Edge<UnitState, UnitEvent>;
inline constexpr std::array unit_edges{
    UnitEdge{UnitState::dirty, UnitEvent::order_wipe, UnitState::sanitizing},
    UnitEdge{UnitState::sanitizing, UnitEvent::order_wipe, UnitState::sanitizing},  // again, with a new ticket
    UnitEdge{UnitState::sanitizing, UnitEvent::wiped, UnitState::available},
    UnitEdge{UnitState::sanitizing, UnitEvent::wipe_failed, UnitState::quarantined},
    UnitEdge{UnitState::available, UnitEvent::reserve, UnitState::reserved},
    UnitEdge{UnitState::reserved, UnitEvent::start, UnitState::in_use},
    // The node may have begun what it was told not to: whoever held a promise leaves dirt.
    UnitEdge{UnitState::reserved, UnitEvent::release, UnitState::dirty},
    UnitEdge{UnitState::in_use, UnitEvent::release, UnitState::dirty},
    UnitEdge{UnitState::available, UnitEvent::doubt, UnitState::dirty},
    UnitEdge{UnitState::sanitizing, UnitEvent::doubt, UnitState::dirty},
    UnitEdge{UnitState::dirty, UnitEvent::fault, UnitState::quarantined},
    UnitEdge{UnitState::sanitizing, UnitEvent::fault, UnitState::quarantined},
    UnitEdge{UnitState::available, UnitEvent::fault, UnitState::quarantined},
    UnitEdge{UnitState::reserved, UnitEvent::fault, UnitState::quarantined},
    UnitEdge{UnitState::in_use, UnitEvent::fault, UnitState::quarantined},
    UnitEdge{UnitState::dirty, UnitEvent::hold, UnitState::held},
    UnitEdge{UnitState::quarantined, UnitEvent::hold, UnitState::held},
    UnitEdge{UnitState::held, UnitEvent::lift, UnitState::dirty},
    // A hold is no repair: what nobody has looked at stays out of use.
    UnitEdge{UnitState::held, UnitEvent::put_back, UnitState::quarantined},
    UnitEdge{UnitState::quarantined, UnitEvent::repair, UnitState::dirty},
};

static_assert(deterministic(unit_edges));
static_assert(only_reached_from(unit_edges, UnitState::available, UnitState::sanitizing),
              "nothing becomes available except out of sanitising");
static_assert(only_entered_on(unit_edges, UnitState::available, UnitEvent::wiped),
              "and only by a wipe that was verified");
static_assert(only_reached_from(unit_edges, UnitState::reserved, UnitState::available),
              "only what is available is promised to anyone");
static_assert(only_reached_from(unit_edges, UnitState::in_use, UnitState::reserved));
static_assert(only_entered_on(unit_edges, UnitState::held, UnitEvent::hold));
static_assert(always_recoverable(unit_edges, UnitState::available));

// What the public reads.
constexpr CleanState clean_state(UnitState state) {
    switch (state) {
        case UnitState::available:
            return CleanState::available;
        case UnitState::reserved:
        case UnitState::in_use:
            return CleanState::in_use;
        case UnitState::dirty:
        case UnitState::sanitizing:
            return CleanState::sanitizing;
        case UnitState::quarantined:
        case UnitState::held:
            return CleanState::quarantined;
    }
    return CleanState::quarantined;
}

}  // namespace lifecycle
}  // namespace bulkhead
