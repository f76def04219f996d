// Bytes as a list of nodes and as a list of tasks, plain and zipped: refused or read, never anything else; what was
// read is a fleet that tasks can be put on.
#include <algorithm>
#include <cstdint>

#include "bulkhead/replay/inflation.hpp"
#include "bulkhead/replay/trace_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace bulkhead;
    using namespace bulkhead::replay;
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    (void)unzipped("fuzz", bytes, 1 << 20);
    const std::size_t cut = std::min(bytes.find('\0'), bytes.size());
    const auto fleet = read_openb_nodes("nodes", bytes.substr(0, cut));
    if (!fleet) return 0;
    const auto trace = read_openb_tasks("pods", bytes.substr(std::min(cut + 1, bytes.size())), *fleet);
    if (!trace) return 0;
    if (fleet->capacity() > 200'000) return 0;
    for (const sched::TaskShape& shape : trace->shapes)
        if (shape.demand() < 100) return 0;  // thousands of tiny tasks tell nothing new, slowly
    (void)run_inflation(*fleet, *trace, PackingPolicy::bulkhead, 1);
    return 0;
}
