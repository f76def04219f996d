#include "bulkhead/agent/machine_users.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

namespace bulkhead::agent {

// By blocks of the host's, so that ranges that overlap meet in one of them.
Result<std::vector<container::Fd>> hold_users(const std::string& locks, UserRange range) {
    constexpr std::uint32_t block = 4'096;
    std::error_code wrong;
    std::filesystem::create_directories(locks, wrong);
    if (wrong) return container::cannot(wrong.value(), "make", locks);
    std::vector<container::Fd> held;
    for (std::uint32_t at = range.first / block; at <= (range.first + range.count - 1) / block; ++at) {
        const std::string path = fmt::format("{}/vm-users-{}.lock", locks, at);
        auto lock = container::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
        if (!lock) return std::unexpected(lock.error());
        if (::flock(**lock, LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK) return container::cannot("lock", path);
            return fail(Code::conflict,
                        fmt::format("another agent of this host has users between {} and {} for its machines",
                                    at * block, (at + 1) * block - 1),
                        "give each agent a range of its own: --vm-users, at least 8192 apart");
        }
        held.push_back(std::move(*lock));
    }
    return held;
}

bool is_account(std::uint32_t user) {
    passwd entry{};
    passwd* found = nullptr;
    std::vector<char> words(16 << 10);
    return ::getpwuid_r(user, &entry, words.data(), words.size(), &found) == ERANGE || found != nullptr;
}

Result<> anybody_may_open(const std::string& kvm) {
    struct stat found{};
    if (::stat(kvm.c_str(), &found) != 0) return container::cannot("look at", kvm);
    if ((found.st_mode & 06) == 06) return {};
    return fail(Code::denied,
                fmt::format("{} has mode {:04o}: machines that are users of their own cannot open it", kvm,
                            found.st_mode & 07777U),
                "a udev rule KERNEL==\"kvm\", MODE=\"0666\"; or --vm-users 0, and all machines are one user");
}

}  // namespace bulkhead::agent
