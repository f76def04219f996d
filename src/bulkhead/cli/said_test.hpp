// The program as a person meets it: what it said, and files and folders that are gone with the test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/cli/command.hpp"

namespace bulkhead::cli {

struct Said {
    int status = 0;
    std::string out, err;
};

// Manifests that the project ships.
const std::string examples = BULKHEAD_SOURCE_DIR "/examples/";

inline Said said_by(const char* command, std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), {"bulkhead", command});
    std::ostringstream out, err;
    const int status = run(static_cast<int>(arguments.size()), arguments.data(), out, err, false);
    return {status, out.str(), err.str()};
}

inline std::string slurp(const std::filesystem::path& path) {
    std::ifstream file{path};
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// Named after the test: tests run side by side.
class Text {
public:
    explicit Text(std::string_view text) : path_{testing::TempDir() + test() + ".yaml"} {
        std::ofstream{path_} << text;
    }
    ~Text() { std::filesystem::remove(path_); }
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;
    const char* path() const { return path_.c_str(); }

private:
    static std::string test() {
        const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
        return std::string{info->test_suite_name()} + "-" + info->name();
    }
    std::string path_;
};

// A folder of files, and one command that is told of them.
class InFolder : public testing::Test {
protected:
    explicit InFolder(const char* command) : command_{command} { std::filesystem::create_directories(folder_); }
    ~InFolder() override { std::filesystem::remove_all(folder_); }

    void write(const std::string& name, std::string_view text) { std::ofstream{path(name)} << text; }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }

    int run_with(const std::vector<std::string>& arguments) {
        std::vector<const char*> raw;
        raw.reserve(arguments.size());
        for (const std::string& argument : arguments) raw.push_back(argument.c_str());
        const Said said = said_by(command_, raw);
        out_ = said.out;
        err_ = said.err;
        return said.status;
    }

    const char* command_;
    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("bulkhead-in-folder-" + std::to_string(getpid()));
    std::string out_, err_;
};

}  // namespace bulkhead::cli
