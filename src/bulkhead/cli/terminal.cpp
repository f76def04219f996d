#include "bulkhead/cli/terminal.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <ostream>

namespace bulkhead::cli {

std::string painted(std::string_view text, std::string_view paint, bool colour) {
    constexpr std::string_view plain = "\033[0m";
    return colour && !paint.empty() ? fmt::format("{}{}{}", paint, text, plain) : std::string{text};
}

void print_table(std::ostream& out, const std::vector<Row>& rows, std::size_t gap, bool colour) {
    std::vector<std::size_t> widths;
    for (const Row& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].text.size());
    }
    for (const Row& row : rows) {
        std::string line = "  ", blanks;
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (!row[i].text.empty()) line += blanks + painted(row[i].text, row[i].paint, colour);
            if (!row[i].text.empty()) blanks.clear();
            blanks.append(widths[i] + gap - row[i].text.size(), ' ');
        }
        out << line << '\n';
    }
}

std::string wrapped(std::string_view text, std::size_t indent) {
    std::string out;
    std::size_t column = indent;
    while (!text.empty()) {
        const std::size_t blank = std::min(text.find(' '), text.size());
        if (column > indent && column + 1 + blank > terminal_width) {
            out += '\n' + std::string(indent, ' ');
            column = indent;
        } else if (column > indent) {
            out += ' ';
            ++column;
        }
        out += text.substr(0, blank);
        column += blank;
        text.remove_prefix(std::min(blank + 1, text.size()));
    }
    return out;
}

std::string joined(const std::vector<std::string>& list) {
    std::string out;
    for (const std::string& item : list) out += (out.empty() ? "" : ", ") + item;
    return out.empty() ? "none" : out;
}

}  // namespace bulkhead::cli
