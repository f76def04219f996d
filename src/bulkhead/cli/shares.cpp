#include <fmt/core.h>

#include <algorithm>
#include <expected>
#include <memory>
#include <ostream>

#include "bulkhead/base/quantity.hpp"
#include "bulkhead/cli/command.hpp"
#include "bulkhead/cli/input.hpp"
#include "bulkhead/cli/shares_text.hpp"
#include "bulkhead/model/consistency.hpp"
#include "bulkhead/sched/peer_trees.hpp"

namespace bulkhead::cli {

namespace {

struct SharesOptions {
    std::vector<std::string> files;
    std::string output = "table", gpus;
    bool whole = false;
};

using ReadCluster = std::expected<sched::Cluster, std::vector<Diagnostic>>;

// A fleet's objects. A division asks nothing of the FleetPolicy, so none is needed.
ReadCluster read_snapshot(const std::vector<SourceText>& sources) {
    const Loaded loaded = load(sources);
    if (!loaded.errors.empty()) return std::unexpected(loaded.errors);
    std::vector<Finding> findings = inconsistencies(loaded.snapshot);
    if (loaded.snapshot.policies.empty())
        std::erase_if(findings, [](const Finding& finding) { return finding.kind == FleetPolicy::kind; });
    if (!findings.empty()) return std::unexpected(located(loaded.where, findings));
    if (loaded.snapshot.tenants.empty() && loaded.snapshot.nodes.empty())
        return std::unexpected(std::vector{Diagnostic{loaded.where.find(Tenant::kind, "", 0, ""),
                                                      "there is no Cluster, no Tenant and no GpuNode to divide among",
                                                      "see examples/shares/ for a Cluster in one document"}});
    return sched::cluster_of(loaded.snapshot);
}

// What another scheduler keeps says how GPUs are shared, not how many there are.
ReadCluster read_peer(const SourceText& source, sched::PeerTree tree, std::string_view gpus) {
    const auto wrong = [&](std::string what) {
        return std::unexpected(std::vector{Diagnostic{
            {source.name, 1, 1}, std::move(what), fmt::format("bulkhead shares -f {} --gpus 64", source.name)}});
    };
    if (gpus.empty()) return wrong("how many GPUs there are is not said");
    const auto all = parse_gpus(gpus);
    if (!all || all->units > most_gpus) return wrong(fmt::format("--gpus {} is no number of GPUs", gpus.substr(0, 32)));
    return tree == sched::PeerTree::kai ? sched::read_kai_queues(source.name, source.text, *all)
                                        : sched::read_slurm_dump(source.name, source.text, *all);
}

ReadCluster read(const std::vector<SourceText>& sources, std::string_view gpus) {
    if (sources.size() == 1)
        if (const sched::PeerTree tree = sched::peer_tree_in(sources.front().text); tree != sched::PeerTree::none)
            return read_peer(sources.front(), tree, gpus);
    if (!gpus.empty())
        return std::unexpected(std::vector{Diagnostic{{sources.front().name, 1, 1},
                                                      "--gpus is for the queues of KAI or a dump of Slurm, in one file",
                                                      "a Cluster says gpus: or nodes:, a fleet has nodes"}});
    const auto found =
        std::ranges::find_if(sources, [](const SourceText& source) { return sched::holds_cluster(source.text); });
    if (found == sources.end()) return read_snapshot(sources);
    if (sources.size() > 1)
        return std::unexpected(
            std::vector{Diagnostic{{found->name, 1, 1},
                                   fmt::format("a Cluster stands alone, and {} files were given", sources.size()),
                                   fmt::format("bulkhead shares -f {}", found->name)}});
    return sched::read_cluster(found->name, found->text);
}

int shares(const SharesOptions& options, Context& context) {
    const auto sources = read_sources(options.files);
    if (!sources) return complain(context, could_not, sources.error());
    ReadCluster cluster = read(*sources, options.gpus);
    if (!cluster) {
        for (const Diagnostic& diagnostic : cluster.error()) context.err << print(diagnostic);
        context.err << fmt::format("{} error{}; nothing was divided\n", cluster.error().size(),
                                   cluster.error().size() == 1 ? "" : "s");
        return bad_input;
    }
    SharesAnswer answer{.cluster = *std::move(cluster)};
    answer.division = sched::divide(sched::queues_of(answer.cluster), answer.cluster.all_gpus(),
                                    options.whole ? sched::Grain::whole : sched::Grain::fine);
    answer.fair = sched::fair_table(answer.cluster);
    if (options.output == "json")
        context.out << shares_json(answer);
    else
        print_shares(context.out, answer);
    return done;
}

}  // namespace

void add_shares(Command program, Context& context) {
    Command command = program.add_subcommand("shares", "Divide GPUs among tenants, and rank them by past usage.");
    auto options = std::make_shared<SharesOptions>();
    command.description(
        "Say how many GPUs each tenant is due now, and whose turn it is by Fair Tree.\n\n"
        "At each level of the tree every tenant first gets what it asks of its guarantee; the surplus goes to those\n"
        "who still ask, by over-quota priority, then in proportion to weight, within limit and request. Then Fair "
        "Tree\n"
        "ranks the users by shares and usage, in the columns of `sshare -l`. Exact arithmetic; nothing is "
        "contacted.\n\n"
        "FILE is one short document of kind Cluster (examples/shares/), or the manifests of a fleet: then the GPUs "
        "are\n"
        "those of its nodes, the requests those of its workloads, and nothing has been used yet. With --gpus also the\n"
        "Queue objects of KAI, or what Slurm's `sacctmgr dump` wrote: then everybody asks for all it may have.");
    command
        .add_option("-f,--filename", options->files,
                    "Files, folders (the .yaml, .yml and .json files directly in them), or - for standard input.")
        .required()
        .type_name("DIR|FILE");
    command.add_option("-o,--output", options->output, "table or json. Default: table.")
        .one_of({"table", "json"})
        .type_name("FORMAT");
    command.add_option("--gpus", options->gpus, "How many GPUs there are, where FILE is from KAI or Slurm.")
        .type_name("COUNT");
    command.add_flag("--whole", options->whole,
                     "In whole GPUs: floors first, then one each by largest remainder, ties to the older tenant.");
    command.footer(
        "Examples:\n"
        "  bulkhead shares -f examples/shares/departments.yaml             shares in parts of a GPU\n"
        "  bulkhead shares -f examples/shares/departments.yaml --whole     the same in whole GPUs\n"
        "  bulkhead shares -f examples/ -o json | jq '.shares'             of a fleet's manifests\n"
        "  kubectl get queues -o yaml | bulkhead shares -f - --gpus 64     of the queues of KAI\n"
        "  bulkhead shares -f examples/shares/slurm.dump --gpus 64         of the accounts and users of Slurm\n\n"
        "Exit status:\n"
        "  0  divided\n"
        "  1  a file could not be found\n"
        "  2  a file is invalid; every error is printed as file:line:column");
    command.callback([options, &context] { context.status = shares(*options, context); });
}

}  // namespace bulkhead::cli
