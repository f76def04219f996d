// Whatever the bytes: a table or an error in words, never a crash; and every number fits a device number.
#include <cstddef>
#include <cstdint>

#include "bulkhead/hw/container/device_majors.hpp"

using namespace bulkhead;
using namespace bulkhead::container;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto parsed = parse_device_majors({reinterpret_cast<const char*>(data), size});
    if (!parsed) {
        invariant(!parsed.error().what.empty() && !parsed.error().remedy.empty(), "an error has words and a next step");
        return 0;
    }
    for (const auto* section : {&parsed->characters, &parsed->blocks})
        for (const auto& [name, major] : *section)
            invariant(!name.empty() && major <= 4'095, "a major has 12 bits and a name");
    return 0;
}
