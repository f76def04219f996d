// 64 bits over what a row says and where it stands. SQLite does not notice a flipped bit inside a body, and a row that
// wandered to another key or table is as wrong as a damaged one. Against accidents, not against attackers: the log is
// there for those. Written to disk: never change it.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace bulkhead::store {

class Checksum {
public:
    constexpr Checksum& add(std::uint64_t word) {
        // Each step is a bijection of the sum so far, so one wrong word always gives another sum.
        sum_ = (sum_ ^ word) * 0x9E3779B97F4A7C15u;
        sum_ ^= sum_ >> 32;
        return *this;
    }
    constexpr Checksum& add(std::int64_t value) { return add(static_cast<std::uint64_t>(value)); }
    Checksum& add(std::string_view bytes) {
        add(static_cast<std::uint64_t>(bytes.size()));  // so that no byte can move from one part to the next
        for (; bytes.size() >= 8; bytes.remove_prefix(8)) add(little_endian(bytes.substr(0, 8)));
        if (!bytes.empty()) add(little_endian(bytes));
        return *this;
    }
    constexpr std::int64_t value() const { return static_cast<std::int64_t>(sum_); }

private:
    static std::uint64_t little_endian(std::string_view bytes) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data(), bytes.size());
        if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
        return word;
    }
    std::uint64_t sum_ = 0xB17C4EAD;
};

}  // namespace bulkhead::store
