// The unit of a guarantee: "8 GPUs" may be four GPUs on each of two nodes, "1 node" may not, and seven 1g.10gb may be
// spread over seven GPUs. Written in a tenant's quota as `gpu`, `node`, `8-gpu-node` or the name of a MIG profile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

struct Quota;

struct GuaranteeUnit {
    enum class What : std::uint8_t { gpu, node, profile };
    What what = What::gpu;
    std::int64_t node_gpus = 0;  // of a node: it has at least so many GPUs; 0: any number
    friend bool operator==(const GuaranteeUnit&, const GuaranteeUnit&) = default;
};

// Nothing when the text is none of the four forms. Whether a board has the profile is asked in policy/.
std::optional<GuaranteeUnit> parse_guarantee_unit(std::string_view text);

// "4 GPUs", "2 nodes", "1 node of 8 GPUs", "14 x 1g.10gb".
std::string print_guarantee(const Quota& quota);

}  // namespace bulkhead
