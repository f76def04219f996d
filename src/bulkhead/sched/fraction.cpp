#include "bulkhead/sched/fraction.hpp"

#include <algorithm>

#include "bulkhead/base/result.hpp"

namespace bulkhead::sched {

namespace {

// 256 bits, the high half first so that comparing members compares values.
struct Product {
    Wide high = 0, low = 0;
};

constexpr Product multiply(Wide a, Wide b) {
    constexpr int half = 64;
    constexpr Wide mask = (Wide{1} << half) - 1;
    const Wide a_high = a >> half, a_low = a & mask, b_high = b >> half, b_low = b & mask;
    const Wide low = a_low * b_low;
    const Wide middle = a_high * b_low + (low >> half);  // at most 2^128 - 2^64
    const Wide other = a_low * b_high + (middle & mask);
    return {a_high * b_high + (middle >> half) + (other >> half), (other << half) | (low & mask)};
}
static_assert(multiply(~Wide{0}, ~Wide{0}).high == ~Wide{0} - 1 && multiply(~Wide{0}, ~Wide{0}).low == 1);

}  // namespace

std::strong_ordering compare(const Fraction& a, const Fraction& b) {
    if (a.is_infinite() || b.is_infinite()) return a.is_infinite() <=> b.is_infinite();
    const Product x = multiply(a.over, b.under), y = multiply(b.over, a.under);
    if (x.high != y.high) return x.high < y.high ? std::strong_ordering::less : std::strong_ordering::greater;
    if (x.low != y.low) return x.low < y.low ? std::strong_ordering::less : std::strong_ordering::greater;
    return std::strong_ordering::equal;
}

std::string print(const Fraction& value, int decimals) {
    if (value.is_infinite()) return "inf";
    invariant(value.under < Wide{1} << 124, "ten times a remainder fits");
    // Digits from the last to the first, of the value in units of the last decimal, where a carry runs by itself.
    std::string digits;
    Wide rest = value.over % value.under;
    for (Wide whole = value.over / value.under; whole > 0; whole /= 10)
        digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(whole % 10)));
    digits.insert(0, "0");  // room for a carry
    const std::size_t point = digits.size();
    for (int i = 0; i < decimals; ++i) {
        rest *= 10;
        digits += static_cast<char>('0' + static_cast<int>(rest / value.under));
        rest %= value.under;
    }
    if (rest * 2 >= value.under) {
        std::size_t at = digits.size() - 1;
        while (digits[at] == '9') digits[at--] = '0';
        ++digits[at];
    }
    std::string out = digits.substr(0, point);
    out.erase(0, std::min(out.find_first_not_of('0'), out.size()));
    if (out.empty()) out = "0";
    return decimals > 0 ? out + "." + digits.substr(point) : out;
}

}  // namespace bulkhead::sched
