#include "bulkhead/replay/queueing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/replay/queueing_page.hpp"
#include "bulkhead/replay/trace_file.hpp"

namespace bulkhead::replay {
namespace {

constexpr std::int64_t second = 1000, minute = 60 * second, hour = 60 * minute;

TraceJob job(std::int32_t gpus, std::int64_t at, std::int64_t lasts, std::int64_t priority = 0) {
    return {.gpus = gpus, .submitted = {at}, .duration = {lasts}, .priority = priority, .deadline = {}};
}

struct Outcome {
    Scenario scenario;
    QueueingRun run;
    QueueingFigures figures;
    std::int64_t started(std::size_t i) const { return run.jobs[i].started.ms; }
    std::int64_t finished(std::size_t i) const { return run.jobs[i].finished.ms; }
};

Outcome play(const GangTrace& trace, const TraceFleet& fleet, QueuePolicy policy, Duration wipe = {}) {
    auto scenario = scenario_of(trace, fleet);
    EXPECT_TRUE(scenario) << scenario.error().what;
    auto run = run_queueing(*scenario, policy, {.wipe = wipe, .keep_stints = true});
    EXPECT_TRUE(run) << run.error().what;
    std::vector<Duration> alone;
    if (fleet.tenants > 1) alone = *times_alone(trace, fleet, policy, {.wipe = wipe});
    const QueueingFigures figures = figures_of(*scenario, *run, alone);
    return {std::move(*scenario), std::move(*run), figures};
}

// From outside: nothing but who was where, and when. Clean means: nobody for as long as a wipe takes.
void check(const Outcome& outcome, Duration wipe) {
    std::map<std::pair<std::uint32_t, std::uint16_t>, std::vector<std::pair<std::int64_t, std::int64_t>>> used;
    std::vector<std::int64_t> ran(outcome.scenario.jobs.size());
    for (const Stint& stint : outcome.run.stints) {
        std::int64_t gpus = 0;
        for (const sched::TaskSeat& task : stint.seats)
            for (const std::uint16_t gpu : task.gpus) {
                if (stint.from < stint.until) used[{task.node, gpu}].emplace_back(stint.from.ms, stint.until.ms);
                ++gpus;
            }
        EXPECT_EQ(gpus * gpu_unit, outcome.scenario.jobs[stint.job].units());
        EXPECT_GE(stint.from, outcome.scenario.jobs[stint.job].work.submitted);
        ran[stint.job] += (stint.until - stint.from).ms;
    }
    for (auto& [gpu, times] : used) {
        std::ranges::sort(times);
        for (std::size_t i = 1; i < times.size(); ++i)
            EXPECT_GE(times[i].first, times[i - 1].second + wipe.ms) << "node " << gpu.first << " GPU " << gpu.second;
    }
    for (std::size_t i = 0; i < ran.size(); ++i) {
        EXPECT_GE(ran[i], outcome.scenario.jobs[i].duration.ms) << "job " << i << " did not finish";
        EXPECT_EQ(ran[i], outcome.run.jobs[i].ran.ms);
    }
    EXPECT_LE(outcome.figures.utilisation, 1);
    EXPECT_LE(outcome.figures.utilisation_with_a_queue.value_or(0), 1);
    EXPECT_LE(outcome.figures.jain, 1 + 1e-12);
}

TEST(Queueing, in_order_a_large_job_holds_up_a_small_one_behind_it_and_every_figure_is_as_by_hand) {
    const GangTrace trace{job(4, 0, 100 * second), job(8, 10 * second, 50 * second), job(4, 20 * second, 20 * second)};
    const Outcome fifo = play(trace, {.gpus = 8}, QueuePolicy::fifo);
    check(fifo, {});
    EXPECT_EQ(fifo.started(1), 100 * second);
    EXPECT_EQ(fifo.started(2), 150 * second);
    EXPECT_EQ(fifo.figures.makespan.ms, 170 * second);
    EXPECT_DOUBLE_EQ(fifo.figures.utilisation, 880.0 / (8 * 170));
    EXPECT_DOUBLE_EQ(*fifo.figures.utilisation_with_a_queue, 760.0 / (8 * 140));
    EXPECT_DOUBLE_EQ(fifo.figures.jct_ms.mean, 390.0 / 3 * second);
    EXPECT_EQ(fifo.figures.jct_ms.p50, 140 * second);
    EXPECT_EQ(fifo.figures.jct_ms.p99, 150 * second);
    EXPECT_DOUBLE_EQ(fifo.figures.waiting_ms.mean, 220.0 / 3 * second);
    EXPECT_DOUBLE_EQ(fifo.figures.waiting_ms_by_gpus.at(Gpus::whole(4)).mean, 65.0 * second);
    EXPECT_EQ(fifo.figures.waiting_ms_by_gpus.at(Gpus::whole(8)).p99, 90 * second);
    EXPECT_EQ(fifo.figures.decisions, 3);
}

TEST(Queueing, the_engine_lets_a_short_job_pass_that_delays_nobody) {
    const GangTrace trace{job(4, 0, 100 * second), job(8, 10 * second, 50 * second), job(4, 20 * second, 20 * second)};
    const Outcome ours = play(trace, {.gpus = 8}, QueuePolicy::bulkhead);
    check(ours, {});
    EXPECT_EQ(ours.started(2), 20 * second);
    EXPECT_EQ(ours.started(1), 100 * second);
    EXPECT_EQ(ours.figures.makespan.ms, 150 * second);
}

TEST(Queueing, a_gang_takes_whole_nodes_and_starts_with_all_of_them) {
    const GangTrace trace{job(1, 0, 10 * second), job(16, 0, 10 * second)};
    for (const QueuePolicy policy : {QueuePolicy::fifo, QueuePolicy::bulkhead}) {
        const Outcome outcome = play(trace, {.gpus = 16}, policy);
        check(outcome, {});
        EXPECT_EQ(outcome.scenario.jobs[1].work.tasks, 2);
        const std::int64_t first = outcome.started(0), gang = outcome.started(1);
        EXPECT_EQ(std::max(first, gang), 10 * second) << "one after the other";
        EXPECT_EQ(outcome.figures.makespan.ms, 20 * second);
    }
}

TEST(Queueing, what_a_job_leaves_is_wiped_before_the_next) {
    const GangTrace trace{job(8, 0, 10 * second), job(8, 0, 10 * second)};
    for (const QueuePolicy policy : {QueuePolicy::fifo, QueuePolicy::bulkhead}) {
        const Outcome outcome = play(trace, {.gpus = 8}, policy, {5 * second});
        check(outcome, {5 * second});
        EXPECT_EQ(outcome.started(1), 15 * second);
        EXPECT_EQ(outcome.figures.makespan.ms, 25 * second);
        EXPECT_DOUBLE_EQ(outcome.figures.wiping_gpu_hours, 8 * 5 / 3600.0);
    }
}

TEST(Queueing, who_is_stopped_keeps_what_it_saved_and_does_the_rest_again) {
    // Two nodes with five GPUs taken each; six for somebody more important are only there if one stops.
    const GangTrace trace{job(5, 0, 2 * hour), job(5, 0, 2 * hour), job(6, 45 * minute, hour, 1)};
    const Outcome outcome = play(trace, {.gpus = 16}, QueuePolicy::bulkhead);
    check(outcome, {});
    EXPECT_EQ(outcome.figures.evictions, 1);
    EXPECT_DOUBLE_EQ(outcome.figures.lost_gpu_hours, 5 * 0.25);
    EXPECT_EQ(outcome.started(2), 45 * minute);
    EXPECT_EQ(std::min(outcome.finished(0), outcome.finished(1)), 2 * hour);
    EXPECT_EQ(std::max(outcome.finished(0), outcome.finished(1)), 105 * minute + 90 * minute)
        << "30 of its 45 minutes were saved";
    EXPECT_EQ(outcome.figures.waiting_ms.most, hour) << "time after an eviction is waiting too";
    EXPECT_EQ(outcome.figures.jct_ms_by_priority.at(1).p50, hour);
}

TEST(Queueing, who_moves_loses_what_it_did_since_it_saved) {
    // Two halves of two nodes are free, and somebody wants a whole one.
    const GangTrace trace{job(2, 0, hour), job(2, 0, 10 * minute), job(2, 0, hour), job(4, 20 * minute, 10 * minute)};
    const Outcome outcome = play(trace, {.gpus = 8, .node_gpus = 4}, QueuePolicy::bulkhead);
    check(outcome, {});
    EXPECT_EQ(outcome.figures.moves, 1);
    EXPECT_EQ(outcome.figures.evictions, 0);
    EXPECT_EQ(outcome.started(3), 20 * minute);
    EXPECT_DOUBLE_EQ(outcome.figures.lost_gpu_hours, 2.0 / 3);
    EXPECT_EQ(std::max(outcome.finished(0), outcome.finished(2)), 80 * minute);
}

TEST(Queueing, tenants_are_compared_with_what_they_asked_for_and_with_their_share_alone) {
    const GangTrace trace{job(1, 0, 100 * second), job(1, 0, 50 * second), job(1, 0, 100 * second),
                          job(1, 100 * second, 10 * second)};
    const Outcome outcome = play(trace, {.gpus = 2, .node_gpus = 1, .tenants = 2}, QueuePolicy::fifo);
    check(outcome, {});
    EXPECT_EQ(outcome.finished(2), 150 * second);
    // At 100 s, when the last arrives: 150 of 200 for one, 50 of 60 for the other.
    const double one = 0.75, other = 50.0 / 60;
    EXPECT_NEAR(outcome.figures.jain, (one + other) * (one + other) / (2 * (one * one + other * other)), 1e-12);
    EXPECT_DOUBLE_EQ(*outcome.figures.rho_mean, (1 + 1 + 0.75 + 1) / 4) << "alone on one GPU the third takes 200 s";
    EXPECT_DOUBLE_EQ(*outcome.figures.rho_most, 1);
}

TEST(Queueing, a_gang_larger_than_the_share_runs_longer_there) {
    const auto alone =
        times_alone({job(16, 0, 10 * second)}, {.gpus = 16, .node_gpus = 8, .tenants = 2}, QueuePolicy::fifo);
    ASSERT_TRUE(alone) << alone.error().what;
    EXPECT_EQ(alone->front().ms, 20 * second);
}

TEST(Queueing, deadlines_that_nobody_could_meet_are_not_admitted) {
    GangTrace trace{job(1, 0, 10 * second), job(1, 0, 10 * second), job(1, 0, 10 * second)};
    trace[0].deadline = Instant{10 * second};
    trace[1].deadline = Instant{15 * second};
    trace[2].deadline = Instant{9 * second};
    const Outcome outcome = play(trace, {.gpus = 1, .node_gpus = 1}, QueuePolicy::fifo);
    EXPECT_EQ(outcome.figures.deadlines, 3u);
    EXPECT_EQ(outcome.figures.admitted, 2u);
    EXPECT_EQ(outcome.figures.met, 1u);
    EXPECT_EQ(outcome.figures.missed, 1u);
}

TEST(Queueing, what_the_fleet_could_never_take_is_refused_with_its_numbers) {
    const struct {
        TraceJob job;
        TraceFleet fleet;
        std::string_view says;
    } rows[] = {
        {job(32, 0, 1), {.gpus = 16}, "job 1 asks for 32 GPUs, and the fleet has 16 on nodes of 8"},
        {job(12, 0, 1), {}, "job 1 asks for 12 GPUs; what is more than a node of 8 must be whole nodes"},
        {job(16, 0, 1), {.gpus = 20, .node_gpus = 16}, ""},
        {job(1, 0, 1), {.gpus = 0}, "a fleet cannot have 0 GPUs"},
        {job(1, 0, 1), {.gpus = 64, .node_gpus = 17}, "a node cannot have 17 GPUs"},
        {job(1, 0, 1), {.gpus = 64, .node_gpus = 8, .tenants = 0}, "there cannot be 0 tenants"},
    };
    for (const auto& row : rows) {
        const auto scenario = scenario_of({row.job}, row.fleet);
        EXPECT_EQ(scenario ? "" : scenario.error().what, row.says);
    }
}

// Jobs of all sizes, long and short, in bursts.
GangTrace drawn(Rng rng) {
    GangTrace trace;
    std::int64_t now = 0;
    for (int i = 0; i < 120; ++i) {
        now += rng.chance(300) ? 0 : rng.between(1, 20) * minute;
        const std::array<std::int32_t, 6> sizes{1, 2, 3, 4, 8, 16};
        TraceJob& next = trace.emplace_back();  // drawn in a defined order, unlike arguments
        next.gpus = sizes[rng.below(sizes.size())];
        next.submitted = {now};
        next.duration = {rng.between(1, 200) * minute};
        next.priority = rng.between(0, 1);
        if (rng.chance(300)) next.deadline = Instant{now + rng.between(1, 400) * minute};
    }
    return trace;
}

TEST(Queueing, whatever_comes_no_gpu_is_used_twice_and_everybody_finishes) {
    std::vector<std::uint64_t> seeds{98, 109, 147};  // where a move once went nowhere and soiled what was in use
    for (std::uint64_t seed = 1; seed <= 25; ++seed) seeds.push_back(seed);
    for (const std::uint64_t seed : seeds) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Rng rng{seed};
        const TraceFleet fleet{.gpus = 16, .node_gpus = 4, .tenants = static_cast<std::uint32_t>(rng.between(1, 4))};
        const Duration wipe{rng.chance(500) ? 0 : rng.between(1, 300) * second};
        const GangTrace trace = drawn(rng.split());
        for (const QueuePolicy policy : {QueuePolicy::fifo, QueuePolicy::bulkhead}) {
            const Outcome once = play(trace, fleet, policy, wipe);
            check(once, wipe);
            const Outcome again = play(trace, fleet, policy, wipe);
            EXPECT_EQ(spelled(once.figures), spelled(again.figures));
        }
    }
}

TEST(Queueing, the_page_holds_plots_and_figures_and_needs_nothing_else) {
    const GangTrace trace{job(4, 0, 100 * second), job(8, 10 * second, 50 * second)};
    const auto scenario = scenario_of(trace, {.gpus = 8});
    std::vector<QueueingLine> lines;
    for (const QueuePolicy policy : {QueuePolicy::fifo, QueuePolicy::bulkhead})
        lines.push_back(line_of(policy, *scenario, *run_queueing(*scenario, policy), {}));
    const std::string page = queueing_page(lines, scenario->units(), "<b>");
    std::size_t plots = 0;
    for (std::size_t at = page.find("<svg"); at != std::string::npos; at = page.find("<svg", at + 1)) ++plots;
    EXPECT_EQ(plots, 3u);
    EXPECT_NE(page.find("<td>makespan</td><td>0.04h</td><td>0.04h</td>"), std::string::npos);
    EXPECT_NE(page.find("&lt;b>"), std::string::npos);
    EXPECT_EQ(page.find("http"), std::string::npos);
    EXPECT_EQ(page.find(",nan"), std::string::npos);
}

TEST(Queueing, real_traces_run_to_their_end_and_no_gpu_is_used_twice) {
    const std::string folder = std::string{BULKHEAD_SHARED_DIR} + "/data/philly-derived-gangs/";
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not here";
    const struct {
        std::string file;
        std::size_t jobs;
    } rows[] = {{"muri_trace3.csv", 992}, {"elasticflow_philly_103959_deadlines.csv", 876}};
    for (const auto& row : rows) {
        const auto text = read_trace_file(folder + row.file);
        ASSERT_TRUE(text) << text.error().what;
        const auto trace = read_gang_trace(row.file, *text);
        ASSERT_TRUE(trace) << trace.error().what;
        EXPECT_EQ(trace->size(), row.jobs);
        const Outcome fifo = play(*trace, {}, QueuePolicy::fifo, {30 * second});
        const Outcome ours = play(*trace, {}, QueuePolicy::bulkhead, {30 * second});
        check(fifo, {30 * second});
        check(ours, {30 * second});
        EXPECT_LT(ours.figures.jct_ms.mean, fifo.figures.jct_ms.mean) << row.file;
        EXPECT_GE(ours.figures.met, fifo.figures.met) << row.file;
    }
}

}  // namespace
}  // namespace bulkhead::replay
