// Compact JSON in which nothing is wrong, straight into a described struct: no tree, no positions. A control plane that
// starts reads back what it wrote by the hundred thousand. Whatever is not certain to be right makes the reader give
// up; decode.hpp then reads the text again, strictly, and says what is wrong with it, or that nothing is.
#pragma once

#include <span>
#include <string_view>

#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/shape.hpp"

namespace bulkhead {

// True: the fresh target now holds what strict reading would have given. False: it is half filled, and means nothing.
bool read_compact_into(std::string_view text, const Shape& shape, void* fresh,
                       std::span<const std::string_view> besides, const Limits& limits);

}  // namespace bulkhead
