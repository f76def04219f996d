#include "bulkhead/codec/schema.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <ostream>
#include <string>

#include "bulkhead/base/nearest.hpp"
#include "bulkhead/cli/command.hpp"
#include "bulkhead/evidence/schemas.hpp"

namespace bulkhead::cli {

namespace {

int print_schema(const std::string& kind, Context& context) {
    const std::vector<std::string_view> kinds = kind_names();
    if (kind.empty()) {
        context.out << json_schema();
        return done;
    }
    for (const std::string_view known : kinds)
        if (known == kind) {
            context.out << json_schema(known);
            return done;
        }
    if (const auto of_evidence = evidence::schema_named(kind)) {
        context.out << *of_evidence;
        return done;
    }
    std::vector<std::string_view> names = kinds;
    for (const std::string_view name : evidence::schema_names()) names.push_back(name);
    const std::string_view near = nearest(kind, names);
    context.err << fmt::format("there is no kind \"{}\"; the kinds are {}\n", kind, fmt::join(names, ", "));
    if (!near.empty()) context.err << fmt::format("  try: bulkhead schema {}\n", near);
    return bad_input;
}

}  // namespace

void add_schema(Command program, Context& context) {
    Command command = program.add_subcommand("schema", "Print the JSON Schema of a kind of object.");
    command.description(
        "Print the JSON Schema (draft 2020-12) of one kind of object, or of all six.\n\n"
        "The schema is made from the same description that reads and prints the objects, so it cannot fall behind.\n"
        "Editors complete and check manifests with it; CI checks them without Bulkhead.");
    command.footer(
        "Examples:\n"
        "  bulkhead schema Tenant                      one kind\n"
        "  bulkhead schema certificate                 what leaves the house as evidence: certificate, certificates,\n"
        "                                              record, wipe-statement, fabric-statement, log-keys\n"
        "  bulkhead schema > bulkhead.schema.json      all kinds, for an editor's settings\n\n"
        "Exit status:\n"
        "  0  printed\n"
        "  2  there is no such kind");
    auto kind = std::make_shared<std::string>();
    command.add_option("KIND", *kind, fmt::format("One of {}. Default: all.", fmt::join(kind_names(), ", ")));
    command.callback([kind, &context] { context.status = print_schema(*kind, context); });
}

}  // namespace bulkhead::cli
