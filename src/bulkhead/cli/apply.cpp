// `apply` and `delete`: files are read and checked here first, so that a typo costs no round trip and every error has
// its line; what the server finds is shown at the same lines.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <ostream>

#include "bulkhead/cli/contract_text.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/input.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/codec/print.hpp"

namespace bulkhead::cli {

namespace {

struct ApplyOptions {
    std::vector<std::string> files;
    bool dry_run = false;
};

// Everything a refusal says: each finding at its line of the files, or policy's objections in full.
int print_refusal(Context& context, const Reply& reply, const SourceMap& where) {
    const auto read = read_answer(reply);
    const Error error = error_of(reply);
    if (!read) return report(context, error);
    const Node& root = *read->root;
    if (const Node* findings = root.find("findings")) {
        for (const Node* each : findings->items) {
            const std::string kind = text_at(*each, "kind"), name = text_at(*each, "name");
            const std::string occurrence = text_at(*each, "occurrence");
            context.err << print(Diagnostic{
                where.find(kind, name, occurrence.empty() ? 0 : std::stoul(occurrence), text_at(*each, "pointer")),
                fmt::format("{} {}: {}", kind, name, text_at(*each, "what")), text_at(*each, "remedy")});
        }
        context.err << "nothing was changed\n";
        return status_of(error.code);
    }
    if (const Node* refusal = root.find("refusal")) {
        Refusal refused_work;
        std::vector<Diagnostic> errors;
        if (decode(*refusal, "the answer", refused_work, errors)) {
            print_whole(context.err, refused_work, context.colour);
            context.err << "nothing was changed\n";
            return refused;
        }
    }
    return report(context, error);
}

int apply(const ApplyOptions& options, const DoorOptions& door, Context& context) {
    const auto sources = read_sources(options.files);
    if (!sources) return report(context, sources.error());
    const Loaded loaded = load(*sources);
    if (!loaded.errors.empty()) {
        for (const Diagnostic& diagnostic : loaded.errors) context.err << print(diagnostic);
        context.err << "nothing was sent\n";
        return bad_input;
    }
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto reply = client->send({.method = "POST",
                                     .target = options.dry_run ? "/v1/apply?dryRun=true" : "/v1/apply",
                                     .body = print_snapshot_json(loaded.snapshot)});
    if (!reply) return report(context, reply.error());
    if (reply->status >= 400) return print_refusal(context, *reply, loaded.where);
    const auto read = read_answer(*reply);
    const Node* items = read ? read->root->find("items") : nullptr;
    if (items == nullptr) {
        context.err << (options.dry_run ? "" : "it was applied, but what became of it is not known\n");
        return report(context, read ? Error{Code::corrupt, "the server's answer names no objects", ""} : read.error());
    }
    for (const Node* item : items->items) {
        const std::string result = text_at(*item, "result");
        context.out << fmt::format("{} {} {}{}\n", text_at(*item, "kind"), text_at(*item, "name"),
                                   painted(result, result == "unchanged" ? dim : green, context.colour),
                                   options.dry_run ? " (dry run)" : "");
    }
    return done;
}

struct DeleteOptions {
    std::vector<std::string> words, files;
};

int delete_one(Client& client, const shell::KindName& kind, const std::string& name, Context& context) {
    const auto reply = client.ask({.method = "DELETE", .target = target_of(kind.plural, name)});
    if (!reply) return report(context, reply.error());
    const bool gone = reply->body.find("\"result\":\"deleted\"") != std::string::npos;
    context.out << fmt::format("{} {} {}\n", kind.type, name,
                               gone ? "deleted" : "is being deleted: what it holds is wiped first");
    return done;
}

int remove(const DeleteOptions& options, const DoorOptions& door, Context& context) {
    if (options.files.empty() == options.words.empty()) {
        context.err << "delete what?\n  try: bulkhead delete KIND NAME, or bulkhead delete -f FILE\n";
        return bad_input;
    }
    std::vector<std::pair<const shell::KindName*, std::string>> wanted;
    if (!options.words.empty()) {
        const auto kind = parse_kind(options.words[0]);
        if (!kind) return report(context, kind.error());
        if (options.words.size() < 2) {
            context.err << fmt::format("which {}?\n  try: bulkhead get {}\n", (*kind)->singular, (*kind)->plural);
            return bad_input;
        }
        for (std::size_t i = 1; i < options.words.size(); ++i) wanted.emplace_back(*kind, options.words[i]);
    } else {
        const auto sources = read_sources(options.files);
        if (!sources) return report(context, sources.error());
        const Loaded loaded = load(*sources);
        for (const Diagnostic& diagnostic : loaded.errors) context.err << print(diagnostic);
        if (!loaded.errors.empty()) return bad_input;
        for_each_kind([&]<class T>() {
            for (const T& object : loaded.snapshot.list<T>()) {
                std::string name = object.metadata.name;
                if constexpr (std::same_as<T, GpuWorkload>) name = object.spec.tenant + '/' + name;
                wanted.emplace_back(*parse_kind(T::kind), std::move(name));
            }
        });
        std::ranges::reverse(wanted);  // what was declared last may rest on what was declared first
    }
    auto client = connect(door);
    if (!client) return report(context, client.error());
    int worst = done;
    for (const auto& [kind, name] : wanted) worst = std::max(worst, delete_one(*client, *kind, name, context));
    return worst;
}

}  // namespace

void add_apply(Command program, Context& context) {
    Command command = program.add_subcommand("apply", "Create or change objects: all of them or none.");
    auto options = std::make_shared<ApplyOptions>();
    auto door = add_door(command);
    command.description(
        "Create or change the objects of manifests: all of them or none.\n\n"
        "Work that no rule objects to is accepted, and placed when there is room; the rest is refused with every "
        "reason\n"
        "and the nearest request that would be accepted.");
    command
        .add_option("-f,--filename", options->files,
                    "Files, folders (the .yaml, .yml and .json files directly in them), or - for standard input.")
        .required()
        .type_name("DIR|FILE");
    command.add_flag("--dry-run", options->dry_run, "Answer as if; change nothing.");
    command.footer(
        "Exit status:\n"
        "  0  done\n  1  the server could not be asked\n  2  a file is invalid; every error is printed with its line\n"
        "  3  refused, with reasons\n  4  not with this token");
    command.callback([options, door, &context] { context.status = apply(*options, *door, context); });
}

void add_delete(Command program, Context& context) {
    Command command = program.add_subcommand("delete", "Delete objects, by name or by file.");
    auto options = std::make_shared<DeleteOptions>();
    auto door = add_door(command);
    command.add_option("objects", options->words, "A kind, and one or more names.").type_name("KIND NAME...");
    command.add_option("-f,--filename", options->files, "The objects that these files name.").type_name("DIR|FILE");
    command.callback([options, door, &context] { context.status = remove(*options, *door, context); });
}

}  // namespace bulkhead::cli
