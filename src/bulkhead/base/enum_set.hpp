// A set of the values of one enum, in one word: copies, compares, and walks in the order of the values.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>

namespace bulkhead {

template <class E>
class EnumSet {
public:
    constexpr EnumSet() = default;
    constexpr EnumSet(std::initializer_list<E> values) {
        for (const E value : values) insert(value);
    }
    constexpr void insert(E value) { bits_ |= bit(value); }
    constexpr void insert_if(bool condition, E value) { bits_ |= condition ? bit(value) : 0; }
    constexpr void erase(E value) { bits_ &= ~bit(value); }
    constexpr bool contains(E value) const { return (bits_ & bit(value)) != 0; }
    constexpr bool contains_all(EnumSet other) const { return (other.bits_ & ~bits_) == 0; }
    constexpr bool empty() const { return bits_ == 0; }
    constexpr int size() const { return std::popcount(bits_); }
    constexpr E first() const { return static_cast<E>(std::countr_zero(bits_)); }  // of a set that is not empty
    constexpr EnumSet operator|(EnumSet other) const { return EnumSet{bits_ | other.bits_}; }
    constexpr EnumSet operator&(EnumSet other) const { return EnumSet{bits_ & other.bits_}; }
    constexpr EnumSet operator-(EnumSet other) const { return EnumSet{bits_ & ~other.bits_}; }
    friend constexpr auto operator<=>(EnumSet, EnumSet) = default;

    struct Iterator {
        std::uint64_t left;
        constexpr E operator*() const { return static_cast<E>(std::countr_zero(left)); }
        constexpr Iterator& operator++() {
            left &= left - 1;
            return *this;
        }
        friend constexpr bool operator==(Iterator, Iterator) = default;
    };
    constexpr Iterator begin() const { return {bits_}; }
    constexpr Iterator end() const { return {0}; }

private:
    constexpr explicit EnumSet(std::uint64_t bits) : bits_(bits) {}
    static constexpr std::uint64_t bit(E value) { return std::uint64_t{1} << static_cast<unsigned>(value); }
    std::uint64_t bits_ = 0;
};

}  // namespace bulkhead
