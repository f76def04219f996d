#include "bulkhead/shell/exposition.hpp"

#include <array>

namespace bulkhead::shell {

namespace {

void escape_into(std::string& out, std::string_view text, bool quotes) {
    for (const char c : text) {
        if (c == '\n') {
            out += "\\n";
            continue;
        }
        if (c == '\\' || (quotes && c == '"')) out += '\\';
        out += c;
    }
}

}  // namespace

std::string with_label(std::string before, std::string_view name, std::string_view value) {
    if (!before.empty()) before += ',';
    before += name;
    before += "=\"";
    escape_into(before, value, true);
    before += '"';
    return before;
}

std::string labels(std::initializer_list<std::pair<std::string_view, std::string_view>> pairs) {
    std::string out;
    for (const auto& [name, value] : pairs) out = with_label(std::move(out), name, value);
    return out;
}

std::string decimal(std::int64_t value, int digits) {
    constexpr std::array<std::int64_t, 7> powers{1, 10, 100, 1'000, 10'000, 100'000, 1'000'000};
    const std::int64_t unit = powers.at(static_cast<std::size_t>(digits));
    if (digits == 0) return std::to_string(value);
    const std::int64_t magnitude = value < 0 ? -value : value;
    return fmt::format("{}{}.{:0{}}", value < 0 ? "-" : "", magnitude / unit, magnitude % unit, digits);
}

std::string decimal(Gpus value) { return value.is_decimal() ? decimal(value.thousandths(), 3) : print_decimal(value); }

Exposition::Family& Exposition::family(std::string_view name, Type type, std::string_view about) {
    const auto known = families_.find(name);
    if (known != families_.end()) return known->second;
    static constexpr std::array<std::string_view, 3> types{"counter", "gauge", "histogram"};
    Family& family = families_[std::string{name}];
    family.name_ = name;
    family.head_ = fmt::format("# HELP {} ", name);
    escape_into(family.head_, about, false);
    family.head_ += fmt::format("\n# TYPE {} {}\n", name, types.at(static_cast<std::size_t>(type)));
    return family;
}

std::string Exposition::text() const {
    std::string out;
    for (const auto& [name, family] : families_) {
        out += family.head_;
        out += family.series_;
    }
    return out;
}

}  // namespace bulkhead::shell
