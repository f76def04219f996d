#include "bulkhead/audit/tile_cache.hpp"

#include <fmt/core.h>

#include <optional>

#include "bulkhead/audit/published.hpp"

namespace bulkhead::audit {

using namespace evidence;

namespace {

Hash root_over_hashes(std::span<const Hash> hashes) {
    if (hashes.size() == 1) return hashes.front();
    const std::size_t half = hashes.size() / 2;  // a complete subtree: a power of two
    return node_hash(root_over_hashes(hashes.first(half)), root_over_hashes(hashes.subspan(half)));
}

}  // namespace

Result<std::shared_ptr<const TileCache::Tile>> TileCache::tile(const TileId& id) {
    {
        const std::lock_guard lock{mutex_};
        if (const auto known = tiles_.find(id); known != tiles_.end()) return known->second;
    }
    Result<std::vector<Hash>> hashes = read_tile(*files_, id);
    if (!hashes) return std::unexpected(hashes.error());
    auto made = std::make_shared<Tile>();
    std::vector<Hash> below;
    constexpr std::size_t group = std::size_t{1} << kept_from;
    for (std::size_t at = 0; at + group <= hashes->size(); at += group)
        below.push_back(root_over_hashes(std::span{*hashes}.subspan(at, group)));
    while (!below.empty()) {
        std::vector<Hash> above;
        for (std::size_t at = 0; at + 2 <= below.size(); at += 2) above.push_back(node_hash(below[at], below[at + 1]));
        made->computed.push_back(std::move(below));
        below = std::move(above);
    }
    if (id.level > 0) made->hashes = *std::move(hashes);
    const std::lock_guard lock{mutex_};
    if (tiles_.size() >= tiles_max) tiles_.clear();
    return tiles_.insert_or_assign(id, std::move(made)).first->second;
}

SubtreeReader TileCache::subtrees(std::uint64_t size) {
    // The tile of leaves that this proof has read: it asks for one hash at each of its lowest levels.
    auto leaves = std::make_shared<std::optional<std::pair<TileId, std::vector<Hash>>>>();
    return [this, size, leaves](unsigned level, std::uint64_t index) -> Result<Hash> {
        const unsigned height = level % tile_height;
        const auto id = tile_at(TileId::Holds::hashes, level / tile_height, index >> (tile_height - height), size);
        const std::uint64_t begin = (index << height) % tile_width, count = std::uint64_t{1} << height;
        if (!id || begin + count > id->width)
            return fail(Code::not_found,
                        fmt::format("a tree of {} leaves has no complete subtree {} at level {}", size, index, level),
                        "ask for one within the tree");
        if (height >= kept_from || id->level > 0) {
            const auto known = tile(*id);
            if (!known) return std::unexpected(known.error());
            if (height >= kept_from) return (*known)->computed[height - kept_from][begin >> height];
            return root_over_hashes(std::span{(*known)->hashes}.subspan(begin, count));
        }
        if (!*leaves || (*leaves)->first != *id) {
            Result<std::vector<Hash>> hashes = read_tile(*files_, *id);
            if (!hashes) return std::unexpected(hashes.error());
            leaves->emplace(*id, *std::move(hashes));
        }
        return root_over_hashes(std::span{(*leaves)->second}.subspan(begin, count));
    };
}

}  // namespace bulkhead::audit
