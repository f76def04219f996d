#include "bulkhead/wire/pieces.hpp"

#include <gmock/gmock.h>

#include "bulkhead/wire/message.hpp"

namespace bulkhead::wire {
namespace {

using testing::HasSubstr;

std::string counting(std::size_t size) {
    std::string out(size, '\0');
    for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(i * 7 % 251 + (i == 0 ? 8 : 0));
    return out;
}

TEST(Pieces, make_the_message_they_were_cut_from_and_none_is_large) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, piece_bytes_max - 1, piece_bytes_max,
                                   piece_bytes_max + 1, 2 * piece_bytes_max, 100'003ul, message_bytes_max}) {
        Outbox outbox;
        outbox.put(counting(size));
        outbox.put("after");
        EXPECT_EQ(outbox.messages(), 2u);
        EXPECT_EQ(outbox.bytes(), size + 5);
        Assembly assembly;
        std::vector<std::string> heard;
        while (!outbox.empty()) {
            const std::string written = outbox.take();
            EXPECT_LE(written.size(), written_bytes_max);
            auto whole = assembly.add(written);
            ASSERT_TRUE(whole) << whole.error().what;
            if (*whole) heard.push_back(std::move(**whole));
        }
        EXPECT_EQ(outbox.bytes(), 0u);
        ASSERT_EQ(heard.size(), 2u) << size;
        EXPECT_TRUE(heard[0] == counting(size)) << size;
        EXPECT_EQ(heard[1], "after");
    }
}

TEST(Pieces, of_a_message_that_was_given_up_are_forgotten) {
    Outbox outbox;
    outbox.put(counting(50'000));
    Assembly assembly;
    EXPECT_EQ(*assembly.add(outbox.take()), std::nullopt);
    EXPECT_EQ(*assembly.add("goodbye"), "goodbye");
    Outbox next;
    next.put(counting(10'000));
    EXPECT_EQ(*assembly.add(next.take()), std::nullopt);
    EXPECT_TRUE(**assembly.add(next.take()) == counting(10'000));
}

TEST(Pieces, have_an_end) {
    Outbox outbox;
    outbox.put(counting(message_bytes_max + 1));
    Assembly assembly;
    Result<std::optional<std::string>> heard = std::nullopt;
    while (!outbox.empty() && heard) heard = assembly.add(outbox.take());
    ASSERT_FALSE(heard);
    EXPECT_THAT(heard.error().what, HasSubstr("more than 2097152 bytes"));
}

TEST(Pieces, that_are_none_are_refused) {
    Assembly assembly;
    EXPECT_FALSE(assembly.add("z"));
    EXPECT_FALSE(assembly.add(std::string("z\0", 2))) << "of nothing";
    EXPECT_FALSE(assembly.add("zzzz"));
    EXPECT_FALSE(decode_agent_message(std::string("z\x03\x0a\x01x", 5))) << "alone";
    EXPECT_FALSE(decode_control_message(std::string("z\x03\x0a\x01x", 5)));
}

}  // namespace
}  // namespace bulkhead::wire
