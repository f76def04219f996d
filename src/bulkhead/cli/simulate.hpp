// What `bulkhead simulate` was asked, and the experiments it can run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/cli/command.hpp"

namespace bulkhead::cli {

struct SimulateOptions {
    std::vector<std::string> pods;  // inflation
    std::string nodes;              // of inflation a file, of a mix a number
    std::string seeds = "42..51";
    std::string trace;  // queueing
    std::int64_t gpus = 64, node_gpus = 8;
    std::uint32_t tenants = 1;
    std::string wipe = "0s";
    std::string mix;  // queueing, of what a mix draws
    std::int64_t jobs = 1000;
    std::uint64_t seed = 1;
    std::string mig, expect;            // MIG acceptance: the model, and what is asked for how often
    std::vector<std::string> policies;  // none: as the experiment has it
    std::string output = "table", page;
    bool timing = false;
};

int simulate_inflation(const SimulateOptions& options, Context& context);
int simulate_trace(const SimulateOptions& options, Context& context);
int simulate_mix(const SimulateOptions& options, Context& context);
int simulate_mig(const SimulateOptions& options, Context& context);

struct Seeds {
    std::uint64_t first = 0, last = 0;
};
Result<Seeds> parse_seeds(std::string_view text);

// "openb_pod_list_default" of a longer path.
std::string title_of(const std::string& path);
Result<> write_page(const std::string& path, const std::string& text);

}  // namespace bulkhead::cli
