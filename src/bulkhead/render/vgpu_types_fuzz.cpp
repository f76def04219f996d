// Whatever the bytes: a list of types or an error in words, never a crash; and a shape is one that a GPU can have.
#include <cstddef>
#include <cstdint>

#include "bulkhead/render/vgpu_types.hpp"

using namespace bulkhead;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto types = render::parse_creatable_types({reinterpret_cast<const char*>(data), size});
    if (!types) {
        invariant(!types.error().what.empty() && !types.error().remedy.empty(), "an error has words and a next step");
        return 0;
    }
    for (const render::VgpuType& type : *types) {
        invariant(!type.id.empty() && !type.name.empty(), "a type has a number and a name");
        if (const auto shape = render::shape_of(type.name))
            invariant(shape->slices >= 1 && shape->slices <= 8 && shape->gigabytes >= 1, "a shape is one of a GPU");
    }
    return 0;
}
