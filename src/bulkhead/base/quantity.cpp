#include "bulkhead/base/quantity.hpp"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>

namespace bulkhead {

namespace {

struct Unit {
    std::string_view suffix;
    std::int64_t scale;
};

// Longest suffix first where one ends with another; largest scale first within a family, for printing.
constexpr std::array byte_units{
    Unit{"Pi", 1LL << 50},        Unit{"Ti", 1LL << 40},
    Unit{"Gi", 1LL << 30},        Unit{"Mi", 1LL << 20},
    Unit{"Ki", 1LL << 10},        Unit{"P", 1'000'000'000'000'000},
    Unit{"T", 1'000'000'000'000}, Unit{"G", 1'000'000'000},
    Unit{"M", 1'000'000},         Unit{"k", 1'000},
};
constexpr std::array time_units{
    Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000}, Unit{"s", 1'000}, Unit{"ms", 1},
};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::int64_t> integer(std::string_view digits) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || digits.empty() || !is_digit(digits.front()))
        return std::nullopt;
    return value;
}

std::optional<std::int64_t> multiplied(std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
    return out;
}

// "1.25" times scale, exactly, or nothing: no float takes part, and a remainder is refused.
std::optional<std::int64_t> scaled_decimal(std::string_view text, std::int64_t scale) {
    const std::size_t dot = text.find('.');
    const auto whole = integer(text.substr(0, dot));
    if (!whole) return std::nullopt;
    auto total = multiplied(*whole, scale);
    if (!total || dot == std::string_view::npos) return total;
    const std::string_view fraction = text.substr(dot + 1);
    if (fraction.size() > 9) return std::nullopt;
    const auto numerator = integer(fraction);
    if (!numerator) return std::nullopt;
    std::int64_t denominator = 1;
    for (std::size_t i = 0; i < fraction.size(); ++i) denominator *= 10;
    const auto part = multiplied(*numerator, scale);
    if (!part || *part % denominator != 0) return std::nullopt;
    std::int64_t sum = 0;
    if (__builtin_add_overflow(*total, *part / denominator, &sum)) return std::nullopt;
    return sum;
}

// "3/7" times scale, exactly, or nothing.
std::optional<std::int64_t> scaled_fraction(std::string_view text, std::int64_t scale) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto numerator = integer(text.substr(0, slash)), denominator = integer(text.substr(slash + 1));
    if (!numerator || !denominator || *denominator == 0) return std::nullopt;
    const std::int64_t common = std::gcd(*denominator, scale);
    if (*numerator % (*denominator / common) != 0) return std::nullopt;
    return multiplied(*numerator / (*denominator / common), scale / common);
}

}  // namespace

Result<Gpus> parse_gpus(std::string_view text) {
    if (const auto value = scaled_decimal(text, gpu_unit)) return Gpus{*value};
    if (const auto value = scaled_fraction(text, gpu_unit)) return Gpus{*value};
    return fail(Code::invalid, fmt::format("\"{}\" is not a number of GPUs", text),
                "write a count with at most three decimals (8, 0.5, 0.125), or a fraction whose denominator divides "
                "21,000 (1/7, 8/3)");
}

Result<ByteSize> parse_byte_size(std::string_view text) {
    std::string_view number = text;
    std::int64_t scale = 1;
    for (const Unit& unit : byte_units)
        if (text.ends_with(unit.suffix)) {
            number = text.substr(0, text.size() - unit.suffix.size());
            scale = unit.scale;
            break;
        }
    if (const auto value = scaled_decimal(number, scale)) return ByteSize{*value};
    return fail(Code::invalid, fmt::format("\"{}\" is not an amount of memory", text),
                "write a number with Ki, Mi, Gi, Ti (powers of 1024) or k, M, G, T (powers of 1000): 10Gi, 80G");
}

Result<Duration> parse_duration(std::string_view text) {
    const auto refuse = [&] {
        return fail(Code::invalid, fmt::format("\"{}\" is not a span of time", text),
                    "write numbers with d, h, m, s or ms, largest first: 2h, 1h30m, 500ms");
    };
    std::int64_t total = 0;
    std::size_t next_unit = 0;  // units may only get smaller, and none comes twice
    std::string_view rest = text;
    if (rest.empty()) return refuse();
    while (!rest.empty()) {
        std::size_t digits = 0;
        while (digits < rest.size() && is_digit(rest[digits])) ++digits;
        std::size_t letters = digits;
        while (letters < rest.size() && !is_digit(rest[letters])) ++letters;
        const std::string_view suffix = rest.substr(digits, letters - digits);
        std::size_t unit = next_unit;
        while (unit < time_units.size() && time_units[unit].suffix != suffix) ++unit;
        const auto count = integer(rest.substr(0, digits));
        if (!count || unit == time_units.size()) return refuse();
        const auto span = multiplied(*count, time_units[unit].scale);
        if (!span || __builtin_add_overflow(total, *span, &total)) return refuse();
        next_unit = unit + 1;
        rest.remove_prefix(letters);
    }
    return Duration{total};
}

Result<Instant> parse_instant(std::string_view text) {
    const auto refuse = [&] {
        return fail(Code::invalid, fmt::format("\"{}\" is not a point in time", text),
                    "write it in UTC, to the second or millisecond: 2026-11-15T09:00:00Z");
    };
    // YYYY-MM-DDTHH:MM:SS[.mmm]Z
    const bool fraction = text.size() == 24 && text[19] == '.';
    if (!(text.size() == 20 || fraction) || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
        text[16] != ':' || text.back() != 'Z')
        return refuse();
    const auto year = integer(text.substr(0, 4)), month = integer(text.substr(5, 2)), day = integer(text.substr(8, 2));
    const auto hour = integer(text.substr(11, 2)), minute = integer(text.substr(14, 2)),
               second = integer(text.substr(17, 2));
    const auto ms = fraction ? integer(text.substr(20, 3)) : std::optional<std::int64_t>{0};
    if (!year || !month || !day || !hour || !minute || !second || !ms) return refuse();
    const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(*year)},
                                           std::chrono::month{static_cast<unsigned>(*month)},
                                           std::chrono::day{static_cast<unsigned>(*day)}};
    if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) return refuse();
    const std::int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
    return Instant{((days * 24 + *hour) * 60 + *minute) * 60'000 + *second * 1000 + *ms};
}

Result<Money> parse_money(std::string_view text) {
    const bool negative = text.starts_with('-');
    if (const auto value = scaled_decimal(text.substr(negative ? 1 : 0), 1'000'000'000))
        return Money{negative ? -*value : *value};
    return fail(Code::invalid, fmt::format("\"{}\" is not an amount of money", text),
                "write a number with at most nine decimals, without a currency: 2.40");
}

std::string print(Gpus value) {
    if (!value.is_decimal()) {
        const std::int64_t common = std::gcd(value.units, gpu_unit);
        return fmt::format("{}/{}", value.units / common, gpu_unit / common);
    }
    std::string out = fmt::format("{}", value.thousandths() / 1000);
    if (const std::int64_t rest = value.thousandths() % 1000; rest != 0) {
        std::string decimals = fmt::format("{:03}", rest);
        decimals.erase(decimals.find_last_not_of('0') + 1);
        out += "." + decimals;
    }
    return out;
}

std::string print_decimal(Gpus value) {
    if (value.is_decimal()) return print(value);
    const std::int64_t rest = value.units % gpu_unit * 1'000'000'000;
    std::string decimals = fmt::format("{:09}", (rest + gpu_unit / 2) / gpu_unit);
    decimals.erase(decimals.find_last_not_of('0') + 1);
    return fmt::format("{}.{}", value.units / gpu_unit, decimals);
}

std::string print(Money value) {
    // Not -value.nano: the least of all numbers has no opposite.
    const std::uint64_t size =
        value.nano < 0 ? 0 - static_cast<std::uint64_t>(value.nano) : static_cast<std::uint64_t>(value.nano);
    std::string out = fmt::format("{}{}", value.nano < 0 ? "-" : "", size / 1'000'000'000);
    if (const std::uint64_t rest = size % 1'000'000'000; rest != 0) {
        std::string decimals = fmt::format("{:09}", rest);
        decimals.erase(decimals.find_last_not_of('0') + 1);
        out += "." + decimals;
    }
    return out;
}

std::string print(ByteSize value) {
    std::string shortest = fmt::format("{}", value.bytes);
    if (value.bytes == 0) return shortest;
    // Not the largest unit that divides it: 80G is also 78125000Ki.
    for (const Unit& unit : byte_units) {
        if (value.bytes % unit.scale != 0) continue;
        std::string text = fmt::format("{}{}", value.bytes / unit.scale, unit.suffix);
        if (text.size() < shortest.size()) shortest = std::move(text);
    }
    return shortest;
}

std::string print(Duration value) {
    if (value.ms == 0) return "0s";
    std::string out;
    for (const Unit& unit : time_units) {
        if (value.ms >= unit.scale) out += fmt::format("{}{}", value.ms / unit.scale, unit.suffix);
        value.ms %= unit.scale;
    }
    return out;
}

std::string print(Instant value) {
    const std::chrono::sys_time<std::chrono::milliseconds> at{std::chrono::milliseconds{value.ms}};
    const auto days = std::chrono::floor<std::chrono::days>(at);
    const std::chrono::year_month_day date{days};
    const std::chrono::hh_mm_ss time{at - days};
    // Digit by digit: every row and every entry of the log carries a time.
    std::string out;
    out.reserve(24);
    const auto digits = [&](std::int64_t number, std::int64_t place) {
        for (; place > 0; place /= 10) out += static_cast<char>('0' + number / place % 10);
    };
    const int year = static_cast<int>(date.year());
    if (year >= 0 && year <= 9999)
        digits(year, 1000);
    else
        out += fmt::format("{:04}", year);
    const std::pair<char, std::int64_t> parts[] = {
        {'-', static_cast<unsigned>(date.month())},
        {'-', static_cast<unsigned>(date.day())},
        {'T', time.hours().count()},
        {':', time.minutes().count()},
        {':', time.seconds().count()},
    };
    for (const auto& [before, number] : parts) {
        out += before;
        digits(number, 10);
    }
    if (const std::int64_t ms = time.subseconds().count(); ms != 0) {
        out += '.';
        digits(ms, 100);
    }
    return out += 'Z';
}

}  // namespace bulkhead
