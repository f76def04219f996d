// The name a person most likely meant: the known name with the fewest slips (insert, delete, replace, swap), if few.
#pragma once

#include <span>
#include <string_view>

namespace bulkhead {

// Empty when nothing is near enough to be worth saying.
std::string_view nearest(std::string_view typed, std::span<const std::string_view> known);

}  // namespace bulkhead
