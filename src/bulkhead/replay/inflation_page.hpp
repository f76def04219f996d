// The inflation experiment as one page that needs nothing else: a plot and the figures behind it.
#pragma once

#include <span>
#include <string>

#include "bulkhead/replay/inflation.hpp"

namespace bulkhead::replay {

struct InflationLine {
    std::string trace;
    PackingPolicy policy{};
    std::array<double, arrived_percent.size()> mean{}, deviation{};  // over the seeds
};
InflationLine summed(std::string trace, PackingPolicy policy, std::span<const InflationRun> runs);

std::string inflation_page(std::span<const InflationLine> lines, std::string_view about);

}  // namespace bulkhead::replay
