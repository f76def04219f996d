#include "bulkhead/node/erase_verdict.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/node/erase_sample.hpp"

namespace bulkhead {
namespace {

std::string noise_of(std::uint64_t seed, std::size_t size = sample_bytes) {
    Rng rng{seed};
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(rng.below(256));
    return bytes;
}
std::string text_of(unsigned number) {
    std::string bytes;
    while (bytes.size() < sample_bytes) bytes += "row " + std::to_string(number) + " of somebody's table; ";
    bytes.resize(sample_bytes);
    return bytes;
}
const std::string blank(sample_bytes, '\0'), all_ones(sample_bytes, '\xFF');
constexpr DrivePlace here{1, 8192}, there{1, 12'288};

TEST(EraseSample, the_bound_is_that_of_the_facts) {
    EXPECT_EQ(samples_for(0.01, 1e-6), 1'382u);
    EXPECT_EQ(samples_for(0.001, 1e-9), 20'724u);
    EXPECT_LT(miss_chance(0.01, 1'382), 1e-6);
    EXPECT_GT(miss_chance(0.01, 1'300), 1e-6);
}

TEST(EraseSample, places_lie_within_two_to_a_section_and_depend_on_the_seed) {
    for (const std::uint64_t bytes : {std::uint64_t{4096}, std::uint64_t{1} << 20, std::uint64_t{7'681'501'126'656}})
        for (const std::uint32_t block : {512U, 4096U, 16'384U}) {
            const SampleSpace space{bytes, block};
            for (const auto& places : {boundary_places(space), random_places(space, 2000, 5)}) {
                if (bytes < space.piece()) {
                    EXPECT_TRUE(places.empty());
                    continue;
                }
                ASSERT_FALSE(places.empty());
                EXPECT_EQ(std::set(places.begin(), places.end()).size(), places.size());
                EXPECT_TRUE(std::ranges::is_sorted(places));
                EXPECT_LE(places.back() + space.piece(), bytes);
                for (const std::uint64_t place : places) EXPECT_EQ(place % block, 0u);
            }
        }
    const SampleSpace large{std::uint64_t{4096} * 1'000'000, 512};
    const auto places = random_places(large, 2000, 5);
    EXPECT_EQ(places.size(), 2000u);
    for (std::size_t section = 0; section < 1000; ++section)
        EXPECT_EQ(std::ranges::count_if(places, [&](std::uint64_t at) { return at / (large.bytes / 1000) == section; }),
                  2)
            << section;
    EXPECT_EQ(places, random_places(large, 2000, 5));
    EXPECT_NE(places, random_places(large, 2000, 6));
    EXPECT_EQ(boundary_places(large).back(), large.bytes - sample_bytes);
    EXPECT_EQ(random_places({8 * 4096, 512}, 2000, 1).size(), 8u) << "a small one is read whole";
}

TEST(EraseVerdict, zeros_ones_and_noise_are_told_from_data) {
    EXPECT_EQ(contents_of(blank), Contents::zeros);
    EXPECT_EQ(contents_of(all_ones), Contents::ones);
    EXPECT_EQ(contents_of(text_of(1)), Contents::data);
    EXPECT_EQ(contents_of(std::string(sample_bytes, 'x')), Contents::data) << "a constant of somebody's own";
    std::string almost = blank;
    almost[4000] = 1;
    EXPECT_EQ(contents_of(almost), Contents::data);
    std::string table = noise_of(3);
    table.replace(512, 8, "EFI PART");
    EXPECT_EQ(contents_of(table), Contents::data);
    for (std::uint64_t seed = 0; seed < 20'000; ++seed) ASSERT_EQ(contents_of(noise_of(seed)), Contents::noise) << seed;
    for (std::uint64_t seed = 0; seed < 20'000; ++seed)
        ASSERT_EQ(contents_of(noise_of(seed, 512)), Contents::noise) << seed;
}

TEST(EraseVerdict, what_was_there_before_never_passes_not_even_as_noise_and_not_elsewhere) {
    BeforeImages before{"k"};
    before.saw(here, noise_of(1));
    before.saw(there, text_of(1));
    ASSERT_EQ(before.kept(), 2u);
    struct Row {
        std::string_view says;
        DrivePlace place;
        std::string bytes;
        Deallocated promised;
        bool passes;
        EraseMethod method = EraseMethod::sanitize_crypto;
    };
    const Row rows[] = {
        {"zeros pass", here, blank, Deallocated::zeros, true},
        {"ones pass", here, all_ones, Deallocated::unknown, true},
        {"other noise passes", here, noise_of(2), Deallocated::unknown, true},
        {"noise does not where zeros are promised", here, noise_of(2), Deallocated::zeros, false},
        {"the same noise does not", here, noise_of(1), Deallocated::unknown, false},
        {"the same text does not", there, text_of(1), Deallocated::unknown, false},
        {"nor does it elsewhere", {1, 0}, noise_of(1), Deallocated::unknown, false},
        {"other text does not either", {1, 0}, text_of(2), Deallocated::unknown, false},
        {"noise passes after a block erase too", here, noise_of(2), Deallocated::unknown, true,
         EraseMethod::sanitize_block},
        {"what the host wrote is zeros", here, noise_of(2), Deallocated::unknown, false, EraseMethod::host_zeroes},
        {"and no ones", here, all_ones, Deallocated::ones, false, EraseMethod::host_zeroes},
        {"nor what the drive wrote", here, noise_of(2), Deallocated::unknown, false, EraseMethod::sanitize_overwrite},
        {"unless it deallocated that", here, all_ones, Deallocated::ones, true, EraseMethod::sanitize_overwrite},
    };
    for (const Row& row : rows) {
        EraseVerdict verdict{before, row.method};
        verdict.read(row.place, row.bytes, row.promised);
        EXPECT_EQ(verdict.erased(), row.passes) << row.says;
        EXPECT_EQ(verdict.bytes_residue(), row.passes ? 0 : 4096) << row.says;
        EXPECT_EQ(verdict.why_not().empty(), row.passes) << row.says;
    }
}

// A tenant that enciphers its disk itself leaves noise: without a look from before, nobody tells it from a lost key.
TEST(EraseVerdict, noise_of_which_nothing_was_kept_before_is_not_erased_whatever_the_method) {
    BeforeImages before{"k"};
    before.saw({2, 0}, noise_of(1));  // another namespace
    before.saw({1, 0}, blank);        // nothing to compare with
    before.could_not_read({1, 4096});
    for (const EraseMethod method : {EraseMethod::sanitize_crypto, EraseMethod::format_crypto,
                                     EraseMethod::sanitize_block, EraseMethod::format_erase}) {
        EraseVerdict verdict{before, method};
        verdict.read({1, 8192}, noise_of(3), Deallocated::unknown);
        EXPECT_FALSE(verdict.erased()) << word(method);
        EXPECT_NE(verdict.why_not().find("nothing of its namespace is known from before"), std::string::npos);
    }
}

// Else one place that was not empty would vouch for all the others.
TEST(EraseVerdict, noise_needs_enough_from_before_to_be_told_from) {
    for (const unsigned kept : {1U, 33U, 66U, 67U, 100U}) {
        BeforeImages before{"k"};
        const auto place = [](unsigned number) { return DrivePlace{1, std::uint64_t{number} * sample_bytes}; };
        for (unsigned i = 0; i < 100; ++i) before.saw(place(i), i < kept ? text_of(i) : blank);
        EraseVerdict verdict{before, EraseMethod::format_crypto}, emptied{before, EraseMethod::format_crypto};
        for (unsigned i = 0; i < 200; ++i) {  // again, and as many others
            verdict.read(place(i), noise_of(i), Deallocated::unknown);
            emptied.read(place(i), blank, Deallocated::unknown);
        }
        EXPECT_EQ(verdict.erased(), kept >= 67) << kept;
        EXPECT_EQ(
            verdict.why_not().find("too little is known of namespace 1 from before: 200 of its places hold noise"),
            kept >= 67 ? std::string::npos : 0U);
        EXPECT_TRUE(emptied.erased()) << "a constant tells by itself";
    }
}

TEST(EraseVerdict, counts_the_places_that_could_have_told) {
    BeforeImages before{"k"};
    before.saw(here, noise_of(1));
    EraseVerdict verdict{before, EraseMethod::sanitize_crypto};
    verdict.read(here, noise_of(2), Deallocated::unknown);
    verdict.read(there, noise_of(3), Deallocated::unknown);  // of which nobody knows what it held
    verdict.read({1, 0}, blank, Deallocated::unknown);
    verdict.read({2, 0}, all_ones, Deallocated::unknown);
    EXPECT_TRUE(verdict.erased()) << verdict.why_not();
    EXPECT_EQ(verdict.told(1), 2u);
    EXPECT_EQ(verdict.told(2), 1u);
    EXPECT_EQ(verdict.told(3), 0u);
}

TEST(EraseVerdict, unreadable_is_not_erased_and_nothing_read_is_nothing_shown) {
    const BeforeImages before{"k"};
    EraseVerdict verdict{before, EraseMethod::format_erase};
    EXPECT_FALSE(verdict.erased());
    EXPECT_EQ(verdict.why_not(), "nothing was read");
    verdict.read(here, blank, Deallocated::zeros);
    EXPECT_TRUE(verdict.erased());
    verdict.unreadable(there, "Format In Progress");
    EXPECT_FALSE(verdict.erased());
    EXPECT_EQ(verdict.bytes_residue(), 0) << "a second pass would not help";
    EXPECT_NE(verdict.why_not().find("byte 12288 of namespace 1 cannot be read"), std::string::npos);
}

// One place in a hundred kept, of text or of ciphertext, on a drive whose erased blocks are zeros or noise: that two
// thousand looks all miss it happens once in 10^8; here, never.
TEST(EraseVerdict, a_drive_that_keeps_one_percent_is_caught) {
    const SampleSpace space{std::uint64_t{1} << 34, 512};
    const auto is_kept = [](std::uint64_t at, std::uint64_t seed) { return Rng{at * 977 + seed}.chance(10); };
    struct Row {
        bool ciphertext, noise;
    };
    for (const Row row : {Row{false, false}, Row{true, false}, Row{false, true}, Row{true, true}})
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            BeforeImages before{"k"};
            const auto held = [&](std::uint64_t at) { return row.ciphertext ? noise_of(at + seed) : text_of(1); };
            const auto places = random_places(space, 2000, seed);
            for (const std::uint64_t at : places) before.saw({1, at}, held(at));
            EraseVerdict verdict{before, EraseMethod::sanitize_crypto};
            std::size_t kept = 0;
            for (const std::uint64_t at : places) {
                if (is_kept(at, seed)) ++kept;
                verdict.read({1, at},
                             is_kept(at, seed) ? held(at)
                             : row.noise       ? noise_of(at ^ ~seed)
                                               : blank,
                             Deallocated::unknown);
            }
            ASSERT_FALSE(verdict.erased()) << "seed " << seed;
            ASSERT_EQ(verdict.bytes_residue(), static_cast<std::int64_t>(kept * sample_bytes)) << "and nothing else";
        }
}

}  // namespace
}  // namespace bulkhead
