// Whatever the text: no crash, and a node that is read is the same when it is printed and read again.
#include "node_file.hpp"

using namespace bulkhead;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto spec = nvml_sim::parse_node({reinterpret_cast<const char*>(data), size});
    if (!spec) return 0;
    const auto again = nvml_sim::parse_node(nvml_sim::print_node(*spec));
    invariant(again && *again == *spec, "what was printed is read as it was");
    return 0;
}
