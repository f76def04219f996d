// What a machine prints, as one stream whose numbers never go back. libvirt's virtlogd, which writes it for
// qemu:///system, renames the file when it is full (2 MiB: console.0, and what was that console.1, and so on; the
// oldest goes) and begins a new one. So a place in the stream is a place in one of these pieces; which number each
// begins with is kept beside them, for whoever looks next.
//
// Pieces are known by their files, not by their names. Somebody looks every second or so: a machine that fills all of
// them between two looks prints on from where it was last seen, and what it printed meanwhile is not counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/base/result.hpp"

namespace bulkhead::vm {

struct ConsoleText {
    std::int64_t from = 0;  // the first byte's number
    std::string bytes;
    friend bool operator==(const ConsoleText&, const ConsoleText&) = default;
};

// One at a time may use a machine's: what they look at they also keep.
class Console {
public:
    explicit Console(std::string path) : path_{std::move(path)} {}

    // From that number on, or from the oldest that is kept; never from an earlier one. Nothing there is fine.
    Result<ConsoleText> read(std::int64_t from, std::size_t most) const;
    Result<ConsoleText> tail(std::size_t most) const;
    // Which pieces there are now, on record.
    Result<> keep() const;
    // All pieces and the record: another machine begins.
    Result<> forget() const;

private:
    struct Piece;
    Result<std::vector<Piece>> pieces() const;
    std::string record() const { return path_ + "-pieces"; }
    std::string path_;
};

}  // namespace bulkhead::vm
