#include "bulkhead/render/vgpu_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace bulkhead::render {

namespace {

constexpr std::size_t types_max = 1024, name_max = 64;

std::string_view trimmed_type(std::string_view text) {
    const std::size_t from = text.find_first_not_of(" \t\r");
    if (from == std::string_view::npos) return {};
    return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

std::optional<unsigned> small_number(std::string_view text) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value > 1'000'000)
        return std::nullopt;
    return value;
}

}  // namespace

Result<std::vector<VgpuType>> parse_creatable_types(std::string_view text) {
    std::vector<VgpuType> types;
    for (unsigned number = 1; !text.empty(); ++number) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (trimmed_type(line).empty()) continue;
        const std::size_t colon = line.find(':');
        const std::string_view id = trimmed_type(line.substr(0, colon));
        const std::string_view name = colon == std::string_view::npos ? "" : trimmed_type(line.substr(colon + 1));
        if (id == "ID") continue;
        const bool plain = std::ranges::all_of(name, [](char c) { return c >= 0x20 && c < 0x7F; });
        if (!small_number(id) || name.empty() || name.size() > name_max || !plain || types.size() == types_max)
            return fail(Code::corrupt, fmt::format("line {} of the driver's list of vGPU types is none", number),
                        "see whether this driver lists them in another way");
        types.push_back({std::string{id}, std::string{name}});
    }
    return types;
}

std::optional<VgpuShape> shape_of(std::string_view type_name) {
    const std::size_t last = type_name.rfind('-');
    if (last == std::string_view::npos || last == 0) return std::nullopt;
    std::string_view size = type_name.substr(last + 1);
    const std::string_view front = type_name.substr(0, last);
    const std::size_t middle = front.rfind('-');
    if (middle == std::string_view::npos || middle == 0) return std::nullopt;
    VgpuShape shape;
    shape.media = size.ends_with("CME");
    if (!shape.media && !size.ends_with('C')) return std::nullopt;
    size.remove_suffix(shape.media ? 3 : 1);
    const auto slices = small_number(front.substr(middle + 1)), gigabytes = small_number(size);
    if (!slices || !gigabytes || *slices == 0 || *slices > 8 || *gigabytes == 0) return std::nullopt;
    shape.slices = *slices;
    shape.gigabytes = *gigabytes;
    return shape;
}

}  // namespace bulkhead::render
