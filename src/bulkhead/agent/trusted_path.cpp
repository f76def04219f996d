#include "bulkhead/agent/trusted_path.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <filesystem>

#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::agent {

namespace {

namespace fs = std::filesystem;

constexpr int links_max = 40;  // as many as the kernel follows

// Links have no mode of their own: whose they are is all there is.
Result<> check_one(const fs::path& at, const struct stat& facts, const std::string& path) {
    const bool ours = facts.st_uid == 0 || facts.st_uid == ::geteuid();
    if (!ours)
        return fail(Code::denied,
                    fmt::format("{}, on the way to {}, belongs to user {}: they could put another folder in its place",
                                at.string(), path, facts.st_uid),
                    fmt::format("chown root {}, or choose another folder with --data", at.string()));
    const bool others_write = (facts.st_mode & S_IWOTH) != 0 || ((facts.st_mode & S_IWGRP) != 0 && facts.st_gid != 0);
    if (S_ISLNK(facts.st_mode) || !others_write || (facts.st_mode & S_ISVTX) != 0) return {};
    return fail(
        Code::denied,
        fmt::format("{}, on the way to {}, is writable for others (mode {:04o}, group {}): they could put another "
                    "folder in the place of one in it",
                    at.string(), path, facts.st_mode & 07777, facts.st_gid),
        fmt::format("chmod go-w {}, or choose another folder with --data", at.string()));
}

void put_first(std::deque<fs::path>& left, const fs::path& steps) {
    left.insert(left.begin(), steps.begin(), steps.end());
}

}  // namespace

// As the kernel walks it, one step at a time: the last step is looked at only for being a link.
Result<> check_way_to(const std::string& path) {
    std::deque<fs::path> left;
    put_first(left, path);
    fs::path at = "/";
    for (int links = 0; !left.empty();) {
        struct stat facts{};
        if (::lstat(at.c_str(), &facts) != 0) return container::cannot("look at", at.string());
        if (auto trusted = check_one(at, facts, path); !trusted) return trusted;
        const fs::path step = left.front();
        left.pop_front();
        if (step.empty() || step == "." || step == "/") continue;
        if (step == "..") {
            at = at.parent_path();
            continue;
        }
        const fs::path next = at / step;
        if (::lstat(next.c_str(), &facts) != 0)
            return errno == ENOENT ? Result<>{} : container::cannot("look at", next.string());
        if (!S_ISLNK(facts.st_mode)) {
            at = next;
            continue;
        }
        if (auto trusted = check_one(next, facts, path); !trusted) return trusted;
        if (++links > links_max) return container::cannot(ELOOP, "look at", path);
        std::error_code failed;
        const fs::path target = fs::read_symlink(next, failed);
        if (failed) return container::cannot(failed.value(), "read", next.string());
        if (target.is_absolute()) at = "/";
        put_first(left, target);
    }
    return {};
}

}  // namespace bulkhead::agent
