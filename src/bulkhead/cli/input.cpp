#include "bulkhead/cli/input.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace bulkhead::cli {

namespace {

namespace fs = std::filesystem;

bool is_manifest(const fs::path& path) {
    const std::string ending = path.extension().string();
    return ending == ".yaml" || ending == ".yml" || ending == ".json";
}

}  // namespace

namespace {

// More than any file that is named on a command line; without it, a device that never ends would take all memory.
constexpr std::size_t file_bytes_max = std::size_t{1} << 30;

// Streams of the standard library throw where a read fails in the middle (`/proc/self/mem`), so the kernel is asked.
Result<std::string> read_all(const std::string& name, int descriptor) {
    std::string text;
    std::array<char, 65536> piece{};
    for (;;) {
        const ssize_t count = ::read(descriptor, piece.data(), piece.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0)
            return fail(Code::invalid,
                        fmt::format("{}: cannot be read: {}", name, std::generic_category().message(errno)),
                        "name a regular file");
        if (count == 0) return text;
        text.append(piece.data(), static_cast<std::size_t>(count));
        if (text.size() > file_bytes_max)
            return fail(Code::invalid, fmt::format("{}: holds more than {} bytes", name, file_bytes_max),
                        "name a regular file of at most 1 GiB");
    }
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return fail(Code::not_found,
                    fmt::format("{}: cannot be read: {}", path, std::generic_category().message(errno)),
                    "check the path and its permissions");
    struct stat about{};
    auto text = ::fstat(descriptor, &about) == 0 && S_ISDIR(about.st_mode)
                    ? Result<std::string>{fail(Code::invalid, fmt::format("{}: is a folder, not a file", path),
                                               "name the file in it")}
                    : read_all(path, descriptor);
    ::close(descriptor);
    return text;
}

Result<std::vector<SourceText>> read_sources(const std::vector<std::string>& paths) {
    std::vector<SourceText> sources;
    for (const std::string& name : paths) {
        if (name == "-") {
            auto text = read_all("standard input", STDIN_FILENO);
            if (!text) return std::unexpected(text.error());
            sources.push_back({"standard input", *std::move(text)});
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
