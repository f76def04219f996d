// `get` and `describe`: what the server has, as tables, YAML or JSON; and its changes as they happen.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>

#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/cli/waiting_text.hpp"
#include "bulkhead/codec/print.hpp"

namespace bulkhead::cli {

namespace {

struct GetOptions {
    std::string kind, name, selector, output = "table";
    bool watch = false;
    bool describe = false;
    bool wide() const { return output == "wide"; }
};

std::string printed(const AnyObject& object, const std::string& output) {
    return std::visit([&](const auto& one) { return output == "json" ? to_json(one) : to_yaml(one); }, object);
}

// Rows that come one by one cannot wait for the widest: each column is at least as wide as the list had it.
class LiveTable {
public:
    LiveTable(Context& context, std::vector<std::size_t> widths) : context_{context}, widths_{std::move(widths)} {}
    void print_row(const Row& row, std::string_view mark) {
        std::string line = fmt::format("{:<9}", mark);
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (widths_.size() <= i) widths_.push_back(0);
            widths_[i] = std::max(widths_[i], row[i].text.size());
            line += painted(row[i].text, row[i].paint, context_.colour);
            if (i + 1 < row.size()) line.append(widths_[i] + 2 - row[i].text.size(), ' ');
        }
        context_.out << line << '\n' << std::flush;
    }

private:
    Context& context_;
    std::vector<std::size_t> widths_;
};

// Tells what changed of workloads that wait, under the row that shows them.
class WaitWatcher {
public:
    explicit WaitWatcher(Context& context) : context_{context} {}
    void see(const AnyObject& object, std::string_view event) {
        const auto* workload = std::get_if<GpuWorkload>(&object);
        if (workload == nullptr) return;
        const std::string name = workload->spec.tenant + "/" + workload->metadata.name;
        if (event == "deleted") {
            seen_.erase(name);
            return;
        }
        const GpuWorkloadStatus status = workload->status.value_or(GpuWorkloadStatus{});
        WaitSeen now{.phase = {}, .reasons = status.reasons, .expected_start = {}, .in_the_way = {}};
        WaitSeen& before = seen_[name];
        for (const std::string& line : changes_between(before, now))
            context_.out << fmt::format("{:<9}{}\n", "", line) << std::flush;
        before = std::move(now);
    }

private:
    Context& context_;
    std::map<std::string, WaitSeen> seen_;
};

int watch(Client& client, const shell::KindName& kind, const GetOptions& options, Context& context) {
    std::string target =
        options.name.empty() ? fmt::format("/v1/{}", kind.plural) : target_of(kind.plural, options.name);
    target += target.contains('?') ? "&watch=true" : "?watch=true";
    if (!options.selector.empty()) target += "&labelSelector=" + percent_encoded(options.selector);
    LiveTable table{context, {16, 12, 10, 10, 12}};
    if (options.output == "table" || options.wide()) table.print_row(heading_of(kind.kind, options.wide()), "EVENT");
    WaitWatcher waits{context};
    std::string last;
    for (;;) {
        bool heard = false;
        const auto watched = client.watch(target, last, [&](const Client::Event& event) {
            heard = true;
            if (!event.id.empty()) last = event.id;
            if (event.type == "gone") last.clear();
            if (event.type != "added" && event.type != "modified" && event.type != "deleted") return true;
            const auto object = read_object(event.data);
            if (!object) return true;
            if (options.output == "json")
                context.out << fmt::format("{{\"event\":\"{}\",\"object\":{}}}\n", event.type, event.data)
                            << std::flush;
            else if (options.output == "yaml")
                context.out << "---\n# " << event.type << '\n' << printed(*object, "yaml") << std::flush;
            else {
                table.print_row(row_of(*object, options.wide()), event.type);
                waits.see(*object, event.type);
            }
            return context.out.good();
        });
        if (!context.out.good()) return done;
        // A stream that ended is taken up where it was; a server that is gone is not waited for.
        if (!watched && !(heard && watched.error().code != Code::denied)) return report(context, watched.error());
    }
}

// What is in the way of a workload that waits, as comments below its YAML.
void describe_wait(Client& client, const AnyObject& object, const std::string& name, Context& context) {
    const auto* workload = std::get_if<GpuWorkload>(&object);
    if (workload == nullptr || !workload->status || workload->status->phase != WorkloadPhase::pending) return;
    const auto reply = client.get(target_of("workloads", name, "explain"));
    const auto read = reply ? read_answer(*reply) : Result<Document>{std::unexpected(reply.error())};
    if (!read) return;
    const auto lines = lines_in_the_way(*read->root);
    if (!lines.empty()) context.out << "# In the way:\n";
    for (const std::string& line : lines) context.out << "# - " << line << '\n';
}

int get(const GetOptions& options, const DoorOptions& door, Context& context) {
    const auto kind = parse_kind(options.kind);
    if (!kind) return report(context, kind.error());
    auto client = connect(door);
    if (!client) return report(context, client.error());
    if (options.watch) return watch(*client, **kind, options, context);
    if (!options.name.empty()) {
        const auto reply = client->get(target_of((*kind)->plural, options.name));
        if (!reply) return report(context, reply.error());
        const auto object = read_object(reply->body);
        if (!object) return report(context, object.error());
        if (options.output == "json" || options.output == "yaml") {
            context.out << printed(*object, options.output);
            if (options.describe) describe_wait(*client, *object, options.name, context);
        } else
            print_table(context.out, {heading_of((*kind)->kind, options.wide()), row_of(*object, options.wide())}, 2,
                        context.colour);
        return done;
    }
    const auto listed = list_all(*client, {(*kind)->kind, options.selector});
    if (!listed) return report(context, listed.error());
    if (options.output == "json") {
        context.out << print_snapshot_json(listed->objects);
        return done;
    }
    if (options.output == "yaml") {
        context.out << print_snapshot(listed->objects);
        return done;
    }
    std::vector<Row> rows{heading_of((*kind)->kind, options.wide())};
    for_each_kind([&]<class T>() {
        for (const T& object : listed->objects.list<T>()) rows.push_back(row_of(object, options.wide()));
    });
    if (rows.size() == 1)
        context.out << fmt::format("no {}\n", (*kind)->plural);
    else
        print_table(context.out, rows, 2, context.colour);
    return done;
}

}  // namespace

void add_get(Command program, Context& context) {
    Command command = program.add_subcommand("get", "List objects, or show one.");
    auto options = std::make_shared<GetOptions>();
    auto door = add_door(command);
    command.description(
        "List the objects of a kind, or show one.\n\n"
        "Kinds: policies, classes, tenants, workloads, nodes, leases; in the singular, or as pol, cls, tn, wl, no, "
        "ls.");
    command.add_option("kind", options->kind, "What kind of object.").required().type_name("KIND");
    command.add_option("name", options->name, "Only this one.").type_name("NAME");
    command.add_option("-o,--output", options->output, "table, wide, yaml or json. Default: table.")
        .one_of({"table", "wide", "yaml", "json"})
        .type_name("FORMAT");
    command.add_option("-l,--selector", options->selector, "Only objects with these labels: team=vision,env!=prod.")
        .type_name("LABELS");
    command.add_flag("-w,--watch", options->watch, "Go on with every change, until interrupted.");
    command.callback([options, door, &context] { context.status = get(*options, *door, context); });
}

void add_describe(Command program, Context& context) {
    Command command = program.add_subcommand("describe", "Everything the server knows of one object.");
    auto options = std::make_shared<GetOptions>();
    options->output = "yaml";
    options->describe = true;
    auto door = add_door(command);
    command.add_option("kind", options->kind, "What kind of object.").required().type_name("KIND");
    command.add_option("name", options->name, "Its name.").required().type_name("NAME");
    command.callback([options, door, &context] { context.status = get(*options, *door, context); });
}

}  // namespace bulkhead::cli
