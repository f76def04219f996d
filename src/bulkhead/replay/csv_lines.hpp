// The lines of a CSV file, cut at commas. The first line names the columns; nothing in these files is quoted.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::replay {

class CsvLines {
public:
    // `name` is for messages: "pods.csv:17: ...".
    CsvLines(std::string_view name, std::string_view text) : name_{name}, rest_{text} {}

    static constexpr std::size_t absent = SIZE_MAX;

    // Where the columns are. From `optional_from` on they may be absent.
    template <std::size_t N>
    Result<std::array<std::size_t, N>> columns(const std::array<std::string_view, N>& wanted,
                                               std::size_t optional_from);

    bool next();  // false: that was the last
    std::span<const std::string_view> cells() const { return cells_; }
    std::string_view cell(std::size_t column) const {
        return column < cells_.size() ? cells_[column] : std::string_view{};
    }
    Result<std::int64_t> number(std::size_t column, std::string_view called, std::int64_t least,
                                std::int64_t most) const;
    std::unexpected<Error> wrong(std::string what, std::string remedy) const;

private:
    std::string_view name_, rest_, line_;
    std::vector<std::string_view> cells_;
    std::size_t number_ = 0;
};

template <std::size_t N>
Result<std::array<std::size_t, N>> CsvLines::columns(const std::array<std::string_view, N>& wanted,
                                                     std::size_t optional_from) {
    if (!next()) return fail(Code::invalid, fmt::format("{} is empty", name_), "a CSV file with a header line");
    std::array<std::size_t, N> at{};
    for (std::size_t i = 0; i < N; ++i) {
        const auto found = std::ranges::find(cells_, wanted[i]);
        at[i] = found == cells_.end() ? absent : static_cast<std::size_t>(found - cells_.begin());
        if (at[i] == absent && i < optional_from)
            return wrong(fmt::format("there is no column {}", wanted[i]),
                         fmt::format("the columns {}", fmt::join(std::span{wanted}.first(optional_from), ", ")));
    }
    return at;
}

}  // namespace bulkhead::replay
