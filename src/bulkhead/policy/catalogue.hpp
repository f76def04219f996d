// The catalogue: for each way to divide a GPU and each tier, what it keeps apart, what it leaves open, what it costs,
// and how each claim is known. Plain data; the compiler reads contracts out of it, `bulkhead catalogue` prints it.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead {

// How well something is kept apart. Ordered: a larger value is stronger.
enum class Strength : std::uint8_t {
    none,  // shared, and felt
    soft,  // bounded by software or by convention; gives way under load or malice
    hard,  // partitioned by hardware or by sole ownership
};
constexpr auto words(Strength) { return std::to_array<Words>({"none", "soft", "hard"}); }

struct Claim {
    Strength strength = Strength::none;
    Grade grade = Grade::assumed;
    std::string_view says;    // one sentence an auditor can hold us to
    std::string_view source;  // where it is written or measured
};

inline constexpr std::size_t aspect_count = words(Aspect{}).size();

// One way to divide a GPU; with `fraction`, a fraction packed over it.
struct MechanismEntry {
    Mechanism mechanism{};
    bool fraction = false;
    std::string_view title;                    // "fraction over MPS"
    std::array<Claim, aspect_count> claims{};  // between neighbours on one GPU, by Aspect
    Slo strongest_slo = Slo::soft;
    std::string_view fault_domain;     // who goes down together
    std::string_view overhead;         // what it costs while it runs
    std::string_view reconfiguration;  // what it costs to change
    std::string_view licence;          // what must be bought, or "none"
    std::string_view best_for;
};

// What stands between tenants and the machine, per tier.
enum class Wall : std::uint8_t {
    host_kernel,
    gpu_driver,
    device_nodes,
    host_memory,
    dma,
    operator_access,
    metrics,
};
constexpr auto words(Wall) {
    return std::to_array<Words>(
        {"host-kernel", "gpu-driver", "device-nodes", "host-memory", "dma", "operator-access", "metrics"});
}
inline constexpr std::size_t wall_count = words(Wall{}).size();

struct TierEntry {
    Tier tier{};
    std::string_view title;
    std::array<Claim, wall_count> claims{};  // by Wall
    std::string_view overhead;
    std::string_view trusted_base;  // what must hold for the tier to hold
    std::string_view best_for;
};

// Whether a mechanism and a tier go together at all, and how.
enum class Fit : std::uint8_t {
    yes,      // tenants in this tier may share one GPU this way
    own_gpu,  // the whole GPU goes to one tenant's VM, which divides it inside: leased whole, never a part of it
    no,       // does not exist, or no shipping software does it
};
constexpr auto words(Fit) { return std::to_array<Words>({"yes", "own-gpu", "no"}); }

struct PairEntry {
    Fit fit = Fit::no;
    Grade grade = Grade::assumed;
    std::string_view says;
    std::string_view source;
};

// A statement found in print that hardware or a vendor's own documents contradict.
struct Correction {
    std::string_view claim;
    std::string_view truth;
    Grade grade = Grade::assumed;
    std::string_view source;
};

std::span<const MechanismEntry> mechanisms();  // every mechanism, then a fraction over each that can back one
std::span<const TierEntry> tiers();
std::span<const Correction> corrections();

// A fraction over `whole` does not exist; asking for it is a bug.
const MechanismEntry& entry_of(Mechanism mechanism, bool fraction = false);
const TierEntry& entry_of(Tier tier);
const PairEntry& pair_of(Mechanism mechanism, Tier tier);

constexpr bool can_back_a_fraction(Mechanism mechanism) { return mechanism != Mechanism::whole; }

}  // namespace bulkhead
