#include "bulkhead/hw/nvme/identify.hpp"

#include <fmt/format.h>

#include "bulkhead/hw/nvme/bytes.hpp"

namespace bulkhead::nvme {

namespace {

std::unexpected<Error> no_page(std::string what) {
    return fail(Code::corrupt, std::move(what), "compare with `nvme id-ctrl` and `nvme id-ns`; ask the drive's maker");
}

std::string text_at(Page page, std::size_t at, std::size_t size) {
    std::string text{page.begin() + static_cast<std::ptrdiff_t>(at),
                     page.begin() + static_cast<std::ptrdiff_t>(at + size)};
    while (!text.empty() && (text.back() == ' ' || text.back() == '\0')) text.pop_back();
    text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
    for (char& byte : text)
        if (byte < ' ' || byte > '~') byte = '?';
    return text;
}

}  // namespace

Result<Controller> parse_controller(Page page) {
    if (page.size() != identify_bytes) return no_page(fmt::format("Identify Controller has {} bytes", page.size()));
    Controller found{.vendor = number_at<std::uint16_t>(page, 0),
                     .serial = text_at(page, 4, 20),
                     .model = text_at(page, 24, 40),
                     .firmware = text_at(page, 64, 8),
                     .several_controllers = (page[76] & 2U) != 0,
                     .id = number_at<std::uint16_t>(page, 78),
                     .version = number_at<std::uint32_t>(page, 80),
                     .oacs = number_at<std::uint16_t>(page, 256),
                     .sanicap = number_at<std::uint32_t>(page, 328),
                     .namespaces_max = number_at<std::uint32_t>(page, 516),
                     .fna = page[524]};
    if (found.serial.empty()) return no_page("the drive tells no serial number, by which it could be known");
    return found;
}

Result<NamespacePage> parse_namespace(Page page) {
    if (page.size() != identify_bytes) return no_page(fmt::format("Identify Namespace has {} bytes", page.size()));
    const unsigned flbas = page[26], protection = page[29];
    const unsigned formats = page[25] + 1U, index = (flbas & 0xFU) | (flbas >> 5 & 3U) << 4;
    if (index >= formats || index >= 64)
        return no_page(fmt::format("a namespace has block format {} of {}", index, formats));
    const unsigned log_size = page[128 + std::size_t{index} * 4 + 2];
    if (log_size < 9 || log_size > 16) return no_page(fmt::format("a namespace has blocks of 2^{} bytes", log_size));
    NamespacePage found{.blocks = number_at<std::uint64_t>(page, 0),
                        .block_bytes = 1U << log_size,
                        .may_fail_when_deallocated = (page[24] & 4U) != 0,
                        .shared = (page[30] & 1U) != 0,
                        .write_protected = (page[99] & 1U) != 0,
                        .deallocated = {},
                        .format = (index & 0xFU) | (flbas & 0x10U) | (protection & 7U) << 5 |
                                  (protection >> 3 & 1U) << 8 | (index >> 4) << 12};
    if (found.blocks > (std::uint64_t{1} << 62) / found.block_bytes)
        return no_page(fmt::format("a namespace has {} blocks of {} bytes", found.blocks, found.block_bytes));
    if ((page[33] & 7U) == 1) found.deallocated = Deallocated::zeros;
    if ((page[33] & 7U) == 2) found.deallocated = Deallocated::ones;
    return found;
}

Result<std::vector<std::uint32_t>> parse_namespace_list(Page page) {
    if (page.size() != identify_bytes) return no_page(fmt::format("a list of namespaces has {} bytes", page.size()));
    std::vector<std::uint32_t> found;
    for (std::size_t at = 0; at < page.size(); at += 4) {
        const auto id = number_at<std::uint32_t>(page, at);
        if (id == 0) break;
        if ((!found.empty() && id <= found.back()) || id >= 0xFFFF'FFFE)
            return no_page(
                fmt::format("a list of namespaces has {:#x} after {}", id, found.empty() ? 0 : found.back()));
        found.push_back(id);
    }
    return found;
}

Result<std::vector<std::uint16_t>> parse_controller_list(Page page) {
    if (page.size() != identify_bytes) return no_page(fmt::format("a list of controllers has {} bytes", page.size()));
    const std::size_t count = number_at<std::uint16_t>(page, 0);
    if (count > identify_bytes / 2 - 1) return no_page(fmt::format("a list has {} controllers", count));
    std::vector<std::uint16_t> found;
    for (std::size_t i = 1; i <= count; ++i) {
        const auto id = number_at<std::uint16_t>(page, i * 2);
        if (!found.empty() && id <= found.back())
            return no_page(fmt::format("a list of controllers has {} after {}", id, found.back()));
        found.push_back(id);
    }
    return found;
}

}  // namespace bulkhead::nvme
