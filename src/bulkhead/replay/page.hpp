// What all pages of this room have in common: one file that needs nothing else.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead::replay {

std::string escaped(std::string_view text);

// Up to and with the paragraph under the title.
std::string page_head(std::string_view title, std::string_view about);

}  // namespace bulkhead::replay
