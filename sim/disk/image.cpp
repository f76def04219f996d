#include "sim/disk/image.hpp"

#include <algorithm>
#include <cstring>

namespace bulkhead::sim {

namespace {

constexpr std::uint64_t sector = 512;  // the least a disk writes whole

void put(std::string& to, std::uint64_t offset, std::string_view bytes) {
    if (bytes.empty()) return;
    if (offset + bytes.size() > to.size()) to.resize(offset + bytes.size());  // a gap reads as zeros
    std::memcpy(to.data() + offset, bytes.data(), bytes.size());
}

}  // namespace

void Image::write(std::uint64_t offset, std::string_view bytes) {
    put(now_, offset, bytes);
    unsynced_.push_back({offset, bytes.size(), bytes_.size(), false});
    bytes_.append(bytes);
}

void Image::truncate(std::uint64_t size) {
    now_.resize(size);
    unsynced_.push_back({size, 0, 0, true});
}

void Image::sync() {
    for (const Change& change : unsynced_) apply(durable_, change);
    forget_unsynced();
}

void Image::forget_unsynced() {
    unsynced_.clear();
    bytes_.clear();
}

void Image::flip_bit(std::uint64_t bit) {
    const auto mask = static_cast<char>(1u << (bit % 8));
    for (std::string* image : {&now_, &durable_})
        if (bit / 8 < image->size()) (*image)[bit / 8] = static_cast<char>((*image)[bit / 8] ^ mask);
}

void Image::apply(std::string& to, const Change& change) const {
    if (change.truncates)
        to.resize(change.offset);
    else
        put(to, change.offset, std::string_view{bytes_}.substr(change.bytes_at, change.size));
}

void Image::apply_torn(std::string& to, const Change& change, Rng& rng) const {
    for (std::uint64_t at = change.offset, end = change.offset + change.size; at < end;) {
        const std::uint64_t next = std::min(end, (at / sector + 1) * sector);
        if (rng.chance(500)) {
            const std::size_t from = change.bytes_at + static_cast<std::size_t>(at - change.offset);
            put(to, at, std::string_view{bytes_}.substr(from, static_cast<std::size_t>(next - at)));
        }
        at = next;
    }
}

std::string Image::after_power_cut(Rng& rng, Mood mood) const {
    std::string left = durable_;
    for (const Change& change : unsynced_) {
        if (mood == Mood::drops) continue;
        const std::uint64_t fate = mood == Mood::keeps ? 0 : rng.below(3);  // 0 kept, 1 dropped, 2 torn
        if (fate == 0) apply(left, change);
        if (fate == 2 && !change.truncates) apply_torn(left, change, rng);
    }
    return left;
}

}  // namespace bulkhead::sim
