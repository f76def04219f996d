#include "bulkhead/hw/cuda/pattern.hpp"

namespace bulkhead::cuda {

namespace {

__extension__ using Wide = unsigned __int128;

// The driver model (node/driver_pattern.hpp) works out the same sum for simulated GPUs, on purpose in code of its own:
// what a wipe expects and what it is told must not agree because they are one function.
//
// The sum of floor((a * i + b) / m) for i below n, by the steps of Euclid's algorithm. Modulo 2^128, which is enough:
// only its lower half is used.
Wide sum_of_floors(Wide n, Wide m, Wide a, Wide b) {
    Wide sum = 0;
    while (true) {
        if (a >= m) {
            sum += (n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n) * (a / m);
            a %= m;
        }
        if (b >= m) {
            sum += n * (b / m);
            b %= m;
        }
        const Wide top = a * n + b;
        if (top < m) return sum;
        n = top / m;
        b = top % m;
        const Wide factor = a;
        a = m;
        m = factor;
    }
}

}  // namespace

std::uint64_t sum_of(const Pattern& pattern, std::uint64_t chunks) {
    if (chunks == 0) return 0;
    const Wide modulus = Wide{1} << 32, n = chunks;
    Wide sum = 0;
    for (unsigned j = 0; j < 4; ++j) {
        const Wide a = pattern.mul[j], b = pattern.add[j];
        const Wide plain = a * (n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n) + b * n;
        sum += plain - modulus * sum_of_floors(n, modulus, a, b);
    }
    return static_cast<std::uint64_t>(sum);
}

}  // namespace bulkhead::cuda
