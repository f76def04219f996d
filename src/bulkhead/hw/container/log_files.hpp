// The latest of what a tenant wrote, by the byte's number since it started. Two files at most per stream, each named by
// the number of its first byte; when the younger has half of what may be kept, the older goes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"
#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::container {

enum class Stream : std::uint8_t { out, err };

class LogWriter {  // never fails and never waits for space: a full disk costs log, not the tenant
public:
    LogWriter(std::string directory, Stream stream, std::int64_t bytes_max);
    void write(std::string_view bytes);

private:
    void begin_file();
    std::string directory_;
    Stream stream_;
    std::int64_t half_bytes_;
    std::int64_t end_ = 0;                    // number of the next byte
    std::int64_t in_file_ = 0;                // bytes in the younger file
    std::int64_t younger_ = -1, older_ = -1;  // numbers of their first bytes
    Fd file_;
};

struct LogPiece {
    std::int64_t from = 0;  // number of the first byte: later than asked for when that is no longer kept
    std::string bytes;      // empty: nothing further yet
    std::int64_t next() const { return from + static_cast<std::int64_t>(bytes.size()); }
};
Result<LogPiece> read_log(const std::string& directory, Stream stream, std::int64_t offset, std::size_t bytes_max);

}  // namespace bulkhead::container
