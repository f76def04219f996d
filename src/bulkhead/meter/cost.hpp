// The arithmetic of charges: integers, 128 bits, each amount rounded once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bulkhead/base/quantity.hpp"

namespace bulkhead::meter {

__extension__ using Wide = __int128;  // amounts in billionths of a currency's unit, and what they are made of

inline constexpr Wide ms_per_hour = 3'600'000;

// To the nearest; halfway, to the even neighbour. `under` is positive.
constexpr Wide round_half_even(Wide over, Wide under) {
    Wide down = over / under, rest = over % under;
    if (rest < 0) --down, rest += under;
    const Wide twice = 2 * rest;
    return twice > under || (twice == under && down % 2 != 0) ? down + 1 : down;
}
static_assert(round_half_even(1, 2) == 0 && round_half_even(3, 2) == 2 && round_half_even(-1, 2) == 0);
static_assert(round_half_even(-3, 2) == -2 && round_half_even(5, 3) == 2 && round_half_even(-5, 3) == -2);

// So much of one kind of unit, for so long, at so much an hour.
struct Span {
    std::int64_t ms = 0;
    Gpus units;
    Money per_hour;
};
constexpr Wide unrounded_base(const Span& span) {  // in 1 / base_denominator
    return Wide{span.ms} * span.units.units * span.per_hour.nano;
}
inline constexpr Wide base_denominator = ms_per_hour * gpu_unit;

constexpr Wide base_cost(const Span& span) { return round_half_even(unrounded_base(span), base_denominator); }
// Of the unrounded base, so that nothing is rounded twice.
constexpr Wide surcharge_cost(const Span& span, std::int64_t percent) {
    return round_half_even(unrounded_base(span) * percent, base_denominator * 100);
}

// How many decimals the smallest coin of a currency has: 2 for EUR, 0 for JPY, 3 for KWD.
int minor_digits(std::string_view currency);
// An amount as it can be paid.
Wide rounded_to_minor(Wide nano, std::string_view currency);

// over / 10^decimals, exactly, without zeros at the end: "8", "0.288", "-0.000000001".
std::string print_decimal(Wide over, int decimals);
// Gpus::units times milliseconds, as units times milliseconds or seconds: nine decimals at most, rounded.
std::string print_unit_ms(Wide unit_ms);
std::string print_unit_seconds(Wide unit_ms);
inline std::string print_amount(Wide nano) { return print_decimal(nano, 9); }

}  // namespace bulkhead::meter
