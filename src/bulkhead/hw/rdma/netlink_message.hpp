// Netlink as bytes: how a request is written and an answer is read. No socket here, so that every request can be held
// against bytes checked by hand, and every answer, however broken, be tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::rdma {

using Bytes = std::vector<std::byte>;
using View = std::span<const std::byte>;

// One request. Attributes in the order they are put; a nest closes itself when its scope ends, which must be
// before the request is handed on.
class Request {
public:
    Request(std::uint16_t type, std::uint16_t flags);

    template <class T>
        requires std::is_trivially_copyable_v<T>
    void put(const T& value) {  // the family's own header
        append(&value, sizeof value);
    }
    void attribute(std::uint16_t type, View value);
    template <class T>
        requires std::is_trivially_copyable_v<T>
    void number(std::uint16_t type, const T& value) {
        attribute(type, std::as_bytes(std::span{&value, 1}));
    }
    void text(std::uint16_t type, std::string_view value);  // with its NUL

    class Nest {
    public:
        Nest(Request& request, std::uint16_t type);
        ~Nest();
        Nest(const Nest&) = delete;
        Nest& operator=(const Nest&) = delete;

    private:
        Request& request_;
        std::size_t at_;
    };

    // With its length filled in.
    Bytes bytes(std::uint32_t sequence) const;

private:
    void append(const void* data, std::size_t size);
    void align();

    Bytes bytes_;
};

struct Attribute {
    std::uint16_t type = 0;  // without the flags
    View value;
    // Nothing: it is shorter than that.
    template <class T>
        requires std::is_trivially_copyable_v<T>
    std::optional<T> as() const {
        if (value.size() < sizeof(T)) return std::nullopt;
        T out;
        std::memcpy(&out, value.data(), sizeof out);
        return out;
    }
    std::string as_text() const;  // up to a NUL
};

// What follows a header: attribute after attribute, until the bytes end. One whose length lies ends it, as an error.
Result<std::vector<Attribute>> attributes(View bytes);
const Attribute* find(const std::vector<Attribute>& all, std::uint16_t type);

struct Message {
    std::uint16_t type = 0, flags = 0;
    std::uint32_t sequence = 0;
    View body;  // after nlmsghdr
};
// Of one datagram.
Result<std::vector<Message>> messages(View datagram);

struct Refusal {
    int error = 0;      // 0: it was an acknowledgement
    std::string words;  // the kernel's own, where it has any
};
Result<Refusal> refusal_of(const Message& message);  // of NLMSG_ERROR

}  // namespace bulkhead::rdma
