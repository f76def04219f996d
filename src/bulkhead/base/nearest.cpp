#include "bulkhead/base/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace bulkhead {

namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Damerau's distance with adjacent swaps, case folded: "Polciy" is one slip from "policy".
std::size_t slips(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        now[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                now[j] = std::min(now[j], before[j - 2] + 1);
        }
        before.swap(last);
        last.swap(now);
    }
    return last[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view typed, std::span<const std::string_view> known) {
    constexpr std::size_t longest_name_worth_comparing = 64;  // the work is quadratic, and the text comes from outside
    if (typed.empty() || typed.size() > longest_name_worth_comparing) return {};
    std::string_view best;
    std::size_t best_slips = std::max<std::size_t>(1, typed.size() / 3) + 1;
    for (const std::string_view name : known) {
        const std::size_t count = slips(typed, name);
        if (count < best_slips) {
            best_slips = count;
            best = name;
        }
    }
    return best;
}

}  // namespace bulkhead
