#include "bulkhead/sched/hole_prices.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace bulkhead::sched {

namespace {

constexpr std::size_t whole = 1000;
constexpr std::size_t most_sizes = 32;  // the ones asked for most; others fit where these would
constexpr double tiny = 1e-9;

using Pattern = std::vector<double>;  // how many of each size one GPU takes

// Prices x that make the demand worth most while no pattern is worth more than one GPU: the simplex method on a dense
// table. One variable for each size, one row for each pattern; all rows begin feasible.
std::vector<double> best_prices(const std::vector<Pattern>& patterns, const std::vector<HolePrices::Size>& sizes) {
    const std::size_t rows = patterns.size(), own = sizes.size(), width = own + rows + 1;
    std::vector<std::vector<double>> table(rows + 1, std::vector<double>(width));
    std::vector<std::size_t> basis(rows);
    for (std::size_t r = 0; r < rows; ++r) {
        std::ranges::copy(patterns[r], table[r].begin());
        table[r][own + r] = table[r][width - 1] = 1;
        basis[r] = own + r;
    }
    for (std::size_t c = 0; c < own; ++c) table[rows][c] = -static_cast<double>(sizes[c].count);
    // Always the first column that helps, and of the tied rows the one of the smallest column (Bland): it cannot
    // circle.
    for (;;) {
        std::size_t column = 0, row = rows;
        while (column + 1 < width && table[rows][column] >= -tiny) ++column;
        if (column + 1 == width) break;
        for (std::size_t r = 0; r < rows; ++r) {
            if (table[r][column] <= tiny) continue;
            if (row == rows) {
                row = r;
                continue;
            }
            const double here = table[r][width - 1] * table[row][column],
                         best = table[row][width - 1] * table[r][column];
            if (here < best - tiny || (here <= best + tiny && basis[r] < basis[row])) row = r;
        }
        if (row == rows) break;  // every size is in some pattern, so there is always a row
        const double pivot = table[row][column];
        for (double& cell : table[row]) cell /= pivot;
        for (std::size_t r = 0; r <= rows; ++r) {
            const double factor = table[r][column];
            if (r == row || factor == 0) continue;
            for (std::size_t c = 0; c < width; ++c) table[r][c] -= factor * table[row][c];
        }
        basis[row] = column;
    }
    std::vector<double> prices(own);
    for (std::size_t r = 0; r < rows; ++r)
        if (basis[r] < own) prices[basis[r]] = std::max(0.0, table[r][width - 1]);
    return prices;
}

// The most that fits into each free part, and what it takes to get there: the size put in last, or none.
struct Filled {
    std::array<double, whole + 1> worth{};
    std::array<std::size_t, whole + 1> last{};
};
Filled fill_holes(const std::vector<HolePrices::Size>& sizes, const std::vector<double>& prices) {
    Filled out;
    const std::size_t none = sizes.size();
    out.last[0] = none;
    for (std::size_t free = 1; free <= whole; ++free) {
        out.worth[free] = out.worth[free - 1];
        out.last[free] = none;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const auto share = static_cast<std::size_t>(sizes[i].share);
            if (share > free || out.worth[free - share] + prices[i] <= out.worth[free] + tiny) continue;
            out.worth[free] = out.worth[free - share] + prices[i];
            out.last[free] = i;
        }
    }
    return out;
}

Pattern pattern_of(const Filled& filled, const std::vector<HolePrices::Size>& sizes) {
    Pattern pattern(sizes.size());
    for (std::size_t free = whole; free > 0;) {
        const std::size_t last = filled.last[free];
        if (last == sizes.size()) {
            --free;
            continue;
        }
        pattern[last] += 1;
        free -= static_cast<std::size_t>(sizes[last].share);
    }
    return pattern;
}

}  // namespace

HolePrices::HolePrices(std::vector<Size> sizes) {
    std::erase_if(sizes, [](const Size& size) { return size.share < 1 || size.share > 999 || size.count < 1; });
    std::ranges::sort(sizes, {}, [](const Size& size) { return std::pair{-size.count, size.share}; });
    if (sizes.size() > most_sizes) sizes.resize(most_sizes);
    if (sizes.empty()) return;
    std::vector<Pattern> patterns;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        patterns.emplace_back(sizes.size());
        const std::int32_t times = static_cast<std::int32_t>(whole) / sizes[i].share;
        patterns.back()[i] = times;
    }
    Filled filled;
    // A pattern that is worth more than a GPU shows that the prices are too high, and joins. Twenty sizes take some
    // dozens of rounds; after the last the prices are merely good.
    for (int round = 0; round < 300; ++round) {
        filled = fill_holes(sizes, best_prices(patterns, sizes));
        if (filled.worth[whole] <= 1 + 1e-7) break;
        patterns.push_back(pattern_of(filled, sizes));
    }
    const double most = std::max(filled.worth[whole], 1.0);
    for (std::size_t free = 0; free <= whole; ++free)
        values_[free] = static_cast<std::int32_t>(std::floor(filled.worth[free] / most * whole + 0.5));
}

}  // namespace bulkhead::sched
