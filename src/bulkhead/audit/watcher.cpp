#include "bulkhead/audit/watcher.hpp"

#include <fmt/core.h>

#include "bulkhead/audit/published.hpp"
#include "bulkhead/audit/tile_reader.hpp"
#include "bulkhead/codec/print.hpp"
#include "bulkhead/evidence/key_history.hpp"
#include "bulkhead/evidence/text.hpp"

namespace bulkhead::audit {

using namespace evidence;

namespace {

const std::string history_path = "keys";

std::string short_hex(const Hash& hash) { return to_hex(bytes_of(hash)).substr(0, 16); }

struct Look {
    const TileReader log;
    Watched seen;

    Result<Watched> wrong(Tampering how, std::string what) {
        seen.tampering = how;
        seen.what = std::move(what);
        return std::move(seen);
    }
};

// The keys that the history adds to the one that is trusted; that one alone when the log has no history.
Result<LogKeys> keys_known(const Files& files, const VerifierKey& trusted) {
    const auto text = files.read(history_path);
    if (!text) return std::unexpected(text.error());
    if (!*text) return LogKeys{trusted};
    const Result<KeyHistory> history = read_key_history(**text);
    if (!history) return std::unexpected(history.error());
    return keys_of(*history, trusted);
}

// Of a file of the log that cannot be read: whether it is the log's fault, or only the way to it is blocked.
bool is_the_logs_fault(const Error& error) { return error.code == Code::corrupt || error.code == Code::not_found; }

Result<Watched> unreadable(Look& look, const Checkpoint& newer, const Error& error) {
    if (!is_the_logs_fault(error)) return std::unexpected(error);
    return look.wrong(Tampering::truncation,
                      fmt::format("the log has signed for {} entries, and {}", newer.size, error.what));
}

// Nothing is known yet: the watch begins with what the log says of itself, if its tiles agree.
Result<Watched> begin_with(Look& look, const Checkpoint& first) {
    const Result<Frontier> as_published = look.log.frontier({first.size, first.size});
    if (!as_published) return unreadable(look, first, as_published.error());
    if (as_published->root() != first.root)
        return look.wrong(Tampering::edit,
                          fmt::format("the tiles over {} entries do not give the root that was signed", first.size));
    return std::move(look.seen);
}

// The tree of the older checkpoint, as the tiles have it now, and every entry since.
Result<Watched> hold_against(Look& look, const Checkpoint& older, const Checkpoint& newer) {
    Result<Frontier> frontier = look.log.frontier({older.size, newer.size});
    if (!frontier) return unreadable(look, newer, frontier.error());
    const Hash past = frontier->root();
    const bool same_past = past == older.root;
    if (same_past) {
        const Result<> read = look.log.each_entry(older.size, newer.size, [&](std::uint64_t, const std::string& entry) {
            frontier->append(leaf_hash(entry));
        });
        if (!read) return unreadable(look, newer, read.error());
        if (frontier->root() == newer.root) return std::move(look.seen);
    }
    // Something is not what was signed. If the tiles themselves give the newer root, it is the log that has signed
    // another past; if they do not, somebody has changed files after they were signed for.
    const Result<Frontier> as_published = look.log.frontier({newer.size, newer.size});
    if (!as_published) return unreadable(look, newer, as_published.error());
    if (as_published->root() == newer.root && !same_past)
        return look.wrong(Tampering::fork,
                          fmt::format("the checkpoint over {} entries does not continue the one over {}: they now give "
                                      "root {}..., and {}... was signed before",
                                      newer.size, older.size, short_hex(past), short_hex(older.root)));
    const std::string where = same_past ? fmt::format("entries {} to {}", older.size, newer.size - 1)
                                        : fmt::format("the tiles over the first {} entries", older.size);
    return look.wrong(Tampering::edit,
                      fmt::format("{} are not what was signed; `bulkhead audit verify` names the place", where));
}

}  // namespace

std::string print(const WatchState& state) { return to_json(state); }

Result<WatchState> read_watch_state(std::string_view json) {
    json.remove_prefix(std::min(json.find_first_not_of(" \t\r\n"), json.size()));
    Result<WatchState> state = read_text<WatchState>("the state of a watch", json);
    if (!state) return state;
    if (state->version != watch_version)
        return fail(Code::invalid, "the state of a watch of another version", "use the program that wrote it");
    if (const auto key = parse_verifier_key(state->key); !key) return std::unexpected(key.error());
    if (!state->checkpoint.empty()) {
        const auto note = parse_note(state->checkpoint);
        if (!note) return std::unexpected(note.error());
        if (const auto checkpoint = parse_checkpoint(note->text); !checkpoint)
            return std::unexpected(checkpoint.error());
    }
    return state;
}

Result<Watched> watch_once(const std::shared_ptr<const Files>& files, const WatchState& state) {
    const Result<VerifierKey> trusted = parse_verifier_key(state.key);
    if (!trusted) return std::unexpected(trusted.error());
    std::optional<Checkpoint> older;
    if (!state.checkpoint.empty()) {
        // Our own word, which nobody has to sign for again: its key may have been replaced since.
        const auto note = parse_note(state.checkpoint);
        auto parsed = note ? parse_checkpoint(note->text) : Result<Checkpoint>{std::unexpected(note.error())};
        if (!parsed) return std::unexpected(parsed.error());
        older = *std::move(parsed);
    }
    Look look{TileReader{files}, {.state = state, .before = older ? older->size : 0}};

    const auto note = files->read(checkpoint_path);
    if (!note) return std::unexpected(note.error());
    if (!*note) {
        if (older)
            return look.wrong(Tampering::rollback,
                              fmt::format("the checkpoint is gone; one over {} entries was there", older->size));
        return fail(Code::not_found, "the log has no checkpoint yet", "look again when it has published");
    }
    look.seen.note = **note;
    Result<Checkpoint> newer = open_checkpoint(**note, *trusted);
    LogKeys keys{*trusted};
    if (!newer && newer.error().code == Code::denied) {
        const auto known = keys_known(*files, *trusted);
        if (!known && !is_the_logs_fault(known.error()) && known.error().code != Code::denied &&
            known.error().code != Code::invalid)
            return std::unexpected(known.error());
        if (known) {
            keys = *known;
            newer = open_checkpoint(**note, keys);
        }
    }
    if (!newer) return look.wrong(Tampering::signature, newer.error().what);

    look.seen.size = newer->size;
    if (older && older->origin != newer->origin)
        return look.wrong(Tampering::signature,
                          fmt::format("the log was called {}, and this one is {}", older->origin, newer->origin));
    if (older && newer->size < older->size)
        return look.wrong(Tampering::rollback, fmt::format("the checkpoint covers {} entries, and one over {} was seen",
                                                           newer->size, older->size));
    if (older && newer->size == older->size && newer->root != older->root)
        return look.wrong(Tampering::fork,
                          fmt::format("two checkpoints over {} entries are signed, with roots {}... and {}...",
                                      newer->size, short_hex(older->root), short_hex(newer->root)));
    look.seen.key_changed = keys.newest() != *trusted;
    look.seen.state.key = print(keys.newest());
    look.seen.state.checkpoint = **note;
    if (older && newer->size == older->size) return std::move(look.seen);
    auto seen = older ? hold_against(look, *older, *newer) : begin_with(look, *newer);
    if (seen && seen->tampering) seen->state = state;
    return seen;
}

}  // namespace bulkhead::audit
