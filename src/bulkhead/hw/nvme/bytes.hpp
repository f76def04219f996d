// Numbers in pages of NVMe: the lowest byte first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace bulkhead::nvme {

template <class Number>
constexpr Number number_at(std::span<const std::uint8_t> bytes, std::size_t at) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i) value |= std::uint64_t{bytes[at + i]} << (8 * i);
    return static_cast<Number>(value);
}

}  // namespace bulkhead::nvme
