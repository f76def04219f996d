// One file as a disk with a volatile cache holds it: what reading shows, what would be left after a power cut, and the
// changes between the two. Private to disk.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/rng.hpp"

namespace bulkhead::sim {

// How a power cut treats what was not synced: a disk may have written none of it, all of it, or any part.
enum class Mood : std::uint8_t { drops, keeps, mixes };

class Image {
public:
    Image() = default;
    explicit Image(std::string durable) : now_(durable), durable_(std::move(durable)) {}

    const std::string& now() const { return now_; }
    void write(std::uint64_t offset, std::string_view bytes);
    void truncate(std::uint64_t size);
    void sync();
    void forget_unsynced();  // reading goes on showing it; no later sync will write it
    void flip_bit(std::uint64_t bit);

    std::string after_power_cut(Rng& rng, Mood mood) const;

private:
    struct Change {
        std::uint64_t offset, size;  // of a truncation: the new size, and nothing
        std::size_t bytes_at;        // into bytes_
        bool truncates;
    };
    void apply(std::string& to, const Change& change) const;
    void apply_torn(std::string& to, const Change& change, Rng& rng) const;

    std::string now_, durable_;
    std::vector<Change> unsynced_;
    std::string bytes_;  // of the unsynced writes, one after another
};

}  // namespace bulkhead::sim
