// How to give the wanted instances a place on one GPU: what to destroy, what to create, where, in which order. An
// instance in use is never touched; an idle one of the wanted profile is handed over as it is. Of all ways, the one
// with the fewest GPU instances destroyed, then the fewest memory slices destroyed, then the highest value left, then
// the fewest created. When there is none, the one instance in use that would have to move, or why no one move helps.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "bulkhead/base/reason.hpp"
#include "bulkhead/gpu/cut.hpp"
#include "bulkhead/gpu/geometry.hpp"
#include "bulkhead/gpu/profile_name.hpp"

namespace bulkhead::gpu {

// A GPU instance that exists. It is in use when any of its compute instances is.
struct Instance {
    std::size_t profile{};
    unsigned start{};
    bool in_use = false;
    Cut compute;       // all its compute instances
    Cut compute_idle;  // those of them that nobody uses; all of them when the instance is idle
};

struct Wanted {
    ProfileChoice what;
    std::optional<unsigned> start;  // only there, when given
};

enum class Action : std::uint8_t {
    destroy_compute_instances,  // all of them, first: NVML refuses to destroy a GPU instance that still has any
    destroy_gpu_instance,
    create_gpu_instance,
    create_compute_instance,
};

struct Step {
    Action action{};
    std::size_t profile{};
    unsigned start{};   // of the GPU instance, in memory slices
    Placement compute;  // of the compute instance, in compute slices of its GPU instance
    friend bool operator==(const Step&, const Step&) = default;
};

// Where one wanted instance will be, in the order they were asked for.
struct Grant {
    ProfileChoice what;
    unsigned start{};
    bool existed = false;  // nothing has to be done for it
};

struct Move {
    std::size_t profile{};
    unsigned from{}, to{};
    // Both places at once are possible unless only one such instance may exist; then it stops before it starts anew.
    bool stop_first = false;
};

struct Plan {
    std::vector<Step> steps;
    std::vector<Grant> grants;
    unsigned destroyed{}, slices_destroyed{}, created{};  // GPU instances
    Occupancy after;
    Value value;
};

struct Refusal {
    std::vector<Reason> reasons;  // why it cannot be done as things are
    std::optional<Move> move;     // the one instance in use whose move would make it possible
    Plan with_move;               // what is then done, besides the move; empty without one
};

// The instances must be a state the board can be in; `check_existing` says whether they are.
std::expected<Plan, Refusal> plan(const Geometry& geometry, std::span<const Instance> existing,
                                  std::span<const Wanted> wanted);

// What is taken by these instances.
Occupancy occupied(const Board& board, std::span<const Instance> instances);

// Instances that cannot coexist (overlap, wrong start, engines twice): a mistake in the question, not an answer.
Result<> check_existing(const Board& board, std::span<const Instance> existing);

}  // namespace bulkhead::gpu
