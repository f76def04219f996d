// `audit export`: the log's records for a security pipeline, each once, whatever happens between.
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <ostream>
#include <thread>

#include "bulkhead/cli/audit_commands.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/export_file.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/evidence/note.hpp"
#include "bulkhead/evidence/ocsf.hpp"

namespace bulkhead::cli {

namespace {

struct ExportOptions {
    std::string format = "ocsf", out, state;
    std::int64_t from = 0;
    bool follow = false;
};

constexpr std::int64_t records_at_once = 500;

std::unexpected<Error> not_what_was_logged(std::int64_t index) {
    return fail(Code::corrupt, fmt::format("leaf {} is not what the log holds there", index),
                "run `bulkhead audit verify`; nothing from there on is exported");
}

// One item of the server's answer as a line.
Result<std::string> event_of_item(const Node& item, const std::string& log, std::int64_t index) {
    const auto entry_bytes = from_hex(text_at(item, "entry"));
    const auto entry = entry_bytes ? hash_from(*entry_bytes) : std::nullopt;
    if (item.find("index") == nullptr && item.find("number") != nullptr)
        return fail(Code::denied, "this token reads the records of one tenant, and an export is of the whole log",
                    "ask with an auditor's token");
    if (!entry || text_at(item, "index") != std::to_string(index)) return not_what_was_logged(index);
    const evidence::OcsfPlace place{.log = log, .index = index, .entry = *entry};
    if (item.find("lost") != nullptr) return evidence::ocsf_lost(place, {});
    const auto salt = from_hex(text_at(item, "salt"));
    const std::string payload = text_at(item, "payload");
    if (!salt || !evidence::open_commitment(*entry, *salt, payload)) return not_what_was_logged(index);
    const auto record = evidence::read_record(payload);
    if (!record) return std::unexpected(record.error());
    std::optional<evidence::TenantOpening> tenant;
    if (const Node* known = item.find("tenant"))
        tenant = evidence::TenantOpening{text_at(*known, "name"), text_at(*known, "salt")};
    return evidence::ocsf_event(place, *record, tenant);
}

// What there is beyond what was exported; true when there was something.
Result<bool> export_more(Client& client, ExportFile& file, const std::string& log) {
    const auto reply = client.get(fmt::format("/v1/log/records?from={}&limit={}", file.next(), records_at_once));
    if (!reply) return std::unexpected(reply.error());
    const auto answer = read_answer(*reply);
    if (!answer) return std::unexpected(answer.error());
    const Node* items = answer->root->find("items");
    if (items == nullptr) return fail(Code::corrupt, "the server's answer holds no records", "");
    std::vector<std::string> lines;
    std::optional<Error> bad;
    for (const Node* item : items->items) {
        auto line = event_of_item(*item, log, file.next() + static_cast<std::int64_t>(lines.size()));
        if (!line) {
            bad = line.error();
            break;
        }
        lines.push_back(*std::move(line));
    }
    if (auto kept = file.append(lines); !kept) return std::unexpected(kept.error());
    if (bad) return std::unexpected(*bad);
    return !lines.empty();
}

Result<std::string> name_of_log(Client& client) {
    const auto reply = client.get("/v1/log/key");
    if (!reply) return std::unexpected(reply.error());
    const auto key = evidence::parse_verifier_key(reply->body.substr(0, reply->body.find('\n')));
    if (!key) return std::unexpected(key.error());
    return key->name;
}

int audit_export(ExportOptions options, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto log = name_of_log(*client);
    if (!log) return report(context, log.error());
    if (options.state.empty() && !options.out.empty()) options.state = options.out + ".state";
    auto file = ExportFile::open({options.out, options.state, *log, options.from});
    if (!file) return report(context, file.error());
    std::string trouble;
    for (;;) {
        const auto more = export_more(*client, *file, *log);
        if (!more) {
            const bool may_pass = more.error().code == Code::unavailable || more.error().code == Code::timeout ||
                                  more.error().code == Code::exhausted;
            if (!options.follow || !may_pass) return report(context, more.error());
            if (trouble != more.error().what) context.err << "waiting: " << more.error().what << std::endl;
            trouble = more.error().what;
            if (auto again = connect(door)) *client = *std::move(again);
        } else {
            trouble.clear();
            if (*more) continue;
            if (!options.follow) return done;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{trouble.empty() ? 200 : 2000});
    }
}

}  // namespace

void add_audit_export(Command audit, Context& context) {
    Command command = audit.add_subcommand("export", "Records as events for a security pipeline, one JSON line each.");
    auto options = std::make_shared<ExportOptions>();
    auto door = add_door(command);
    command.add_option("--format", options->format, "ocsf: OCSF 1.8. Default: ocsf.").one_of({"ocsf"});
    command.add_option("--out", options->out, "Append to this file. Default: standard output.").type_name("FILE");
    command
        .add_option("--state", options->state,
                    "Where to keep how far it is. Default: FILE.state; without a file, nothing is kept.")
        .type_name("FILE");
    command.add_option("--from", options->from, "The first leaf, when nothing is known yet. Default: 0.")
        .within(0, INT64_MAX)
        .type_name("INDEX");
    command.add_flag("--follow", options->follow, "Go on as records come.");
    command.footer(
        "Stopped at any moment and started again, it writes every record once into the file. Into a pipe, the last\n"
        "lines before a stop may come twice: metadata.uid tells them apart.");
    command.callback([=, &context] { context.status = audit_export(*options, *door, context); });
}

}  // namespace bulkhead::cli
