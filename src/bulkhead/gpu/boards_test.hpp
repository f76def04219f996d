// A board that the tables hold, by its id.
#pragma once

#include <string_view>

#include "bulkhead/gpu/board.hpp"

namespace bulkhead::gpu {

inline const Board& board(std::string_view id) { return *find_board(id).value(); }

}  // namespace bulkhead::gpu
