// The directory in which a log is published, as few operations as that takes. A seam, so that a crash between any two
// of them can be tried.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::audit {

struct NewFile {
    std::string path;  // below the directory, with '/'
    std::string bytes;
};

class Files {
public:
    virtual ~Files() = default;
    // Nothing: there is no such file.
    virtual Result<std::optional<std::string>> read(const std::string& path) const = 0;
    // Names of what lies directly in a directory, in order; empty when it does not exist.
    virtual Result<std::vector<std::string>> list(const std::string& directory) const = 0;
    // Each file whole or not at all, whatever happens; all of them durable on return. Replaces what was there.
    virtual Result<> put(std::span<const NewFile> files) = 0;
    // A directory and what is in it, or a file. Not being there is fine.
    virtual Result<> remove(const std::string& path) = 0;
};

// Read only: nothing is created, put and remove are refused.
Result<std::unique_ptr<Files>> open_directory(const std::string& directory);
// Creates it if need be, and holds it: a second writer is refused until the first has closed it.
Result<std::unique_ptr<Files>> hold_directory(const std::string& directory);

}  // namespace bulkhead::audit
