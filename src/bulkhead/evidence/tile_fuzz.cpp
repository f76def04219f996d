// Whatever the bytes: what is read of tiles, bundles and their paths is written back as the same bytes.
#include <cstddef>
#include <cstdint>

#include "bulkhead/evidence/tile.hpp"

using namespace bulkhead;
using namespace bulkhead::evidence;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const unsigned width = data[0] + 1u;
    const std::string_view bytes{reinterpret_cast<const char*>(data) + 1, size - 1};
    if (const auto entries = decode_bundle(bytes, width)) {
        invariant(entries->size() == width, "a bundle has as many entries as its name says");
        invariant(encode_bundle(*entries) == bytes, "a bundle has one spelling");
    }
    if (const auto hashes = decode_tile(bytes, width))
        invariant(encode_tile(*hashes) == bytes, "a tile has one spelling");
    if (const auto tile = parse_tile_path(bytes)) invariant(path_of(*tile) == bytes, "a tile has one path");
    return 0;
}
