// bulkhead simulate: how well policies pack a trace.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "bulkhead/cli/command.hpp"
#include "bulkhead/cli/terminal.hpp"
#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/replay/inflation_page.hpp"
#include "bulkhead/replay/trace_file.hpp"

namespace bulkhead::cli {

namespace {

using replay::InflationLine;
using replay::PackingPolicy;

struct SimulateOptions {
    std::string nodes, seeds = "42..51", output = "table", page;
    std::vector<std::string> pods;
    std::vector<std::string> policies{"bulkhead", "fgd"};
};

struct Seeds {
    std::uint64_t first = 0, last = 0;
};

Result<Seeds> parse_seeds(std::string_view text) {
    const auto number = [](std::string_view digits, std::uint64_t& into) {
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), into);
        return read.ec == std::errc{} && read.ptr == digits.data() + digits.size();
    };
    Seeds seeds;
    const std::size_t dots = text.find("..");
    const bool good = number(text.substr(0, dots), seeds.first) &&
                      number(dots == std::string_view::npos ? text : text.substr(dots + 2), seeds.last);
    if (!good || seeds.last < seeds.first || seeds.last - seeds.first >= 10'000)
        return fail(Code::invalid, fmt::format("\"{}\" is not a range of seeds", text.substr(0, 64)),
                    "--seeds 42..51, at most 10,000 of them");
    return seeds;
}

PackingPolicy policy_of(const std::string& word) {
    const auto known = words(PackingPolicy{});
    return static_cast<PackingPolicy>(std::ranges::find(known, word) - known.begin());
}

std::string_view word_of(PackingPolicy policy) { return words(policy)[static_cast<std::size_t>(policy)]; }

// "openb_pod_list_default" of a longer path.
std::string title_of(const std::string& path) {
    std::string name = std::filesystem::path{path}.filename();
    for (const std::string_view ending : {".gz", ".csv"})
        if (name.ends_with(ending)) name.resize(name.size() - ending.size());
    return name;
}

// A line that is written over itself, for who watches; nothing in a pipe.
class Progress {
public:
    Progress(std::ostream& err, bool shown, std::size_t all) : err_{err}, shown_{shown}, all_{all} {}
    ~Progress() {
        if (shown_) err_ << "\r\033[K" << std::flush;
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    void step(std::string_view what) {
        ++done_;
        if (!shown_) return;
        constexpr std::size_t cells = 30;
        const std::size_t full = cells * done_ / all_;
        err_ << fmt::format("\r\033[K[{}{}] {}/{} {}", std::string(full, '#'), std::string(cells - full, '.'), done_,
                            all_, what)
             << std::flush;
    }

private:
    std::ostream& err_;
    const bool shown_;
    const std::size_t all_;
    std::size_t done_ = 0;
};

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

int simulate(const SimulateOptions& options, Context& context) {
    const auto seeds = parse_seeds(options.seeds);
    if (!seeds) return complain(context, bad_input, seeds.error());
    const auto node_text = replay::read_trace_file(options.nodes);
    if (!node_text) return complain(context, could_not, node_text.error());
    const auto fleet = replay::read_openb_nodes(options.nodes, *node_text);
    if (!fleet) return complain(context, bad_input, fleet.error());

    std::vector<InflationLine> lines;
    std::vector<std::string> traces;
    const std::size_t count = seeds->last - seeds->first + 1;
    Progress progress{context.err, context.colour && isatty(STDERR_FILENO) != 0,
                      options.pods.size() * options.policies.size() * count};
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
        for (const std::string& word : options.policies) {
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
        std::ofstream page{options.page, std::ios::binary};
        page << replay::inflation_page(
            lines,
            fmt::format("Share of all GPUs in use, in percent, when so many percent have been asked for. {} nodes, "
                        "seeds {}; mean and standard deviation over the seeds.",
                        fleet->nodes.size(), options.seeds));
        if (!page.flush())
            return complain(context, could_not,
                            {Code::unavailable, fmt::format("{} cannot be written", options.page), "check the path"});
    }
    if (options.output == "json")
        print_json(context.out, lines, traces);
    else
        print_lines(context.out, lines, context.colour);
    return done;
}

}  // namespace

void add_simulate(CLI::App& app, Context& context) {
    CLI::App* command = app.add_subcommand("simulate", "Replay a trace against packing policies.");
    command->description(
        "Replay a trace against packing policies.\n\n"
        "The inflation experiment on the openb files: tasks arrive in random order, then more drawn from the same\n"
        "list, until 130 % of the fleet's GPUs have been asked for; nobody leaves, and what fits nowhere is dropped.\n"
        "Printed is the share of GPUs in use when so much has arrived, the mean over all seeds. The same seed gives\n"
        "every policy the same arrivals, and the same bytes on every run.");
    command->footer(
        "Examples:\n"
        "  bulkhead simulate --nodes openb_node_list_gpu_node.csv --pods openb_pod_list_default.csv\n"
        "  bulkhead simulate --nodes NODES --pods A.csv.gz --pods B.csv.gz --policy all --seeds 42..51 -o json\n"
        "  bulkhead simulate --nodes NODES --pods PODS --out report.html\n\n"
        "Exit status:\n"
        "  0  done\n"
        "  1  a file cannot be read or written\n"
        "  2  a file or an argument is wrong");
    auto options = std::make_shared<SimulateOptions>();
    std::vector<std::string> known{"all"};
    for (const std::string_view word : words(PackingPolicy{})) known.emplace_back(word);
    command->add_option("--nodes", options->nodes, "The list of nodes, CSV, gzip or not.")
        ->required()
        ->type_name("FILE");
    command->add_option("--pods", options->pods, "A list of tasks; may be given several times.")
        ->required()
        ->type_name("FILE");
    command->add_option("--seeds", options->seeds, "Which seeds: 42..51.")->type_name("A..B");
    command->add_option("--policy", options->policies, "Which policies, with commas between; or all.")
        ->delimiter(',')
        ->check(CLI::IsMember(known))
        ->type_name("POLICY");
    command->add_option("-o,--output", options->output, "table or json.")
        ->check(CLI::IsMember({"table", "json"}))
        ->type_name("FORMAT");
    command->add_option("--out", options->page, "Also write one HTML page with plots.")->type_name("FILE");
    command->callback([options, &context] {
        std::ranges::sort(options->policies);
        options->policies.erase(std::ranges::unique(options->policies).begin(), options->policies.end());
        if (std::ranges::find(options->policies, "all") != options->policies.end()) {
            options->policies.clear();
            for (const std::string_view word : words(PackingPolicy{})) options->policies.emplace_back(word);
        }
        context.status = simulate(*options, context);
    });
}

}  // namespace bulkhead::cli
