#include "bulkhead/hw/container/mig_minors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace bulkhead::container {

namespace {

constexpr std::size_t mig_minors_bytes_max = 4 << 20;  // 32 GPUs of 15 instances of 8 each make about 120 kB
constexpr std::uint32_t minor_max = 1'048'575;

// Takes a word off the front of the text.
bool take(std::string_view& text, std::string_view word) {
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    return true;
}

std::optional<std::uint32_t> take_number(std::string_view& text) {
    std::uint32_t number = 0;
    const auto [stop, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (wrong != std::errc{} || number > minor_max) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    return number;
}

std::optional<MigInstance> take_instance(std::string_view& text) {
    MigInstance instance;
    if (!take(text, "gpu")) return std::nullopt;
    const auto gpu = take_number(text);
    if (!gpu || !take(text, "/gi")) return std::nullopt;
    const auto gpu_instance = take_number(text);
    if (!gpu_instance) return std::nullopt;
    if (take(text, "/ci")) {
        instance.compute_instance = take_number(text);
        if (!instance.compute_instance) return std::nullopt;
    }
    if (!take(text, "/access")) return std::nullopt;
    instance.gpu = *gpu;
    instance.gpu_instance = *gpu_instance;
    return instance;
}

// What a line is about, then its number; false: neither.
bool read_line(std::string_view text, MigMinors& minors) {
    if (take(text, "config ")) return (minors.config = take_number(text)).has_value() && text.empty();
    if (take(text, "monitor ")) return (minors.monitor = take_number(text)).has_value() && text.empty();
    const auto instance = take_instance(text);
    if (!instance || !take(text, " ")) return false;
    const auto minor = take_number(text);
    // Two nodes for one instance would leave open which one guards it.
    return minor && text.empty() && minors.access.try_emplace(*instance, *minor).second;
}

}  // namespace

Result<MigMinors> parse_mig_minors(std::string_view mig_minors) {
    if (mig_minors.size() > mig_minors_bytes_max)
        return fail(Code::corrupt, fmt::format("mig-minors of {} bytes", mig_minors.size()), "look at it");
    MigMinors minors;
    for (std::size_t line = 1; !mig_minors.empty(); ++line) {
        const std::size_t end = std::min(mig_minors.find('\n'), mig_minors.size());
        const std::string_view text = mig_minors.substr(0, end);
        mig_minors.remove_prefix(std::min(end + 1, mig_minors.size()));
        if (text.empty()) continue;
        if (!read_line(text, minors))
            return fail(
                Code::corrupt,
                fmt::format("mig-minors, line {}: '{}' is not an instance and its number", line, text.substr(0, 80)),
                "this driver writes it otherwise than we know; report the file");
    }
    return minors;
}

}  // namespace bulkhead::container
