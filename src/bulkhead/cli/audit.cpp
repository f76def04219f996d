// `audit`: the log, read, proven and verified.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>

#include "bulkhead/audit/tile_reader.hpp"
#include "bulkhead/cli/audit_commands.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/input.hpp"
#include "bulkhead/cli/log_source.hpp"
#include "bulkhead/cli/objects.hpp"
#include "bulkhead/codec/decode.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/evidence/log_proof.hpp"
#include "bulkhead/evidence/pseudonym.hpp"
#include "bulkhead/evidence/record.hpp"

namespace bulkhead::cli {

namespace {

struct AuditOptions {
    std::string key, keys, tiles, older, format = "text";
    std::int64_t from = 0, limit = 100, index = 0;
};

// Signed by nobody who is trusted here: the answer is no, and no token would change it.
int not_signed(Context& context, const Error& error) {
    const int status = report(context, error);
    return error.code == Code::denied ? refused : status;
}

// By name, where the server has told it and it is true.
std::string tenant_in(const Node& item, const evidence::Record& record) {
    const Node* const known = item.find("tenant");
    if (known == nullptr) return record.tenant;
    const evidence::TenantOpening opening{text_at(*known, "name"), text_at(*known, "salt")};
    return evidence::pseudonym(opening) == record.tenant ? opening.name : record.tenant;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
    std::uint64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
    return number;
}

int audit_list(const AuditOptions& options, const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto reply = client->get(fmt::format("/v1/log/records?from={}&limit={}", options.from, options.limit));
    if (!reply) return report(context, reply.error());
    const auto read = read_answer(*reply);
    if (!read) return report(context, read.error());
    const Node* items = read->root->find("items");
    if (items == nullptr) return report(context, {Code::corrupt, "the server's answer holds no records", ""});
    // Each record is held against its entry; with the tiles at hand, the entry against what was published.
    std::optional<audit::TileReader> tiles;
    std::uint64_t size = 0;
    if (!options.tiles.empty()) {
        auto opened = audit::TileReader::open(options.tiles);
        if (!opened) return report(context, opened.error());
        const auto key = read_keys(options.key, options.keys);
        if (!key) return report(context, key.error());
        const auto checkpoint = opened->checkpoint(*key);
        if (!checkpoint) return not_signed(context, checkpoint.error());
        size = checkpoint->size;
        tiles.emplace(*std::move(opened));
    }
    int worst = done;
    std::vector<Row> rows{{{"#", dim},
                           {"AT", dim},
                           {"WHAT", dim},
                           {"WHO", dim},
                           {"ABOUT", dim},
                           {"TENANT", dim},
                           {"NODE", dim},
                           {"", dim}}};
    for (const Node* item : items->items) {
        const auto text = [&](std::string_view name) {
            const Node* found = item->find(name);
            return found == nullptr ? std::string{} : found->text;
        };
        // A tenant's own records are counted by themselves: where they stand in everybody's log is not told.
        const std::string index = item->find("index") != nullptr ? text("index") : text("number");
        const std::optional<std::uint64_t> place = item->find("index") != nullptr ? whole_number(index) : std::nullopt;
        const auto entry_bytes = from_hex(text("entry"));
        const auto entry = entry_bytes ? hash_from(*entry_bytes) : std::nullopt;
        if (item->find("lost") != nullptr) {
            rows.push_back({{index}, {"-"}, {"lost with a restore", yellow}});
            continue;
        }
        const auto salt = from_hex(text("salt"));
        const bool opens = entry && salt && evidence::open_commitment(*entry, *salt, text("payload"));
        bool published = true;
        const bool compares = tiles && entry && place && *place < size;
        if (compares) {
            const auto there = tiles->entry(*place, size);
            published = there && *there == bytes_of(*entry);
        }
        const auto record = evidence::read_record(text("payload"));
        if (!opens || !published || !record) worst = refused;
        Row row{{index}};
        if (record) {
            row.push_back({print(record->at)});
            row.push_back({std::string{word(record->kind)}});
            row.push_back({record->actor});
            row.push_back({!record->object.empty() ? record->object
                           : !record->unit.empty() ? record->unit
                                                   : record->lease});
            row.push_back({tenant_in(*item, *record)});
            row.push_back({record->node});
        }
        if (!opens || !published)
            row.push_back({"NOT WHAT WAS LOGGED", red});
        else if (tiles && !compares) {
            row.push_back({"not compared with what was published", yellow});
            worst = std::max(worst, static_cast<int>(could_not));
        }
        rows.push_back(std::move(row));
    }
    print_table(context.out, rows, 2, context.colour);
    return worst;
}

int audit_prove(const AuditOptions& options, Context& context) {
    const auto key = read_keys(options.key, options.keys);
    if (!key) return report(context, key.error());
    const auto tiles = audit::TileReader::open(options.tiles);
    if (!tiles) return report(context, tiles.error());
    const auto checkpoint = tiles->checkpoint(*key);
    if (!checkpoint) return not_signed(context, checkpoint.error());
    if (options.index < 0 || static_cast<std::uint64_t>(options.index) >= checkpoint->size)
        return report(context,
                      {Code::not_found, fmt::format("the log has {} entries", checkpoint->size), "a smaller index"});
    const auto index = static_cast<std::uint64_t>(options.index);
    const auto note = tiles->note();
    if (!note) return report(context, note.error());
    const auto entry = tiles->entry(index, checkpoint->size);
    if (!entry) return report(context, entry.error());
    const auto proof = tiles->prove(index, checkpoint->size);
    if (!proof) return report(context, proof.error());
    const auto shown = evidence::verify_inclusion(
        {.index = index, .size = checkpoint->size, .leaf = evidence::leaf_hash(*entry), .root = checkpoint->root},
        *proof);
    if (!shown) return report(context, {Code::conflict, shown.error().what, "the tiles are not what was signed"});
    if (options.format == "tlog-proof") {
        context.out << print(evidence::LogProof{.extra = {}, .index = index, .hashes = *proof, .checkpoint = *note});
        return done;
    }
    context.out << fmt::format("entry {} is in the log of size {} that {} signed\n  entry {}\n", index,
                               checkpoint->size, checkpoint->origin, to_hex(*entry));
    for (const Hash& step : *proof) context.out << "  with  " << to_hex(bytes_of(step)) << '\n';
    context.out << "  root  " << to_hex(bytes_of(checkpoint->root)) << '\n';
    return done;
}

int audit_verify(const AuditOptions& options, Context& context) {
    const auto key = read_keys(options.key, options.keys);
    if (!key) return report(context, key.error());
    std::optional<std::string> older;
    if (!options.older.empty()) {
        auto note = read_file(options.older);
        if (!note) return report(context, note.error());
        older = *std::move(note);
    }
    const auto tiles = audit::TileReader::open(options.tiles);
    if (!tiles) return report(context, tiles.error());
    const auto audited = tiles->verify_all(*key, older);
    if (!audited) {
        context.out << painted("NOT WHAT WAS SIGNED", red, context.colour) << "  " << audited.error().what << '\n';
        if (!audited.error().remedy.empty()) context.out << "  try: " << audited.error().remedy << '\n';
        return tampered_with;
    }
    context.out << painted("VERIFIED", green, context.colour)
                << fmt::format("  {} entries of {}, {} tiles, root {}{}\n", audited->checkpoint.size,
                               audited->checkpoint.origin, audited->tiles, to_hex(bytes_of(audited->checkpoint.root)),
                               audited->continues_older ? "; continues the older checkpoint" : "");
    return done;
}

void add_key(Command command, AuditOptions& options) {
    command.add_option("--key", options.key, "The log's verifier key, or a file that holds it.")
        .required()
        .type_name("KEY");
    command.add_option("--keys", options.keys, "The history of the log's keys, if it has had others.")
        .type_name("FILE");
}

}  // namespace

void add_audit(Command program, Context& context) {
    Command command = program.add_subcommand("audit", "The audit log: read it, prove an entry, verify all of it.");
    command.require_subcommand();
    auto options = std::make_shared<AuditOptions>();
    Command list = command.add_subcommand("list", "Records, each checked against its entry in the log.");
    auto door = add_door(list);
    list.add_option("--from", options->from, "The first index. Default: 0.").type_name("INDEX");
    list.add_option("--limit", options->limit, "At most so many. Default: 100.").type_name("COUNT");
    Option tiles = list.add_option("--tiles", options->tiles, "Check the entries against these published tiles too.")
                       .type_name("DIR");
    Option key =
        list.add_option("--key", options->key, "The log's verifier key, or a file that holds it.").type_name("KEY");
    tiles.needs(key);
    list.callback([=, &context] { context.status = audit_list(*options, *door, context); });
    Command prove =
        command.add_subcommand("prove", "That an entry is in the log that was signed; from the tiles alone.");
    Option at = prove.add_option("index", options->index, "The entry's index.").type_name("INDEX");
    prove.add_option("--index", options->index, "The same.").type_name("INDEX").excludes(at);
    prove.add_option("--format", options->format, "text, or tlog-proof (c2sp.org/tlog-proof@v1). Default: text.")
        .one_of({"text", "tlog-proof"});
    prove.add_option("--tiles", options->tiles, "The directory of the published log.").required().type_name("DIR");
    add_key(prove, *options);
    prove.callback([=, &context] { context.status = audit_prove(*options, context); });
    Command verify_all =
        command.add_subcommand("verify", "All tiles, computed anew from the entries; from the tiles alone.");
    verify_all.add_option("--tiles", options->tiles, "The directory of the published log.").required().type_name("DIR");
    verify_all.add_option("--older", options->older, "A checkpoint from before, which this log must continue.")
        .type_name("FILE");
    add_key(verify_all, *options);
    verify_all.footer("Exit status:\n  0  all of it is what was signed\n  1  it is not, with the place");
    verify_all.callback([=, &context] { context.status = audit_verify(*options, context); });
    add_audit_watch(command, context);
    add_audit_export(command, context);
    add_audit_rotate_key(command, context);
}

}  // namespace bulkhead::cli
