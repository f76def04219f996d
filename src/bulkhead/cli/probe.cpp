// `probe`: what neighbours on one GPU can read, see and do. Its parts are this same program again.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <ostream>

#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/self.hpp"
#include "bulkhead/cli/terminal.hpp"
#include "bulkhead/probe/finding.hpp"
#include "bulkhead/probe/roles.hpp"

namespace bulkhead::cli {

namespace {

struct ProbeOptions {
    probe::Options probe;
    std::string output = "table";
    std::vector<std::string> words;  // of a part
};

std::string figures_of(const probe::Finding& finding) {
    std::string text;
    for (const probe::Figure& figure : finding.figures)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", figure.name, figure.value);
    return text;
}

void print_report(const probe::Report& report, Context& context) {
    context.out << fmt::format("{}: {}, driver {}, {}, graded {}\n\n", report.probe, report.model, report.driver,
                               print(report.at), word(report.grade));
    std::vector<Row> rows{{{"WHAT"}, {"SETTING"}, {"FOUND"}}};
    for (const probe::Finding& finding : report.findings)
        rows.push_back({{finding.what},
                        {finding.setting},
                        finding.not_tried.empty() ? Cell{finding.says.empty() ? figures_of(finding) : finding.says}
                                                  : Cell{"not tried: " + finding.not_tried, dim}});
    print_table(context.out, rows, 2, context.colour);
    context.out << "\n-o json has the figures; both sides of every measurement were ours\n";
}

int run_probe(Result<probe::Report> (*measure)(const probe::Options&), ProbeOptions options, Context& context) {
    options.probe.self = {self_path().string(), "probe", "part"};
    const auto found = measure(options.probe);
    if (!found) return report(context, found.error());
    if (options.output == "json") {
        context.out << probe::report_text(*found) << '\n';
    } else if (options.output == "html") {
        context.out << probe::page_of(*found);
    } else {
        print_report(*found, context);
    }
    return done;
}

void add_one(Command program, Context& context, const char* name, const char* about,
             Result<probe::Report> (*measure)(const probe::Options&)) {
    Command command = program.add_subcommand(name, about);
    auto options = std::make_shared<ProbeOptions>();
    command.add_option("--gpu", options->probe.gpu, "An index as nvidia-smi counts, or a UUID. Default: 0.")
        .type_name("GPU");
    command.add_option("--mib", options->probe.mib, "How much memory a neighbour holds, in MiB. Default: 4096.")
        .within(1, 1 << 20)
        .type_name("MIB");
    command
        .add_option("--seconds", options->probe.seconds, "The longest a figure of interference may take. Default: 3.")
        .within(1, 600)
        .type_name("SECONDS");
    command.add_option("--cuda", options->probe.cuda, "The CUDA driver's library. Default: libcuda.so.1.")
        .type_name("LIBRARY");
    command.add_option("--nvml", options->probe.nvml, "NVML's. Default: libnvidia-ml.so.1.").type_name("LIBRARY");
    command.add_option("--mps", options->probe.mps, "The MPS control program. Default: nvidia-cuda-mps-control.")
        .type_name("PROGRAM");
    command.add_option("-o,--output", options->output, "table, json or html. Default: table.")
        .one_of({"table", "json", "html"})
        .type_name("FORMAT");
    command.callback([options, measure, &context] { context.status = run_probe(measure, *options, context); });
}

}  // namespace

void add_probe(Command program, Context& context) {
    Command command = program.add_subcommand("probe", "Measure what neighbours on one GPU can read, see and do.");
    command.description(
        "Measure what neighbours on one GPU can read, see and do.\n\n"
        "Both sides are ours, bounded, and end by themselves. A GPU that somebody uses is refused. Clocks, power, "
        "modes\n"
        "and layout of the card are never changed.");
    command.footer(
        "Examples:\n"
        "  bulkhead probe residue --gpu 0                 what is left for the next one\n"
        "  bulkhead probe visibility --gpu 0              what a neighbour sees\n"
        "  bulkhead probe interference --gpu 0 -o html    how much slower a neighbour makes us\n\n"
        "Exit status:\n"
        "  0  measured\n"
        "  1  it could not be tried");
    command.require_subcommand();
    add_one(command, context, "residue", "What is left in memory for the next one.", probe::residue);
    add_one(command, context, "visibility", "What a process without rights learns about a neighbour.",
            probe::visibility);
    add_one(command, context, "interference", "How much slower a neighbour makes us.", probe::interference);
    add_one(command, context, "rates", "How fast a wipe's passes are, beside the fastest there is.", probe::rates);
    Command part = command.add_subcommand("part", "One side of a probe; the others start it.");
    auto options = std::make_shared<ProbeOptions>();
    part.add_option("--cuda", options->probe.cuda, "The CUDA driver's library.").type_name("LIBRARY");
    part.add_option("--nvml", options->probe.nvml, "NVML's.").type_name("LIBRARY");
    part.add_option("ROLE", options->words, "What it does, and its words.").required().type_name("");
    part.callback([options, &context] {
        context.status = probe::play({options->probe.cuda, options->probe.nvml, options->words}, std::cin, context.out);
    });
}

}  // namespace bulkhead::cli
