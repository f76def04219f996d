#include "bulkhead/codec/diagnostic.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace bulkhead {

std::string print(const Diagnostic& diagnostic) {
    const Position& at = diagnostic.where;
    std::string out = at.line > 0 ? fmt::format("{}:{}:{}: {}\n", at.file, at.line, at.column, diagnostic.what)
                                  : fmt::format("{}: {}\n", at.file, diagnostic.what);
    if (!diagnostic.remedy.empty()) out += fmt::format("  try: {}\n", diagnostic.remedy);
    return out;
}

std::string shortened(std::string_view written) {
    constexpr std::size_t longest = 60;
    std::size_t end = std::min(written.size(), longest);
    while (end < written.size() && end > 0 && (static_cast<unsigned char>(written[end]) & 0xc0) == 0x80) --end;
    std::string out{written.substr(0, end)};
    for (char& c : out)
        if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7f) c = '?';
    return end < written.size() ? out + "..." : out;
}

}  // namespace bulkhead
