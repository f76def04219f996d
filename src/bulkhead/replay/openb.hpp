// The Alibaba GPU trace of 2023 ("openb"): one list of nodes, and lists of tasks that ran on them. Two CSV files with a
// header line; columns are found by name, columns that nobody needs here are passed over.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/sched/packing.hpp"

namespace bulkhead::replay {

struct OpenbFleet {
    std::vector<std::string> models;     // a model's number is its place here
    std::vector<std::string> names;      // in alphabetical order: whoever ties goes to the first
    std::vector<sched::NodeRoom> nodes;  // likewise, empty

    std::int64_t capacity() const;  // thousandths of GPUs
};

struct OpenbTasks {
    std::vector<sched::TaskShape> shapes;  // each once
    std::vector<std::uint32_t> tasks;      // the shape of each, in the order of the file
    std::set<std::string> unknown_models;  // that some ask for and no node has
};

// `name` is for messages: "pods.csv:17: ...".
Result<OpenbFleet> read_openb_nodes(std::string_view name, std::string_view text);
// Models that no node has are wishes that nobody can grant.
Result<OpenbTasks> read_openb_tasks(std::string_view name, std::string_view text, const OpenbFleet& fleet);

}  // namespace bulkhead::replay
