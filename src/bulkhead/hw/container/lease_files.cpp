#include "bulkhead/hw/container/lease_files.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <ctime>

namespace bulkhead::container {

namespace {

// Nothing: there is no such file.
Result<std::optional<std::string>> read_if_there(const std::string& path) {
    auto text = read_whole(path);
    if (text) return std::move(*text);
    if (text.error().code == Code::not_found) return std::nullopt;
    return std::unexpected(text.error());
}

template <class Value>
Result<std::optional<Value>> parsed(const std::string& path, Result<Value> (*parse)(std::string_view)) {
    const auto text = read_if_there(path);
    if (!text) return std::unexpected(text.error());
    if (!*text) return std::nullopt;
    auto value = parse(**text);
    if (!value) {
        value.error().what = path + ": " + value.error().what;
        return std::unexpected(value.error());
    }
    return std::move(*value);
}

}  // namespace

Result<> LeaseFiles::make() const {
    // Others may pass through to the root of a container, whose user is one of them, and list nothing on the way.
    for (const auto& path : {directory_, scratch(), bundle()})
        if (auto made = make_directory(path, 0711); !made) return made;
    for (const auto& path : {runtime(), log()})
        if (auto made = make_directory(path, 0700); !made) return made;
    return {};
}

Result<std::optional<TenantSpec>> LeaseFiles::spec() const { return parsed(directory_ + "/lease.json", spec_of); }
Result<std::optional<Outcome>> LeaseFiles::outcome() const { return parsed(directory_ + "/outcome.json", outcome_of); }
Result<std::optional<Checkpoint>> LeaseFiles::checkpoint() const {
    return parsed(directory_ + "/saved.json", checkpoint_of);
}

Result<> LeaseFiles::write_stop(std::int64_t kill_at_ms) const {
    return write_durably(directory_ + "/stop", fmt::format("{}", kill_at_ms));
}

Result<std::optional<std::int64_t>> LeaseFiles::stop() const {
    const auto text = read_if_there(directory_ + "/stop");
    if (!text) return std::unexpected(text.error());
    if (!*text) return std::nullopt;
    std::int64_t kill_at_ms = 0;  // a file that does not read says: now
    std::from_chars((*text)->data(), (*text)->data() + (*text)->size(), kill_at_ms);
    return kill_at_ms;
}

Result<std::optional<Fd>> LeaseFiles::lock(std::string_view name) const {
    auto file = open_file(fmt::format("{}/{}", directory_, name), O_RDWR | O_CREAT);
    if (!file) return std::unexpected(file.error());
    if (::flock(**file, LOCK_EX | LOCK_NB) == 0) return std::move(*file);
    if (errno == EWOULDBLOCK) return std::nullopt;
    return cannot("lock", directory_);
}

bool LeaseFiles::began_saving() const { return ::access((directory_ + "/saving").c_str(), F_OK) == 0; }

Result<bool> LeaseFiles::locked(std::string_view name) const {
    const auto file = open_file(fmt::format("{}/{}", directory_, name), O_RDWR);
    if (!file) {
        if (file.error().code == Code::not_found) return false;
        return std::unexpected(file.error());
    }
    if (::flock(**file, LOCK_SH | LOCK_NB) == 0) return false;
    if (errno == EWOULDBLOCK) return true;
    return cannot("ask for the lock of", directory_);
}

std::int64_t boot_clock_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * 1'000 + now.tv_nsec / 1'000'000;
}

}  // namespace bulkhead::container
