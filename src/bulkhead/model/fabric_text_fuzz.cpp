// Whatever is written, subnets, addresses and octets are read or refused; what is read prints as it was written.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bulkhead/base/result.hpp"
#include "bulkhead/model/subnet.hpp"

using namespace bulkhead;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    if (const auto address = parse_host_address(text)) {
        invariant(print(*address) == text, "there is one way to write an address");
        invariant(address->network().contains(address->address), "an address lies in its network");
    }
    if (const auto subnet = parse_subnet(text)) {
        invariant(print(*subnet) == text, "there is one way to write a subnet");
        invariant(subnet->overlaps(*subnet), "a subnet overlaps itself");
    }
    for (const unsigned bytes : {6u, 8u})
        if (const auto octets = parse_octets(text, bytes))
            invariant(print_octets(*octets, bytes) == text, "there is one way to write octets");
    return 0;
}
