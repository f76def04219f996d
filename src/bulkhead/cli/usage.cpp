// `usage`: what was used in some days, and what it costs.
#include <fmt/core.h>

#include <charconv>
#include <memory>
#include <ostream>

#include "bulkhead/cli/clock.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/cli/ruled.hpp"
#include "bulkhead/codec/json_writer.hpp"
#include "bulkhead/meter/charges.hpp"

namespace bulkhead::cli {

namespace {

struct UsageOptions {
    std::string from, to, tenant, output = "table";
    bool by_lease = false;
};

std::string date_text(Instant at) { return print(at).substr(0, 10); }

std::string usage_target(const UsageOptions& options) {
    const Instant now = clock_now();
    std::string target = fmt::format(
        "/v1/usage?from={}&to={}",
        percent_encoded(options.from.empty() ? date_text(meter::month_of(now)) : options.from),
        percent_encoded(options.to.empty() ? date_text(meter::day_of(now) + Duration::days(1)) : options.to));
    if (!options.tenant.empty()) target += "&tenant=" + percent_encoded(options.tenant);
    if (options.by_lease) target += "&by=lease";
    if (options.output == "csv" || options.output == "focus") target += "&format=" + options.output;
    return target;
}

std::string time_text(const Node& line, std::string_view name) {
    const std::string text = text_at(line, name);
    std::int64_t ms = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), ms);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || ms == 0) return "-";
    return print(Duration{ms});
}

std::string silicon_text(const Node& line) {
    std::string text = text_at(line, "model");
    if (const std::string profile = text_at(line, "profile"); !profile.empty()) text += " " + profile;
    if (text_at(line, "shared") == "true") text += " shared";
    if (text_at(line, "exclusive") == "true") text += " exclusive, not leased";
    return text.empty() ? "(correction)" : text;
}

void print_report(const Node& root, bool by_lease, std::ostream& out) {
    std::vector<std::string> heading{"TENANT", "CLASS", "MECHANISM", "GPU"};
    if (by_lease) heading.push_back("LEASE");
    const std::size_t names = heading.size();
    for (const char* name :
         {"LEASES", "TIME", "COVERED", "OPEN", "BASE", "SURCHARGE", "CORRECTED", "TOTAL", "CURRENCY"})
        heading.emplace_back(name);
    Ruled table{heading, names};
    if (const Node* items = root.find("items"))
        for (const Node* line : items->items) {
            std::vector<std::string> row{text_at(*line, "tenant"), text_at(*line, "class"), text_at(*line, "mechanism"),
                                         silicon_text(*line)};
            if (by_lease) row.push_back(text_at(*line, "lease"));
            row.push_back(text_at(*line, "leases"));
            for (const char* name : {"leaseMs", "coveredMs", "openMs"}) row.push_back(time_text(*line, name));
            for (const char* name : {"base", "surcharge", "corrections", "total"}) row.push_back(text_at(*line, name));
            const std::string currency = text_at(*line, "currency");
            row.push_back(currency.empty() ? "no price" : currency);
            table.add(std::move(row));
        }
    if (table.empty()) {
        out << "nothing was used\n";
        return;
    }
    table.print(out);
    if (const Node* invoices = root.find("invoices"))
        for (const Node* invoice : invoices->items)
            out << fmt::format("\ninvoice {}: rows {}, rounding {}, to pay {} {}", text_at(*invoice, "id"),
                               text_at(*invoice, "rows"), text_at(*invoice, "rounding"), text_at(*invoice, "payable"),
                               text_at(*invoice, "currency"));
    if (const Node* totals = root.find("totals"))
        for (const Node* total : totals->items)
            out << fmt::format("\ntotal {} {}", text_at(*total, "total"), text_at(*total, "currency"));
    out << '\n';
    if (const Node* findings = root.find("findings"))
        for (const Node* finding : findings->items) out << "  ! " << wrapped(finding->text, 4) << '\n';
}

int usage(const UsageOptions& options, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto reply = client->ask({.target = usage_target(options), .limit = Duration{120'000}});
    if (!reply) return report(context, reply.error());
    if (options.output != "table") {
        context.out << reply->body;
        if (options.output == "json") context.out << '\n';
        return done;
    }
    const auto read = read_answer(*reply);
    if (!read) return report(context, read.error());
    print_report(*read->root, options.by_lease, context.out);
    return done;
}

struct CorrectionOptions {
    std::string lease, id, amount, why;
};

int correct(const CorrectionOptions& options, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    JsonWriter body{JsonLayout::compact};
    body.begin_object();
    body.member("id", options.id);
    body.member("lease", options.lease);
    body.member("amount", options.amount);
    body.member("why", options.why);
    body.end_object();
    const auto reply = client->post("/v1/usage/corrections", body.take());
    if (!reply) return report(context, reply.error());
    const auto read = read_answer(*reply);
    if (!read) return report(context, read.error());
    context.out << fmt::format("correction {} of {}: {} {}, {}\n", options.id, options.lease,
                               text_at(*read->root, "amount"), text_at(*read->root, "currency"),
                               text_at(*read->root, "result"));
    return done;
}

}  // namespace

void add_usage(Command program, Context& context) {
    Command command = program.add_subcommand(
        "usage",
        "What was used in some days, and what it costs.\n\n"
        "Lease time by tenant, class, mechanism and GPU, in exact amounts. Running leases count up to now and are "
        "marked\n"
        "open. A month that is over, asked for as a whole, is invoiced: its rows sum to what is to be paid.");
    auto options = std::make_shared<UsageOptions>();
    auto door = add_door(command);
    command.add_option("--from", options->from, "The first UTC day. Default: the first of this month.")
        .type_name("DATE");
    command.add_option("--to", options->to, "The day after the last. Default: tomorrow.").type_name("DATE");
    command.add_option("--tenant", options->tenant, "Of this tenant alone.").type_name("NAME");
    command.add_flag("--by-lease", options->by_lease, "A line for each lease.");
    command.add_option("-o,--output", options->output, "table, csv, json, or focus (FOCUS 1.2). Default: table.")
        .one_of({"table", "csv", "json", "focus"})
        .type_name("FORMAT");
    command.footer("Example:\n  bulkhead usage --from 2026-11-01 --to 2026-12-01 -o focus > november.csv");
    command.callback([options, door, &context] { context.status = usage(*options, *door, context); });
}

void add_correction(Command program, Context& context) {
    Command command = program.add_subcommand(
        "correct", "Post an amount about a lease that was billed: a row of its own, nothing is rewritten.");
    auto options = std::make_shared<CorrectionOptions>();
    auto door = add_door(command);
    command.add_option("lease", options->lease, "The lease.").required().type_name("LEASE");
    command.add_option("--id", options->id, "Your name for it: posted again under it, nothing changes.")
        .required()
        .type_name("ID");
    command.add_option("--amount", options->amount, "Added to the bill; negative: taken off it.")
        .required()
        .type_name("AMOUNT");
    command.add_option("--why", options->why, "Why: the log and the bill keep it.").required().type_name("TEXT");
    command.callback([options, door, &context] { context.status = correct(*options, *door, context); });
}

}  // namespace bulkhead::cli
