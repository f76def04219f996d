#include "bulkhead/auth/base64url.hpp"

#include <algorithm>

#include "bulkhead/base/hash.hpp"

namespace bulkhead::auth {

std::string to_base64url(std::string_view bytes) {
    std::string text = to_base64(bytes);
    text.resize(std::min(text.find('='), text.size()));
    std::ranges::replace(text, '+', '-');
    std::ranges::replace(text, '/', '_');
    return text;
}

std::optional<std::string> from_base64url(std::string_view text) {
    if (text.find_first_of("+/=") != std::string_view::npos) return std::nullopt;
    std::string padded{text};
    std::ranges::replace(padded, '-', '+');
    std::ranges::replace(padded, '_', '/');
    padded.append((4 - padded.size() % 4) % 4, '=');
    return from_base64(padded);  // strict: it refuses what writing would not have written
}

}  // namespace bulkhead::auth
