// Text for a terminal: paint where colour is wanted, columns as wide as their widest cell, sentences broken at blanks.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::cli {

inline constexpr std::string_view bold = "\033[1m", green = "\033[32m", yellow = "\033[33m", red = "\033[31m",
                                  dim = "\033[2m";
inline constexpr std::size_t terminal_width = 112;

// As it is when there is no colour, or no paint.
std::string painted(std::string_view text, std::string_view paint, bool colour);

struct Cell {
    std::string text;
    std::string_view paint = {};  // empty: as it is
};
using Row = std::vector<Cell>;

// Paint does not count towards a column's width.
void print_table(std::ostream& out, const std::vector<Row>& rows, std::size_t gap, bool colour);

// A sentence broken at blanks, its further lines under its first.
std::string wrapped(std::string_view text, std::size_t indent);

// "a, b, c"; "none" for nothing.
std::string joined(const std::vector<std::string>& list);

}  // namespace bulkhead::cli
