// Whatever the bytes: one of the four forms of a unit, with numbers in their range, or nothing.
#include <cstddef>
#include <cstdint>

#include "bulkhead/base/result.hpp"
#include "bulkhead/model/guarantee_unit.hpp"
#include "bulkhead/model/tenant.hpp"

using namespace bulkhead;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    const auto unit = parse_guarantee_unit(text);
    if (unit) {
        invariant(unit->node_gpus >= 0 && unit->node_gpus <= 64, "a node has at most 64 GPUs");
        invariant(unit->node_gpus == 0 || unit->what == GuaranteeUnit::What::node, "only nodes have a size");
        invariant(unit->what != GuaranteeUnit::What::profile || text.size() <= 32, "the name of a profile is short");
    }
    Quota quota;
    quota.guarantee = Gpus::whole(3);
    quota.guaranteeUnit = std::string{text};
    const std::string printed = print_guarantee(quota);
    invariant(printed.starts_with("3 "), "a guarantee is printed with its number");
    invariant(unit.has_value() == (printed.find('"') == std::string::npos), "only unknown units are quoted");
    return 0;
}
