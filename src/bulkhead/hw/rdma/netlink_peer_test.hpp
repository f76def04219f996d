// The other end of a netlink line, for kernels that no machine here has: the wire's bytes over a pair of sockets, and
// an answer to each request as netlink gives it.
#pragma once

#include <linux/netlink.h>
#include <sys/socket.h>

#include <functional>
#include <thread>
#include <utility>

#include "bulkhead/hw/rdma/netlink_line.hpp"

namespace bulkhead::rdma {

class NetlinkPeer {
public:
    // What a request comes to: 0 or an error number. Messages that come before it are said by `say`.
    using Say = std::function<void(const Request&)>;
    using Answer = std::function<int(const Message&, const Say&)>;

    explicit NetlinkPeer(Answer answer) : answer_{std::move(answer)} {
        int ends[2] = {-1, -1};
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
        ours_ = Descriptor{ends[0]};
        theirs_ = Descriptor{ends[1]};
        thread_ = std::thread{[this] { serve(); }};
    }
    ~NetlinkPeer() {
        if (!thread_.joinable()) return;
        ::shutdown(*ours_, SHUT_RDWR);
        thread_.join();
    }
    NetlinkPeer(const NetlinkPeer&) = delete;
    NetlinkPeer& operator=(const NetlinkPeer&) = delete;

    NetlinkLine line() { return NetlinkLine::over(std::move(theirs_)); }  // once

private:
    void serve() {
        Bytes buffer(1 << 16);
        for (;;) {
            const ssize_t got = ::recv(*ours_, buffer.data(), buffer.size(), 0);
            if (got <= 0) return;
            const auto all = messages(View{buffer}.first(static_cast<std::size_t>(got)));
            if (!all || all->empty()) return;
            const Message& request = all->front();
            const Say say = [&](const Request& what) {
                const Bytes bytes = what.bytes(request.sequence);
                (void)!::send(*ours_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            };
            Request end{NLMSG_ERROR, NLM_F_CAPPED};
            end.put(nlmsgerr{-answer_(request, say), {}});
            say(end);
        }
    }

    Answer answer_;
    Descriptor ours_, theirs_;
    std::thread thread_;
};

}  // namespace bulkhead::rdma
