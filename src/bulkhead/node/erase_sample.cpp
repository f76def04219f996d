#include "bulkhead/node/erase_sample.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "bulkhead/base/rng.hpp"

namespace bulkhead {

namespace {

// The end of a space is rarely a multiple of what is read: the last piece begins where it fits.
std::uint64_t last_place(const SampleSpace& space) {
    return (space.bytes - space.piece()) / space.block_bytes * space.block_bytes;
}

void in_order_and_once(std::vector<std::uint64_t>& places) {
    std::ranges::sort(places);
    const auto twice = std::ranges::unique(places);
    places.erase(twice.begin(), twice.end());
}

}  // namespace

std::vector<std::uint64_t> boundary_places(const SampleSpace& space) {
    if (space.bytes < space.piece()) return {};
    // MBR, GPT and ext4's superblock; the next; LVM's and md's; btrfs'; swap and XFS within the first; md 1.0 and the
    // second GPT at the end.
    constexpr std::array<std::uint64_t, 6> from_start{0, 4096, 8192, 65'536, 1 << 20, 64 << 20};
    constexpr std::array<std::uint64_t, 4> from_end{0, 4096, 16'384, 1 << 20};
    std::vector<std::uint64_t> places;
    const std::uint64_t last = last_place(space);
    for (const std::uint64_t at : from_start)
        if (at <= last) places.push_back(at / space.piece() * space.piece());
    for (const std::uint64_t back : from_end)
        if (back <= last) places.push_back((last - back) / space.block_bytes * space.block_bytes);
    in_order_and_once(places);
    return places;
}

std::vector<std::uint64_t> random_places(const SampleSpace& space, std::size_t count, std::uint64_t seed) {
    std::vector<std::uint64_t> places;
    const std::uint64_t pieces = space.bytes / space.piece();
    if (pieces <= count) {
        for (std::uint64_t i = 0; i < pieces; ++i) places.push_back(i * space.piece());
        return places;
    }
    Rng rng{seed};
    const std::uint64_t sections = std::max<std::uint64_t>(count / 2, 1);
    for (std::uint64_t section = 0; section < sections; ++section) {
        // Two quotients, so that the product does not pass 64 bits on any drive there will be.
        const std::uint64_t each = pieces / sections, rest = pieces % sections;
        const std::uint64_t from = each * section + std::min(section, rest);
        const std::uint64_t size = each + (section < rest ? 1 : 0);
        const std::uint64_t first = rng.below(size);
        places.push_back((from + first) * space.piece());
        if (count == 1) break;
        // Another one than the first, where the section has another.
        if (size > 1) places.push_back((from + (first + 1 + rng.below(size - 1)) % size) * space.piece());
    }
    in_order_and_once(places);
    return places;
}

double miss_chance(double fraction, std::size_t samples) {
    return std::pow(1.0 - fraction, static_cast<double>(samples));
}

std::size_t samples_for(double fraction, double chance) {
    return static_cast<std::size_t>(std::ceil(std::log(1.0 / chance) / fraction));
}

}  // namespace bulkhead
