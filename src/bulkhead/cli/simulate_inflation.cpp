// The inflation experiment: how well policies pack a trace.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "bulkhead/cli/progress.hpp"
#include "bulkhead/cli/simulate.hpp"
#include "bulkhead/cli/terminal.hpp"
#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/replay/inflation_page.hpp"
#include "bulkhead/replay/trace_file.hpp"

namespace bulkhead::cli {

namespace {

using replay::InflationLine;
using replay::PackingPolicy;

// In a defined order, each once.
std::vector<std::string> chosen_packings(std::vector<std::string> asked) {
    if (asked.empty()) asked = {"bulkhead", "fgd"};
    std::ranges::sort(asked);
    asked.erase(std::ranges::unique(asked).begin(), asked.end());
    if (std::ranges::find(asked, "all") == asked.end()) return asked;
    const auto all = words(PackingPolicy{});
    return {all.begin(), all.end()};
}

PackingPolicy policy_of(const std::string& word) {
    const auto known = words(PackingPolicy{});
    return static_cast<PackingPolicy>(std::ranges::find(known, word) - known.begin());
}

std::string_view word_of(PackingPolicy policy) { return words(policy)[static_cast<std::size_t>(policy)]; }

void print_lines(std::ostream& out, const std::vector<InflationLine>& lines, bool colour) {
    std::vector<Row> rows;
    Row head{{"TRACE", bold}, {"POLICY", bold}};
    for (const int percent : replay::arrived_percent) head.push_back({fmt::format("@{}%", percent), bold});
    rows.push_back(head);
    for (const InflationLine& line : lines) {
        Row row{{line.trace}, {std::string{word_of(line.policy)}}};
        for (const double mean : line.mean) row.push_back({fmt::format("{:.2f}", mean)});
        rows.push_back(std::move(row));
    }
    print_table(out, rows, 2, colour);
}

void write_policies(JsonWriter& json, const std::vector<InflationLine>& lines, const std::string& trace) {
    json.begin_object();
    for (const InflationLine& line : lines) {
        if (line.trace != trace) continue;
        const auto figures = [&](std::string_view name, const auto& values) {
            json.key(name);
            json.begin_object();
            for (std::size_t i = 0; i < values.size(); ++i) {
                json.key(std::to_string(replay::arrived_percent[i]));
                json.number(fmt::format("{:.4f}", values[i]));
            }
            json.end_object();
        };
        json.key(word_of(line.policy));
        json.begin_object();
        figures("allocation_percent", line.mean);
        figures("standard_deviation", line.deviation);
        json.end_object();
    }
    json.end_object();
}

// One trace: {"fgd": ...}. Several: {"default": {"fgd": ...}, ...}.
void print_json(std::ostream& out, const std::vector<InflationLine>& lines, const std::vector<std::string>& traces) {
    JsonWriter json;
    if (traces.size() == 1) {
        write_policies(json, lines, traces.front());
    } else {
        json.begin_object();
        for (const std::string& trace : traces) {
            json.key(trace);
            write_policies(json, lines, trace);
        }
        json.end_object();
    }
    out << json.take();
}

}  // namespace

int simulate_inflation(const SimulateOptions& options, Context& context) {
    const auto seeds = parse_seeds(options.seeds);
    if (!seeds) return complain(context, bad_input, seeds.error());
    const auto node_text = replay::read_trace_file(options.nodes);
    if (!node_text) return complain(context, could_not, node_text.error());
    const auto fleet = replay::read_openb_nodes(options.nodes, *node_text);
    if (!fleet) return complain(context, bad_input, fleet.error());

    const std::vector<std::string> policies = chosen_packings(options.policies);
    std::vector<InflationLine> lines;
    std::vector<std::string> traces;
    const std::size_t count = seeds->last - seeds->first + 1;
    Progress progress{context, options.pods.size() * policies.size() * count};
    for (const std::string& path : options.pods) {
        const auto text = replay::read_trace_file(path);
        if (!text) return complain(context, could_not, text.error());
        const auto trace = replay::read_openb_tasks(path, *text, *fleet);
        if (!trace) return complain(context, bad_input, trace.error());
        if (std::ranges::find(traces, title_of(path)) != traces.end())
            return complain(context, bad_input,
                            {Code::invalid, fmt::format("two lists are called {}", title_of(path)), "rename one"});
        for (const std::string& model : trace->unknown_models)
            context.err << fmt::format("{}: no node has a GPU of model \"{}\"\n", path, shortened(model));
        traces.push_back(title_of(path));
        for (const std::string& word : policies) {
            std::vector<replay::InflationRun> runs;
            for (std::size_t i = 0; i < count; ++i) {
                const auto run = replay::run_inflation(*fleet, *trace, policy_of(word), seeds->first + i);
                if (!run) return complain(context, bad_input, run.error());
                runs.push_back(*run);
                progress.step(fmt::format("{} {} seed {}", traces.back(), word, seeds->first + i));
            }
            lines.push_back(replay::summed(traces.back(), policy_of(word), runs));
        }
    }
    if (!options.page.empty()) {
        const auto written = write_page(
            options.page,
            replay::inflation_page(
                lines,
                fmt::format("Share of all GPUs in use, in percent, when so many percent have been asked for. {} nodes, "
                            "seeds {}; mean and standard deviation over the seeds.",
                            fleet->nodes.size(), options.seeds)));
        if (!written) return complain(context, could_not, written.error());
    }
    if (options.output == "json")
        print_json(context.out, lines, traces);
    else
        print_lines(context.out, lines, context.colour);
    return done;
}

}  // namespace bulkhead::cli
