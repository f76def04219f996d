// Where a drive is looked at before and after it is erased, and how much such a look can miss. Nothing here reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bulkhead {

// Reads are of this many bytes, or of one block where blocks are larger; places are byte offsets.
inline constexpr std::uint64_t sample_bytes = 4096;

struct SampleSpace {  // of one namespace
    std::uint64_t bytes = 0;
    std::uint32_t block_bytes = 512;
    std::uint64_t piece() const { return block_bytes > sample_bytes ? block_bytes : sample_bytes; }
};

// Both ends, and where partition tables and the file systems of this world keep what describes everything else.
std::vector<std::uint64_t> boundary_places(const SampleSpace& space);
// Two at random in each of count/2 equal sections, as SP 800-88r1 asks for; in order, each once. All there is, where
// that is less. Two a section miss what is left over no more often than as many anywhere would.
std::vector<std::uint64_t> random_places(const SampleSpace& space, std::size_t count, std::uint64_t seed);

// If the fraction f of a space kept its contents, n places at random all miss it with probability (1-f)^n at most, ...
double miss_chance(double fraction, std::size_t samples);
// ... so that it is below d with this many.
std::size_t samples_for(double fraction, double chance);

}  // namespace bulkhead
