#include "bulkhead/cli/export_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/evidence/ocsf.hpp"

namespace bulkhead::cli {

namespace {

std::unexpected<Error> cannot_export(std::string_view what, const std::string& path) {
    return fail(Code::unavailable, fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)),
                "check the disk and who may write there; nothing is lost, the export goes on where it was");
}

Result<> write_fully(int fd, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return cannot_export("write", path);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
}

// Its name must survive too.
Result<> sync_folder_of(const std::string& path) {
    const std::string folder = std::filesystem::absolute(path).parent_path();
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = fd >= 0 && ::fsync(fd) == 0;
    if (fd >= 0) ::close(fd);
    return synced ? Result<>{} : cannot_export("sync", folder);
}

}  // namespace

Result<ExportState> read_export_state(std::string_view json) {
    auto state = from_json<ExportState>("the state of an export", json);
    if (state && state->version != export_version)
        return fail(Code::invalid, "the state of an export of another version", "use the program that wrote it");
    return state;
}

ExportFile::ExportFile(ExportFile&& other) noexcept
    : places_{std::move(other.places_)}, state_{std::move(other.state_)}, fd_{std::exchange(other.fd_, -1)} {}

ExportFile::~ExportFile() {
    if (fd_ >= 0 && !places_.out.empty()) ::close(fd_);
}

Result<ExportFile> ExportFile::open(Places places) {
    ExportFile file{std::move(places)};
    file.state_ = {.log = file.places_.log, .next = file.places_.from};
    bool known = false;
    std::error_code ignored;
    if (!file.places_.state.empty() && std::filesystem::exists(file.places_.state, ignored)) {
        const auto text = auth::read_secret(file.places_.state);
        if (!text) return std::unexpected(text.error());
        auto state = read_export_state(*text);
        if (!state)
            return fail(Code::corrupt, fmt::format("{}: {}", file.places_.state, state.error().what),
                        "remove it: the lines in the file tell where to go on");
        if (state->log != file.places_.log)
            return fail(
                Code::conflict,
                fmt::format("{} is of the log {}, and this is {}", file.places_.state, state->log, file.places_.log),
                "one file for each log");
        file.state_ = *std::move(state);
        known = true;
    }
    if (file.places_.out.empty()) {
        file.fd_ = STDOUT_FILENO;
        return file;
    }
    if (auto opened = file.open_file(); !opened) return std::unexpected(opened.error());
    if (auto looked = file.look_at_tail(known); !looked) return std::unexpected(looked.error());
    return file;
}

Result<> ExportFile::open_file() {
    fd_ = ::open(places_.out.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd_ < 0) return cannot_export("open", places_.out);
    // Two that write there would tell everything twice, and each cut off what the other wrote.
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0)
        return fail(Code::conflict, fmt::format("somebody else exports to {}", places_.out), "choose another file");
    return sync_folder_of(places_.out);
}

// Lines after the place that was kept are ours from before a crash if they go on from there; half a line is not one.
Result<> ExportFile::look_at_tail(bool state_known) {
    std::error_code failed;
    const auto length = std::filesystem::file_size(places_.out, failed);
    if (failed)
        return fail(Code::invalid, fmt::format("{}: {}", places_.out, failed.message()),
                    "a plain file; or leave --out away for standard output");
    const auto size = static_cast<std::int64_t>(length);
    if (size == 0) {  // new, or somebody has moved the one before away
        state_.bytes = 0;
        return {};
    }
    if (!state_known) state_.bytes = 0;
    if (size < state_.bytes)
        return fail(Code::conflict,
                    fmt::format("{} has {} bytes, and {} were written", places_.out, size, state_.bytes),
                    "it was cut: move it away, and the export goes on in a new one");
    std::ifstream file{places_.out, std::ios::binary};
    file.seekg(state_.bytes);
    bool first = !state_known;
    for (std::string line; std::getline(file, line) && !file.eof();) {
        const auto sequence = evidence::ocsf_sequence(line);
        if (sequence && first) state_.next = *sequence;
        first = false;
        if (!sequence || *sequence != state_.next)
            return fail(Code::conflict,
                        fmt::format("{} has, at byte {}, a line that is not of leaf {}", places_.out, state_.bytes,
                                    state_.next),
                        "somebody else writes there: choose another file");
        ++state_.next;
        state_.bytes += static_cast<std::int64_t>(line.size()) + 1;
    }
    if (state_.bytes < size && ::ftruncate(fd_, state_.bytes) != 0)
        return cannot_export("cut half a line off", places_.out);
    return {};
}

// Whoever rotates logs moves the file away; what comes next goes into a new one.
Result<> ExportFile::follow_rotation() {
    struct stat open_one{}, named{};
    if (::fstat(fd_, &open_one) != 0) return cannot_export("look at", places_.out);
    const bool there = ::stat(places_.out.c_str(), &named) == 0;
    if (there && named.st_ino == open_one.st_ino && named.st_dev == open_one.st_dev) return {};
    ::close(std::exchange(fd_, -1));
    if (auto opened = open_file(); !opened) return opened;
    state_.bytes = 0;
    return look_at_tail(true);
}

Result<> ExportFile::append(std::span<const std::string> lines) {
    if (lines.empty()) return {};
    if (!places_.out.empty())
        if (auto followed = follow_rotation(); !followed) return followed;
    std::string bytes;
    for (const std::string& line : lines) bytes += line + '\n';
    const std::string name = places_.out.empty() ? "standard output" : places_.out;
    // What an attempt before this one left behind the place that counts.
    if (!places_.out.empty() && ::ftruncate(fd_, state_.bytes) != 0) return cannot_export("cut", name);
    if (auto written = write_fully(fd_, bytes, name); !written) return written;
    if (!places_.out.empty() && ::fdatasync(fd_) != 0) return cannot_export("sync", name);
    state_.next += static_cast<std::int64_t>(lines.size());
    state_.bytes += static_cast<std::int64_t>(bytes.size());
    return places_.state.empty() ? Result<>{} : auth::write_secret(places_.state, to_json(state_));
}

}  // namespace bulkhead::cli
