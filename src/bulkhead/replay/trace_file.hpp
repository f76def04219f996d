// A trace as it lies on the disk: text, or text that gzip made small.
#pragma once

#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"

namespace bulkhead::replay {

inline constexpr std::size_t most_trace_bytes = std::size_t{64} << 20;

Result<std::string> read_trace_file(const std::string& path);

// The text in a gzip file, of which there may be several parts one behind the other.
Result<std::string> unzipped(std::string_view name, std::string_view bytes, std::size_t most = most_trace_bytes);

}  // namespace bulkhead::replay
