// The lists people type: "1g.10gb@0,1g.10gb@1,3g.40gb@4" for what exists, "2x1g.10gb,3g.40gb" for what is wanted,
// "1g.10gb=5,3g.40gb=1" for what is expected. A profile may also be a resource name or "id:19".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/gpu/geometry.hpp"
#include "bulkhead/gpu/plan.hpp"

namespace bulkhead::gpu {

struct ListItem {
    unsigned count = 1;
    std::string profile;            // as typed
    std::optional<unsigned> start;  // after '@'
    friend bool operator==(const ListItem&, const ListItem&) = default;
};

// The form only; what a profile means is asked of a board.
Result<std::vector<ListItem>> parse_list(std::string_view text);
std::string print(const std::vector<ListItem>& list);

// What exists, in use and idle. Every start must be given; entries of one GPU instance are its compute instances.
Result<std::vector<Instance>> read_existing(const Board& board, std::string_view in_use, std::string_view idle);

Result<std::vector<Wanted>> read_wanted(const Board& board, std::string_view text);

// A profile that is not listed is not expected at all.
Result<Weights> read_weights(const Board& board, std::string_view text);

}  // namespace bulkhead::gpu
