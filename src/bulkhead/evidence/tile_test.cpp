#include "bulkhead/evidence/tile.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

namespace bulkhead::evidence {
namespace {

constexpr auto hash_tile = TileId::Holds::hashes, entries = TileId::Holds::entries;

TEST(TilePath, is_the_one_of_the_format) {
    struct Row {
        TileId tile;
        std::string_view path;
    };
    const Row rows[] = {
        {{hash_tile, 0, 0, 256}, "tile/0/000"},
        {{hash_tile, 0, 999, 256}, "tile/0/999"},
        {{hash_tile, 0, 1067, 256}, "tile/0/x001/067"},
        {{hash_tile, 2, 1234067, 256}, "tile/2/x001/x234/067"},
        {{hash_tile, 1, 0, 17}, "tile/1/000.p/17"},
        {{hash_tile, 0, 1067, 1}, "tile/0/x001/067.p/1"},
        {{entries, 0, 273, 112}, "tile/entries/273.p/112"},
        {{entries, 0, 1000, 256}, "tile/entries/x001/000"},
        {{hash_tile, 63, 18446744073709551615u, 255}, "tile/63/x018/x446/x744/x073/x709/x551/615.p/255"},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(path_of(row.tile), row.path);
        EXPECT_EQ(parse_tile_path(row.path), row.tile);
    }
}

TEST(TilePath, has_one_spelling) {
    for (const std::string_view wrong : {"",
                                         "tile",
                                         "tile/",
                                         "tile/0",
                                         "tile/0/",
                                         "tile/0/0",
                                         "tile/0/00",
                                         "tile/0/0000",
                                         "tile/0/067/",
                                         "/tile/0/067",
                                         "tile/00/067",
                                         "tile/64/067",
                                         "tile/-1/067",
                                         "tile/0/x000/067",
                                         "tile/0/x001",
                                         "tile/0/x1/067",
                                         "tile/0/001/067",
                                         "tile/0/067.p",
                                         "tile/0/067.p/",
                                         "tile/0/067.p/0",
                                         "tile/0/067.p/256",
                                         "tile/0/067.p/01",
                                         "tile/0/067.p/1/2",
                                         "tile/0/x001.p/5",
                                         "tile/0/x001.p/067",
                                         "tile/0/+67",
                                         "tile/0/ 67",
                                         "tile/entries",
                                         "tile/Entries/067",
                                         "tile/0/x018/x446/x744/x073/x709/x551/616",
                                         "tile/0/x999/x999/x999/x999/x999/x999/x999/999",
                                         "tiles/0/067"})
        EXPECT_FALSE(parse_tile_path(wrong)) << wrong;
}

// The example of the specification.
TEST(Tiles, of_a_tree_of_70000) {
    std::map<std::string, std::size_t> count;
    for (const TileId& tile : tiles_between({0, 70'000})) {
        const std::string level = tile.holds == entries ? "entries" : std::to_string(tile.level);
        ++count[level + (tile.width == tile_width ? " full" : " of " + std::to_string(tile.width))];
    }
    const std::map<std::string, std::size_t> expected{{"entries full", 273}, {"entries of 112", 1}, {"0 full", 273},
                                                      {"0 of 112", 1},       {"1 full", 1},         {"1 of 17", 1},
                                                      {"2 of 1", 1}};
    EXPECT_EQ(count, expected);
    EXPECT_EQ(tiles_between({0, 256}),
              (std::vector<TileId>{{entries, 0, 0, 256}, {hash_tile, 0, 0, 256}, {hash_tile, 1, 0, 1}}));
    EXPECT_TRUE(tiles_between({5, 5}).empty());
    EXPECT_TRUE(tiles_between({0, 0}).empty());
}

RC_GTEST_PROP(Tiles, what_appears_while_growing_is_what_the_whole_has_and_the_part_had_not, ()) {
    const auto newer = *rc::gen::inRange<std::uint64_t>(0, 200'000);
    const auto older = *rc::gen::inRange<std::uint64_t>(0, newer + 1);
    const auto set_of = [](std::uint64_t size) {
        const auto all = tiles_between({0, size});
        return std::set<TileId>{all.begin(), all.end()};
    };
    const auto before = set_of(older);
    std::set<TileId> fresh;
    for (const TileId& tile : set_of(newer))
        if (!before.contains(tile)) fresh.insert(tile);
    const auto grown = tiles_between({older, newer});
    RC_ASSERT((std::set<TileId>{grown.begin(), grown.end()}) == fresh);
    RC_ASSERT(grown.size() == fresh.size());
}

TEST(Tiles, bytes_are_read_back_as_written) {
    const std::vector<Hash> some{sha256("a"), sha256("b")};
    EXPECT_EQ(decode_tile(encode_tile(some), 2), some);
    EXPECT_EQ(decode_tile(encode_tile(some), 1).error().code, Code::corrupt);
    EXPECT_EQ(decode_tile(encode_tile(some), 3).error().code, Code::corrupt);
    EXPECT_EQ(decode_tile(encode_tile(some).substr(1), 2).error().code, Code::corrupt);
}

TEST(Bundles, are_read_back_as_written) {
    const std::vector<std::string> some{"", "x", std::string(65535, 'y')};
    const std::string bytes = encode_bundle(some).value();
    EXPECT_EQ(bytes.substr(0, 5), std::string("\0\0\0\1x", 5));
    EXPECT_EQ(decode_bundle(bytes, 3), some);
    EXPECT_EQ(encode_bundle(std::vector{std::string(65536, 'y')}).error().code, Code::invalid);
}

TEST(Bundles, what_is_malformed_is_refused) {
    const std::string two = encode_bundle(std::vector<std::string>{"ab", "cd"}).value();
    struct Row {
        std::string_view says;
        std::string bytes;
        unsigned width;
    };
    const Row rows[] = {
        {"one entry is missing", two, 3},
        {"one entry too many", two, 1},
        {"cut within an entry", two.substr(0, 7), 2},
        {"cut within a length", two.substr(0, 5), 2},
        {"a byte too many", two + "x", 2},
        {"nothing", "", 1},
        {"a length beyond the end",
         std::string("\xff\xff"
                     "ab",
                     4),
         1},
    };
    for (const Row& row : rows) EXPECT_EQ(decode_bundle(row.bytes, row.width).error().code, Code::corrupt) << row.says;
}

TEST(Subtrees, out_of_tiles_are_those_of_the_tree) {
    constexpr std::uint64_t size = 256 * 256 + 700;
    std::map<unsigned, std::vector<Hash>> of_level;  // at heights 0, 8 and 16
    Frontier frontier;
    for (std::uint64_t i = 0; i < size; ++i)
        frontier.append(leaf_hash(std::to_string(i)), [&](unsigned level, const Hash& root) {
            if (level % tile_height == 0) of_level[level / tile_height].push_back(root);
        });
    int reads = 0;
    const SubtreeReader reader = subtrees_from_tiles(size, [&](const TileId& tile) -> Result<std::vector<Hash>> {
        ++reads;
        const auto from = of_level[tile.level].begin() + static_cast<std::ptrdiff_t>(tile.index * tile_width);
        return std::vector<Hash>{from, from + tile.width};
    });
    EXPECT_EQ(root_of(size, reader), frontier.root());
    for (const std::uint64_t index : {0u, 255u, 256u, 65535u, 65536u, 66235u}) {
        reads = 0;
        const auto proof = prove_inclusion(index, size, reader);
        ASSERT_TRUE(proof);
        EXPECT_TRUE(verify_inclusion({index, size, of_level[0][index], frontier.root()}, *proof));
        EXPECT_LE(reads, 6);
    }
    EXPECT_EQ(reader(0, size).error().code, Code::not_found);
    EXPECT_EQ(reader(63, 1).error().code, Code::not_found);
    EXPECT_EQ(reader(8, 258).error().code, Code::not_found);
}

}  // namespace
}  // namespace bulkhead::evidence
