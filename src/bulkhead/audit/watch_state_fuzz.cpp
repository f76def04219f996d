// Whatever the bytes: the state of a watch that is read is written back as the same.
#include <cstddef>
#include <cstdint>

#include "bulkhead/audit/watcher.hpp"

using namespace bulkhead;
using namespace bulkhead::audit;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    if (const auto state = read_watch_state(bytes))
        invariant(read_watch_state(print(*state)) == *state, "the state of a watch is read as it was written");
    return 0;
}
