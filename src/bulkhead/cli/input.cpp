#include "bulkhead/cli/input.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

namespace bulkhead::cli {

namespace {

namespace fs = std::filesystem;

bool is_manifest(const fs::path& path) {
    const std::string ending = path.extension().string();
    return ending == ".yaml" || ending == ".yml" || ending == ".json";
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    std::string text{std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
    if (!file.is_open() || file.bad())
        return fail(Code::not_found, fmt::format("{}: cannot be read", path), "check the path and its permissions");
    return text;
}

Result<std::vector<SourceText>> read_sources(const std::vector<std::string>& paths) {
    std::vector<SourceText> sources;
    for (const std::string& name : paths) {
        if (name == "-") {
            sources.push_back({"standard input", {std::istreambuf_iterator<char>{std::cin}, {}}});
            continue;
        }
        std::vector<fs::path> files{name};
        std::error_code error;
        if (fs::is_directory(name, error)) {
            files.clear();
            for (const auto& entry : fs::directory_iterator{name, error})
                if (entry.is_regular_file(error) && is_manifest(entry.path())) files.push_back(entry.path());
            std::ranges::sort(files);
            if (files.empty())
                return fail(Code::not_found, fmt::format("{}: no .yaml, .yml or .json file in this folder", name),
                            "name a file, or a folder that holds manifests");
        }
        for (const fs::path& path : files) {
            auto text = read_file(path.string());
            if (!text) return std::unexpected(text.error());
            sources.push_back({path.string(), *std::move(text)});
        }
    }
    return sources;
}

}  // namespace bulkhead::cli
