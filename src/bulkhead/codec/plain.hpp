// What a plain (unquoted) scalar looks like to a YAML reader. Core schema first; and because the same files also go
// through kubectl, whose reader still knows YAML 1.1, its words for true and false and its numbers count too.
#pragma once

#include <cstdint>
#include <string_view>

namespace bulkhead {

enum class PlainType : std::uint8_t { null, truth, number, text };
PlainType plain_type(std::string_view text);

// Whether text can be written without quotes and be read back as that text.
bool can_stand_plain(std::string_view text);

}  // namespace bulkhead
