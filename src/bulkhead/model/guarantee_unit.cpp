#include "bulkhead/model/guarantee_unit.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "bulkhead/model/tenant.hpp"

namespace bulkhead {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "1g.10gb", "1c.3g.40gb", "1g.10gb+me": digits first, then letters, digits, '.', '+' and '-', and gigabytes in it.
bool looks_like_a_profile(std::string_view text) {
    return text.size() <= 32 && !text.empty() && is_digit(text.front()) && text.find("g.") != std::string_view::npos &&
           text.find("gb") != std::string_view::npos && std::ranges::all_of(text, [](char c) {
               return is_digit(c) || (c >= 'a' && c <= 'z') || c == '.' || c == '+' || c == '-';
           });
}

}  // namespace

std::optional<GuaranteeUnit> parse_guarantee_unit(std::string_view text) {
    using What = GuaranteeUnit::What;
    if (text == "gpu") return GuaranteeUnit{};
    if (text == "node") return GuaranteeUnit{.what = What::node};
    if (constexpr std::string_view sized = "-gpu-node"; text.ends_with(sized)) {
        const std::string_view number = text.substr(0, text.size() - sized.size());
        GuaranteeUnit unit{.what = What::node};
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), unit.node_gpus);
        if (error != std::errc{} || end != number.data() + number.size() || unit.node_gpus < 1 || unit.node_gpus > 64)
            return std::nullopt;
        return unit;
    }
    if (looks_like_a_profile(text)) return GuaranteeUnit{.what = What::profile};
    return std::nullopt;
}

std::string print_guarantee(const Quota& quota) {
    std::string number = print(quota.guarantee);
    const auto unit = parse_guarantee_unit(quota.guaranteeUnit);
    if (!unit) return fmt::format("{} x \"{}\"", number, quota.guaranteeUnit);
    const auto counted = [&](std::string_view thing) {
        return fmt::format("{} {}{}", number, thing, number == "1" ? "" : "s");
    };
    switch (unit->what) {
        case GuaranteeUnit::What::gpu:
            return counted("GPU");
        case GuaranteeUnit::What::node:
            return unit->node_gpus == 0 ? counted("node")
                                        : fmt::format("{} of {} GPUs", counted("node"), unit->node_gpus);
        case GuaranteeUnit::What::profile:
            return fmt::format("{} x {}", number, quota.guaranteeUnit);
    }
    return number;
}

}  // namespace bulkhead
