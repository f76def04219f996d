// `tenant compliance`: the switch, and first what it would change.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <ostream>

#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/codec/json_writer.hpp"

namespace bulkhead::cli {

namespace {

struct ComplianceOptions {
    std::string state, tenant, why;
    bool dedicated = false, confidential = false, yes = false;
};

Result<std::string> mode_of(const ComplianceOptions& options) {
    if (options.state == "off") {
        if (options.dedicated || options.confidential)
            return fail(Code::invalid, "off needs no --dedicated and no --confidential", "leave them out");
        return "off";
    }
    if (options.dedicated == options.confidential)
        return fail(Code::invalid, "compliance mode is kept in one of two ways, and neither falls back to the other",
                    "--dedicated (a node of its own) or --confidential (a confidential VM)");
    return options.dedicated ? "dedicated" : "confidential";
}

std::string list_text(const Node& side, std::string_view name) {
    std::vector<std::string> all;
    if (const Node* list = side.find(name))
        for (const Node* each : list->items) all.push_back(each->text);
    return joined(all);
}

std::string price_text(const Node& side) {
    std::vector<std::string> all;
    if (const Node* list = side.find("perHour"))
        for (const Node* each : list->items) {
            std::string text =
                fmt::format("{} {} {}", text_at(*each, "model"), text_at(*each, "base"), text_at(*each, "currency"));
            if (const std::string extra = text_at(*each, "surcharge"); extra != "0") text += " + " + extra;
            all.push_back(std::move(text));
        }
    return joined(all);
}

std::string side_text(const Node& side, std::string_view what) {
    if (side.find("refused") != nullptr) return what == "tier" ? "REFUSED: " + list_text(side, "refused") : "-";
    if (what == "reclaim" || what == "evidence") return list_text(side, what);
    if (what == "per hour") return price_text(side);
    if (what == "surcharge") return text_at(side, "surchargePercent") + " %";
    return text_at(side, what);
}

void print_switch(const Node& root, Context& context) {
    context.out << fmt::format("{}: compliance {} -> {}\n", text_at(root, "tenant"), text_at(root, "from"),
                               text_at(root, "to"));
    if (const Node* work = root.find("work"))
        for (const Node* one : work->items) {
            context.out << fmt::format("\n{}\n", painted(text_at(*one, "workload"), bold, context.colour));
            const Node* before = one->find("before");
            const Node* after = one->find("after");
            if (before == nullptr || after == nullptr) continue;
            for (const char* what : {"tier", "mechanism", "node", "gpu", "handover", "nodes", "reclaim", "evidence",
                                     "surcharge", "per hour"}) {
                const std::string was = side_text(*before, what), is = side_text(*after, what);
                context.out << fmt::format("  {:<10} {}\n", what, wrapped(was == is ? was : was + "  ->  " + is, 13));
            }
        }
    const Node* running = root.find("running");
    if (running == nullptr || running->items.empty()) return;
    context.out << "\nrunning now\n";
    for (const Node* one : running->items)
        context.out << fmt::format("  {} ({}): {}\n", text_at(*one, "lease"), text_at(*one, "workload"),
                                   text_at(*one, "says"));
}

int turn(const ComplianceOptions& options, const DoorOptions& door, Context& context) {
    const auto mode = mode_of(options);
    if (!mode) return complain(context, bad_input, mode.error());
    if (options.yes && options.why.empty())
        return complain(context, bad_input, {Code::invalid, "the switch is not turned without a reason", "--why TEXT"});
    auto client = connect(door);
    if (!client) return report(context, client.error());
    JsonWriter body{JsonLayout::compact};
    body.begin_object();
    body.member("mode", *mode);
    if (!options.why.empty()) body.member("why", options.why);
    if (!options.yes) body.member("dryRun", true);
    body.end_object();
    const auto reply =
        client->post(fmt::format("/v1/tenants/{}/compliance", percent_encoded(options.tenant)), body.take());
    if (!reply) return report(context, reply.error());
    const auto read = read_answer(*reply);
    if (!read) return report(context, read.error());
    print_switch(*read->root, context);
    const std::string result = text_at(*read->root, "result");
    context.out << (result == "unchanged"      ? "\nit is so already; nothing changes\n"
                    : result == "would change" ? "\nnothing was changed yet: repeat with --yes and --why\n"
                                               : "\ndone: it holds for leases to come\n");
    return done;
}

}  // namespace

void add_tenant(Command program, Context& context) {
    Command tenant = program.add_subcommand("tenant", "Switches of a tenant.");
    tenant.require_subcommand();
    Command command = tenant.add_subcommand(
        "compliance",
        "Turn a tenant's Security & Compliance Mode on or off.\n\n"
        "Says what would change for its work: tier, sharing, reclaim, evidence, price. Changes nothing without --yes.\n"
        "Holds for leases to come; running ones keep what they began with, and are listed. Evidence is kept either "
        "way.");
    auto options = std::make_shared<ComplianceOptions>();
    auto door = add_door(command);
    command.add_option("state", options->state, "on or off.").required().one_of({"on", "off"}).type_name("on|off");
    command.add_option("tenant", options->tenant, "The tenant.").required().type_name("NAME");
    command.add_flag("--dedicated", options->dedicated, "A node of its own, with proof of what it booted.");
    command.add_flag("--confidential", options->confidential, "A confidential VM on attested silicon.");
    command.add_flag("--yes", options->yes, "Turn it.");
    command.add_option("--why", options->why, "Why: the audit log keeps it.").type_name("TEXT");
    command.callback([options, door, &context] { context.status = turn(*options, *door, context); });
}

}  // namespace bulkhead::cli
