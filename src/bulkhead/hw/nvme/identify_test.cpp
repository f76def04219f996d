#include "bulkhead/hw/nvme/identify.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "bulkhead/hw/nvme/sanitize_log.hpp"

namespace bulkhead::nvme {
namespace {

std::vector<std::uint8_t> empty_page() { return std::vector<std::uint8_t>(identify_bytes); }
void write_text(std::vector<std::uint8_t>& page, std::size_t at, std::string_view text) {
    std::memcpy(page.data() + at, text.data(), text.size());
}

TEST(Identify, a_controller_is_read_by_the_places_of_the_specification) {
    auto page = empty_page();
    write_text(page, 4, "  S4E  1           ");
    write_text(page, 24, "Some\x01model");
    write_text(page, 64, "GXA7801Q");
    page[0] = 0x36, page[1] = 0x1b;
    page[76] = 2;
    page[78] = 0x41;
    page[82] = 1, page[81] = 4;
    page[256] = 0x2a, page[257] = 0x01;
    page[328] = 3, page[331] = 0xA0;
    page[516] = 32;
    page[524] = 5;
    const auto found = parse_controller(page);
    ASSERT_TRUE(found) << found.error().what;
    EXPECT_EQ(*found, (Controller{.vendor = 0x1b36,
                                  .serial = "S4E  1",
                                  .model = "Some?model",
                                  .firmware = "GXA7801Q",
                                  .several_controllers = true,
                                  .id = 0x41,
                                  .version = 0x10400,
                                  .oacs = 0x12a,
                                  .sanicap = 0xA0000003,
                                  .namespaces_max = 32,
                                  .fna = 5}));
    EXPECT_FALSE(parse_controller(empty_page())) << "without a serial number nobody knows which it is";
    EXPECT_FALSE(parse_controller(Page{page}.first(4095)));
}

TEST(Identify, a_namespace_keeps_its_block_format_and_protection_for_the_command_that_formats_it) {
    auto page = empty_page();
    page[0] = 8;
    page[25] = 4;
    page[26] = 0x10 | 3;  // format 3, metadata within
    page[29] = 8 | 1;     // protection type 1, at the beginning
    page[24] = 4, page[30] = 1, page[33] = 0x09, page[99] = 1;
    page[128 + 12 + 2] = 12;
    const auto found = parse_namespace(page);
    ASSERT_TRUE(found) << found.error().what;
    EXPECT_EQ(found->bytes(), 32'768u);
    EXPECT_EQ(found->format, 0x133u);
    EXPECT_TRUE(found->shared && found->write_protected && found->may_fail_when_deallocated);
    EXPECT_EQ(found->deallocated, Deallocated::zeros);
    page[128 + 12 + 2] = 3;
    EXPECT_FALSE(parse_namespace(page)) << "blocks of eight bytes";
    page[26] = 0x0F;
    EXPECT_FALSE(parse_namespace(page)) << "a format it does not have";
}

TEST(Identify, lists_ascend_and_end) {
    auto page = empty_page();
    EXPECT_TRUE(parse_namespace_list(page)->empty());
    page[0] = 1, page[4] = 7;
    EXPECT_EQ(*parse_namespace_list(page), (std::vector<std::uint32_t>{1, 7}));
    page[4] = 1;
    EXPECT_FALSE(parse_namespace_list(page));
    page = empty_page();
    page[0] = 2, page[2] = 0, page[4] = 3;
    EXPECT_EQ(*parse_controller_list(page), (std::vector<std::uint16_t>{0, 3}));
    page[1] = 0xFF;
    EXPECT_FALSE(parse_controller_list(page)) << "more than fit";
}

TEST(SanitizeLog, every_state_is_read_and_unknown_times_are_unknown) {
    std::vector<std::uint8_t> page(sanitize_log_bytes);
    page[0] = 0x00, page[1] = 0x80, page[2] = 2, page[4] = 4;
    page[8] = page[9] = page[10] = page[11] = 0xFF;
    page[16] = 11;
    auto log = parse_sanitize_log(page);
    ASSERT_TRUE(log);
    EXPECT_EQ(log->state(), SanitizeLog::State::in_progress);
    EXPECT_EQ(log->thousandths(), 500u);
    EXPECT_FALSE(log->overwrite);
    EXPECT_EQ(log->crypto_erase, std::chrono::seconds{11});
    EXPECT_EQ(print(*log), "SSTAT 0002h SCDW10 00000004h SPROG 8000h");
    page[2] = 1, page[3] = 9;
    log = parse_sanitize_log(page);
    EXPECT_TRUE(log->succeeded() && log->nothing_written_since() && log->purged());
    page[2] = 7;
    EXPECT_EQ(parse_sanitize_log(page)->state(), SanitizeLog::State::unknown);
    EXPECT_FALSE(parse_sanitize_log(std::span{page}.first(511)));
}

}  // namespace
}  // namespace bulkhead::nvme
