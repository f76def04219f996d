// Long messages travel in pieces, so that no write of gRPC's reaches the size of a TLS record. Where the bytes of a
// write fill its last record exactly, gRPC 1.51 sends along what happens to lie in the memory behind
// it, in the clear, and the other end hangs up. Its records hold 16,284 bytes; a piece, the frames around it and
// everything else that HTTP/2 may add to one write stay far below.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"

namespace bulkhead::wire {

inline constexpr std::size_t piece_bytes_max = 8'192;
// What one write may hold: a piece with its tags and lengths.
inline constexpr std::size_t written_bytes_max = piece_bytes_max + 32;

// Messages that wait to be written, in order. An idle one holds no memory.
class Outbox {
public:
    void put(std::string&& message);
    void clear();
    bool empty() const { return waiting_.empty(); }
    std::size_t messages() const { return waiting_.size(); }
    std::size_t bytes() const { return bytes_; }
    std::string take();  // the next message, or the next piece of it

private:
    std::list<std::string> waiting_;
    std::size_t bytes_ = 0;
    std::size_t taken_ = 0;  // of the first one
};

// The other end: whole messages from what arrives.
class Assembly {
public:
    // Nothing when more pieces are to come. A whole message amid pieces says that their sender has given them up.
    Result<std::optional<std::string>> add(std::string_view arrived);

private:
    std::string begun_;
};

}  // namespace bulkhead::wire
