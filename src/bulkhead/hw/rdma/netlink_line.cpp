#include "bulkhead/hw/rdma/netlink_line.hpp"

#include <fmt/core.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>

namespace bulkhead::rdma {

namespace {

constexpr std::size_t datagram_bytes_max = 1 << 20;
constexpr timeval patience{30, 0};  // the kernel answers while it is asked; drivers talk to firmware first

}  // namespace

Result<NetlinkLine> NetlinkLine::open_here(Family family) {
    const int protocol = family == Family::route ? NETLINK_ROUTE : NETLINK_RDMA;
    Descriptor socket{::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol)};
    if (!socket)
        return refused(errno, "open", family == Family::route ? "rtnetlink" : "RDMA netlink",
                       "load the module ib_core for RDMA; rtnetlink is in every kernel");
    const int on = 1;
    (void)::setsockopt(*socket, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
    (void)::setsockopt(*socket, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
    if (::setsockopt(*socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0)
        return refused(errno, "limit", "a netlink socket", "see which kernel this is");
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    if (::connect(*socket, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) != 0)
        return refused(errno, "speak", "netlink to the kernel", "see which kernel this is");
    return NetlinkLine{std::move(socket)};
}

Result<NetlinkLine> NetlinkLine::open(const Space& space, Family family) {
    Result<NetlinkLine> opened = fail(Code::unavailable, "no netlink socket");
    if (auto ok = space.run([&]() -> Result<> {
            opened = open_here(family);
            return {};
        });
        !ok)
        return std::unexpected(ok.error());
    return opened;
}

Result<std::vector<Bytes>> NetlinkLine::ask(const Request& request, std::string_view what) {
    const Bytes sent = request.bytes(++sequence_);
    last_error_ = 0;
    if (::send(*socket_, sent.data(), sent.size(), MSG_NOSIGNAL) < 0)
        return refused(last_error_ = errno, std::string{what}, "by netlink", "see dmesg");
    std::vector<Bytes> answers;
    Bytes buffer(datagram_bytes_max);
    for (;;) {
        sockaddr_nl from{};
        socklen_t size = sizeof from;
        const ssize_t got =
            ::recvfrom(*socket_, buffer.data(), buffer.size(), MSG_TRUNC, reinterpret_cast<sockaddr*>(&from), &size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return fail(errno == EAGAIN ? Code::timeout : Code::unavailable,
                        fmt::format("cannot {}: the kernel did not answer within {} s", what, patience.tv_sec),
                        "see dmesg: a driver may wait for its firmware");
        if (static_cast<std::size_t>(got) > buffer.size())
            return fail(Code::corrupt, fmt::format("cannot {}: an answer of {} bytes", what, got), "report this");
        if (from.nl_pid != 0) continue;  // only the kernel has our ear
        const auto all = messages(View{buffer}.first(static_cast<std::size_t>(got)));
        if (!all) return std::unexpected(all.error());
        for (const Message& message : *all) {
            if (message.sequence != sequence_) continue;
            if (message.type == NLMSG_DONE) return answers;
            if (message.type == NLMSG_ERROR) {
                const auto refusal = refusal_of(message);
                if (!refusal) return std::unexpected(refusal.error());
                if (refusal->error == 0) return answers;
                last_error_ = refusal->error;
                return refused(refusal->error, what, "by netlink",
                               refusal->words.empty() ? "see dmesg for the driver's reason"
                                                      : fmt::format("the kernel says: {}", refusal->words));
            }
            answers.emplace_back(message.body.begin(), message.body.end());
        }
    }
}

}  // namespace bulkhead::rdma
