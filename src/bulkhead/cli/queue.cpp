// `queue` and `explain`: why work waits.
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <ostream>
#include <thread>

#include "bulkhead/cli/contract_text.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/cli/waiting_text.hpp"
#include "bulkhead/codec/decode.hpp"

namespace bulkhead::cli {

namespace {

constexpr std::chrono::seconds between_looks{2};

struct QueueOptions {
    std::string workload, output = "table";
    bool watch = false;
};

std::vector<std::string> reasons_of(const Node& node) {
    std::vector<std::string> out;
    if (const Node* list = node.find("reasons"))
        for (const Node* each : list->items) out.push_back(each->text);
    return out;
}

void print_in_the_way(const Node& answer, Context& context) {
    const auto lines = lines_in_the_way(answer);
    if (!lines.empty()) context.out << "  in the way:\n";
    for (const std::string& line : lines) context.out << "  - " << wrapped(line, 4) << '\n';
}

// Until it is interrupted: what changed since the last look. Reasons for operators are made when they are asked for, so
// the queue is asked again and again instead of a stream being followed.
int watch_queue(Client& client, Context& context) {
    QueueSeen before;
    bool first = true;
    while (context.out.good()) {
        const auto reply = client.get("/v1/queue?inTheWay=true");
        if (!reply) return report(context, reply.error());
        const auto read = read_answer(*reply);
        if (!read) return report(context, read.error());
        QueueSeen after = queue_seen(*read->root);
        if (first && after.empty()) context.out << "nothing waits\n";
        for (const std::string& line : changes_between(before, after)) context.out << line << '\n';
        context.out << std::flush;
        before = std::move(after);
        first = false;
        std::this_thread::sleep_for(between_looks);
    }
    return done;
}

// "exited, status 3, on node-2, attempt 1: its command ended ..."
std::string failure_text(const Node& failure) {
    std::string text = text_at(failure, "reason");
    if (const std::string status = text_at(failure, "exitStatus"); !status.empty()) text += ", status " + status;
    if (const std::string node = text_at(failure, "node"); !node.empty()) text += ", on " + node;
    return fmt::format("{}, attempt {}: {}", text, text_at(failure, "attempt"), text_at(failure, "says"));
}

int queue(const QueueOptions& options, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    if (options.watch) return watch_queue(*client, context);
    const auto reply = client->get(options.output == "table" ? "/v1/queue" : "/v1/queue?inTheWay=true");
    if (!reply) return report(context, reply.error());
    if (options.output == "json") {
        context.out << reply->body << '\n';
        return done;
    }
    const auto read = read_answer(*reply);
    if (!read) return report(context, read.error());
    const Node* items = read->root->find("items");
    if (items == nullptr || items->items.empty()) {
        context.out << "nothing waits\n";
        return done;
    }
    std::vector<Row> rows{{{"#", dim},
                           {"WORKLOAD", dim},
                           {"TENANT", dim},
                           {"PHASE", dim},
                           {"PRIORITY", dim},
                           {"GPUS", dim},
                           {"SINCE", dim},
                           {"EXPECTED", dim},
                           {"WHY", dim}}};
    for (const Node* item : items->items) {
        const auto reasons = reasons_of(*item);
        const std::string phase = text_at(*item, "phase");
        rows.push_back({{text_at(*item, "place")},
                        {text_at(*item, "workload")},
                        {text_at(*item, "tenant")},
                        {phase, phase == "refused" ? red : yellow},
                        {text_at(*item, "priority")},
                        {text_at(*item, "gpus")},
                        {text_at(*item, "since")},
                        {text_at(*item, "expectedStart")},
                        {reasons.empty() ? "" : reasons.front()}});
    }
    print_table(context.out, rows, 2, context.colour);
    if (options.output != "wide") return done;
    for (const Node* item : items->items) {
        context.out << fmt::format("\n{} of {}\n", painted(text_at(*item, "workload"), bold, context.colour),
                                   text_at(*item, "tenant"));
        for (const std::string& reason : reasons_of(*item)) context.out << "  - " << wrapped(reason, 4) << '\n';
        print_in_the_way(*item, context);
    }
    return done;
}

int explain(const QueueOptions& options, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto reply = client->get(target_of("workloads", options.workload, "explain"));
    if (!reply) return report(context, reply.error());
    if (options.output == "json") {
        context.out << reply->body << '\n';
        return done;
    }
    const auto read = read_answer(*reply);
    if (!read) return report(context, read.error());
    const Node& root = *read->root;
    context.out << fmt::format("{} of {}: {}", painted(text_at(root, "workload"), bold, context.colour),
                               text_at(root, "tenant"), text_at(root, "phase"));
    if (const std::string since = text_at(root, "since"); !since.empty()) context.out << " since " << since;
    if (const std::string lease = text_at(root, "lease"); !lease.empty()) context.out << ", lease " << lease;
    context.out << '\n';
    for (const std::string& reason : reasons_of(root)) context.out << "  - " << wrapped(reason, 4) << '\n';
    print_in_the_way(root, context);
    if (const Node* failure = root.find("failure")) {
        context.out << fmt::format("  {}: {}\n", painted("last failure", red, context.colour),
                                   wrapped(failure_text(*failure), 4));
        if (const std::string next = text_at(*failure, "next"); !next.empty())
            context.out << "    try: " << wrapped(next, 9) << '\n';
    }
    std::vector<Diagnostic> errors;
    if (const Node* node = root.find("contract")) {
        Contract contract;
        if (decode(*node, "the answer", contract, errors)) print_whole(context.out, contract, context.colour);
        return done;
    }
    if (const Node* node = root.find("refusal")) {
        Refusal refusal;
        if (decode(*node, "the answer", refusal, errors)) print_whole(context.out, refusal, context.colour);
        return refused;
    }
    return done;
}

}  // namespace

void add_queue(Command program, Context& context) {
    Command command = program.add_subcommand("queue", "Work that waits, in order, each with its reason.");
    auto options = std::make_shared<QueueOptions>();
    auto door = add_door(command);
    command
        .add_option("-o,--output", options->output,
                    "table, wide (with what is in the way of each) or json. Default: table.")
        .one_of({"table", "wide", "json"})
        .type_name("FORMAT");
    command.add_flag("-w,--watch", options->watch,
                     "Go on with every change of a reason or an estimate, until interrupted.");
    command.callback([options, door, &context] { context.status = queue(*options, *door, context); });
}

void add_explain(Command program, Context& context) {
    Command command =
        program.add_subcommand("explain", "Why a workload waits, runs or was refused, and under which contract.");
    auto options = std::make_shared<QueueOptions>();
    auto door = add_door(command);
    command.add_option("-o,--output", options->output, "table or json. Default: table.")
        .one_of({"table", "json"})
        .type_name("FORMAT");
    command.add_option("workload", options->workload, "The workload.").required().type_name("NAME");
    command.footer("Exit status:\n  0  it has a contract\n  1  no such workload\n  3  it is refused");
    command.callback([options, door, &context] { context.status = explain(*options, *door, context); });
}

}  // namespace bulkhead::cli
