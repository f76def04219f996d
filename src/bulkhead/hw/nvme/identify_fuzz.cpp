// Whatever a drive answers: values within their limits or an error in words, never a crash.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "bulkhead/hw/nvme/identify.hpp"

using namespace bulkhead;
using namespace bulkhead::nvme;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static_cast<void>(parse_controller({data, size}));
    std::array<std::uint8_t, identify_bytes> page{};  // what is short is zeros, so that small inputs get far
    std::copy_n(data, std::min(size, page.size()), page.begin());
    if (const auto found = parse_controller(page)) {
        invariant(!found->serial.empty() && found->serial.size() <= 20, "a serial number has 1 to 20 characters");
        for (const char byte : found->serial + found->model + found->firmware)
            invariant(byte >= ' ' && byte <= '~', "names are printed as they are");
    } else {
        invariant(!found.error().what.empty() && !found.error().remedy.empty(), "an error has words and a next step");
    }
    if (const auto found = parse_namespace(page)) {
        invariant(found->block_bytes >= 512 && found->block_bytes <= 65'536, "a block has a size");
        invariant(found->bytes() / found->block_bytes == found->blocks, "all of it can be counted in bytes");
        invariant((found->format & ~0x31FFU) == 0, "nothing of it reaches the bits that say how to erase");
    }
    if (const auto found = parse_namespace_list(page)) invariant(std::ranges::is_sorted(*found), "ids ascend");
    if (const auto found = parse_controller_list(page)) invariant(std::ranges::is_sorted(*found), "ids ascend");
    return 0;
}
