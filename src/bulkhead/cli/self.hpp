// Where this very program lies: for starting it again with other arguments, and for its siblings.
#pragma once

#include <filesystem>

namespace bulkhead::cli {

inline std::filesystem::path self_path() {
    std::error_code failed;
    return std::filesystem::read_symlink("/proc/self/exe", failed);
}

}  // namespace bulkhead::cli
