#include "bulkhead/cli/login_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "bulkhead/auth/device_grant.hpp"
#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/cli/clock.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/shell/https_fetch.hpp"

namespace bulkhead::cli {

namespace {

constexpr Duration renew_before{30'000};

// Two commands at once must not exchange one refresh token twice: a provider takes that for theft.
class OneAtATime {
public:
    explicit OneAtATime(const std::string& path)
        : file_{::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)} {
        if (file_ >= 0) ::flock(file_, LOCK_EX);
    }
    ~OneAtATime() {
        if (file_ >= 0) ::close(file_);
    }
    OneAtATime(const OneAtATime&) = delete;
    OneAtATime& operator=(const OneAtATime&) = delete;

private:
    int file_;
};

bool is_fresh(const Login& login) { return login.expiresAt > clock_now() + renew_before; }

std::unexpected<Error> login_again(std::string what) { return fail(Code::denied, std::move(what), "bulkhead login"); }

Result<Login> exchanged(Login login) {
    auto fetch = shell::HttpsFetch::open(login.providerCa);
    if (!fetch) return std::unexpected(fetch.error());
    shell::Question question{.url = login.tokenEndpoint, .bytes_max = auth::provider_answer_bytes_max};
    shell::add_to_form(question.form, "grant_type", "refresh_token");
    shell::add_to_form(question.form, "refresh_token", login.refreshToken);
    shell::add_to_form(question.form, "client_id", login.clientId);
    const auto said = fetch->ask(question);
    if (!said) return std::unexpected(said.error());
    auto answer = auth::read_token_answer(said->status, said->body);
    if (!answer) return std::unexpected(answer.error());
    if (answer->kind == auth::TokenAnswer::Kind::refused) return std::unexpected(answer->why);
    if (answer->kind != auth::TokenAnswer::Kind::granted) return login_again("the provider gave no new token");
    login.accessToken = std::move(answer->access);
    if (!answer->refresh.empty()) login.refreshToken = std::move(answer->refresh);
    login.expiresAt = clock_now() + answer->lasts;
    return login;
}

}  // namespace

std::string login_path() {
    if (const char* const path = std::getenv("BULKHEAD_LOGIN"); path != nullptr && *path != '\0') return path;
    return (std::filesystem::path{context_path()}.parent_path() / "login").string();
}

Result<std::optional<Login>> read_login() {
    const std::string path = login_path();
    const auto text = auth::read_secret(path);
    if (!text && text.error().code == Code::not_found) return std::nullopt;
    if (!text) return std::unexpected(text.error());
    auto login = from_json<Login>(path, *text);
    if (!login)
        return fail(Code::corrupt, fmt::format("{} cannot be read as a login", path),
                    "bulkhead logout, then log in again");
    return *std::move(login);
}

Result<> write_login(const Login& login) {
    const std::filesystem::path path = login_path();
    std::error_code failed;
    std::filesystem::create_directories(path.parent_path(), failed);
    if (failed)
        return fail(Code::unavailable, fmt::format("{}: {}", path.parent_path().string(), failed.message()),
                    "set BULKHEAD_LOGIN to a file that can be written");
    return auth::write_secret(path, to_json(login));
}

Result<bool> remove_login() {
    // A command that is renewing the login finishes first; its lock stays, or two would hold two of them.
    std::error_code failed;
    if (!std::filesystem::exists(login_path(), failed)) return false;
    const OneAtATime turn{login_path()};
    const bool was_there = std::filesystem::remove(login_path(), failed);
    if (failed)
        return fail(Code::unavailable, fmt::format("{}: {}", login_path(), failed.message()), "remove it by hand");
    return was_there;
}

Result<std::string> fresh_token(const Login& login) {
    if (is_fresh(login)) return login.accessToken;
    const OneAtATime turn{login_path()};
    // Another command may have done it while we waited.
    auto now = read_login();
    if (!now) return std::unexpected(now.error());
    if (!*now) return login_again("nobody is logged in any more");
    if (is_fresh(**now)) return (*now)->accessToken;
    if ((*now)->refreshToken.empty())
        return login_again(fmt::format("the login to {} ended at {}", (*now)->server, print((*now)->expiresAt)));
    auto next = exchanged(**std::move(now));
    if (!next) return std::unexpected(next.error());
    if (auto kept = write_login(*next); !kept) return std::unexpected(kept.error());
    return next->accessToken;
}

}  // namespace bulkhead::cli
