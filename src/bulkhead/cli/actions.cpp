// What an operator does to nodes and tenants, to tokens, and to be able to go back: the verbs of the field.
#include <fmt/core.h>

#include <memory>
#include <ostream>

#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/codec/document.hpp"
#include "bulkhead/codec/json_writer.hpp"

namespace bulkhead::cli {

namespace {

struct Verb {
    std::string_view name, path, about, done;
    bool needs_why = true;
    bool names_device = false;
};
constexpr Verb verbs[] = {
    {"drain", "nodes", "Close a node to new leases and end those it has.",
     "drains: its leases end, and what they held is wiped", false},
    {"undrain", "nodes", "Open a drained node again.", "is open again", false},
    {"repair", "nodes", "Let a quarantined device be wiped again, after looking at it.", "is wiped again", true, true},
    {"revoke", "nodes", "Believe a node's keys no longer, and hang up on it.", "is revoked"},
    {"freeze", "tenants", "Stop a tenant at once: end its leases, start nothing.", "is frozen"},
    {"thaw", "tenants", "Let a frozen tenant run again.", "may run again"},
    {"hold", "tenants", "Legal hold: keep what the tenant leaves instead of wiping it.", "is under legal hold"},
    {"unhold", "tenants", "Lift a legal hold.", "is no longer under legal hold"},
};

struct ActionsOptions {
    std::string name, device, why;
};

int act(const Verb& verb, const ActionsOptions& options, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    JsonWriter body{JsonLayout::compact};
    body.begin_object();
    if (!options.device.empty()) body.member("device", options.device);
    if (!options.why.empty()) body.member("why", options.why);
    body.end_object();
    const auto reply =
        client->post(fmt::format("/v1/{}/{}/{}", verb.path, percent_encoded(options.name), verb.name), body.take());
    if (!reply) return report(context, reply.error());
    context.out << fmt::format("{}{}{} {}\n", options.name, options.device.empty() ? "" : "/", options.device,
                               verb.done);
    if (!reply->note.empty()) context.out << reply->note << '\n';
    return done;
}

int backup(const std::string& path, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto bytes = client->download({.method = "POST", .target = "/v1/backup", .limit = Duration{600'000}}, path);
    if (!bytes) return report(context, bytes.error());
    context.out << fmt::format(
        "{}: {} bytes, verified by the server. Keep the keys folder of its data directory too; it is not in here.\n",
        path, *bytes);
    return done;
}

struct TokenOptions {
    std::string role = "auditor", subject, node, valid_for, id, tenant, name, why;
    std::vector<std::string> scope;
};

// The secret alone on standard output, to be put into a file; the rest beside it.
Result<> print_token(const Reply& reply, bool with_ca, Context& context) {
    const auto read = read_answer(reply);
    if (!read) return std::unexpected(read.error());
    const Node& root = *read->root;
    context.out << text_at(root, "token") << '\n';
    context.err << fmt::format("token {}: shown once, now", text_at(root, "id"));
    if (const std::string until = text_at(root, "expiresAt"); !until.empty())
        context.err << fmt::format("; good until {}", until);
    context.err << '\n';
    if (with_ca) context.err << fmt::format("the fleet's CA has the fingerprint {}\n", text_at(root, "caFingerprint"));
    return {};
}

int create_token(const TokenOptions& options, bool enrolment, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    JsonWriter body{JsonLayout::compact};
    body.begin_object();
    if (enrolment) {
        body.member("node", options.node);
    } else {
        body.member("role", options.role);
        body.member("subject", options.subject);
        if (!options.tenant.empty()) body.member("tenant", options.tenant);
        if (!options.name.empty()) body.member("name", options.name);
        if (!options.scope.empty()) {
            body.key("scope");
            body.begin_array();
            for (const std::string& each : options.scope) body.value(each);
            body.end_array();
        }
    }
    if (!options.valid_for.empty()) body.member("validFor", options.valid_for);
    body.end_object();
    const auto reply = client->post(enrolment ? "/v1/tokens/enrolment" : "/v1/tokens", body.take());
    if (!reply) return report(context, reply.error());
    if (const auto printed = print_token(*reply, enrolment, context); !printed) return report(context, printed.error());
    return done;
}

int break_glass(const TokenOptions& options, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    JsonWriter body{JsonLayout::compact};
    body.begin_object();
    body.member("why", options.why);
    if (!options.valid_for.empty()) body.member("validFor", options.valid_for);
    body.end_object();
    const auto reply =
        client->post(fmt::format("/v1/tenants/{}/break-glass", percent_encoded(options.tenant)), body.take());
    if (!reply) return report(context, reply.error());
    if (const auto printed = print_token(*reply, false, context); !printed) return report(context, printed.error());
    context.err << fmt::format("{} sees who entered, why, and everything that is done with it\n", options.tenant);
    return done;
}

int who_am_i(const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto reply = client->get("/v1/whoami");
    if (!reply) return report(context, reply.error());
    const auto read = read_answer(*reply);
    if (!read) return report(context, read.error());
    const Node& root = *read->root;
    context.out << fmt::format("{} ({})", text_at(root, "subject"), text_at(root, "role"));
    if (const std::string until = text_at(root, "until"); !until.empty()) context.out << ", until " << until;
    context.out << '\n';
    const auto say = [&](std::string_view where, const Node* permissions) {
        if (permissions == nullptr || permissions->items.empty()) return;
        std::string all;
        for (const Node* each : permissions->items) all += (all.empty() ? "" : ", ") + each->text;
        context.out << fmt::format("  {}: {}\n", where, wrapped(all, 4));
    };
    say("the whole fleet", root.find("fleet"));
    if (const Node* tenants = root.find("tenants"))
        for (const Node::Member& each : tenants->members) say("tenant " + each.key, each.value);
    return done;
}

int list_tokens(const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto reply = client->get("/v1/tokens");
    if (!reply) return report(context, reply.error());
    const auto read = read_answer(*reply);
    if (!read) return report(context, read.error());
    const Node* items = read->root->find("items");
    std::vector<Row> rows{
        {{"ID", dim}, {"PURPOSE", dim}, {"ROLE", dim}, {"TENANT", dim}, {"WHO", dim}, {"UNTIL", dim}, {"USED", dim}}};
    if (items != nullptr)
        for (const Node* item : items->items) {
            const std::string who = text_at(*item, "subject"), until = text_at(*item, "expiresAt");
            rows.push_back({{text_at(*item, "id")},
                            {text_at(*item, "purpose")},
                            {text_at(*item, "role")},
                            {text_at(*item, "tenant")},
                            {who.empty() ? text_at(*item, "node") : who},
                            {until.empty() ? "no end" : until},
                            {text_at(*item, "usedBy")}});
        }
    print_table(context.out, rows, 2, context.colour);
    return done;
}

int revoke_token(const std::string& id, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto reply = client->ask({.method = "DELETE", .target = "/v1/tokens/" + percent_encoded(id)});
    if (!reply) return report(context, reply.error());
    context.out << fmt::format("token {} is good no longer\n", id);
    return done;
}

}  // namespace

void add_actions(Command program, Context& context) {
    for (const Verb& verb : verbs) {
        Command command = program.add_subcommand(std::string{verb.name}, std::string{verb.about});
        auto options = std::make_shared<ActionsOptions>();
        auto door = add_door(command);
        const std::string what = verb.path == "nodes" ? "node" : "tenant";
        command.add_option(what, options->name, fmt::format("The {}.", what)).required().type_name("NAME");
        if (verb.names_device)
            command.add_option("device", options->device, "gpu3, drive0, vf12 or host.").required().type_name("DEVICE");
        if (verb.needs_why)
            command.add_option("--why", options->why, "Why: the audit log keeps it.").required().type_name("TEXT");
        command.callback([&verb, options, door, &context] { context.status = act(verb, *options, *door, context); });
    }
}

void add_backup(Command program, Context& context) {
    Command command = program.add_subcommand("backup", "A verified copy of the store at this moment, into a file.");
    auto path = std::make_shared<std::string>();
    auto door = add_door(command);
    command.add_option("file", *path, "Where to; replaced when it is there.").required().type_name("FILE");
    command.callback([path, door, &context] { context.status = backup(*path, *door, context); });
}

void add_break_glass(Command program, Context& context) {
    Command command = program.add_subcommand("break-glass", "A short-lived key to a tenant that is not one's own.");
    auto options = std::make_shared<TokenOptions>();
    auto door = add_door(command);
    command.description(
        "A short-lived key to a tenant that is not one's own: to read what its work prints, and to stop it.\n\n"
        "The tenant sees who asked for it, why, and everything that is done with it.");
    command.add_option("tenant", options->tenant, "The tenant.").required().type_name("TENANT");
    command.add_option("--why", options->why, "Why: the tenant reads it.").required().type_name("TEXT");
    command.add_option("--valid-for", options->valid_for, "Default: 1h; at most 8h.").type_name("DURATION");
    command.footer("Example:\n  bulkhead break-glass acme --why 'ticket 7: stuck job' >key && chmod 600 key");
    command.callback([=, &context] { context.status = break_glass(*options, *door, context); });
}

void add_whoami(Command program, Context& context) {
    Command command = program.add_subcommand("whoami", "Who the server takes you for, and what you may do.");
    auto door = add_door(command);
    command.callback([=, &context] { context.status = who_am_i(*door, context); });
}

void add_token(Command program, Context& context) {
    Command command = program.add_subcommand("token", "Tokens for people, programs and new nodes.");
    command.require_subcommand();
    auto options = std::make_shared<TokenOptions>();
    Command create = command.add_subcommand("create", "A bearer token, for a person or a program.");
    auto door = add_door(create);
    create
        .add_option("--role", options->role,
                    "platform-admin, security-admin, auditor, tenant-admin or tenant-user. Default: auditor.")
        .type_name("ROLE");
    create.add_option("--tenant", options->tenant, "The tenant, of a tenant's role.").type_name("TENANT");
    create.add_option("--name", options->name, "What it is called: ci-runner.").type_name("NAME");
    create.add_option("--scope", options->scope, "Only this permission of the role: submit. May be repeated.")
        .type_name("PERMISSION");
    create.add_option("--subject", options->subject, "Who will hold it; the audit log names them.")
        .required()
        .type_name("WHO");
    create.add_option("--valid-for", options->valid_for, "30d, 8h. Default: 90d.").type_name("DURATION");
    create.callback([=, &context] { context.status = create_token(*options, false, *door, context); });
    Command node = command.add_subcommand("node", "A token that admits one node, once.");
    auto node_door = add_door(node);
    node.add_option("name", options->node, "The node's name, or a beginning of names and '*'.")
        .required()
        .type_name("NODE");
    node.add_option("--valid-for", options->valid_for, "Default: 1h.").type_name("DURATION");
    node.callback([=, &context] { context.status = create_token(*options, true, *node_door, context); });
    Command list = command.add_subcommand("list", "The tokens in force, without their secrets.");
    auto list_door = add_door(list);
    list.callback([=, &context] { context.status = list_tokens(*list_door, context); });
    Command revoke = command.add_subcommand("revoke", "Take a token back.");
    auto revoke_door = add_door(revoke);
    revoke.add_option("id", options->id, "As the list names it.").required().type_name("ID");
    revoke.callback([=, &context] { context.status = revoke_token(options->id, *revoke_door, context); });
}

}  // namespace bulkhead::cli
