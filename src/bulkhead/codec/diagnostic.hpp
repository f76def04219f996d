// What is wrong with a text, and where: printed as file:line:column, all of them, never only the first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

struct Position {
    std::string file;
    int line = 0, column = 0;  // counted from 1; 0 when the text is missing altogether
    friend bool operator==(const Position&, const Position&) = default;
};

struct Diagnostic {
    Position where;
    std::string what;
    std::string remedy;
    friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

// "fleet.yaml:12:7: unknown field \"mechansim\" in spec.gpu\n  try: mechanism\n"
std::string print(const Diagnostic& diagnostic);

// What somebody wrote, fit for one line of a message: at most 60 bytes, control characters as '?'.
std::string shortened(std::string_view written);

}  // namespace bulkhead
