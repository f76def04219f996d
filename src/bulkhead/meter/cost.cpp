#include "bulkhead/meter/cost.hpp"

#include <algorithm>
#include <array>

namespace bulkhead::meter {

int minor_digits(std::string_view currency) {
    // ISO 4217; whatever is not here has two.
    constexpr std::array<std::string_view, 16> none{"BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW",
                                                    "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF"};
    constexpr std::array<std::string_view, 7> three{"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"};
    if (std::ranges::find(none, currency) != none.end()) return 0;
    return std::ranges::find(three, currency) != three.end() ? 3 : 2;
}

Wide rounded_to_minor(Wide nano, std::string_view currency) {
    Wide coin = 1;
    for (int i = minor_digits(currency); i < 9; ++i) coin *= 10;
    return round_half_even(nano, coin) * coin;
}

std::string print_decimal(Wide over, int decimals) {
    const bool negative = over < 0;
    std::string digits;  // the last first
    for (Wide rest = negative ? -over : over; rest != 0 || std::ssize(digits) <= decimals; rest /= 10)
        digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    std::string out = negative ? "-" : "";
    out.append(digits.rbegin(), digits.rend() - decimals);
    std::string fraction(digits.rend() - decimals, digits.rend());
    fraction.erase(fraction.find_last_not_of('0') + 1);
    if (!fraction.empty()) out += "." + fraction;
    return out;
}

std::string print_unit_ms(Wide unit_ms) { return print_decimal(round_half_even(unit_ms * 1'000'000'000, gpu_unit), 9); }

std::string print_unit_seconds(Wide unit_ms) {
    return print_decimal(round_half_even(unit_ms * 1'000'000, gpu_unit), 9);
}

}  // namespace bulkhead::meter
