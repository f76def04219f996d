#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <expected>
#include <memory>
#include <ostream>

#include "bulkhead/cli/clock.hpp"
#include "bulkhead/cli/command.hpp"
#include "bulkhead/cli/input.hpp"
#include "bulkhead/cli/schedule_text.hpp"
#include "bulkhead/model/consistency.hpp"
#include "bulkhead/policy/compile.hpp"

namespace bulkhead::cli {

namespace {

struct ScheduleOptions {
    std::vector<std::string> files;
    std::string output = "table";
    std::string at;
    int cycles = 0;
    bool resubmit = false;
};

using ReadScene = std::expected<sched::Scene, std::vector<Diagnostic>>;

// What the person says, else when the nodes were observed, else now.
Instant moment_of(const std::optional<Instant>& at, const Snapshot& snapshot) {
    return at.value_or(observed_at(snapshot).value_or(clock_now()));
}

ReadScene read_snapshot(const std::vector<SourceText>& sources, const std::optional<Instant>& at) {
    const Loaded loaded = load(sources);
    if (!loaded.errors.empty()) return std::unexpected(loaded.errors);
    if (const auto findings = inconsistencies(loaded.snapshot); !findings.empty())
        return std::unexpected(located(loaded.where, findings));
    if (loaded.snapshot.nodes.empty())
        return std::unexpected(std::vector{Diagnostic{loaded.where.find(GpuNode::kind, "", 0, ""),
                                                      "there is no Cluster and no GpuNode to place work on",
                                                      "see examples/schedule/ for a Cluster in one document"}});
    // Guarantees that cannot all be kept, with a node closed or lost, are a fair question here.
    return sched::scene_of(loaded.snapshot, moment_of(at, loaded.snapshot));
}

ReadScene read_cluster(const SourceText& source, const std::optional<Instant>& at) {
    auto cluster = sched::read_cluster(source.name, source.text);
    if (!cluster) return std::unexpected(cluster.error());
    if (cluster->nodes.empty())
        return std::unexpected(std::vector{Diagnostic{{source.name, 1, 1},
                                                      "the cluster has no nodes to place work on",
                                                      "instead of gpus: say nodes: [{name: n, count: 2}]"}});
    if (at) cluster->now = *at;
    auto scene = sched::scene_of(*cluster);
    if (!scene) return std::unexpected(sched::located(source.name, source.text, scene.error()));
    return *std::move(scene);
}

ReadScene read(const std::vector<SourceText>& sources, const std::optional<Instant>& at) {
    const auto found =
        std::ranges::find_if(sources, [](const SourceText& source) { return sched::holds_cluster(source.text); });
    if (found == sources.end()) return read_snapshot(sources, at);
    if (sources.size() > 1)
        return std::unexpected(
            std::vector{Diagnostic{{found->name, 1, 1},
                                   fmt::format("a Cluster stands alone, and {} files were given", sources.size()),
                                   fmt::format("bulkhead schedule -f {}", found->name)}});
    return read_cluster(*found, at);
}

int schedule(const ScheduleOptions& options, Context& context) {
    const auto sources = read_sources(options.files);
    if (!sources) return complain(context, could_not, sources.error());
    std::optional<Instant> at;
    if (!options.at.empty()) {
        const auto parsed = options.at == "now" ? Result<Instant>{clock_now()} : parse_instant(options.at);
        if (!parsed) return complain(context, bad_input, parsed.error());
        at = *parsed;
    }
    ReadScene scene = read(*sources, at);
    if (!scene) {
        for (const Diagnostic& diagnostic : scene.error()) context.err << print(diagnostic);
        context.err << fmt::format("{} error{}; nothing was scheduled\n", scene.error().size(),
                                   scene.error().size() == 1 ? "" : "s");
        return bad_input;
    }
    ScheduleAnswer answer{.scene = *std::move(scene), .played = {}};
    answer.played = sched::play(answer.scene, {.cycles = options.cycles, .resubmit = options.resubmit});
    if (options.output == "json")
        context.out << schedule_json(answer);
    else
        print_schedule(context.out, answer);
    if (!answer.played.settled && options.cycles == 0)
        return complain(context, could_not,
                        Error{Code::exhausted, fmt::format("not settled after {} cycles", answer.played.cycles),
                              "--cycles 20 -o json shows what goes round"});
    return answer.scene.refused.empty() ? done : refused;
}

}  // namespace

void add_schedule(Command program, Context& context) {
    Command command = program.add_subcommand("schedule", "Place jobs on nodes, and say why the rest waits.");
    auto options = std::make_shared<ScheduleOptions>();
    command.description(
        "Run the scheduler on a snapshot until it settles.\n\n"
        "Prints what runs where, whom it evicted or moved for whom and what work that lost, why everything else "
        "waits,\n"
        "and what each tenant holds of what it is due. The same engine as in the control plane; nothing is "
        "contacted.\n\n"
        "FILE is one short document of kind Cluster with nodes and jobs (examples/schedule/), or the objects of a "
        "fleet:\n"
        "then policy is asked for contracts, and leases are what runs. docs/snapshot.md explains every field.");
    command
        .add_option("-f,--filename", options->files,
                    "Files, folders (the .yaml, .yml and .json files directly in them), or - for standard input.")
        .required()
        .type_name("DIR|FILE");
    command.add_option("-o,--output", options->output, "table or json. Default: table.")
        .one_of({"table", "json"})
        .type_name("FORMAT");
    command
        .add_option("--cycles", options->cycles,
                    "Exactly so many cycles, a minute apart. Default: until nothing more happens, without time "
                    "passing.")
        .within(1, sched::most_cycles)
        .type_name("N");
    command.add_flag("--resubmit", options->resubmit, "Evicted jobs wait again. Default: they are gone.");
    command
        .add_option("--at", options->at,
                    "As of this moment (2026-11-15T09:00:00Z, or now). Default: what the file says, or when the nodes "
                    "were last observed.")
        .type_name("TIME");
    command.footer(
        "Examples:\n"
        "  bulkhead schedule -f examples/schedule/reclaim.yaml              a guarantee that was lent comes back\n"
        "  bulkhead schedule -f examples/schedule/reclaim.yaml --resubmit   and the evicted waits its turn\n"
        "  bulkhead schedule -f examples/ -o json | jq '.waiting[].reasons[].says'   of a fleet's manifests\n\n"
        "Exit status:\n"
        "  0  settled\n"
        "  1  a file could not be found, or it did not settle within 1000 cycles\n"
        "  2  a file is invalid; every error is printed as file:line:column\n"
        "  3  policy refused at least one workload");
    command.callback([options, &context] { context.status = schedule(*options, context); });
}

}  // namespace bulkhead::cli
