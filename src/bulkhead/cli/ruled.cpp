#include "bulkhead/cli/ruled.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <ostream>

namespace bulkhead::cli {

Ruled::Ruled(std::vector<std::string> heading, std::size_t names) : names_{names} { add(std::move(heading)); }

void Ruled::add(std::vector<std::string> row) {
    widths_.resize(std::max(widths_.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
    rows_.push_back(std::move(row));
}

void Ruled::print(std::ostream& out) const {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        print(out, rows_[r]);
        if (r > 0) continue;
        std::vector<std::string> rule;
        rule.reserve(widths_.size());
        for (const std::size_t width : widths_) rule.emplace_back(width, '-');
        print(out, rule);
    }
}

void Ruled::print(std::ostream& out, const std::vector<std::string>& row) const {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
        line += i < names_ ? fmt::format("{:<{}} ", row[i], widths_[i]) : fmt::format("{:>{}} ", row[i], widths_[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
}

}  // namespace bulkhead::cli
