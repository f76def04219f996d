#include "bulkhead/agent/hands_line.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace bulkhead::agent {

Result<HandsLines> make_hands_lines() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return container::cannot("open", "a line to the hands", "raise the limit of open files");
    return HandsLines{container::Fd{ends[0]}, container::Fd{ends[1]}};
}

Result<> HandsLine::send(std::string_view bytes) const {
    std::string frame;
    frame.reserve(bytes.size() + 4);
    for (unsigned i = 0; i < 4; ++i) frame += static_cast<char>(bytes.size() >> (8 * i) & 0xFF);
    frame += bytes;
    for (std::string_view left = frame; !left.empty();) {
        const ssize_t sent = ::send(*socket_, left.data(), left.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return container::cannot("write to", "the line between the agent and its hands");
        left.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
}

bool HandsLine::has_news(std::chrono::milliseconds within) const {
    pollfd watched{.fd = *socket_, .events = POLLIN, .revents = 0};
    return ::poll(&watched, 1, static_cast<int>(within.count())) > 0;
}

Result<std::size_t> HandsLine::fill(char* to, std::size_t bytes) const {
    std::size_t have = 0;
    while (have < bytes) {
        const ssize_t got = ::recv(*socket_, to + have, bytes - have, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno != ECONNRESET)
            return container::cannot("read from", "the line between the agent and its hands");
        if (got <= 0) break;
        have += static_cast<std::size_t>(got);
    }
    return have;
}

Result<std::optional<std::string>> HandsLine::receive(std::size_t bytes_max) const {
    std::array<char, 4> header{};
    const auto begun = fill(header.data(), header.size());
    if (!begun) return std::unexpected(begun.error());
    if (*begun < header.size()) return std::nullopt;
    std::size_t size = 0;
    for (unsigned i = 0; i < 4; ++i) size |= std::size_t{static_cast<std::uint8_t>(header.at(i))} << (8 * i);
    if (size > bytes_max)
        return fail(Code::invalid,
                    fmt::format("a message of {} bytes is announced; at most {} may come", size, bytes_max),
                    "this is a fault of the agent: keep its log, and start it again");
    std::string bytes(size, '\0');
    const auto rest = fill(bytes.data(), size);
    if (!rest) return std::unexpected(rest.error());
    if (*rest < size) return std::nullopt;  // whoever spoke has died in the middle of a word
    return bytes;
}

}  // namespace bulkhead::agent
