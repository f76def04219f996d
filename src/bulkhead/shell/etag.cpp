#include "bulkhead/shell/etag.hpp"

#include <fmt/core.h>

namespace bulkhead::shell {

std::string tag_of(std::string_view version) { return fmt::format("\"{}\"", version); }

Result<std::string> version_in(std::string_view if_match) {
    if (if_match.empty() || if_match == "*") return std::string{};
    if (if_match.size() >= 2 && if_match.front() == '"' && if_match.find('"', 1) == if_match.size() - 1)
        return std::string{if_match.substr(1, if_match.size() - 2)};
    return fail(Code::invalid, "If-Match is not one version in quotes", "send the ETag as it was given");
}

bool names_version(std::string_view if_none_match, std::string_view version) {
    if (if_none_match == "*") return true;
    while (!if_none_match.empty()) {
        // A comma may stand inside quotes, so tags are cut at their closing quote.
        const std::size_t open = if_none_match.find('"');
        if (open == if_none_match.npos) return false;
        const std::size_t close = if_none_match.find('"', open + 1);
        if (close == if_none_match.npos) return false;
        if (if_none_match.substr(open + 1, close - open - 1) == version) return true;
        if_none_match.remove_prefix(close + 1);
    }
    return false;
}

}  // namespace bulkhead::shell
