// The queueing experiment as one page: who waited and what was in use over time, how long jobs took, and the figures.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/replay/queueing_figures.hpp"

namespace bulkhead::replay {

struct QueueingLine {
    QueuePolicy policy{};
    QueueingFigures figures;
    std::vector<Moment> moments;
    std::vector<std::int64_t> jct_ms;  // the shortest first
};
QueueingLine line_of(QueuePolicy policy, const Scenario& scenario, QueueingRun run, std::span<const Duration> alone);

// The figures in words, for tables: a name and a value. Every line has the same names.
std::vector<std::pair<std::string, std::string>> spelled(const QueueingFigures& figures);

// `units`: Gpus::units, in all.
std::string queueing_page(std::span<const QueueingLine> lines, std::int64_t units, std::string_view about);

}  // namespace bulkhead::replay
