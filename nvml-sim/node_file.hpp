// node.yaml: what a simulated node is made of, in the few lines that a person writes.
//
//     node: node-07
//     gpus: 8 x h200-141gb
//     driver: 580.159.04
//
// It is YAML that any parser reads, but only its simplest part: one `key: value` a line. A key that is not known is
// refused by name.
#pragma once

#include <string>
#include <string_view>

#include "bulkhead/node/driver_spec.hpp"

namespace bulkhead::nvml_sim {

Result<driver::Spec> parse_node(std::string_view text);
std::string print_node(const driver::Spec& spec);

}  // namespace bulkhead::nvml_sim
