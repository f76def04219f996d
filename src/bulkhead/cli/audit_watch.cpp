// `audit watch` and `audit rotate-key`: somebody outside who remembers what the log has signed, and the change of the
// key it signs with.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <ostream>
#include <thread>

#include "bulkhead/audit/watcher.hpp"
#include "bulkhead/auth/secret_file.hpp"
#include "bulkhead/cli/audit_commands.hpp"
#include "bulkhead/cli/door.hpp"
#include "bulkhead/cli/log_source.hpp"
#include "bulkhead/cli/objects.hpp"

namespace bulkhead::cli {

namespace {

struct WatchOptions {
    std::string tiles, key, keys, state;
    std::int64_t every = 10;
    bool once = false;
};

Result<std::shared_ptr<const audit::Files>> log_to_watch(const WatchOptions& options, const DoorOptions& door) {
    if (!options.tiles.empty()) return log_of_directory(options.tiles, options.keys);
    auto client = connect(door);
    if (!client) return std::unexpected(client.error());
    return log_of_server(*std::move(client));
}

// What the last look found good; at first, what the person says.
Result<audit::WatchState> state_to_begin_with(const WatchOptions& options) {
    std::error_code ignored;
    if (std::filesystem::exists(options.state, ignored)) {
        const auto text = auth::read_secret(options.state);
        if (!text) return std::unexpected(text.error());
        auto state = audit::read_watch_state(*text);
        if (!state)
            return fail(state.error().code, fmt::format("{}: {}", options.state, state.error().what),
                        "put it back from a copy; without it nobody knows what the log had signed");
        if (options.key.empty()) return state;
        const auto key = read_key(options.key);
        if (!key) return std::unexpected(key.error());
        if (evidence::parse_verifier_key(state->key)->name != key->name)
            return fail(Code::conflict,
                        fmt::format("{} is of the log {}, and this key of {}", options.state,
                                    evidence::parse_verifier_key(state->key)->name, key->name),
                        "one file for each log");
        return state;
    }
    if (options.key.empty())
        return fail(Code::invalid, "which key signs this log?", "--key KEY, once: later looks find it in the state");
    const auto key = read_key(options.key);
    if (!key) return std::unexpected(key.error());
    return audit::WatchState{.key = print(*key)};
}

int tell_of_tampering(const audit::Watched& seen, const WatchOptions& options, Context& context) {
    std::string name{word(*seen.tampering)};
    std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    context.out << painted(name, red, context.colour) << "  " << seen.what << '\n';
    const std::string kept = options.state + ".refused";
    if (!seen.note.empty() && auth::write_secret(kept, seen.note))
        context.out << fmt::format("  the checkpoint that was refused is in {}, the last good one in {}\n", kept,
                                   options.state);
    context.out << "  try: keep both, and ask others what they have seen; the log is not to be believed as it is\n";
    context.out.flush();
    return tampered_with;
}

int audit_watch(const WatchOptions& options, const DoorOptions& door, Context& context) {
    auto state = state_to_begin_with(options);
    if (!state) return report(context, state.error());
    auto log = log_to_watch(options, door);
    if (!log && (options.once || log.error().code != Code::unavailable)) return report(context, log.error());
    std::string trouble;
    for (;;) {
        if (!log) log = log_to_watch(options, door);
        const auto seen = log ? audit::watch_once(*log, *state) : Result<audit::Watched>{std::unexpected(log.error())};
        if (!seen) {
            // Not being able to look is not the log's fault: it is said once, and tried again.
            if (options.once) return report(context, seen.error());
            if (trouble != seen.error().what) context.err << "cannot look: " << seen.error().what << std::endl;
            trouble = seen.error().what;
            if (options.tiles.empty()) log = std::unexpected(seen.error());  // a new connection, next time
        } else {
            trouble.clear();
            if (seen->tampering) return tell_of_tampering(*seen, options, context);
            if (seen->state != *state) {
                if (auto kept = auth::write_secret(options.state, print(seen->state)); !kept)
                    return report(context, kept.error());
                const bool begins = state->checkpoint.empty();
                *state = seen->state;
                if (seen->key_changed) context.out << "the log has another key: " << state->key << '\n';
                context.out << (begins ? fmt::format("{} entries: the watch begins here", seen->size)
                                       : fmt::format("{} entries, {} of them new; continues what was seen before",
                                                     seen->size, seen->size - seen->before))
                            << std::endl;
            } else if (options.once) {
                context.out << fmt::format("{} entries, nothing new\n", seen->size);
            }
            if (options.once) return done;
        }
        std::this_thread::sleep_for(std::chrono::seconds{options.every});
    }
}

int rotate_key(const DoorOptions& door, Context& context) {
    auto client = connect(door);
    if (!client) return report(context, client.error());
    const auto reply = client->ask(
        {.method = "POST", .target = "/v1/log/rotate-key", .body = {}, .headers = {}, .limit = Duration{60'000}});
    if (!reply) return report(context, reply.error());
    const auto answer = read_answer(*reply);
    if (!answer) return report(context, answer.error());
    context.out << text_at(*answer->root, "key") << '\n'
                << "  the log signs with this key now; GET /v1/log/keys shows how it came to it\n";
    return done;
}

}  // namespace

void add_audit_watch(Command audit, Context& context) {
    Command watch =
        audit.add_subcommand("watch", "Follow a log, and remember: forks, rollbacks and edits are noticed.");
    auto options = std::make_shared<WatchOptions>();
    auto door = add_door(watch);
    watch.add_option("--tiles", options->tiles, "A directory instead of a server.").type_name("DIR");
    watch.add_option("--key", options->key, "The log's verifier key, or a file that holds it. Needed the first time.")
        .type_name("KEY");
    watch.add_option("--keys", options->keys, "With --tiles: the history of the log's keys.").type_name("FILE");
    watch.add_option("--state", options->state, "Where to keep the last good checkpoint.").required().type_name("FILE");
    watch.add_option("--every", options->every, "Seconds between two looks. Default: 10.")
        .within(1, 86'400)
        .type_name("SECONDS");
    watch.add_flag("--once", options->once, "One look, for cron.");
    watch.footer(
        "No token is needed: checkpoints, tiles and keys are everybody's. Run it where the log's operator cannot "
        "reach.\n\n"
        "Exit status:\n"
        "  0  with --once: nothing is wrong\n"
        "  1  FORK, ROLLBACK, EDIT, TRUNCATION or SIGNATURE, and what was found; or the log could not be looked at\n"
        "  2  the state or the key is not good");
    watch.callback([=, &context] { context.status = audit_watch(*options, *door, context); });
}

void add_audit_rotate_key(Command audit, Context& context) {
    Command rotate = audit.add_subcommand("rotate-key", "The server makes another key for the log.");
    auto door = add_door(rotate);
    rotate.callback([=, &context] { context.status = rotate_key(*door, context); });
}

}  // namespace bulkhead::cli
