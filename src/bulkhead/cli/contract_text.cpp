#include "bulkhead/cli/contract_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <ostream>

#include "bulkhead/cli/terminal.hpp"

namespace bulkhead::cli {

namespace {

std::string mechanism_of(const Contract& contract) {
    return std::string{contract.fraction ? "fraction/" : ""} + std::string{word(contract.mechanism)};
}

std::string slice_of(const Contract& contract) {
    if (contract.slices.empty()) return "-";
    std::string out = contract.slices.front().slice;
    for (const Slice& slice : contract.slices)
        if (slice.slice != contract.slices.front().slice) out += "|" + slice.slice;
    return contract.tasks > 1 ? fmt::format("{} x {}", contract.tasks, out) : out;
}

std::string sharing_of(const Contract& contract) {
    return fmt::format("{} / {}", word(contract.sharing.node), word(contract.sharing.gpu));
}

void print_objection(std::ostream& out, const Objected& objected, bool with_remedy) {
    const std::string rule = objected.rule > 0 ? fmt::format(" (rule {})", objected.rule) : "";
    out << "    - " << wrapped(fmt::format("{}{}: {}", objected.code, rule, objected.says), 6) << '\n';
    if (with_remedy) out << "        next: " << wrapped(objected.remedy, 14) << '\n';
}

bool is_about_nodes(const Objected& objected) { return objected.code.starts_with("node."); }

// What each group of nodes lacks, the nearest to serving it first. `brief`: only those nearest.
void print_excluded(std::ostream& out, const std::vector<ExcludedNodes>& groups, bool brief) {
    std::size_t further = 0;
    for (const ExcludedNodes& group : groups) {
        if (brief && group.objections.size() > groups.front().objections.size()) {
            further += group.nodes.size();
            continue;
        }
        out << "    " << wrapped(group.nodes.empty() ? "some nodes" : joined(group.nodes), 4) << '\n';
        for (const Objected& objected : group.objections) print_objection(out, objected, true);
    }
    if (further > 0) out << fmt::format("    ({} more nodes are further from it)\n", further);
}

void print_refusal(std::ostream& out, const Refusal& refusal, bool colour, bool brief) {
    out << "  " << painted(refusal.workload, bold, colour)
        << fmt::format(" ({}, {}): {}\n", refusal.tenant, refusal.tenantClass, painted("refused", red, colour));
    for (const Objected& objected : refusal.objections)
        if (!is_about_nodes(objected)) print_objection(out, objected, true);
    if (std::ranges::any_of(refusal.objections, is_about_nodes)) {
        out << "    no node can serve it:\n";
        if (refusal.excluded.empty())  // a tenant reads what nodes lack, not which
            for (const Objected& objected : refusal.objections)
                if (is_about_nodes(objected)) print_objection(out, objected, false);
        print_excluded(out, refusal.excluded, brief);
    }
    if (refusal.proposal) {
        out << "    would be accepted with:\n";
        for (const Change& change : refusal.proposal->changes)
            out << fmt::format("      {}: {}   (was {})\n", change.field, change.to, change.from);
    } else {
        out << "    " << wrapped("no proposal: " + refusal.without_proposal, 4) << '\n';
    }
}

// "mig 3g.40gb in container", or the first rules that object.
std::string in_short(const Decision& decision) {
    if (const auto* contract = std::get_if<Contract>(&decision))
        return fmt::format("{} in {}", word(contract->mechanism), word(contract->tier));
    const auto& objections = std::get<Refusal>(decision).objections;
    if (is_about_nodes(objections.front())) return "no: no node can serve it";
    return fmt::format("no: {}{}", objections.front().code,
                       objections.size() > 1 ? fmt::format(" +{}", objections.size() - 1) : "");
}

void print_held(std::ostream& out, const char* title, const std::vector<Held>& list) {
    out << "  " << title << '\n';
    for (const Held& held : list)
        out << fmt::format("    {:<17} {:<5} {:<11} {}\n", held.subject, word(held.strength), word(held.grade),
                           wrapped(held.says, 36));
}

void print_list(std::ostream& out, const char* title, const std::vector<std::string>& list) {
    out << fmt::format("  {:<11} {}\n", title, wrapped(joined(list), 14));
}

// "16 GPUs", "2 nodes (16 GPUs)".
std::string guaranteed_of(const Contract& contract) {
    std::string gpus = fmt::format("{} GPUs", print(contract.guarantee));
    if (contract.guaranteed.empty() || contract.guaranteed.ends_with("GPU") || contract.guaranteed == gpus) return gpus;
    return fmt::format("{} ({})", contract.guaranteed, gpus);
}

std::string bound_text(const StartBound& bound) {
    return fmt::format(
        "within the guarantee it starts within {}, if reclaiming preemptible work makes room: minimum run time {}, "
        "save "
        "{}, stop {}, wipe {}, host reboot {}; the class aims at {}",
        print(bound.total), print(bound.minRuntime), print(bound.save), print(bound.stop), print(bound.wipe),
        print(bound.reboot), print(bound.aim));
}

}  // namespace

void print_whole(std::ostream& out, const Contract& contract, bool colour) {
    out << painted(fmt::format("contract {}", contract.workload), bold, colour)
        << fmt::format(" for {} ({}), threat model {}\n", contract.tenant, contract.tenantClass,
                       word(contract.threatModel));
    const auto line = [&](const char* name, const std::string& text) {
        out << fmt::format("  {:<11} {}\n", name, wrapped(text, 14));
    };
    line("mechanism", mechanism_of(contract));
    for (const Slice& slice : contract.slices)
        line("slice",
             fmt::format("{} on {}{}{}", slice.slice, slice.model, slice.engines.empty() ? "" : ": ", slice.engines));
    line("tasks", fmt::format("{}, {} GPUs of quota", contract.tasks, print(contract.gpus)));
    line("tier", fmt::format("{} (trust and policy demand {} here)", word(contract.tier), word(contract.requiredTier)));
    line("shared with",
         fmt::format("node: {}; GPU: {}; instance: {}; NVLink: {}", word(contract.sharing.node),
                     word(contract.sharing.gpu), word(contract.sharing.instance), word(contract.sharing.nvlink)));
    if (contract.exclusivity) {
        const AskedExclusivity& asked = *contract.exclusivity;
        std::string rules;
        if (asked.node) rules += fmt::format("the node with {}", word(*asked.node));
        if (asked.gpu) rules += fmt::format("{}the GPU with {}", rules.empty() ? "" : ", ", word(*asked.gpu));
        line("exclusive", fmt::format("by its own request: the rules would share {}; what no lease holds there counts "
                                      "against its tenant's limit and is metered",
                                      rules));
    }
    line("handover", std::string{word(contract.handover)});
    std::string slo{word(contract.slo)};
    for (std::size_t i = 0; i < contract.sloResources.size(); ++i)
        slo += (i == 0 ? " on " : ", ") + std::string{word(contract.sloResources[i])};
    line("slo", slo);
    line("quota", fmt::format("{}, {} guaranteed; {}, priority {}", word(contract.quota), guaranteed_of(contract),
                              contract.preemptible ? "preemptible" : "not preemptible", contract.priority));
    if (contract.guarantee > Gpus{}) {
        line("entitlement", fmt::format("a footprint of {} GPUs: so much is protected from claims of other tenants",
                                        print(contract.entitlement)));
        line("bound", bound_text(contract.bound));
    }
    if (contract.compliance != Compliance::off)
        line("compliance",
             fmt::format("{}, +{} % for evidenced time", word(contract.compliance), contract.surchargePercent));
    for (const ExceptionInForce& exception : contract.exceptions)
        line("EXCEPTION", fmt::format("{}: tier {} beside {} until {}", exception.name, word(exception.tier),
                                      joined(exception.tenants), print(exception.expires)));
    line("grade", fmt::format("{}: the weakest claim this contract relies on", word(contract.grade)));
    std::vector<std::string> relied;
    relied.reserve(contract.reliesOn.size());
    for (const ReliedOn& on : contract.reliesOn)
        relied.push_back(fmt::format("{} ({})", word(on.capability), word(on.grade)));
    if (!relied.empty()) print_list(out, "relies on", relied);
    if (!contract.nodes.empty()) print_list(out, "nodes", contract.nodes);
    print_held(out, "isolates", contract.isolates);
    print_held(out, "NOT isolated", contract.open);
    out << "  reclaim\n";
    for (const ReclaimStep& step : contract.reclaim)
        out << fmt::format("    {:<17} {}\n", step.name, wrapped(step.says, 22));
    print_list(out, "controls", contract.controls);
    if (contract.excluded.empty()) return;
    out << "  cannot serve it\n";
    print_excluded(out, contract.excluded, false);
}

void print_whole(std::ostream& out, const Refusal& refusal, bool colour) { print_refusal(out, refusal, colour, false); }

void print_overview(std::ostream& out, std::span<const Decision> decisions, bool colour) {
    std::vector<Row> rows(1);
    for (const char* name : {"WORKLOAD", "CLASS", "MECHANISM", "SLICE", "TIER", "NODE / GPU SHARED WITH", "SLO"})
        rows[0].push_back({name, bold});
    std::size_t refusals = 0;
    for (const Decision& decision : decisions) {
        if (const auto* c = std::get_if<Contract>(&decision))
            rows.push_back({{c->workload},
                            {c->tenantClass},
                            {mechanism_of(*c)},
                            {slice_of(*c)},
                            {std::string{word(c->tier)}},
                            {sharing_of(*c)},
                            {std::string{word(c->slo)}}});
        else
            ++refusals;
    }
    if (rows.size() > 1) {
        out << painted(fmt::format("{} contracts", rows.size() - 1), green, colour) << '\n';
        print_table(out, rows, 2, colour);
    }
    if (refusals == 0) return;
    out << painted(fmt::format("{} refused", refusals), red, colour) << '\n';
    for (const Decision& decision : decisions)
        if (const auto* refusal = std::get_if<Refusal>(&decision)) print_refusal(out, *refusal, colour, true);
}

void print_side_by_side(std::ostream& out, std::span<const Column> columns, bool colour) {
    std::vector<Row> rows{{{"WORKLOAD", bold}}};
    for (const Column& column : columns) rows[0].push_back({std::string{word(column.threat)}, bold});
    for (std::size_t i = 0; i < columns.front().decisions.size(); ++i) {
        Row row{{std::visit([](const auto& d) { return d.workload; }, columns.front().decisions[i])}};
        for (const Column& column : columns) {
            const Decision& decision = column.decisions[i];
            row.push_back({in_short(decision), std::holds_alternative<Contract>(decision) ? green : red});
        }
        rows.push_back(std::move(row));
    }
    print_table(out, rows, 3, colour);
}

}  // namespace bulkhead::cli
