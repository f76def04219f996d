// Keys and tokens on disk: written whole or not at all, with mode 0600, and not believed when others could read them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"

namespace bulkhead::auth {

// Durable when it returns. The folder must exist.
Result<> write_secret(const std::string& path, std::string_view content);

// Refused: what others may read or write, what is not a plain file, what belongs to somebody else, what is too long.
Result<std::string> read_secret(const std::string& path, std::size_t at_most = 1 << 20);

}  // namespace bulkhead::auth
