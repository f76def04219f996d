#include "bulkhead/replay/trace_file.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

namespace bulkhead::replay {
namespace {

std::string zipped(std::string_view text) {
    z_stream stream{};
    deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
    std::string copy{text}, out(text.size() + 128, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(copy.data());
    stream.avail_in = static_cast<uInt>(copy.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

TEST(TraceFile, what_gzip_made_small_is_read_whole) {
    const std::string text(200'000, 'x');
    EXPECT_EQ(unzipped("t.gz", zipped(text)), text);
    EXPECT_EQ(unzipped("t.gz", zipped("one\n") + zipped("two\n")), "one\ntwo\n") << "parts, as cat makes them";
}

TEST(TraceFile, half_a_file_and_a_changed_byte_are_errors) {
    const std::string whole = zipped("some text that is not too short for this\n");
    for (std::size_t length = 0; length < whole.size(); ++length)
        EXPECT_FALSE(unzipped("t.gz", whole.substr(0, length))) << length;
    std::string changed = whole;
    changed[whole.size() - 6] ^= 1;  // of the checksum
    EXPECT_FALSE(unzipped("t.gz", changed));
}

TEST(TraceFile, a_bomb_ends_at_the_limit) {
    const auto read = unzipped("t.gz", zipped(std::string(10'000'000, '\0')), 1'000'000);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().what, "t.gz holds more than 1000000 bytes");
}

TEST(TraceFile, a_file_that_is_not_there_is_named) {
    const auto read = read_trace_file("/nowhere/at/all.csv");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::not_found);
    EXPECT_NE(read.error().what.find("/nowhere/at/all.csv"), std::string::npos);
}

}  // namespace
}  // namespace bulkhead::replay
