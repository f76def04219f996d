// What `up` puts beside a fresh fleet, to be applied by hand: work that it can serve, and work that it must refuse.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead::cli {

struct FleetShape {
    int nodes = 1, gpus = 8;
    std::string model;
};

extern const std::string_view first_policy;
std::string first_steps(const FleetShape& shape);
extern const std::string_view refused_steps;

}  // namespace bulkhead::cli
