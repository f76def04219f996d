// What the free part of a GPU is worth to the fractions that usually come. Not its size: where most tasks take 0.81 and
// 0.47 of a GPU, a hole of 0.53 takes one of those, a hole of 0.46 takes none, and nobody misses the difference between
// 0.46 and 0.40. The prices are those of the cutting-stock problem: the dual of the linear program that serves all the
// fractions with as few GPUs as possible. They are bounded by what a whole GPU is worth, and exact for the mix as a
// whole.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace bulkhead::sched {

class HolePrices {
public:
    struct Size {
        std::int32_t share = 0;  // thousandths of a GPU, 1 to 999
        std::int64_t count = 0;
    };
    HolePrices() = default;  // nobody asks for fractions: holes are worth nothing
    explicit HolePrices(std::vector<Size> sizes);

    // Of so many free thousandths: in thousandths of what a whole GPU is worth. Never less for more.
    std::int64_t value(std::int32_t free) const { return values_[static_cast<std::size_t>(free)]; }

private:
    std::array<std::int32_t, 1001> values_{};
};

}  // namespace bulkhead::sched
