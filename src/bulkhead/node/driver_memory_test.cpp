// Contents of a simulated GPU against the plainest model there is: an array of bytes.
#include "bulkhead/node/driver_memory.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace {

using namespace bulkhead::driver;

constexpr std::uint64_t plain_size = 512;

void fill_plain(std::string& plain, Range range, const Pattern& pattern) {
    for (std::uint64_t i = 0; i < range.size; ++i) plain[range.begin + i] = pattern.byte(i);
}

std::uint32_t word_at(const std::string& plain, std::uint64_t at) {
    std::uint32_t word = 0;
    for (unsigned i = 0; i < 4; ++i) word |= std::uint32_t{static_cast<std::uint8_t>(plain[at + i])} << 8 * i;
    return word;
}

GpuMemory::Tally compare_plain(const std::string& plain, Range range, const Pattern& pattern) {
    GpuMemory::Tally tally;
    for (std::uint64_t at = 0; at < range.size / 16 * 16; at += 4) {
        const std::uint32_t found = word_at(plain, range.begin + at);
        ++tally.words;
        tally.sum += found;
        tally.others += found == pattern.word(at / 16, static_cast<unsigned>(at / 4 % 4)) ? 0u : 1u;
    }
    return tally;
}

Range some_range() {
    const auto begin = *rc::gen::inRange<std::uint64_t>(0, plain_size);
    return {begin, *rc::gen::inRange<std::uint64_t>(0, plain_size - begin + 1)};
}

Pattern some_pattern() {
    const auto small = [] { return *rc::gen::inRange<std::uint32_t>(0, 3); };
    if (small() != 0) return Pattern::of_word(small() == 0 ? 0xABCD1234 : small());
    return {{small(), small() << 30, 0x9E3779B1, 5}, {small(), 0, small(), 0xFFFFFFFF}};
}

RC_GTEST_PROP(DriverMemory, runs_hold_what_an_array_of_bytes_would, ()) {
    GpuMemory memory;
    std::string plain(plain_size, '\0');
    for (int step = *rc::gen::inRange(0, 24); step > 0; --step) {
        const Range range = some_range();
        if (*rc::gen::inRange(0, 3) == 0) {
            const auto bytes = *rc::gen::container<std::string>(range.size, rc::gen::inRange<char>('a', 'e'));
            RC_ASSERT(memory.write(range.begin, bytes));
            plain.replace(range.begin, range.size, bytes);
        } else {
            const Pattern pattern = some_pattern();
            memory.fill(range, pattern);
            fill_plain(plain, range, pattern);
        }
        RC_ASSERT(memory.is_sound(plain_size));
    }
    RC_ASSERT(memory.read({0, plain_size}) == plain);
    const Range looked = some_range();
    const Pattern wanted = some_pattern();
    RC_ASSERT(memory.compare(looked, wanted) == compare_plain(plain, looked, wanted));
}

TEST(DriverMemory, a_hundred_gigabytes_that_were_overwritten_are_one_run) {
    constexpr Range all{0, std::uint64_t{140} << 30};
    const Pattern keyed{{0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35, 0x27D4EB2F}, {1, 2, 3, 4}};
    GpuMemory memory;
    memory.fill(all, keyed);
    EXPECT_EQ(memory.runs(), 1u);
    EXPECT_EQ(memory.compare(all, keyed).others, 0u);
    ASSERT_TRUE(memory.write(std::uint64_t{70} << 30, "secret of a tenant"));
    EXPECT_GT(memory.compare(all, keyed).others, 0u) << "one store that did not arrive shows";
    EXPECT_LE(memory.compare(all, keyed).others, 8u);
}

TEST(DriverMemory, sums_of_patterns_are_those_of_their_words) {
    for (const Pattern& pattern :
         {Pattern::of_word(0xFFFFFFFF), Pattern{{0x9E3779B1, 1u << 31, 3, 0}, {7, 1, 0xFFFFFFFF, 9}}})
        for (const std::uint64_t chunks : {0u, 1u, 2u, 1000u}) {
            std::uint64_t sum = 0;
            for (std::uint64_t i = 0; i < chunks; ++i)
                for (unsigned j = 0; j < 4; ++j) sum += pattern.word(i, j);
            EXPECT_EQ(sum_of_words(pattern, chunks), sum) << chunks;
        }
}

TEST(DriverMemory, more_explicit_bytes_than_it_can_hold_are_refused) {
    GpuMemory memory;
    std::string bytes(GpuMemory::explicit_bytes_max, 'x');
    bytes.back() = 'y';
    EXPECT_TRUE(memory.write(0, bytes));
    EXPECT_FALSE(memory.write(std::uint64_t{1} << 30, "ab"));
}

}  // namespace
