#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <ostream>

#include "bulkhead/base/nearest.hpp"
#include "bulkhead/cli/clock.hpp"
#include "bulkhead/cli/command.hpp"
#include "bulkhead/cli/contract_text.hpp"
#include "bulkhead/cli/input.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/model/consistency.hpp"
#include "bulkhead/policy/capacity.hpp"
#include "bulkhead/policy/compile.hpp"

namespace bulkhead::cli {

namespace {

struct ContractOptions {
    std::vector<std::string> files;
    std::string workload;
    std::string output = "table";
    std::string at;
    std::string threat_model;
    std::string as_tenant;
};

// What the files are judged as of: what the person says, else when the nodes were observed, else now.
Result<Instant> moment_of(const ContractOptions& options, const Snapshot& snapshot) {
    if (options.at == "now") return clock_now();
    if (!options.at.empty()) return parse_instant(options.at);
    return observed_at(snapshot).value_or(clock_now());
}

int complain(Context& context, int status, std::span<const Diagnostic> diagnostics) {
    for (const Diagnostic& diagnostic : diagnostics) context.err << print(diagnostic);
    context.err << fmt::format("{} error{}; nothing was compiled\n", diagnostics.size(),
                               diagnostics.size() == 1 ? "" : "s");
    return status;
}

// One threat model's answers.
struct Answer {
    ThreatModel threat{};
    Instant as_of;
    std::vector<Decision> decisions;
};

void write_answer(JsonWriter& json, const Answer& answer) {
    json.begin_object();
    json.member("threatModel", word(answer.threat));
    json.member("asOf", print(answer.as_of));
    json.key("contracts");
    json.begin_array();
    for (const Decision& decision : answer.decisions)
        if (const auto* contract = std::get_if<Contract>(&decision)) write(json, *contract);
    json.end_array();
    json.key("refusals");
    json.begin_array();
    for (const Decision& decision : answer.decisions)
        if (const auto* refusal = std::get_if<Refusal>(&decision)) write(json, *refusal);
    json.end_array();
    json.end_object();
}

void print_json(std::ostream& out, std::span<const Answer> answers) {
    JsonWriter json;
    if (answers.size() == 1) {
        write_answer(json, answers.front());
    } else {
        json.begin_array();
        for (const Answer& answer : answers) write_answer(json, answer);
        json.end_array();
    }
    out << json.take();
}

void print_yaml(std::ostream& out, std::span<const Answer> answers) {
    for (const Answer& answer : answers)
        for (const Decision& decision : answer.decisions) {
            out << "---\n";
            std::visit([&](const auto& each) { out << to_yaml(each); }, decision);
        }
}

std::string counted(std::size_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void print_answer(Context& context, const Answer& answer, const Snapshot& snapshot, bool whole, bool for_operator) {
    const std::string fleet = for_operator ? fmt::format(", {}, {}", counted(snapshot.nodes.size(), "node"),
                                                         counted(snapshot.tenants.size(), "tenant"))
                                           : "";
    context.out << fmt::format("threat model {}{}, as of {}\n", word(answer.threat), fleet, print(answer.as_of));
    if (answer.decisions.empty()) context.out << "no workloads\n";
    if (!whole) return print_overview(context.out, answer.decisions, context.colour);
    for (const Decision& decision : answer.decisions)
        std::visit([&](const auto& each) { print_whole(context.out, each, context.colour); }, decision);
}

void print_tables(Context& context, std::span<const Answer> answers, const Snapshot& snapshot, bool whole,
                  bool for_operator) {
    if (answers.size() == 1 || whole || answers.front().decisions.empty()) {
        for (const Answer& answer : answers) print_answer(context, answer, snapshot, whole, for_operator);
        return;
    }
    std::vector<Column> columns;
    for (const Answer& answer : answers) columns.push_back({answer.threat, answer.decisions});
    print_side_by_side(context.out, columns, context.colour);
}

std::vector<ThreatModel> threat_models(const ContractOptions& options, const Snapshot& snapshot) {
    if (options.threat_model == "all") {
        const auto all = every<ThreatModel>();
        return {all.begin(), all.end()};
    }
    if (const auto model = from_word<ThreatModel>(options.threat_model)) return {*model};
    return {snapshot.policies.empty() ? FleetPolicySpec{}.threatModel : snapshot.policies.front().spec.threatModel};
}

bool refuses(const Answer& answer) {
    for (const Decision& decision : answer.decisions)
        if (std::holds_alternative<Refusal>(decision)) return true;
    return false;
}

int contract(const ContractOptions& options, Context& context) {
    const auto sources = read_sources(options.files);
    if (!sources) return complain(context, could_not, sources.error());
    Loaded loaded = load(*sources);
    if (!loaded.errors.empty()) return complain(context, bad_input, loaded.errors);
    Snapshot& snapshot = loaded.snapshot;
    if (const auto findings = inconsistencies(snapshot); !findings.empty())
        return complain(context, bad_input, located(loaded.where, findings));
    const auto now = moment_of(options, snapshot);
    if (!now) return complain(context, bad_input, now.error());

    std::vector<std::string_view> names;
    names.reserve(snapshot.workloads.size());
    const auto asked_about = [&](const GpuWorkload& workload) {
        return (options.workload.empty() || workload.metadata.name == options.workload) &&
               (options.as_tenant.empty() || workload.spec.tenant == options.as_tenant);
    };
    for (const GpuWorkload& workload : snapshot.workloads) names.push_back(workload.metadata.name);
    if (!options.workload.empty() && std::ranges::find(names, options.workload) == names.end()) {
        const std::string_view near = nearest(options.workload, names);
        return complain(context, could_not,
                        Error{Code::not_found, fmt::format("no workload \"{}\" in these files", options.workload),
                              std::string{near}});
    }

    std::vector<Answer> answers;
    for (const ThreatModel threat : threat_models(options, snapshot)) {
        if (!snapshot.policies.empty()) snapshot.policies.front().spec.threatModel = threat;
        if (const auto findings = unkeepable_guarantees(snapshot, *now); !findings.empty()) {
            if (options.as_tenant.empty()) return complain(context, bad_input, located(loaded.where, findings));
            return complain(context, bad_input,
                            Error{Code::invalid, "the fleet's guarantees cannot all be kept", "ask the operator"});
        }
        Answer answer{.threat = threat, .as_of = *now};
        const Compiler compiler{snapshot, *now};
        for (const GpuWorkload& workload : snapshot.workloads)
            if (asked_about(workload))
                answer.decisions.push_back(compiler.compile(
                    workload, options.as_tenant.empty() ? Audience::fleet_operator : Audience::tenant));
        answers.push_back(std::move(answer));
    }

    if (options.output == "json") print_json(context.out, answers);
    if (options.output == "yaml") print_yaml(context.out, answers);
    if (options.output == "table")
        print_tables(context, answers, snapshot, !options.workload.empty(), options.as_tenant.empty());
    return std::ranges::any_of(answers, refuses) ? refused : done;
}

}  // namespace

void add_contract(Command program, Context& context) {
    Command command = program.add_subcommand("contract", "Compile workloads into contracts or refusals.");
    auto options = std::make_shared<ContractOptions>();
    command.description(
        "Compile the workloads of manifests into contracts, or refuse them with every reason.\n\n"
        "A contract says how the GPU is divided, in which tier the work runs, with whom node and GPU may be shared,\n"
        "what is isolated, what is NOT, and what happens before anyone else gets the silicon. A refusal lists every\n"
        "rule that objects and the nearest request that would be accepted; that request was compiled, not guessed.\n\n"
        "Nothing is contacted and nothing is changed: the answer depends on the files and the moment alone.");
    command.add_option("-w,--workload", options->workload, "Only this workload, and everything its contract says.")
        .type_name("NAME");
    command
        .add_option("-f,--filename", options->files,
                    "Files, folders (the .yaml, .yml and .json files directly in them), or - for standard input.")
        .required()
        .type_name("DIR|FILE");
    command.add_option("-o,--output", options->output, "table, json or yaml. Default: table.")
        .one_of({"table", "json", "yaml"})
        .type_name("FORMAT");
    command
        .add_option("--threat-model", options->threat_model,
                    "Judge under this threat model instead of the policy's: internal, cloud, regulated, or all.")
        .one_of({"internal", "cloud", "regulated", "all"})
        .type_name("MODEL");
    command
        .add_option("--at", options->at,
                    "Judge as of this moment (2026-11-15T09:00:00Z, or now). Default: when the nodes were last "
                    "observed, else now.")
        .type_name("TIME");
    command
        .add_option("--as-tenant", options->as_tenant,
                    "Answer as this tenant would read it: its own workloads, and nothing of nodes or neighbours.")
        .type_name("NAME");
    command.footer(
        "Examples:\n"
        "  bulkhead contract -f examples/                          all workloads of a fleet\n"
        "  bulkhead contract -f examples/ -w fraud-scoring         one contract, whole\n"
        "  bulkhead contract -f examples/ --threat-model all       what a stricter threat model would change\n"
        "  bulkhead contract -f examples/ -o json | jq '.refusals[].objections[].code'\n\n"
        "Exit status:\n"
        "  0  every workload has a contract\n"
        "  1  a file or workload could not be found\n"
        "  2  a file is invalid; every error is printed as file:line:column\n"
        "  3  at least one workload is refused");
    command.callback([options, &context] { context.status = contract(*options, context); });
}

}  // namespace bulkhead::cli
