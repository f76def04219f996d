// bulkhead bench: figures of our own programs, measured where they run.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <ostream>

#include "bulkhead/cli/command.hpp"
#include "bulkhead/cli/input.hpp"
#include "bulkhead/cli/terminal.hpp"
#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/replay/scheduler_trial.hpp"

namespace bulkhead::cli {

namespace {

using replay::TrialFigures;
using replay::TrialTimes;

constexpr std::string_view usual_mix = "bench/mixes/coarse.yaml";

struct BenchOptions {
    replay::TrialOptions trial;
    std::string mix{usual_mix}, output = "table";
};

// One question beside the decisions of the mix.
struct Question {
    std::string_view name, about, yes;
    const TrialTimes& times;
};

std::vector<Question> questions(const TrialFigures& figures) {
    return {{"gang512", "a gang of 64 nodes of 8", "placed", figures.gang512},
            {"reclaim", "whom a tenant below its due would reclaim from", "found", figures.reclaim},
            {"unschedulable", "a gang that does not fit, and every reason", "explained", figures.unschedulable}};
}

std::string us(double value) { return fmt::format("{:.2f}", value); }

void print_json(std::ostream& out, const TrialFigures& figures, const BenchOptions& options) {
    JsonWriter json;
    const auto number = [&](std::string_view name, double value, int digits) {
        json.key(name);
        json.number(fmt::format("{:.{}f}", value, digits));
    };
    json.begin_object();
    json.member("mix", options.mix);
    json.member("seed", std::to_string(options.trial.seed));
    json.member("nodes", figures.nodes);
    json.member("gpus", figures.gpus);
    json.member("tenants", figures.tenants);
    json.member("shapes", figures.shapes);
    json.member("jobs", figures.jobs);
    number("full", figures.full, 4);
    number("build_seconds", figures.build_s, 3);
    number("fill_seconds", figures.fill_s, 3);
    json.member("fill_decisions", figures.fill_decisions);
    json.member("decisions", figures.decisions);
    json.member("decisions_placed", figures.placed);
    number("cpu_seconds", figures.cpu_s, 4);
    number("decisions_per_second", figures.decisions_per_second, 1);
    if (figures.instructions_per_decision) number("instructions_per_decision", *figures.instructions_per_decision, 0);
    number("p50_us", figures.single.p50_us, 2);
    number("p99_us", figures.single.p99_us, 2);
    number("max_us", figures.single.max_us, 2);
    for (const Question& question : questions(figures)) {
        if (question.times.count == 0) continue;
        number(fmt::format("{}_p50_us", question.name), question.times.p50_us, 2);
        number(fmt::format("{}_p99_us", question.name), question.times.p99_us, 2);
        json.member(fmt::format("{}_count", question.name), question.times.count);
        json.member(fmt::format("{}_{}", question.name, question.yes), question.times.yes);
    }
    json.member("distinct_states", figures.distinct_states);
    number("bytes_per_node", figures.bytes_per_node, 1);
    number("bytes_per_job", figures.bytes_per_job, 1);
    number("process_bytes_per_job", figures.process_bytes_per_job, 1);
    json.end_object();
    out << json.take();
}

void print_figures(std::ostream& out, const TrialFigures& figures, bool colour) {
    out << fmt::format("{} nodes, {} GPUs, {} tenants; {} jobs of {} shapes fill {:.1f} % of it\n", figures.nodes,
                       figures.gpus, figures.tenants, figures.jobs, figures.shapes, 100 * figures.full);
    out << fmt::format("built in {:.2f} s, filled in {:.2f} s by {} decisions that are not counted\n\n",
                       figures.build_s, figures.fill_s, figures.fill_decisions);
    std::vector<Row> rows{{{"FIGURE", bold}, {"VALUE", bold}, {"", bold}}};
    const auto add = [&](std::string name, std::string value, std::string about) {
        rows.push_back({{std::move(name)}, {std::move(value)}, {std::move(about), dim}});
    };
    add("decisions_per_second", fmt::format("{:.0f}", figures.decisions_per_second),
        fmt::format("{} decisions, {} placed, in {:.2f} s of one core", figures.decisions, figures.placed,
                    figures.cpu_s));
    if (figures.instructions_per_decision)
        add("instructions_per_decision", fmt::format("{:.0f}", *figures.instructions_per_decision), "");
    else
        add("instructions_per_decision", "-", "this machine does not count them");
    add("p50_us", us(figures.single.p50_us), "one task");
    add("p99_us", us(figures.single.p99_us),
        fmt::format("{} of them; the slowest {}", figures.single.count, us(figures.single.max_us)));
    for (const Question& question : questions(figures)) {
        if (question.times.count == 0) {
            add(fmt::format("{}_p99_us", question.name), "-", "this mix has no way to ask");
            continue;
        }
        add(fmt::format("{}_p50_us", question.name), us(question.times.p50_us), std::string{question.about});
        add(fmt::format("{}_p99_us", question.name), us(question.times.p99_us),
            fmt::format("{} asked, {} {}", question.times.count, question.times.yes, question.yes));
    }
    add("distinct_states", fmt::format("{}", figures.distinct_states), "of nodes, when the fleet is full");
    add("bytes_per_node", fmt::format("{:.0f}", figures.bytes_per_node), "with its part of the indexes");
    add("bytes_per_job", fmt::format("{:.0f}", figures.bytes_per_job), "");
    add("process_bytes_per_job", fmt::format("{:.0f}", figures.process_bytes_per_job),
        "all that the process has grown by, nodes and all");
    print_table(out, rows, 2, colour);
}

int bench_scheduler(BenchOptions options, Context& context) {
    const auto sources = read_sources({options.mix});
    if (!sources) return complain(context, could_not, sources.error());
    const SourceText& source = sources->front();
    const auto mix = replay::read_mix(source.name, source.text);
    if (!mix) {
        for (const Diagnostic& error : mix.error()) context.err << print(error);
        return bad_input;
    }
    if (context.colour && isatty(STDERR_FILENO) != 0)
        options.trial.progress = [&](std::string_view what) { context.err << "\r\033[K" << what << std::flush; };
    const auto figures = replay::try_scheduler(*mix, options.trial);
    if (options.trial.progress) context.err << "\r\033[K" << std::flush;
    if (!figures) return complain(context, bad_input, figures.error());
    if (options.output == "json")
        print_json(context.out, *figures, options);
    else
        print_figures(context.out, *figures, context.colour);
    return done;
}

}  // namespace

void add_bench(Command program, Context& context) {
    Command bench = program.add_subcommand("bench", "Measure how fast this machine runs parts of Bulkhead.");
    bench.require_subcommand();
    Command command = bench.add_subcommand("scheduler", "How fast the scheduler decides, and what it keeps in memory.");
    command.description(
        "How fast the scheduler decides, and what it keeps in memory.\n\n"
        "A fleet is drawn from the mix and the seed, and filled. Then jobs end and others come, one decision each, on\n"
        "one core; decisions_per_second counts the CPU time of submitting, deciding and ending together, and a\n"
        "decision that finds no room counts too. Latencies are of the decision alone. Run it on an idle machine.");
    command.footer(
        "Examples:\n"
        "  bulkhead bench scheduler --nodes 10000\n"
        "  bulkhead bench scheduler --nodes 10000 --mix bench/mixes/distinct.yaml -o json\n\n"
        "Exit status:\n"
        "  0  done\n"
        "  1  the mix cannot be read\n"
        "  2  the mix or an argument is wrong");
    auto options = std::make_shared<BenchOptions>();
    command.add_option("--nodes", options->trial.nodes, "How many nodes the fleet has.").required().type_name("COUNT");
    command.add_option("--mix", options->mix, fmt::format("What it is made of. Default: {}.", usual_mix))
        .type_name("FILE");
    command.add_option("--seed", options->trial.seed, "Another fleet of the same mix. Default: 1.").type_name("NUMBER");
    command
        .add_option("--decisions", options->trial.decisions,
                    "How many are measured at most; five seconds of CPU time end it too. Default: 200000.")
        .type_name("COUNT");
    command.add_option("--rounds", options->trial.rounds, "How often each other question is asked. Default: 300.")
        .type_name("COUNT");
    command.add_option("-o,--output", options->output, "table or json.").one_of({"table", "json"}).type_name("FORMAT");
    command.callback([options, &context] { context.status = bench_scheduler(*options, context); });
}

}  // namespace bulkhead::cli
