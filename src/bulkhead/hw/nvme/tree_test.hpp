// A machine of testdata/nvme in a folder of its own, to be looked at instead of this one.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "bulkhead/hw/nvme/discover.hpp"

namespace bulkhead::nvme {

class UnpackedTree {
public:
    explicit UnpackedTree(const std::string& machine) {
        static std::atomic<int> count = 0;
        folder_ = std::filesystem::temp_directory_path() / fmt::format("nvme-tree-{}-{}", ::getpid(), ++count);
        std::ifstream lines{std::string{BULKHEAD_SOURCE_DIR "/testdata/nvme/"} + machine + ".tree"};
        EXPECT_TRUE(lines) << machine;
        for (std::string line; std::getline(lines, line);) {
            if (line.empty() || line[0] == '#') continue;
            if (const std::size_t arrow = line.find(" -> "); arrow != std::string::npos)
                link(line.substr(0, arrow), line.substr(arrow + 4));
            else if (const std::size_t colon = line.find(": "); colon != std::string::npos)
                put(line.substr(0, colon), line.substr(colon + 2));
            else
                ADD_FAILURE() << machine << ": " << line;
        }
    }
    UnpackedTree(const UnpackedTree&) = delete;
    UnpackedTree& operator=(const UnpackedTree&) = delete;
    ~UnpackedTree() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    Tree tree() const { return {folder_ / "sys", folder_ / "proc", folder_ / "dev"}; }
    std::filesystem::path folder() const { return folder_; }
    void put(const std::string& path, const std::string& content) {
        std::filesystem::create_directories((folder_ / path).parent_path());
        std::ofstream{folder_ / path} << content << '\n';
    }
    void link(const std::string& path, const std::string& target) {
        std::filesystem::create_directories((folder_ / path).parent_path());
        std::filesystem::create_symlink(target, folder_ / path);
    }
    void remove(const std::string& path) { std::filesystem::remove_all(folder_ / path); }

private:
    std::filesystem::path folder_;
};

}  // namespace bulkhead::nvme
