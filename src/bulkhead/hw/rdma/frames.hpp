// Frames as an attacker would send them: whole, with whatever source they like, past the kernel's own ideas. For tests
// of fences, between ends that are ours.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "bulkhead/hw/rdma/addresses.hpp"
#include "bulkhead/hw/rdma/netlink_message.hpp"
#include "bulkhead/hw/rdma/space.hpp"

namespace bulkhead::rdma {

using Mark = std::array<std::byte, 16>;  // by which a frame is known when it arrives

struct Frame {
    enum class Kind : std::uint8_t { roce, arp };
    Kind kind = Kind::roce;
    Mac from, to;
    Prefix source, target;
    std::optional<std::uint16_t> vlan;  // tagged by the sender
    Mark mark{};
};
// RoCE v2: UDP to 4791 with a base transport header; the source address is the sender's GID. IPv4 alone.
Bytes frame_bytes(const Frame& frame);

class RawLink {
public:
    // Takes CAP_NET_RAW in that namespace.
    static Result<RawLink> open(const Space& space, const std::string& name);
    Result<> send(const Frame& frame);
    // True as soon as a frame with that mark has come in.
    bool hears(const Mark& mark, std::chrono::milliseconds patience);
    // Of two frames that were sent one after the other, which came in before the other did. That neither came says
    // nothing about the first: whatever was in its way was in the second's, too.
    enum class Heard : std::uint8_t { neither, first, second };
    Heard hears_first(const Mark& first, const Mark& second, std::chrono::milliseconds patience);
    // What has come in and was not asked for is forgotten.
    void forget();

private:
    // 0 or 1: which of them came; -1: none.
    int next_of(std::span<const Mark> marks, std::chrono::steady_clock::time_point until);
    explicit RawLink(Descriptor socket) : socket_{std::move(socket)} {}
    Descriptor socket_;
};

}  // namespace bulkhead::rdma
