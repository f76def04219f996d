#include "bulkhead/replay/trace_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace bulkhead::replay {

namespace {

struct Inflating {
    z_stream stream{};
    bool ready = inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK;  // 16: gzip's header, and nothing else
    Inflating() = default;
    ~Inflating() {
        if (ready) inflateEnd(&stream);
    }
    Inflating(const Inflating&) = delete;
    Inflating& operator=(const Inflating&) = delete;
};

}  // namespace

Result<std::string> unzipped(std::string_view name, std::string_view bytes, std::size_t most) {
    Inflating work;
    if (!work.ready) return fail(Code::unavailable, "zlib could not be started", "is there memory left?");
    z_stream& stream = work.stream;
    // zlib takes lengths of 32 bits.
    if (bytes.size() > most_trace_bytes)
        return fail(Code::invalid, fmt::format("{} is larger than {} bytes", name, most_trace_bytes), "split it");
    std::string copy{bytes};
    stream.next_in = reinterpret_cast<Bytef*>(copy.data());
    stream.avail_in = static_cast<uInt>(copy.size());
    std::string out;
    std::array<char, 1 << 16> piece{};
    for (;;) {
        stream.next_out = reinterpret_cast<Bytef*>(piece.data());
        stream.avail_out = static_cast<uInt>(piece.size());
        const int outcome = inflate(&stream, Z_NO_FLUSH);
        out.append(piece.data(), piece.size() - stream.avail_out);
        if (out.size() > most)
            return fail(Code::invalid, fmt::format("{} holds more than {} bytes", name, most), "split it");
        if (outcome == Z_STREAM_END) {
            if (stream.avail_in == 0) return out;
            if (inflateReset(&stream) != Z_OK) break;
        } else if (outcome != Z_OK) {
            break;
        }
    }
    return fail(
        Code::invalid,
        fmt::format("{} is not whole, or not gzip: {}", name, stream.msg != nullptr ? stream.msg : "it ends too early"),
        "gunzip -t says more");
}

Result<std::string> read_trace_file(const std::string& path) {
    std::error_code failed;
    const bool regular = std::filesystem::is_regular_file(path, failed);
    if (failed || !regular)
        return fail(Code::not_found,
                    fmt::format("{} cannot be read: {}", path, failed ? failed.message() : "it is not a file"),
                    "check the path");
    std::ifstream file{path, std::ios::binary};
    std::string bytes(most_trace_bytes + 1, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(file.gcount()));
    if (!file.is_open() || file.bad())
        return fail(Code::not_found, fmt::format("{} cannot be read", path), "check who may read it");
    if (bytes.size() > most_trace_bytes)
        return fail(Code::invalid, fmt::format("{} is larger than {} bytes", path, most_trace_bytes), "split it");
    if (bytes.starts_with("\x1f\x8b")) return unzipped(path, bytes);
    return bytes;
}

}  // namespace bulkhead::replay
