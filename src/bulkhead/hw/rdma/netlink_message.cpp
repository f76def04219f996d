#include "bulkhead/hw/rdma/netlink_message.hpp"

#include <fmt/core.h>
#include <linux/netlink.h>

#include <algorithm>
#include <limits>

namespace bulkhead::rdma {

namespace {

constexpr std::size_t aligned(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

template <class T>
T copied(View bytes) {
    T out;
    std::memcpy(&out, bytes.data(), sizeof out);
    return out;
}

std::unexpected<Error> broken(const std::string& what) {
    return fail(Code::corrupt, "a netlink answer does not read: " + what, "see which kernel this is, and report it");
}

}  // namespace

Request::Request(std::uint16_t type, std::uint16_t flags) {
    nlmsghdr head{};
    head.nlmsg_type = type;
    head.nlmsg_flags = static_cast<std::uint16_t>(flags | NLM_F_REQUEST);
    append(&head, sizeof head);
}

void Request::append(const void* data, std::size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
    align();
}

void Request::align() { bytes_.resize(aligned(bytes_.size())); }

void Request::attribute(std::uint16_t type, View value) {
    invariant(value.size() <= std::numeric_limits<std::uint16_t>::max() - sizeof(nlattr), "an attribute has 64 KiB");
    const nlattr head{static_cast<std::uint16_t>(sizeof head + value.size()), type};
    append(&head, sizeof head);
    append(value.data(), value.size());
}

void Request::text(std::uint16_t type, std::string_view value) {
    std::string whole{value};
    whole.push_back('\0');
    attribute(type, std::as_bytes(std::span{whole}));
}

Request::Nest::Nest(Request& request, std::uint16_t type) : request_{request}, at_{request.bytes_.size()} {
    request_.attribute(static_cast<std::uint16_t>(type | NLA_F_NESTED), {});
}

Request::Nest::~Nest() {
    const auto size = static_cast<std::uint16_t>(request_.bytes_.size() - at_);
    std::memcpy(request_.bytes_.data() + at_, &size, sizeof size);
}

Bytes Request::bytes(std::uint32_t sequence) const {
    Bytes whole = bytes_;
    auto head = copied<nlmsghdr>(whole);
    head.nlmsg_len = static_cast<std::uint32_t>(whole.size());
    head.nlmsg_seq = sequence;
    std::memcpy(whole.data(), &head, sizeof head);
    return whole;
}

std::string Attribute::as_text() const {
    std::string text{reinterpret_cast<const char*>(value.data()), value.size()};
    text.resize(std::min(text.find('\0'), text.size()));
    return text;
}

Result<std::vector<Attribute>> attributes(View bytes) {
    std::vector<Attribute> all;
    while (bytes.size() >= sizeof(nlattr)) {
        const auto head = copied<nlattr>(bytes);
        if (head.nla_len < sizeof head || head.nla_len > bytes.size())
            return broken(fmt::format("an attribute of {} bytes in {}", head.nla_len, bytes.size()));
        all.push_back({static_cast<std::uint16_t>(head.nla_type & NLA_TYPE_MASK),
                       bytes.subspan(sizeof head, head.nla_len - sizeof head)});
        bytes = bytes.subspan(std::min(aligned(head.nla_len), bytes.size()));
    }
    return all;
}

const Attribute* find(const std::vector<Attribute>& all, std::uint16_t type) {
    const auto at = std::ranges::find(all, type, &Attribute::type);
    return at == all.end() ? nullptr : &*at;
}

Result<std::vector<Message>> messages(View datagram) {
    std::vector<Message> all;
    while (datagram.size() >= sizeof(nlmsghdr)) {
        const auto head = copied<nlmsghdr>(datagram);
        if (head.nlmsg_len < sizeof head || head.nlmsg_len > datagram.size())
            return broken(fmt::format("a message of {} bytes in {}", head.nlmsg_len, datagram.size()));
        all.push_back({head.nlmsg_type, head.nlmsg_flags, head.nlmsg_seq,
                       datagram.subspan(sizeof head, head.nlmsg_len - sizeof head)});
        datagram = datagram.subspan(std::min(aligned(head.nlmsg_len), datagram.size()));
    }
    if (!datagram.empty()) return broken(fmt::format("{} bytes are left over", datagram.size()));
    return all;
}

Result<Refusal> refusal_of(const Message& message) {
    if (message.body.size() < sizeof(nlmsgerr)) return broken("an error that is too short");
    const auto error = copied<nlmsgerr>(message.body);
    if (error.error > 0 || error.error < -4095) return broken(fmt::format("error number {}", error.error));
    Refusal refusal{-error.error, {}};
    // Behind the error stands the request it is about, unless capped, and then attributes.
    std::size_t skip = sizeof(nlmsgerr);
    if ((message.flags & NLM_F_CAPPED) == 0 && error.error != 0) {
        if (error.msg.nlmsg_len < sizeof(nlmsghdr)) return broken("an error about no request");
        skip += aligned(error.msg.nlmsg_len - sizeof(nlmsghdr));
    }
    if ((message.flags & NLM_F_ACK_TLVS) == 0 || skip >= message.body.size()) return refusal;
    const auto extra = attributes(message.body.subspan(skip));
    if (!extra) return std::unexpected(extra.error());
    if (const Attribute* words = find(*extra, NLMSGERR_ATTR_MSG)) refusal.words = words->as_text();
    return refusal;
}

}  // namespace bulkhead::rdma
