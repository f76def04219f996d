// The queueing experiment: how long the jobs of a trace, or of a mix, wait and take.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ostream>

#include "bulkhead/cli/progress.hpp"
#include "bulkhead/cli/simulate.hpp"
#include "bulkhead/cli/terminal.hpp"
#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/replay/mix_scenario.hpp"
#include "bulkhead/replay/queueing_page.hpp"
#include "bulkhead/replay/trace_file.hpp"

namespace bulkhead::cli {

namespace {

using replay::QueueingLine;
using replay::QueuePolicy;
using replay::Scenario;

std::string_view word_of(QueuePolicy policy) { return words(policy)[static_cast<std::size_t>(policy)]; }

// In a defined order, each once.
std::vector<QueuePolicy> chosen_policies(const std::vector<std::string>& asked) {
    std::vector<QueuePolicy> out;
    for (const QueuePolicy policy : {QueuePolicy::fifo, QueuePolicy::bulkhead})
        if (asked.empty() || std::ranges::find(asked, word_of(policy)) != asked.end() ||
            std::ranges::find(asked, "all") != asked.end())
            out.push_back(policy);
    return out;
}

void print_lines(std::ostream& out, const std::vector<QueueingLine>& lines, bool colour) {
    std::vector<Row> rows(1, Row{{"", bold}});
    for (const QueueingLine& line : lines) {
        rows[0].push_back({std::string{word_of(line.policy)}, bold});
        const auto figures = replay::spelled(line.figures);
        for (std::size_t i = 0; i < figures.size(); ++i) {
            if (rows.size() == i + 1) rows.push_back({{figures[i].first}});
            rows[i + 1].push_back({figures[i].second});
        }
    }
    print_table(out, rows, 2, colour);
}

void write_spread(JsonWriter& json, std::string_view name, const replay::Spread& spread) {
    const auto seconds = [&](std::string_view key, double ms) {
        json.key(key);
        json.number(fmt::format("{:.3f}", ms / 1000));
    };
    json.key(name);
    json.begin_object();
    json.member("jobs", static_cast<std::int64_t>(spread.count));
    seconds("mean", spread.mean);
    seconds("p50", static_cast<double>(spread.p50));
    seconds("p99", static_cast<double>(spread.p99));
    seconds("max", static_cast<double>(spread.most));
    json.end_object();
}

void write_figures(JsonWriter& json, const replay::QueueingFigures& figures) {
    const auto real = [&](std::string_view name, std::optional<double> value, int digits) {
        json.key(name);
        value ? json.number(fmt::format("{:.{}f}", *value, digits)) : json.null();
    };
    const auto count = [&](std::string_view name, auto value) { json.member(name, static_cast<std::int64_t>(value)); };
    json.begin_object();
    count("jobs", figures.jobs);
    real("utilisation", figures.utilisation, 6);
    real("utilisation_with_a_queue", figures.utilisation_with_a_queue, 6);
    write_spread(json, "waiting_s", figures.waiting_ms);
    json.key("waiting_s_by_gpus");
    json.begin_object();
    for (const auto& [gpus, spread] : figures.waiting_ms_by_gpus) write_spread(json, print(gpus), spread);
    json.end_object();
    write_spread(json, "jct_s", figures.jct_ms);
    json.key("jct_s_by_priority");
    json.begin_object();
    for (const auto& [priority, spread] : figures.jct_ms_by_priority)
        write_spread(json, std::to_string(priority), spread);
    json.end_object();
    real("makespan_s", static_cast<double>(figures.makespan.ms) / 1000, 3);
    json.key("deadlines");
    json.begin_object();
    count("asked", figures.deadlines);
    count("admitted", figures.admitted);
    count("met", figures.met);
    count("missed", figures.missed);
    json.end_object();
    real("jain", figures.jain, 6);
    real("rho_mean", figures.rho_mean, 6);
    real("rho_max", figures.rho_most, 6);
    count("evictions", figures.evictions);
    count("moves", figures.moves);
    count("backfilled", figures.backfilled);
    real("lost_gpu_hours", figures.lost_gpu_hours, 3);
    real("wiping_gpu_hours", figures.wiping_gpu_hours, 3);
    count("cycles", figures.cycles);
    count("decisions", figures.decisions);
    json.end_object();
}

int print_all(const SimulateOptions& options, Context& context, const Scenario& scenario,
              const std::vector<QueueingLine>& lines, const std::string& about) {
    if (!options.page.empty()) {
        const auto written = write_page(options.page, replay::queueing_page(lines, scenario.units(), about));
        if (!written) return complain(context, could_not, written.error());
    }
    if (options.output == "table") {
        print_lines(context.out, lines, context.colour);
        return done;
    }
    JsonWriter json;
    json.begin_object();
    for (const QueueingLine& line : lines) {
        json.key(word_of(line.policy));
        write_figures(json, line.figures);
    }
    json.end_object();
    context.out << json.take();
    return done;
}

// One policy after the other. `alone` says how long jobs take had their tenant its share to itself, where that is
// known.
template <class Alone>
int compare(const SimulateOptions& options, Context& context, const Scenario& scenario, const std::string& about,
            Alone alone) {
    const auto wipe = parse_duration(options.wipe);
    if (!wipe) return complain(context, bad_input, wipe.error());
    if (*wipe > Duration::days(1))
        return complain(context, bad_input,
                        {Code::invalid, fmt::format("a wipe cannot take {}", options.wipe), "at most 1d"});
    std::vector<QueueingLine> lines;
    const std::size_t all = scenario.jobs.size();
    for (const QueuePolicy policy : chosen_policies(options.policies)) {
        Progress progress{context, all};
        replay::QueueingSettings settings{.wipe = *wipe};
        std::size_t shown = 0;
        settings.progress = [&](std::size_t finished) {
            if ((finished - shown) * 200 < all) return;
            shown = finished;
            progress.to(finished, word_of(policy));
        };
        const auto began = std::chrono::steady_clock::now();
        auto run = replay::run_queueing(scenario, policy, settings);
        if (!run) return complain(context, could_not, run.error());
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
        const Result<std::vector<Duration>> times = alone(policy, settings);
        if (!times) return complain(context, could_not, times.error());
        if (options.timing)
            context.err << fmt::format("{}: {:.3f} s, {} cycles, {} decisions\n", word_of(policy), took.count(),
                                       run->cycles, run->decisions);
        lines.push_back(replay::line_of(policy, scenario, std::move(*run), *times));
    }
    return print_all(options, context, scenario, lines, about);
}

}  // namespace

int simulate_trace(const SimulateOptions& options, Context& context) {
    const auto text = replay::read_trace_file(options.trace);
    if (!text) return complain(context, could_not, text.error());
    const auto trace = replay::read_gang_trace(options.trace, *text);
    if (!trace) return complain(context, bad_input, trace.error());
    const replay::TraceFleet fleet{.gpus = options.gpus, .node_gpus = options.node_gpus, .tenants = options.tenants};
    const auto scenario = replay::scenario_of(*trace, fleet);
    if (!scenario) return complain(context, bad_input, scenario.error());
    const std::string about = fmt::format("{}: {} jobs on {} GPUs, {} for each node; {} tenant{}; a wipe takes {}.",
                                          title_of(options.trace), trace->size(), fleet.gpus, fleet.node_gpus,
                                          fleet.tenants, fleet.tenants == 1 ? "" : "s", options.wipe);
    return compare(options, context, *scenario, about,
                   [&](QueuePolicy policy, const replay::QueueingSettings& settings) {
                       return fleet.tenants == 1 ? Result<std::vector<Duration>>{std::vector<Duration>{}}
                                                 : replay::times_alone(*trace, fleet, policy, {.wipe = settings.wipe});
                   });
}

int simulate_mix(const SimulateOptions& options, Context& context) {
    replay::MixRun run{.nodes = 100, .jobs = options.jobs, .seed = options.seed};
    if (!options.nodes.empty()) {
        const char *begin = options.nodes.data(), *end = begin + options.nodes.size();
        if (const auto read = std::from_chars(begin, end, run.nodes); read.ec != std::errc{} || read.ptr != end)
            return complain(context, bad_input,
                            {Code::invalid, fmt::format("--nodes {} is not a number", options.nodes),
                             "with --mix, how many nodes there are"});
    }
    const auto text = replay::read_trace_file(options.mix);
    if (!text) return complain(context, could_not, text.error());
    const auto mix = replay::read_mix(options.mix, *text);
    if (!mix) {
        for (const Diagnostic& diagnostic : mix.error()) context.err << print(diagnostic);
        return bad_input;
    }
    const auto scenario = replay::scenario_of(*mix, run);
    if (!scenario) return complain(context, bad_input, scenario.error());
    const std::string about = fmt::format(
        "{}: {} jobs on {} nodes of {} GPUs in all, seed {}; {} tenants; a wipe takes {}.", title_of(options.mix),
        run.jobs, run.nodes, print(Gpus{scenario->units()}), run.seed, scenario->tenants.size(), options.wipe);
    return compare(options, context, *scenario, about, [](QueuePolicy, const replay::QueueingSettings&) {
        return Result<std::vector<Duration>>{std::vector<Duration>{}};
    });
}

}  // namespace bulkhead::cli
