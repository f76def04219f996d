#include "bulkhead/auth/secret_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace bulkhead::auth {
namespace {

class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    int get() const { return number_; }
    explicit operator bool() const { return number_ >= 0; }

private:
    int number_;
};

std::unexpected<Error> system_failure(std::string_view did, const std::string& path, int error) {
    const Code code = error == ENOENT   ? Code::not_found
                      : error == EACCES ? Code::denied
                      : error == ENOSPC ? Code::exhausted
                                        : Code::unavailable;
    return fail(code, fmt::format("{} {}: {}", did, path, std::strerror(error)));
}

bool write_all(int to, std::string_view content) {
    while (!content.empty()) {
        const ssize_t written = ::write(to, content.data(), content.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<> write_secret(const std::string& path, std::string_view content) {
    std::string temporary = path + ".XXXXXX";
    {
        // mkstemp makes the file anew with mode 0600, whatever the umask: at no moment can others open it.
        const Descriptor file{::mkostemp(temporary.data(), O_CLOEXEC)};
        if (!file) return system_failure("cannot write", path, errno);
        if (!write_all(file.get(), content) || ::fsync(file.get()) != 0) {
            const int error = errno;
            ::unlink(temporary.c_str());
            return system_failure("cannot write", path, error);
        }
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        const int error = errno;
        ::unlink(temporary.c_str());
        return system_failure("cannot write", path, error);
    }
    const Descriptor folder{::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!folder || ::fsync(folder.get()) != 0) return system_failure("cannot make durable", path, errno);
    return {};
}

Result<std::string> read_secret(const std::string& path, std::size_t at_most) {
    // NONBLOCK: a pipe put in the file's place must not hang us. NOFOLLOW: nor may a link lead us elsewhere.
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
    if (!file) return system_failure("cannot read", path, errno);
    struct stat facts{};
    if (::fstat(file.get(), &facts) != 0) return system_failure("cannot read", path, errno);
    if (!S_ISREG(facts.st_mode)) return fail(Code::denied, fmt::format("{} is not a plain file", path));
    if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return fail(Code::denied, fmt::format("others may use {}: its mode is {:04o}", path, facts.st_mode & 07777),
                    fmt::format("chmod 600 {}, and replace the secret in it", path));
    if (facts.st_uid != ::geteuid() && facts.st_uid != 0)
        return fail(Code::denied, fmt::format("{} belongs to user {}, not to us", path, facts.st_uid),
                    fmt::format("chown it to user {}", ::geteuid()));
    if (std::cmp_greater(facts.st_size, at_most))
        return fail(Code::invalid, fmt::format("{} has {} bytes; at most {} are read", path, facts.st_size, at_most));
    std::string content(static_cast<std::size_t>(facts.st_size), '\0');
    std::size_t have = 0;
    while (have < content.size()) {
        const ssize_t got = ::read(file.get(), content.data() + have, content.size() - have);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return system_failure("cannot read", path, errno);
        if (got == 0) break;
        have += static_cast<std::size_t>(got);
    }
    content.resize(have);
    return content;
}

}  // namespace bulkhead::auth
