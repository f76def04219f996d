#include "bulkhead/agent/line_account.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "bulkhead/agent/trusted_path.hpp"
#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::agent {

namespace {

using container::cannot, container::UserAndGroup;

constexpr const char* usual_name = "bulkhead";
constexpr auto line_files = std::to_array<std::string_view>(
    {"node.json", "tls.key", "tls.crt", "tls.pem", "ca.crt", "evidence.key", "journal.lock", "journal"});

Result<LineAccount> sound(LineAccount account, std::uint32_t first_tenant) {
    if (account.ids.user == 0)
        return fail(Code::invalid, "--user names root, and what faces the network must not be root",
                    "`useradd --system bulkhead` makes a user; without one, leave --user out");
    if (account.ids.user >= first_tenant)
        return fail(Code::invalid, fmt::format("user {} is one that tenants are given", account.ids.user),
                    fmt::format("choose one below {}", first_tenant));
    return account;
}

Result<UserAndGroup> owner_of(const std::string& folder) {
    struct stat facts{};
    if (::lstat(folder.c_str(), &facts) != 0) return cannot("look at", folder);
    if (!S_ISDIR(facts.st_mode)) return fail(Code::denied, folder + " is no folder", "choose another with --data");
    return UserAndGroup{facts.st_uid, facts.st_gid};
}

Result<> check_upper(const std::string& folder) {
    struct stat facts{};
    if (::stat(folder.c_str(), &facts) != 0) return cannot("look at", folder);
    if (facts.st_uid == ::geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
    return fail(Code::denied,
                fmt::format("{} belongs to user {} with mode {:04o}: others could put files in root's way", folder,
                            facts.st_uid, facts.st_mode & 07777),
                fmt::format("chown {0} {1} && chmod 700 {1}", ::geteuid(), folder));
}

}  // namespace

Result<LineAccount> line_account(const std::string& name, std::uint32_t first_tenant) {
    std::uint32_t number = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (!name.empty() && wrong == std::errc{} && end == name.data() + name.size())
        return sound({{number, number}, name}, first_tenant);
    const passwd* const known = ::getpwnam(name.empty() ? usual_name : name.c_str());
    if (known != nullptr) return sound({{known->pw_uid, known->pw_gid}, known->pw_name}, first_tenant);
    if (!name.empty())
        return fail(Code::not_found, fmt::format("there is no user {} here", name),
                    fmt::format("`useradd --system {}`, or leave --user out", name));
    return sound({{first_tenant - 1, first_tenant - 1}, std::to_string(first_tenant - 1)}, first_tenant);
}

std::string line_folder(const std::string& folder) { return folder + "/line"; }

Result<> make_line_folder(const std::string& folder, UserAndGroup owner) {
    const std::string lower = line_folder(folder);
    if (auto trusted = check_way_to(folder); !trusted) return trusted;
    if (auto made = container::make_directory(folder, 0700); !made) return made;
    if (auto ours = check_upper(folder); !ours) return ours;
    if (auto made = container::make_directory(lower, 0700); !made) return made;
    const auto now = owner_of(lower);
    if (!now) return std::unexpected(now.error());
    if (now->user == owner.user && now->user != ::geteuid()) return {};
    if (now->user != ::geteuid())
        return fail(Code::denied,
                    fmt::format("{} belongs to user {}, and the agent runs as user {}", lower, now->user, owner.user),
                    fmt::format("stop it, and chown -R {}:{} {}; or name the old user with --user", owner.user,
                                owner.group, lower));
    // Again from here after a crash: the folder itself is handed over last.
    for (const std::string_view name : line_files) {
        const std::string before = fmt::format("{}/{}", folder, name), after = fmt::format("{}/{}", lower, name);
        if (::rename(before.c_str(), after.c_str()) != 0 && errno != ENOENT) return cannot("move", before);
        if (::lchown(after.c_str(), owner.user, owner.group) != 0 && errno != ENOENT) return cannot("hand over", after);
    }
    if (::lchown(lower.c_str(), owner.user, owner.group) != 0) return cannot("hand over", lower);
    return {};
}

}  // namespace bulkhead::agent
