// `logs`: what a workload's command prints, while it runs and the end of it afterwards.
#include <chrono>
#include <memory>
#include <thread>

#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/output.hpp"

namespace bulkhead::cli {

namespace {

constexpr std::chrono::milliseconds between_looks{300};

int print_log(OutputReader reader, bool follow, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    while (true) {
        const auto read = reader.read(*client, context.out, context.err);
        if (!read) return report(context, read.error());
        if (read->over || (!read->any && !follow)) return 0;
        if (!read->any) std::this_thread::sleep_for(between_looks);
    }
}

}  // namespace

void add_logs(Command program, Context& context) {
    Command command = program.add_subcommand("logs", "What a workload's command prints.");
    auto reader = std::make_shared<OutputReader>();
    auto follow = std::make_shared<bool>(false);
    const auto door = add_door(command);
    command.description(
        "What a workload's command prints, from where it is still kept: the last 16 MiB of each stream while it runs, "
        "the\nlast 8 KiB when it has ended. Control characters are shown as question marks.");
    command.add_option("NAME", reader->workload, "The workload.").required().type_name("");
    command.add_flag("-f,--follow", *follow, "Go on until it has ended.");
    command.add_flag("--err", reader->errors, "Its second stream instead of its first.");
    command.add_option("--rank", reader->rank, "Which of its nodes, from 0 on. Default: 0.")
        .within(0, 100'000)
        .type_name("RANK");
    command.add_flag("--raw", reader->raw, "Every byte as it is, also what could control a terminal.");
    command.footer("Example:\n  bulkhead logs -f train");
    command.callback(
        [reader, follow, door, &context] { context.status = print_log(*reader, *follow, *door, context); });
}

}  // namespace bulkhead::cli
