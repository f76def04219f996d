// What `up` puts beside a fresh fleet, to be applied by hand: work that it can serve, and work that it must refuse.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead::cli {

struct FleetShape {
    int nodes = 1, gpus = 8;
    std::string model;
    bool real =
        false;  // one machine that has GPUs, where work is commands, and those who share trust each other a little
};

std::string first_policy(const FleetShape& shape);
std::string first_steps(const FleetShape& shape);
std::string refused_steps(const FleetShape& shape);

}  // namespace bulkhead::cli
