// Files and folders named on the command line, read whole.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/codec/load.hpp"

namespace bulkhead::cli {

// One file, whole.
Result<std::string> read_file(const std::string& path);

// A folder stands for the .yaml, .yml and .json files directly in it, by name; "-" for standard input.
Result<std::vector<SourceText>> read_sources(const std::vector<std::string>& paths);

}  // namespace bulkhead::cli
