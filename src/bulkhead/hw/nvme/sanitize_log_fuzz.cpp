// Whatever a drive answers: a log or an error, never a crash; and only three of its bits say that it succeeded.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "bulkhead/hw/nvme/sanitize_log.hpp"

using namespace bulkhead;
using namespace bulkhead::nvme;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static_cast<void>(parse_sanitize_log({data, size}));
    std::array<std::uint8_t, sanitize_log_bytes> page{};
    std::copy_n(data, std::min(size, page.size()), page.begin());
    const auto log = parse_sanitize_log(page);
    invariant(log.has_value(), "512 bytes are a log");
    invariant(log->thousandths() < 1000, "progress is less than all");
    invariant(log->succeeded() == ((page[2] & 7U) == 1 || (page[2] & 7U) == 4), "success is one of two states");
    invariant(!print(*log).empty(), "it can be printed");
    return 0;
}
