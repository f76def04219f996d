#include "bulkhead/replay/csv_lines.hpp"

#include <charconv>

#include "bulkhead/codec/diagnostic.hpp"

namespace bulkhead::replay {

namespace {

constexpr std::size_t most_cells = 64;

}  // namespace

bool CsvLines::next() {
    do {
        if (rest_.empty()) return false;
        const std::size_t end = std::min(rest_.find('\n'), rest_.size());
        line_ = rest_.substr(0, end);
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        if (line_.ends_with('\r')) line_.remove_suffix(1);
        ++number_;
    } while (line_.empty());
    cells_.clear();
    for (std::string_view left = line_;;) {
        const std::size_t comma = left.find(',');
        cells_.push_back(left.substr(0, comma));
        if (comma == std::string_view::npos || cells_.size() == most_cells) return true;
        left.remove_prefix(comma + 1);
    }
}

std::unexpected<Error> CsvLines::wrong(std::string what, std::string remedy) const {
    return fail(Code::invalid, fmt::format("{}:{}: {}", name_, number_, what), std::move(remedy));
}

Result<std::int64_t> CsvLines::number(std::size_t column, std::string_view called, std::int64_t least,
                                      std::int64_t most) const {
    const std::string_view text = cell(column);
    std::int64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || value < least || value > most)
        return wrong(fmt::format("{} is \"{}\"", called, shortened(text)),
                     fmt::format("a whole number from {} to {}", least, most));
    return value;
}

}  // namespace bulkhead::replay
