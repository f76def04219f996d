// `fleet`: asks for nodes and leases, and draws them.
#include <fmt/format.h>

#include <memory>
#include <ostream>
#include <utility>

#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/fleet_text.hpp"
#include "bulkhead/cli/objects.hpp"

namespace bulkhead::cli {

namespace {

int fleet(const std::string& only, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    auto nodes = list_all(*client, {ObjectKind::node, {}});
    if (!nodes) return report(context, nodes.error());
    auto leases = list_all(*client, {ObjectKind::lease, {}});
    if (!leases) return report(context, leases.error());
    nodes->objects.leases = std::move(leases->objects.leases);
    if (print_fleet(context.out, nodes->objects, only, context.colour)) return done;
    context.err << (only.empty() ? "no nodes yet\n  try: bulkhead agent --help\n"
                                 : fmt::format("there is no node {}\n  try: bulkhead get nodes\n", only));
    return only.empty() ? done : could_not;
}

}  // namespace

void add_fleet(Command program, Context& context) {
    Command command =
        program.add_subcommand("fleet", "Nodes and GPUs as a picture: who holds what, and what is clean.");
    auto only = std::make_shared<std::string>();
    auto door = add_door(command);
    command.add_option("node", *only, "Only this node.").type_name("NODE");
    command.callback([only, door, &context] { context.status = fleet(*only, *door, context); });
}

}  // namespace bulkhead::cli
