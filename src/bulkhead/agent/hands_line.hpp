// The one line between an agent and its hands: a socket that both inherit, which no file or address leads to. A frame
// is four bytes of length, the lowest first, and so many bytes.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::agent {

class HandsLine {
public:
    explicit HandsLine(container::Fd socket) : socket_{std::move(socket)} {}

    // `unavailable` when nobody is there to hear it.
    Result<> send(std::string_view bytes) const;
    // Nothing: the other end has closed the line, or died in the middle of a word. `invalid`: too much is announced.
    Result<std::optional<std::string>> receive(std::size_t bytes_max) const;
    // Waits until there is something to receive, if only that the line is closed; false: not in that time.
    bool has_news(std::chrono::milliseconds within) const;
    void close() { socket_.close(); }

private:
    Result<std::size_t> fill(char* to, std::size_t bytes) const;  // less than wanted: the line was closed

    container::Fd socket_;
};

struct HandsLines {
    container::Fd agent, hands;
};
Result<HandsLines> make_hands_lines();

}  // namespace bulkhead::agent
