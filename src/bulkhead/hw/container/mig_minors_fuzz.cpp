// Whatever the bytes: a table or an error in words, never a crash; and every number fits a device number.
#include <cstddef>
#include <cstdint>

#include "bulkhead/hw/container/mig_minors.hpp"

using namespace bulkhead;
using namespace bulkhead::container;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto parsed = parse_mig_minors({reinterpret_cast<const char*>(data), size});
    if (!parsed) {
        invariant(!parsed.error().what.empty() && !parsed.error().remedy.empty(), "an error has words and a next step");
        return 0;
    }
    for (const auto& [instance, minor] : parsed->access) invariant(minor <= 1'048'575, "a minor has 20 bits");
    return 0;
}
