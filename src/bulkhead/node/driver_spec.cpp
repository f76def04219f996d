#include "bulkhead/node/driver_spec.hpp"

#include <fmt/format.h>

#include "bulkhead/base/rng.hpp"

namespace bulkhead::driver {

namespace {

std::uint64_t seed_from(std::string_view text) {  // FNV-1a
    std::uint64_t sum = 0xCBF29CE484222325u;
    for (const char c : text) sum = (sum ^ static_cast<std::uint8_t>(c)) * 0x100000001B3u;
    return sum;
}

}  // namespace

std::string uuid_from(std::string_view prefix, std::string_view text) {
    Rng rng{seed_from(text)};
    const std::uint64_t high = rng.next(), low = rng.next();
    return fmt::format("{}{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", prefix, high >> 32, high >> 16 & 0xFFFF, high & 0xFFFF,
                       low >> 48, low & 0xFFFF'FFFF'FFFF);
}

Result<Spec> spec_of(std::string_view node, const std::vector<Group>& groups) {
    Spec spec{.node = std::string{node}};
    for (const Group& group : groups) {
        const auto product = find_product(group.product);
        if (!product) return std::unexpected(product.error());
        if (group.count == 0 || group.count > gpus_max - spec.gpus.size())
            return fail(Code::invalid,
                        fmt::format("{} has {} GPUs and would get {} more; a node has 1 to {}", node, spec.gpus.size(),
                                    group.count, gpus_max),
                        "ask for fewer");
        for (std::uint32_t i = 0; i < group.count; ++i) {
            const auto index = static_cast<std::uint32_t>(spec.gpus.size());
            const std::string name = fmt::format("{}/{}", node, index);
            // Serial numbers of data-center boards have thirteen digits.
            spec.gpus.push_back({group.product, uuid_from("GPU-", name),
                                 fmt::format("165{:010}", seed_from(name) % 10'000'000'000), 0,
                                 0x18 + 0x11 * index % 0xE0, 0, index});
        }
    }
    if (spec.gpus.empty())
        return fail(Code::invalid, fmt::format("{} has no GPU; a node has 1 to {}", node, gpus_max), "say which");
    if ((*find_product(spec.gpus[0].product))->links.nvlinks > 0 && spec.gpus.size() > 1) spec.fabric = Fabric::nvlink;
    return spec;
}

}  // namespace bulkhead::driver
