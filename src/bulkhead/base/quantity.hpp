// Quantities with units, exact: half a GPU is 10,500 units of 1/21,000, 10Gi is a count of bytes, 2h a count of
// milliseconds. Parsing and printing are inverse: print(parse(text)) is the shortest text that means the same.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"

namespace bulkhead {

// The smallest part of a GPU that is counted is 1/21,000: 1/7, 1/8, 1/6, 1/3 and 1/1000 of a GPU are whole numbers of
// it.
inline constexpr std::int64_t gpu_unit = 21'000;

// GPUs: "8", "0.5", "0.125", "1/7", "8/7". Text is decimal where three decimals suffice, else a fraction in lowest
// terms.
struct Gpus {
    std::int64_t units{};  // of 1 / gpu_unit of a GPU
    static constexpr Gpus whole(std::int64_t count) { return {count * gpu_unit}; }
    static constexpr Gpus of_thousandths(std::int64_t count) { return {count * (gpu_unit / 1000)}; }
    constexpr std::int64_t thousandths() const { return units / (gpu_unit / 1000); }  // rounded towards zero
    constexpr bool is_decimal() const { return units % (gpu_unit / 1000) == 0; }      // exact in thousandths
    friend constexpr auto operator<=>(Gpus, Gpus) = default;
    friend constexpr Gpus operator+(Gpus a, Gpus b) { return {a.units + b.units}; }
};
static_assert(gpu_unit % 1000 == 0 && gpu_unit % 7 == 0 && gpu_unit % 8 == 0 && gpu_unit % 3 == 0);

// Bytes: "10Gi", "512Mi", "80G", "1000". Binary suffixes Ki Mi Gi Ti Pi, decimal k M G T P, as in Kubernetes.
struct ByteSize {
    std::int64_t bytes{};
    friend constexpr auto operator<=>(ByteSize, ByteSize) = default;
};

// A span of time: "500ms", "30s", "2h", "1h30m", "7d".
struct Duration {
    std::int64_t ms{};
    static constexpr Duration hours(std::int64_t count) { return {count * 3'600'000}; }
    static constexpr Duration days(std::int64_t count) { return hours(24 * count); }
    friend constexpr auto operator<=>(Duration, Duration) = default;
};

// A point in time, UTC: "2026-11-15T09:00:00Z". Rooms are handed one; they never ask a clock.
struct Instant {
    std::int64_t ms{};  // since 1970-01-01T00:00:00Z
    friend constexpr auto operator<=>(Instant, Instant) = default;
    friend constexpr Instant operator+(Instant at, Duration d) { return {at.ms + d.ms}; }
    friend constexpr Duration operator-(Instant a, Instant b) { return {a.ms - b.ms}; }
};

// Money in billionths of a currency's unit, so that sums are exact: "2.40", "0.000000001", "-8".
struct Money {
    std::int64_t nano{};
    friend constexpr auto operator<=>(Money, Money) = default;
};

Result<Gpus> parse_gpus(std::string_view text);
Result<ByteSize> parse_byte_size(std::string_view text);
Result<Duration> parse_duration(std::string_view text);
Result<Instant> parse_instant(std::string_view text);
Result<Money> parse_money(std::string_view text);

std::string print(Gpus value);
std::string print_decimal(Gpus value);  // for readers that take decimals alone: nine digits after the point, rounded
std::string print(ByteSize value);
std::string print(Duration value);
std::string print(Instant value);
std::string print(Money value);

}  // namespace bulkhead
