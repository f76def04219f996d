// A directory of its own for a test, and batches to put there.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "bulkhead/store/store.hpp"

namespace bulkhead::store {

class Scratch {
public:
    Scratch() {
        std::string name = (std::filesystem::temp_directory_path() / "bulkhead-store-XXXXXX").string();
        invariant(::mkdtemp(name.data()) != nullptr, "a directory can be made for the test");
        directory_ = name;
    }
    ~Scratch() { std::filesystem::remove_all(directory_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    std::string path(const std::string& name = "state.db") const { return (directory_ / name).string(); }
    Options options(const std::string& name = "state.db") const { return {.path = path(name), .busy = {20}}; }

private:
    std::filesystem::path directory_;
};

inline Leaf leaf_number(std::int64_t index) {
    const std::string number = std::to_string(index);
    Leaf leaf{index, std::string(16, 's'),
              "payload " + number + std::string(static_cast<std::size_t>(index % 400), '.')};
    leaf.entry = sha256({leaf.salt, leaf.payload});
    return leaf;
}

}  // namespace bulkhead::store
