#include "bulkhead/hw/rdma/frames.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace bulkhead::rdma {

namespace {

constexpr std::uint16_t roce_port = 4791;

class Writer {
public:
    void octet(unsigned value) { bytes_.push_back(static_cast<std::byte>(value)); }
    void word(unsigned value) {
        octet(value >> 8U & 0xffU);
        octet(value & 0xffU);
    }
    template <class Octets>
    void all(const Octets& octets, std::size_t count) {
        for (std::size_t at = 0; at < count; ++at) octet(static_cast<unsigned>(octets[at]));
    }
    std::size_t size() const { return bytes_.size(); }
    Bytes& bytes() { return bytes_; }

private:
    Bytes bytes_;
};

void write_arp(Writer& out, const Frame& frame) {
    for (const unsigned value : {1U, 0x0800U, 0x0604U, 1U}) out.word(value);  // Ethernet, IPv4, sizes, "who has"
    out.all(frame.from.octets, 6);
    out.all(frame.source.octets, 4);
    out.all(Mac{}.octets, 6);
    out.all(frame.target.octets, 4);
    out.all(frame.mark, frame.mark.size());  // in what pads it to the shortest frame
    out.word(0);
}

void write_roce(Writer& out, const Frame& frame) {
    const std::size_t ip = out.size();
    const unsigned payload = 12 + static_cast<unsigned>(frame.mark.size()) + 4;
    for (const unsigned value : {0x4500U, 28 + payload, 0U, 0x4000U, 0x4011U, 0U}) out.word(value);
    out.all(frame.source.octets, 4);
    out.all(frame.target.octets, 4);
    unsigned sum = 0;
    for (std::size_t at = ip; at < out.size(); at += 2)
        sum += static_cast<unsigned>(out.bytes()[at]) << 8U | static_cast<unsigned>(out.bytes()[at + 1]);
    while (sum > 0xffffU) sum = (sum & 0xffffU) + (sum >> 16U);
    out.bytes()[ip + 10] = static_cast<std::byte>(~sum >> 8U & 0xffU);
    out.bytes()[ip + 11] = static_cast<std::byte>(~sum & 0xffU);
    for (const unsigned value : {49'152U, unsigned{roce_port}, 8 + payload, 0U}) out.word(value);
    // SEND only on a reliable connection, the partition that RoCE always has, queue pair 0x11, sequence 1.
    for (const unsigned value : {0x0440U, 0xffffU, 0U, 0x0011U, 0U, 1U}) out.word(value);
    out.all(frame.mark, frame.mark.size());
    out.word(0);
    out.word(0);
}

}  // namespace

Bytes frame_bytes(const Frame& frame) {
    Writer out;
    out.all(frame.to.octets, 6);
    out.all(frame.from.octets, 6);
    if (frame.vlan) {
        out.word(ETH_P_8021Q);
        out.word(*frame.vlan & 0xfffU);
    }
    out.word(frame.kind == Frame::Kind::arp ? ETH_P_ARP : ETH_P_IP);
    frame.kind == Frame::Kind::arp ? write_arp(out, frame) : write_roce(out, frame);
    return std::move(out.bytes());
}

Result<RawLink> RawLink::open(const Space& space, const std::string& name) {
    Descriptor socket;
    if (auto ok = space.run([&]() -> Result<> {
            socket = Descriptor{::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)};
            if (!socket) return refused(errno, "open a raw socket on", name, "this takes CAP_NET_RAW: run as root");
            sockaddr_ll at{};
            at.sll_family = AF_PACKET;
            at.sll_protocol = htons(ETH_P_ALL);
            at.sll_ifindex = static_cast<int>(::if_nametoindex(name.c_str()));
            if (at.sll_ifindex == 0 || ::bind(*socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
                return refused(errno, "listen on", name, "see that the link is there");
            return {};
        });
        !ok)
        return std::unexpected(ok.error());
    return RawLink{std::move(socket)};
}

Result<> RawLink::send(const Frame& frame) {
    const Bytes bytes = frame_bytes(frame);
    // Dropped at the egress of its own device, a frame is refused here; that is a fence as well.
    if (::send(*socket_, bytes.data(), bytes.size(), 0) < 0 && errno != EPERM && errno != ENOBUFS)
        return refused(errno, "send", "a frame", "see that the link is up");
    return {};
}

int RawLink::next_of(std::span<const Mark> marks, std::chrono::steady_clock::time_point until) {
    Bytes buffer(2'048);
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        pollfd waits{*socket_, POLLIN, 0};
        if (left.count() <= 0 || ::poll(&waits, 1, static_cast<int>(left.count())) <= 0) return -1;
        sockaddr_ll from{};
        socklen_t size = sizeof from;
        const ssize_t got =
            ::recvfrom(*socket_, buffer.data(), buffer.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
        if (got <= 0 || from.sll_pkttype == PACKET_OUTGOING) continue;
        const auto end = buffer.begin() + got;
        for (std::size_t at = 0; at < marks.size(); ++at)
            if (std::search(buffer.begin(), end, marks[at].begin(), marks[at].end()) != end)
                return static_cast<int>(at);
    }
}

bool RawLink::hears(const Mark& mark, std::chrono::milliseconds patience) {
    return next_of({&mark, 1}, std::chrono::steady_clock::now() + patience) == 0;
}

RawLink::Heard RawLink::hears_first(const Mark& first, const Mark& second, std::chrono::milliseconds patience) {
    const std::array<Mark, 2> both{first, second};
    const int came = next_of(both, std::chrono::steady_clock::now() + patience);
    return came == 0 ? Heard::first : came == 1 ? Heard::second : Heard::neither;
}

void RawLink::forget() {
    Bytes buffer(2'048);
    while (::recv(*socket_, buffer.data(), buffer.size(), MSG_DONTWAIT) > 0) {
    }
}

}  // namespace bulkhead::rdma
