// The few calls with which a node's own files are read and made durable; each error names the file and what to do.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"

namespace bulkhead::agent {

// What errno says of an attempt to `verb` the file.
std::unexpected<Error> disk_error(std::string_view verb, const std::filesystem::path& path);

Result<std::string> read_all(int file, const std::filesystem::path& path);
Result<> write_at(int file, std::size_t offset, std::string_view bytes, const std::filesystem::path& path);
// The folder of the file, so that its name is durable too.
Result<> sync_directory(const std::filesystem::path& path);
// Whole or not at all, whatever is killed meanwhile.
Result<> write_whole(const std::filesystem::path& path, std::string_view bytes);

}  // namespace bulkhead::agent
