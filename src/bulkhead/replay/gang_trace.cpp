#include "bulkhead/replay/gang_trace.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/replay/csv_lines.hpp"

namespace bulkhead::replay {

namespace {

// A year, a date of this century and a million jobs: with these, every sum of times stays far within 64 bits.
constexpr std::int64_t most_duration = Duration::days(366).ms, most_moment = 4'200'000'000'000;
constexpr std::int64_t most_gpus = 1'000'000, most_priority = 1'000;
constexpr std::size_t most_jobs = 1'000'000;

}  // namespace

Result<GangTrace> read_gang_trace(std::string_view name, std::string_view text) {
    CsvLines lines{name, text};
    const auto at = lines.columns<5>({"num_gpu", "submit_time", "duration", "ddl", "priority"}, 3);
    if (!at) return std::unexpected(at.error());
    const auto [gpus_at, submit_at, duration_at, deadline_at, priority_at] = *at;
    const bool deadlines = deadline_at != CsvLines::absent;
    const std::int64_t unit = deadlines ? 1000 : 1;
    GangTrace jobs;
    while (lines.next()) {
        const auto gpus = lines.number(gpus_at, "num_gpu", 1, most_gpus);
        const auto submit = lines.number(submit_at, "submit_time", 0, most_moment / unit);
        const auto duration = lines.number(duration_at, "duration", 1, most_duration / unit);
        const auto if_there = [&](std::size_t column, std::string_view called, std::int64_t most) {
            return column == CsvLines::absent ? Result<std::int64_t>{0} : lines.number(column, called, 0, most);
        };
        const auto deadline = if_there(deadline_at, "ddl", most_moment / unit);
        const auto priority = if_there(priority_at, "priority", most_priority);
        for (const auto* read : {&gpus, &submit, &duration, &deadline, &priority})
            if (!*read) return std::unexpected(read->error());
        if (jobs.size() == most_jobs)
            return lines.wrong("there are too many jobs", fmt::format("at most {}", most_jobs));
        jobs.push_back({.gpus = static_cast<std::int32_t>(*gpus),
                        .submitted = {*submit * unit},
                        .duration = {*duration * unit},
                        .priority = *priority,
                        .deadline = deadlines ? std::optional{Instant{*deadline * unit}} : std::nullopt});
    }
    if (jobs.empty()) return fail(Code::invalid, fmt::format("{} has no jobs", name), "a line for each job");
    std::vector<std::pair<Instant, std::size_t>> order;  // by arrival, then by line
    order.reserve(jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) order.emplace_back(jobs[i].submitted, i);
    std::ranges::sort(order);
    const std::int64_t first = order.front().first.ms;
    GangTrace sorted;
    for (const auto& [submitted, i] : order) {
        sorted.push_back(jobs[i]);
        sorted.back().submitted.ms -= first;
        if (jobs[i].deadline) sorted.back().deadline->ms -= first;
    }
    return sorted;
}

}  // namespace bulkhead::replay
