#include "bulkhead/replay/mix_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bulkhead/sched/engine.hpp"

namespace bulkhead::replay {

namespace {

constexpr std::int64_t most_mix_nodes = 100'000, most_jobs = 1'000'000, minute = 60'000;
constexpr int most_tries = 100;  // for one job

// The mix and what was made of it; nodes and needs point in there.
struct Kept {
    FleetMix mix;
    MixFleet fleet;
    Kept(const FleetMix& of, const MixRun& run) : mix{of}, fleet{mix, static_cast<std::size_t>(run.nodes), run.seed} {}
};

Duration draw_duration(Rng& rng) {
    const std::int64_t least = minute << rng.below(11);
    return {rng.between(least, 2 * least)};
}

Result<> check(const MixRun& run) {
    if (run.nodes < 1 || run.nodes > most_mix_nodes)
        return fail(Code::invalid, fmt::format("a fleet cannot have {} nodes", run.nodes),
                    fmt::format("from 1 to {}", most_mix_nodes));
    if (run.jobs < 1 || run.jobs > most_jobs)
        return fail(Code::invalid, fmt::format("there cannot be {} jobs", run.jobs),
                    fmt::format("from 1 to {}", most_jobs));
    return {};
}

}  // namespace

Result<Scenario> scenario_of(const FleetMix& mix, const MixRun& run) {
    if (const auto good = check(run); !good) return std::unexpected(good.error());
    const auto kept = std::make_shared<const Kept>(mix, run);
    const MixFleet& fleet = kept->fleet;
    Scenario out;
    out.keep = kept;
    out.tenants = fleet.tenants();
    sched::Engine empty;
    empty.set_tenants(out.tenants);
    for (std::size_t i = 0; i < fleet.nodes(); ++i) {
        out.nodes.push_back(fleet.node(i));
        empty.add_node(out.nodes.back());
    }
    for (const MixVariant& variant : fleet.variants())
        out.needs.insert(out.needs.end(), variant.needs.begin(), variant.needs.end());
    std::vector<sched::ShapeNo> shapes;
    shapes.reserve(out.needs.size());
    for (const sched::TaskNeed& need : out.needs) shapes.push_back(empty.shape(need));

    Rng rng{run.seed};
    double asked = 0;  // Gpus::units times milliseconds
    for (std::int64_t i = 0; i < run.jobs; ++i) {
        bool can = false;
        for (int tries = 0; !can; ++tries) {
            if (tries == most_tries)
                return fail(Code::invalid,
                            fmt::format("{} jobs drawn one after the other fit nowhere on {} empty nodes", most_tries,
                                        run.nodes),
                            "more nodes, or a mix of smaller jobs");
            const MixDraw drawn = fleet.draw(rng);
            ScenarioJob job{.work = drawn.job, .need = 0, .duration = draw_duration(rng)};
            job.need = static_cast<std::uint32_t>(drawn.variant * team_trusts + static_cast<std::size_t>(drawn.trust));
            job.work.shape = shapes[job.need];
            const sched::JobNo number = empty.submit(job.work);
            can = empty.allocate(number, {});
            empty.finish(number);
            if (!can) continue;
            asked += static_cast<double>(job.units()) * static_cast<double>(job.duration.ms);
            out.jobs.push_back(job);
        }
    }
    const double room = static_cast<double>(out.units()) * static_cast<double>(mix.full.units) / gpu_unit;
    const auto span = std::max<std::int64_t>(1, static_cast<std::int64_t>(asked / room));
    std::vector<std::int64_t> moments(out.jobs.size());
    for (std::int64_t& moment : moments) moment = rng.between(0, span);
    std::ranges::sort(moments);
    for (std::size_t i = 0; i < moments.size(); ++i) {
        out.jobs[i].work.submitted = {moments[i] - moments.front()};
        out.jobs[i].work.checkpoint = Duration{30 * minute};
    }
    return out;
}

}  // namespace bulkhead::replay
