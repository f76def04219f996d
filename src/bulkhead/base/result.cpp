#include "bulkhead/base/result.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <exception>

namespace bulkhead {

void stop_for_bug(std::string_view claim, std::source_location where) {
    // The one place in a pure room that writes: the last words of a process that is about to stop.
    fmt::print(stderr, "{}:{}: this should always hold, and does not: {}\n", where.file_name(), where.line(), claim);
    std::abort();
}

}  // namespace bulkhead
