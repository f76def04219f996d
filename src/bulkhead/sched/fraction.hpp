// An exact fraction of whole numbers, from zero to infinity: compared by cross-multiplication in 256 bits, never as
// floating point, so that two machines never disagree about a tie.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace bulkhead::sched {

__extension__ using Wide = unsigned __int128;

struct Fraction {
    Wide over = 0;
    Wide under = 1;  // 0: infinite, whatever is over it

    static constexpr Fraction infinity() { return {1, 0}; }
    constexpr bool is_infinite() const { return under == 0; }
};

std::strong_ordering compare(const Fraction& a, const Fraction& b);

// By value: one half is two quarters.
inline std::weak_ordering operator<=>(const Fraction& a, const Fraction& b) { return compare(a, b); }
inline bool operator==(const Fraction& a, const Fraction& b) { return compare(a, b) == 0; }

// With so many decimals, half a unit of the last rounded up: "0.333333", "inf".
std::string print(const Fraction& value, int decimals = 6);

}  // namespace bulkhead::sched
