#include "bulkhead/base/reason.hpp"

#include <algorithm>

#include "bulkhead/base/result.hpp"

namespace bulkhead {

namespace {

std::string shown(const Argument& argument, Audience reader) {
    if (argument.least > reader) return "(withheld)";
    if (const auto* number = std::get_if<std::int64_t>(&argument.value)) return std::to_string(*number);
    return std::get<std::string>(argument.value);
}

std::string by_number(std::string_view words, bool one) {
    const std::size_t bar = words.find('|');
    invariant(bar != std::string_view::npos, "words by number are given for one and for others");
    return std::string{one ? words.substr(0, bar) : words.substr(bar + 1)};
}

const Argument* named(std::span<const Argument> arguments, std::string_view name) {
    const auto found = std::ranges::find(arguments, name, &Argument::name);
    return found == arguments.end() ? nullptr : &*found;
}

}  // namespace

std::string fill(std::string_view text, std::span<const Argument> arguments, Audience reader,
                 std::span<const Argument> more) {
    std::string out;
    while (!text.empty()) {
        const std::size_t open = text.find('{');
        out += text.substr(0, open);
        if (open == std::string_view::npos) break;
        const std::size_t close = text.find('}', open);
        invariant(close != std::string_view::npos, "every brace of a reason's text is closed");
        const std::string_view inside = text.substr(open + 1, close - open - 1);
        const std::size_t colon = std::min(inside.find(':'), inside.size());
        const std::string_view name = inside.substr(0, colon);
        const Argument* argument = named(arguments, name);
        if (argument == nullptr) argument = named(more, name);
        invariant(argument != nullptr, "every name in a reason's text has its argument");
        const std::string value = shown(*argument, reader);
        out += colon == inside.size() ? value : by_number(inside.substr(colon + 1), value == "1");
        text.remove_prefix(close + 1);
    }
    return out;
}

}  // namespace bulkhead
