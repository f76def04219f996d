// `selftest fabric --node`: the server has a node attack its own fences. What came of it is read from the node's
// object.
#pragma once

#include <string>

#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/terminal.hpp"
#include "bulkhead/model/node.hpp"

namespace bulkhead::cli {

struct NodeTestOptions {
    std::string node, output;
};
int test_node_fences(const NodeTestOptions& options, const DoorOptions& door, Context& context);

// "closed (11 stopped), emulated, log record 42": of one test.
std::string fence_text(const NodeFabricTest& test);
std::string_view paint_of(FabricFound found);
// NICs whose functions tenants may have and that no test with these fences speaks of.
std::vector<std::string> untested_nics(const GpuNodeStatus& status, FabricFence fence);

}  // namespace bulkhead::cli
