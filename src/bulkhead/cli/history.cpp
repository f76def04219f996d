// `history`: runs of workloads that have ended, like sacct of Slurm.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <charconv>
#include <memory>
#include <ostream>

#include "bulkhead/cli/clock.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/objects.hpp"

namespace bulkhead::cli {

namespace {

struct HistoryOptions {
    std::string tenant, workload, since, until, state, output = "table";
    std::int64_t limit = 1000;
};

// A time (2026-11-01T08:00:00Z), a day (2026-11-01), or how long ago (2h, 7d).
Result<std::string> instant_text(const std::string& text) {
    if (const auto at = parse_instant(text)) return print(*at);
    if (const auto day = parse_instant(text + "T00:00:00Z")) return print(*day);
    if (const auto ago = parse_duration(text)) return print(Instant{clock_now().ms - ago->ms});
    return fail(Code::invalid, fmt::format("\"{}\" is no time", text),
                "write 2026-11-01, 2026-11-01T08:00:00Z, or how long ago: 2h, 7d");
}

Result<std::string> history_target(const HistoryOptions& options) {
    std::string target = fmt::format("/v1/history?limit={}", options.limit);
    for (const auto& [name, text] : {std::pair{"since", &options.since}, {"until", &options.until}}) {
        if (text->empty()) continue;
        const auto at = instant_text(*text);
        if (!at) return std::unexpected(at.error());
        target += fmt::format("&{}={}", name, percent_encoded(*at));
    }
    for (const auto& [name, text] :
         {std::pair{"tenant", &options.tenant}, {"workload", &options.workload}, {"state", &options.state}})
        if (!text->empty()) target += fmt::format("&{}={}", name, percent_encoded(*text));
    return target;
}

std::string or_hyphen(const std::string& text) { return text.empty() ? "-" : text; }

// "1.50", from how long one GPU would have been used: 1h30m.
std::string gpu_hours(const Node& row) {
    const auto time = parse_duration(text_at(row, "gpuTime"));
    return fmt::format("{:.2f}", time ? static_cast<double>(time->ms) / 3'600'000.0 : 0.0);
}

std::string joined_nodes(const Node& row) {
    std::vector<std::string> names;
    if (const Node* list = row.find("nodes"))
        for (const Node* each : list->items) names.push_back(each->text);
    return names.empty() ? "-" : fmt::format("{}", fmt::join(names, ","));
}

std::string_view paint_of_state(const std::string& state) {
    if (state == "failed") return red;
    if (state == "finished") return green;
    return state == "interrupted" ? std::string_view{yellow} : std::string_view{};
}

void print_history(const Node& items, bool wide, Context& context) {
    Row heading{{"WORKLOAD", dim}, {"TENANT", dim}, {"ATTEMPT", dim}, {"STATE", dim},     {"EXIT", dim},
                {"REASON", dim},   {"START", dim},  {"END", dim},     {"GPU-HOURS", dim}, {"LEASE", dim}};
    if (wide)
        for (const char* name : {"BY", "SUBMITTED", "GPUS", "NODES", "WHY"}) heading.push_back({name, dim});
    std::vector<Row> rows{std::move(heading)};
    for (const Node* item : items.items) {
        const std::string state = text_at(*item, "state");
        Row row{{text_at(*item, "workload")},
                {text_at(*item, "tenant")},
                {text_at(*item, "attempt")},
                {state, paint_of_state(state)},
                {or_hyphen(text_at(*item, "exitStatus"))},
                {or_hyphen(text_at(*item, "reason"))},
                {or_hyphen(text_at(*item, "startedAt"))},
                {text_at(*item, "endedAt")},
                {gpu_hours(*item)},
                {or_hyphen(text_at(*item, "lease"))}};
        if (wide) {
            row.push_back({or_hyphen(text_at(*item, "submittedBy"))});
            row.push_back({or_hyphen(text_at(*item, "submittedAt"))});
            row.push_back({or_hyphen(text_at(*item, "gpus"))});
            row.push_back({joined_nodes(*item)});
            row.push_back({or_hyphen(text_at(*item, "says"))});
        }
        rows.push_back(std::move(row));
    }
    print_table(context.out, rows, 2, context.colour);
}

int history(const HistoryOptions& options, const DoorOptions& door, Context& context) {
    const auto target = history_target(options);
    if (!target) return complain(context, bad_input, target.error());
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto reply = client->get(*target);
    if (!reply) return report(context, reply.error());
    if (options.output == "json") {
        context.out << reply->body << '\n';
        return done;
    }
    const auto read = read_answer(*reply);
    if (!read) return report(context, read.error());
    const Node* items = read->root->find("items");
    if (items == nullptr || items->items.empty()) {
        context.out << "nothing has ended\n";
        return done;
    }
    print_history(*items, options.output == "wide", context);
    if (text_at(*read->root, "more") == "true")
        context.err << fmt::format("there are older ones: ask with --since, --until or a larger --limit than {}\n",
                                   options.limit);
    return done;
}

}  // namespace

void add_history(Command program, Context& context) {
    Command command = program.add_subcommand("history", "Work that has ended: who, when, where, how, GPU hours.");
    auto options = std::make_shared<HistoryOptions>();
    auto door = add_door(command);
    command.description(
        "Work that has ended: who, when, where, how, GPU hours.\n\n"
        "One line for each run of a workload, by its lease; what was deleted while it waited has none. Kept for as "
        "long as\nhistoryRetention of the FleetPolicy says: 90 days by default. A tenant sees its own.");
    command.add_option("--tenant", options->tenant, "Only this tenant's.").type_name("TENANT");
    command.add_option("--workload", options->workload, "Only workloads of this name.").type_name("NAME");
    command.add_option("--since", options->since, "That ended then or later: 2026-11-01, or 7d for the last week.")
        .type_name("TIME");
    command.add_option("--until", options->until, "That ended before.").type_name("TIME");
    command.add_option("--state", options->state, "finished, failed, interrupted or cancelled.")
        .one_of({"finished", "failed", "interrupted", "cancelled"})
        .type_name("STATE");
    command.add_option("--limit", options->limit, "The newest so many. Default: 1000.")
        .within(1, 10'000)
        .type_name("COUNT");
    command.add_option("-o,--output", options->output, "table, wide or json. Default: table.")
        .one_of({"table", "wide", "json"})
        .type_name("FORMAT");
    command.footer("Example:\n  bulkhead history --since 7d --state failed -o wide");
    command.callback([options, door, &context] { context.status = history(*options, *door, context); });
}

}  // namespace bulkhead::cli
