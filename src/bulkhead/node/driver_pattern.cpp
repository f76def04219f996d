#include "bulkhead/node/driver_pattern.hpp"

#include <bit>

namespace bulkhead::driver {

namespace {

__extension__ using Wide = unsigned __int128;

// The inverse of an odd number modulo 2^32, by Newton's iteration: each round doubles the bits that are right.
constexpr std::uint32_t inverse(std::uint32_t odd) {
    std::uint32_t x = odd;
    for (int round = 0; round < 4; ++round) x *= 2 - odd * x;
    return x;
}
static_assert(inverse(0x9E3779B1) * 0x9E3779B1 == 1);

// For how many i < n is mul * i + add = 0 modulo 2^32: none, or every 2^(32 - zeros of mul)-th from the first on.
std::uint64_t zeros(std::uint32_t mul, std::uint32_t add, std::uint64_t n) {
    if (mul == 0) return add == 0 ? n : 0;
    const auto shift = static_cast<unsigned>(std::countr_zero(mul));
    if ((add & ((std::uint32_t{1} << shift) - 1)) != 0) return 0;
    const std::uint64_t period = std::uint64_t{1} << (32 - shift);
    const std::uint32_t solution = (0 - (add >> shift)) * inverse(mul >> shift);  // modulo 2^32, as meant
    const std::uint64_t first = solution & (period - 1);
    return first < n ? (n - 1 - first) / period + 1 : 0;
}

// The sum over i < n of floor((mul * i + add) / 2^32), modulo 2^64: Euclid's algorithm on the slope.
std::uint64_t carries(std::uint64_t n, std::uint64_t mul, std::uint64_t add) {
    Wide sum = 0, modulus = Wide{1} << 32, a = mul, b = add, left = n;
    for (;;) {
        if (a >= modulus) {
            sum += left * (left - 1) / 2 * (a / modulus);
            a %= modulus;
        }
        if (b >= modulus) {
            sum += left * (b / modulus);
            b %= modulus;
        }
        const Wide top = a * left + b;
        if (top < modulus) return static_cast<std::uint64_t>(sum);
        left = top / modulus;
        b = top % modulus;
        const Wide was = modulus;
        modulus = a;
        a = was;
    }
}

}  // namespace

std::uint64_t words_in_common(const Pattern& one, const Pattern& other, std::uint64_t chunks) {
    std::uint64_t same = 0;
    for (unsigned j = 0; j < 4; ++j) same += zeros(one.mul[j] - other.mul[j], one.add[j] - other.add[j], chunks);
    return same;
}

std::uint64_t sum_of_words(const Pattern& pattern, std::uint64_t chunks) {
    if (chunks == 0) return 0;
    std::uint64_t sum = 0;
    for (unsigned j = 0; j < 4; ++j) {
        const Wide straight = Wide{pattern.mul[j]} * (Wide{chunks} * (chunks - 1) / 2) + Wide{pattern.add[j]} * chunks;
        sum += static_cast<std::uint64_t>(straight) - (carries(chunks, pattern.mul[j], pattern.add[j]) << 32);
    }
    return sum;
}

}  // namespace bulkhead::driver
