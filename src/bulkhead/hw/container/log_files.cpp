#include "bulkhead/hw/container/log_files.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>

namespace bulkhead::container {

namespace {

std::string_view prefix_of(Stream stream) { return stream == Stream::out ? "stdout." : "stderr."; }

std::string log_path(const std::string& directory, Stream stream, std::int64_t first) {
    return fmt::format("{}/{}{}", directory, prefix_of(stream), first);
}

// By the number of their first byte.
std::map<std::int64_t, std::string> files_of(const std::string& directory, Stream stream) {
    std::map<std::int64_t, std::string> files;
    std::error_code wrong;
    for (const auto& entry : std::filesystem::directory_iterator{directory, wrong}) {
        const std::string name = entry.path().filename().string();
        std::int64_t first = 0;
        if (!name.starts_with(prefix_of(stream))) continue;
        const char *number = name.data() + prefix_of(stream).size(), *end = name.data() + name.size();
        if (const auto [stop, bad] = std::from_chars(number, end, first); bad == std::errc{} && stop == end)
            files[first] = entry.path().string();
    }
    return files;
}

}  // namespace

LogWriter::LogWriter(std::string directory, Stream stream, std::int64_t bytes_max)
    : directory_{std::move(directory)}, stream_{stream}, half_bytes_{std::max<std::int64_t>(bytes_max / 2, 1)} {}

void LogWriter::begin_file() {
    if (older_ >= 0) ::unlink(log_path(directory_, stream_, older_).c_str());
    older_ = std::exchange(younger_, end_);
    in_file_ = 0;
    file_ = Fd{::open(log_path(directory_, stream_, younger_).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
}

void LogWriter::write(std::string_view bytes) {
    while (!bytes.empty()) {
        if (younger_ < 0 || in_file_ >= half_bytes_) begin_file();
        const std::size_t fits = std::min(bytes.size(), static_cast<std::size_t>(half_bytes_ - in_file_));
        ssize_t written = 0;
        do written = ::write(*file_, bytes.data(), fits);
        while (written < 0 && errno == EINTR);
        if (written <= 0) {  // lost; the next byte that is kept begins a file with its right number
            end_ += static_cast<std::int64_t>(bytes.size());
            in_file_ = half_bytes_;
            return;
        }
        end_ += written;
        in_file_ += written;
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

Result<LogPiece> read_log(const std::string& directory, Stream stream, std::int64_t offset, std::size_t bytes_max) {
    LogPiece piece{.from = std::max<std::int64_t>(offset, 0), .bytes = {}};
    for (const auto& [first, path] : files_of(directory, stream)) {
        if (piece.bytes.size() >= bytes_max) break;
        if (first > piece.next()) {
            if (!piece.bytes.empty()) break;  // a gap: the reader sees it as a later `from` next time
            piece.from = first;
        }
        const auto file = open_file(path, O_RDONLY);
        if (!file) {
            if (file.error().code == Code::not_found) continue;  // it went while we looked
            return std::unexpected(file.error());
        }
        struct stat status{};
        if (::fstat(**file, &status) != 0) return cannot("read", path);
        if (first + status.st_size <= piece.next()) continue;
        const std::size_t had = piece.bytes.size();
        const off_t at = piece.next() - first;
        piece.bytes.resize(had + std::min(bytes_max - had, static_cast<std::size_t>(status.st_size - at)));
        const ssize_t got = ::pread(**file, piece.bytes.data() + had, piece.bytes.size() - had, at);
        if (got < 0) return cannot("read", path);
        piece.bytes.resize(had + static_cast<std::size_t>(got));
    }
    return piece;
}

}  // namespace bulkhead::container
