#include "bulkhead/hw/rdma/descriptor.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace bulkhead::rdma {

namespace {

constexpr std::size_t text_bytes_max = 1 << 20;

Code code_of(int error) {
    switch (error) {
        case ENOENT:
        case ENODEV:
        case ENXIO:
            return Code::not_found;
        case EPERM:
        case EACCES:
            return Code::denied;
        case EBUSY:
        case EEXIST:
            return Code::conflict;
        case EINVAL:
        case ERANGE:
        case EOPNOTSUPP:
        case EADDRNOTAVAIL:
            return Code::invalid;
        case ENOMEM:
        case ENOSPC:
        case EMFILE:
        case ENFILE:
            return Code::exhausted;
        default:
            return Code::unavailable;
    }
}

}  // namespace

void Descriptor::close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
}

std::unexpected<Error> refused(int error, std::string_view doing, std::string_view object, std::string remedy) {
    return fail(code_of(error), fmt::format("cannot {} {}: {}", doing, object, std::strerror(error)),
                std::move(remedy));
}

Result<std::string> read_text(const std::string& path) {
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file) return refused(errno, "open", path, "see that the kernel has it");
    std::string text;
    std::array<char, 4096> piece{};
    for (;;) {
        const ssize_t got = ::read(*file, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return refused(errno, "read", path, "see dmesg");
        if (got == 0) break;
        text.append(piece.data(), static_cast<std::size_t>(got));
        if (text.size() > text_bytes_max) return fail(Code::corrupt, path + " has no end", "see what it is");
    }
    while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
    return text;
}

Result<> write_text(const std::string& path, std::string_view text) {
    const Descriptor file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
    if (!file) return refused(errno, "open", path, "see that the kernel has it, and that this is root");
    ssize_t put = 0;
    do put = ::write(*file, text.data(), text.size());
    while (put < 0 && errno == EINTR);
    if (put < 0) return refused(errno, fmt::format("write '{}' to", text), path, "see dmesg for the driver's reason");
    if (static_cast<std::size_t>(put) != text.size())
        return fail(Code::unavailable, fmt::format("{} took {} of {} bytes", path, put, text.size()), "see dmesg");
    return {};
}

}  // namespace bulkhead::rdma
