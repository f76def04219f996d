#include "bulkhead/sched/decay.hpp"

#include <array>

#include "bulkhead/base/result.hpp"

namespace bulkhead::sched {

namespace {

__extension__ using Scaled = unsigned __int128;

constexpr int bits = 62;  // after the point
constexpr std::uint64_t one = std::uint64_t{1} << bits;

// The largest root whose square is at most the value.
constexpr std::uint64_t square_root(Scaled value) {
    std::uint64_t root = 0;
    for (int bit = bits; bit >= 0; --bit) {
        const std::uint64_t tried = root | std::uint64_t{1} << bit;
        if (Scaled{tried} * tried <= value) root = tried;
    }
    return root;
}

// 2^(-1/2), 2^(-1/4), 2^(-1/8), ...: what each binary digit of a part of a half-life leaves.
constexpr auto left_by_digit = [] {
    std::array<std::uint64_t, bits> out{};
    std::uint64_t last = one / 2;
    for (std::uint64_t& each : out) each = last = square_root(Scaled{last} << bits);
    return out;
}();
static_assert(left_by_digit[0] == 3260954456333195553u);  // floor(2^62 / sqrt 2)

}  // namespace

std::int64_t decayed(std::int64_t usage, Duration age, Duration half_life) {
    invariant(usage >= 0, "usage is not negative");
    if (age.ms <= 0 || half_life.ms <= 0) return usage;
    const std::int64_t halvings = age.ms / half_life.ms;
    if (halvings > bits) return 0;
    const auto whole = static_cast<Scaled>(half_life.ms);
    auto rest = static_cast<Scaled>(age.ms % half_life.ms);
    std::uint64_t left = one;
    for (std::size_t digit = 0; digit < left_by_digit.size() && rest != 0; ++digit) {
        rest *= 2;
        if (rest < whole) continue;
        rest -= whole;
        left = static_cast<std::uint64_t>(Scaled{left} * left_by_digit[digit] >> bits);
    }
    return static_cast<std::int64_t>(static_cast<Scaled>(usage) * left >> (bits + static_cast<int>(halvings)));
}

}  // namespace bulkhead::sched
