#include "bulkhead/hw/cuda/pattern.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

namespace bulkhead::cuda {
namespace {

std::uint64_t added_up(const Pattern& pattern, std::uint64_t chunks) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < chunks; ++i)
        for (unsigned j = 0; j < 4; ++j) sum += pattern.word(i, j);
    return sum;
}

TEST(Pattern, its_sum_is_what_adding_up_gives) {
    for (const std::uint64_t chunks : {0u, 1u, 2u, 3u, 64u, 65'537u})
        EXPECT_EQ(sum_of(keyed({1, 2, 3, 4}, 5), chunks), added_up(keyed({1, 2, 3, 4}, 5), chunks)) << chunks;
    EXPECT_EQ(sum_of(zeros, 1'000'000), 0u);
    rc::check("for any key and length", [] {
        Pattern pattern;
        for (unsigned j = 0; j < 4; ++j) {
            const auto mul = *rc::gen::arbitrary<std::uint32_t>();
            const auto add = *rc::gen::arbitrary<std::uint32_t>();
            pattern.mul[j] = mul;
            pattern.add[j] = add;
        }
        const auto chunks = *rc::gen::inRange<std::uint64_t>(0, 3000);
        RC_ASSERT(sum_of(pattern, chunks) == added_up(pattern, chunks));
    });
}

TEST(Pattern, the_sum_of_a_whole_run_is_known_too) {
    // Every word takes each of the 2^32 values once, because the factors are odd.
    const std::uint64_t each = (std::uint64_t{1} << 31) * ((std::uint64_t{1} << 32) - 1);
    EXPECT_EQ(sum_of(keyed({9, 8, 7, 6}, 0), run_chunks_max), 4 * each);
}

TEST(Pattern, neighbours_runs_and_wipes_differ) {
    std::set<std::uint32_t> words;
    const Pattern pattern = keyed({1, 2, 3, 4}, 0);
    for (std::uint64_t i = 0; i < 100'000; ++i) words.insert(pattern.word(i, 0));
    EXPECT_EQ(words.size(), 100'000u);
    EXPECT_NE(keyed({1, 2, 3, 4}, 0).word(0, 0), keyed({1, 2, 3, 4}, 1).word(0, 0));
    EXPECT_NE(keyed({1, 2, 3, 4}, 0).word(7, 0), keyed({2, 2, 3, 4}, 0).word(7, 0));
}

}  // namespace
}  // namespace bulkhead::cuda
