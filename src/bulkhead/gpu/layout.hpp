// Which sets of instances a board can hold at once, and for a set it cannot hold, exactly why not. A set is counts
// without places: it is valid when some choice of places keeps every rule, in whatever order they would be created.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bulkhead/base/reason.hpp"
#include "bulkhead/gpu/cut.hpp"
#include "bulkhead/gpu/geometry.hpp"
#include "bulkhead/gpu/profile_name.hpp"

namespace bulkhead::gpu {

struct Count {
    ProfileChoice what;
    std::uint64_t count{};
};

struct Seat {  // a GPU instance with its place
    std::size_t profile{};
    unsigned start{};
    Cut compute;
};

struct LayoutVerdict {
    bool valid = false;
    std::vector<Reason> reasons;  // every rule that objects; empty when valid
    std::vector<Reason> notes;    // driver branches it needs
    std::vector<Seat> seats;      // one arrangement, when valid: the one with the best value left
};

// Several counts of compute instances of one profile share GPU instances: three 1c.3g.40gb need one 3g.40gb.
LayoutVerdict check_layout(const Geometry& geometry, std::span<const Count> counts);

// A set as counts per profile, in the order of Board::profiles.
using Multiset = std::vector<std::uint8_t>;

// Every rule that objects to the set however it is arranged; nothing when the board can hold it.
std::vector<Reason> objections_to_set(const Geometry& geometry, const Multiset& set);

// Which profiles sets are made of. "+me" and its kin multiply the sets without new shapes; NVIDIA's own lists leave the
// double-memory 1g out as well.
enum class Include : std::uint8_t { plain, double_memory, all };

// The sets to which nothing can be added, however they are arranged; largest profiles first.
std::vector<Multiset> maximal_sets(const Board& board, Include include);

// "2 x 1g.10gb + 3g.40gb", largest first.
std::string print(const Board& board, std::span<const std::uint8_t> set);

}  // namespace bulkhead::gpu
