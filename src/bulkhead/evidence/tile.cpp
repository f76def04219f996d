#include "bulkhead/evidence/tile.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

namespace bulkhead::evidence {

namespace {

constexpr unsigned last_level = 63;  // of the format; a tree of 2^64 leaves has 8

std::string index_path(std::uint64_t index) {
    std::string path = fmt::format("{:03}", index % 1000);
    while ((index /= 1000) != 0) path = fmt::format("x{:03}/{}", index % 1000, path);
    return path;
}

// Takes the text up to the next slash, and the slash.
std::string_view take_element(std::string_view& path) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view element = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    return element;
}

std::optional<unsigned> parse_number(std::string_view text, unsigned max) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number > max) return std::nullopt;
    return number;
}

std::optional<unsigned> parse_decimal(std::string_view text, unsigned max) {
    if (text.size() > 1 && text.front() == '0') return std::nullopt;
    return parse_number(text, max);
}

// Adds three digits to an index; false when they are none, or too many.
bool add_digits(std::uint64_t& index, std::string_view digits) {
    const auto number = digits.size() == 3 ? parse_number(digits, 999) : std::nullopt;
    if (!number || index > (std::numeric_limits<std::uint64_t>::max() - *number) / 1000) return false;
    index = index * 1000 + *number;
    return true;
}

std::uint64_t as_number(std::string_view two_bytes) {
    return static_cast<std::uint64_t>(static_cast<std::uint8_t>(two_bytes[0])) << 8 |
           static_cast<std::uint8_t>(two_bytes[1]);
}

}  // namespace

std::string path_of(const TileId& tile) {
    std::string path = tile.holds == TileId::Holds::entries ? "tile/entries/" : fmt::format("tile/{}/", tile.level);
    path += index_path(tile.index);
    if (tile.width != tile_width) path += fmt::format(".p/{}", tile.width);
    return path;
}

std::optional<TileId> parse_tile_path(std::string_view path) {
    if (path.ends_with('/') || take_element(path) != "tile") return std::nullopt;
    TileId tile;
    if (const std::string_view level = take_element(path); level == "entries") {
        tile.holds = TileId::Holds::entries;
    } else {
        const auto number = parse_decimal(level, last_level);
        if (!number) return std::nullopt;
        tile.level = *number;
    }
    std::string_view element = take_element(path);
    for (bool first = true; element.starts_with('x'); first = false) {
        if (first && element == "x000") return std::nullopt;  // the same index, written shorter
        if (!add_digits(tile.index, element.substr(1))) return std::nullopt;
        element = take_element(path);
    }
    const bool partial = element.ends_with(".p");
    if (!add_digits(tile.index, partial ? element.substr(0, element.size() - 2) : element)) return std::nullopt;
    if (partial) {
        const auto width = parse_decimal(take_element(path), tile_width - 1);
        if (!width || *width == 0) return std::nullopt;
        tile.width = *width;
    }
    return path.empty() ? std::optional{tile} : std::nullopt;
}

std::uint64_t hashes_at(unsigned level, std::uint64_t size) {
    return level * tile_height < 64 ? size >> (level * tile_height) : 0;
}

std::optional<TileId> tile_at(TileId::Holds holds, unsigned level, std::uint64_t index, std::uint64_t size) {
    const std::uint64_t hashes = hashes_at(level, size);
    if (hashes == 0 || index > (hashes - 1) / tile_width) return std::nullopt;
    const std::uint64_t width = std::min<std::uint64_t>(tile_width, hashes - index * tile_width);
    return TileId{holds, level, index, static_cast<unsigned>(width)};
}

std::vector<TileId> tiles_between(Sizes sizes) {
    std::vector<TileId> tiles;
    const auto add = [&](TileId::Holds holds, unsigned level) {
        const std::uint64_t before = hashes_at(level, sizes.older), after = hashes_at(level, sizes.newer);
        if (after <= before) return;
        for (std::uint64_t index = before / tile_width; index <= (after - 1) / tile_width; ++index)
            tiles.push_back(*tile_at(holds, level, index, sizes.newer));
    };
    add(TileId::Holds::entries, 0);
    for (unsigned level = 0; hashes_at(level, sizes.newer) > 0; ++level) add(TileId::Holds::hashes, level);
    return tiles;
}

std::string encode_tile(std::span<const Hash> hashes) {
    std::string bytes;
    bytes.reserve(hashes.size() * sizeof(Hash));
    for (const Hash& hash : hashes) bytes += bytes_of(hash);
    return bytes;
}

Result<std::vector<Hash>> decode_tile(std::string_view bytes, unsigned width) {
    if (bytes.size() != width * sizeof(Hash))
        return fail(Code::corrupt,
                    fmt::format("a tile of {} hashes has {} bytes, not {}", width, bytes.size(), width * sizeof(Hash)),
                    "it was cut short or written over");
    std::vector<Hash> hashes;
    hashes.reserve(width);
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(Hash))
        hashes.push_back(*hash_from(bytes.substr(at, sizeof(Hash))));
    return hashes;
}

Result<std::string> encode_bundle(std::span<const std::string> entries) {
    std::string bytes;
    for (const std::string& entry : entries) {
        if (entry.size() > 65535)
            return fail(Code::invalid, fmt::format("an entry of {} bytes; a bundle takes at most 65535", entry.size()),
                        "log its digest, and keep the rest elsewhere");
        bytes += static_cast<char>(entry.size() >> 8);
        bytes += static_cast<char>(entry.size() & 255);
        bytes += entry;
    }
    return bytes;
}

Result<std::vector<std::string>> decode_bundle(std::string_view bytes, unsigned width) {
    std::vector<std::string> entries;
    while (!bytes.empty() && entries.size() < width) {
        if (bytes.size() < 2 || bytes.size() - 2 < as_number(bytes))
            return fail(Code::corrupt,
                        fmt::format("a bundle of {} entries ends within entry {}", width, entries.size()),
                        "it was cut short or written over");
        const std::uint64_t size = as_number(bytes);
        entries.emplace_back(bytes.substr(2, size));
        bytes.remove_prefix(2 + size);
    }
    if (entries.size() < width)
        return fail(Code::corrupt, fmt::format("a bundle of {} entries has {}", width, entries.size()),
                    "it was cut short");
    if (!bytes.empty())
        return fail(Code::corrupt, fmt::format("a bundle of {} entries goes on for {} bytes", width, bytes.size()),
                    "it was written over");
    return entries;
}

SubtreeReader subtrees_from_tiles(std::uint64_t size, HashTileReader read) {
    // One proof asks the same tile for a hash of each of its levels.
    std::map<TileId, std::vector<Hash>> seen;
    return [size, read = std::move(read), seen](unsigned level, std::uint64_t index) mutable -> Result<Hash> {
        const unsigned height = level % tile_height;
        const auto tile = tile_at(TileId::Holds::hashes, level / tile_height, index >> (tile_height - height), size);
        const std::uint64_t begin = (index << height) % tile_width, count = std::uint64_t{1} << height;
        if (!tile || begin + count > tile->width)
            return fail(Code::not_found,
                        fmt::format("a tree of {} leaves has no complete subtree {} at level {}", size, index, level),
                        "ask for one within the tree");
        auto found = seen.find(*tile);
        if (found == seen.end()) {
            Result<std::vector<Hash>> hashes = read(*tile);
            if (!hashes) return std::unexpected(hashes.error());
            if (hashes->size() != tile->width)
                return fail(Code::corrupt, fmt::format("{} has {} hashes", path_of(*tile), hashes->size()),
                            "it was cut short or written over");
            found = seen.emplace(*tile, std::move(*hashes)).first;
        }
        Frontier subtree;
        for (std::uint64_t i = begin; i < begin + count; ++i) subtree.append(found->second[i]);
        return subtree.root();
    };
}

}  // namespace bulkhead::evidence
