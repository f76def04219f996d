// `selftest fabric`: plays the attacker between two ends of this node, and says which fence stopped what.
#include <fmt/format.h>

#include <memory>
#include <ostream>

#include "bulkhead/agent/fabric_selftest.hpp"
#include "bulkhead/cli/clock.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/selftest_node.hpp"
#include "bulkhead/cli/terminal.hpp"

namespace bulkhead::cli {

namespace {

struct SelftestOptions {
    bool veth = false;
    std::string fence = "on";
    std::string output = "table";
    std::string nft = "nft";
    std::vector<std::string> nics;
    std::string node;
    bool soft_roce = false;
    std::string folder = "/run/bulkhead/selftest";
};

Cell end_cell(const agent::FabricAttempt& attempt) {
    switch (attempt.end) {
        case agent::AttemptEnd::stopped:
            return {"stopped", green};
        case agent::AttemptEnd::got_through:
            return {"GOT THROUGH", red};
        case agent::AttemptEnd::unclear:
            return {"unclear", red};
        case agent::AttemptEnd::not_tried:
            break;
    }
    return {"not tried", dim};
}

void print_attempts(const agent::FabricReport& found, const agent::FabricVerdict& verdict, Context& context) {
    context.out << fmt::format("fabric selftest between {}, fence {}, graded {}\n\n", found.between, word(found.fence),
                               word(found.grade));
    std::vector<Row> rows{{{"ATTEMPT"}, {"END"}, {"WHAT WAS TRIED"}, {"BY"}}};
    for (const agent::FabricAttempt& attempt : found.attempts)
        rows.push_back({{attempt.name}, end_cell(attempt), {attempt.tried}, {attempt.by}});
    if (!found.attempts.empty()) print_table(context.out, rows, 2, context.colour);
    context.out << '\n' << verdict.why << '\n';
}

Result<agent::FabricFence> fence_of(const std::string& text) {
    const auto all = words(agent::FabricFence{});
    for (std::size_t at = 0; at < all.size(); ++at)
        if (all[at] == text) return static_cast<agent::FabricFence>(at);
    return fail(Code::invalid, fmt::format("'{}' is no fence", text), "say on, nic or off");
}

Result<std::unique_ptr<agent::Functions>> open_functions(const SelftestOptions& options) {
    agent::FunctionsSettings settings{
        .nics = {}, .run_folder = options.folder, .nft = options.nft, .soft_roce = options.soft_roce};
    for (const std::string& text : options.nics) {
        auto nic = agent::parse_tenant_nic(text);
        if (!nic) return std::unexpected(nic.error());
        settings.nics.push_back(std::move(*nic));
    }
    auto functions = agent::Functions::open(std::move(settings));
    if (functions && (*functions)->size() < 2)
        return fail(Code::exhausted,
                    fmt::format("the test takes two functions, and there are {}", (*functions)->size()),
                    "name a NIC with two: --tenant-nic 0000:3b:00.0=2");
    return functions;
}

int run_selftest(const SelftestOptions& options, const DoorOptions& door, Context& context) {
    const auto fence = fence_of(options.fence);
    if (!fence) return complain(context, bad_input, fence.error());
    if (!options.node.empty()) {
        if (options.veth || !options.nics.empty() || *fence != FabricFence::on)
            return complain(context, bad_input,
                            {Code::invalid, "another node chooses its own ends, and tests both settings of its fences",
                             "say --node alone"});
        return test_node_fences({options.node, options.output}, door, context);
    }
    if (options.veth == !options.nics.empty())
        return complain(context, bad_input,
                        {Code::invalid, "which two ends to test between is not said, or said twice",
                         "say --veth, or --tenant-nic with a NIC that has two virtual functions"});
    std::unique_ptr<agent::Functions> functions;  // outlive the rig
    if (!options.veth) {
        auto opened = open_functions(options);
        if (!opened) return report(context, opened.error());
        functions = *std::move(opened);
    }
    auto rig =
        options.veth ? agent::make_veth_rig(*fence, options.nft) : agent::make_function_rig(*fence, *functions, {0, 1});
    if (!rig) return report(context, rig.error());
    const auto found = agent::test_fabric(**rig, *fence, options.nft, clock_now());
    if (!found) return report(context, found.error());
    const agent::FabricVerdict verdict = agent::verdict_of(*found);
    if (options.output == "json")
        context.out << agent::fabric_report_text(*found) << '\n';
    else
        print_attempts(*found, verdict, context);
    switch (verdict.found) {
        case FabricFound::closed:
            return done;
        case FabricFound::open:
            return refused;
        case FabricFound::unproven:
            break;
    }
    if (options.output == "json") context.err << verdict.why << '\n';
    return could_not;
}

}  // namespace

void add_selftest(Command program, Context& context) {
    Command command = program.add_subcommand("selftest", "Try this node's own fences as an attacker would.");
    command.require_subcommand();
    Command fabric = command.add_subcommand("fabric", "Forge between two ends of this node, and see what stops it.");
    fabric.description(
        "Forge between two ends of this node, and see what stops it.\n\n"
        "Both ends are ours. Frames are forged as somebody would who is root in a VM; sockets, addresses, namespaces\n"
        "and device files are tried as a process of a tenant. Nothing of it outlives the command.");
    fabric.footer(
        "Examples:\n"
        "  bulkhead selftest fabric --veth                two cables in a bridge, on any machine, as root\n"
        "  bulkhead selftest fabric --veth --fence off    the control: everything must get through\n"
        "  bulkhead selftest fabric --tenant-nic 0000:3b:00.0=2 --fence nic    what this NIC stops by itself\n"
        "  bulkhead selftest fabric --node node-17        a node of the fleet does it, and signs what it finds\n\n"
        "Exit status:\n"
        "  0  all was stopped; with the fence off: all got through, as it must\n"
        "  1  it could not be tried, or proves nothing\n"
        "  3  something got through");
    auto options = std::make_shared<SelftestOptions>();
    fabric.add_flag("--veth", options->veth, "Between two virtual cables in namespaces of our own.");
    fabric
        .add_option(
            "--tenant-nic", options->nics,
            "Between the first two virtual functions of this NIC, which nobody may be using. With =COUNT they are "
            "made, where there are none.")
        .type_name("PCI[=COUNT]");
    fabric.add_flag("--soft-roce", options->soft_roce, "Give each function an RDMA device in software.");
    fabric.add_option("--run", options->folder, "Where it keeps its namespaces. Default: /run/bulkhead/selftest.")
        .type_name("DIR");
    fabric
        .add_option("--fence", options->fence,
                    "on; nic: what the NIC itself does, as for a VM; off: nothing, as a control. Default: on.")
        .one_of({"on", "nic", "off"})
        .type_name("WHICH");
    fabric.add_option("--nft", options->nft, "The nftables program. Default: nft.").type_name("PROGRAM");
    fabric.add_option("-o,--output", options->output, "table or json. Default: table.")
        .one_of({"table", "json"})
        .type_name("FORMAT");
    fabric
        .add_option("--node", options->node,
                    "Ask the server to have this node do it, on functions that nobody has. It ends as a signed record "
                    "in the log.")
        .type_name("NAME");
    auto door = add_door(fabric);
    fabric.callback([options, door, &context] { context.status = run_selftest(*options, *door, context); });
}

}  // namespace bulkhead::cli
