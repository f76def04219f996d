// The contents of one GPU's memory, as few numbers: runs of a pattern, and runs of explicit bytes where somebody copied
// something in. A hundred gigabytes that were overwritten are one run, so wiping and reading back can be simulated
// whole. What nobody ever wrote reads as zero.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "bulkhead/node/driver_pattern.hpp"

namespace bulkhead::driver {

struct Range {  // [begin, begin + size) in bytes of one GPU
    std::uint64_t begin{}, size{};
    constexpr std::uint64_t end() const { return begin + size; }
    constexpr bool contains(Range inner) const {
        return inner.begin >= begin && inner.begin - begin <= size && inner.size <= size - (inner.begin - begin);
    }
    constexpr bool overlaps(Range other) const { return begin < other.end() && other.begin < end(); }
    friend constexpr auto operator<=>(Range, Range) = default;
};
static_assert(!Range{0, 8}.contains({4, 8}) && Range{0, 8}.contains({4, 4}));

class GpuMemory {
public:
    // Explicit bytes cost what they weigh; more than this in one GPU is refused by write().
    static constexpr std::size_t explicit_bytes_max = std::size_t{32} << 20;

    void fill(Range range, const Pattern& pattern);           // from the range's first byte on, whatever its size
    bool write(std::uint64_t begin, std::string_view bytes);  // false: too many explicit bytes
    std::string read(Range range) const;                      // the caller bounds its size

    struct Tally {
        std::uint64_t words{}, others{}, sum{};  // read, not as the pattern has them, all added up modulo 2^64
        friend bool operator==(const Tally&, const Tally&) = default;
    };
    // Whole chunks of the range, beginning with its first byte and the pattern's.
    Tally compare(Range range, const Pattern& pattern) const;

    std::size_t runs() const { return runs_.size(); }
    friend bool operator==(const GpuMemory&, const GpuMemory&) = default;

    struct Run {
        std::uint64_t size{};
        Pattern pattern;
        std::uint64_t phase{};  // bytes into the pattern at which the run begins
        std::string bytes;      // not empty: these instead
        friend bool operator==(const Run&, const Run&) = default;
    };
    const std::map<std::uint64_t, Run>& all() const { return runs_; }
    static GpuMemory of(std::map<std::uint64_t, Run> runs);
    bool is_sound(std::uint64_t capacity) const;

private:
    void cut_out(Range range);
    void put(std::uint64_t begin, Run run);
    std::size_t explicit_bytes() const;

    std::map<std::uint64_t, Run> runs_;  // by first byte; no two overlap, none is all zeros
};

}  // namespace bulkhead::driver
