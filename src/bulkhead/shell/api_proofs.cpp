// Proofs over HTTP: that an entry is in the log, that the log only grew, and which keys it had. Open to everybody, as
// tiles and checkpoints are.
#include "bulkhead/codec/print.hpp"
#include "bulkhead/evidence/key_history.hpp"
#include "bulkhead/shell/api.hpp"
#include "bulkhead/shell/key_rotation.hpp"
#include "bulkhead/shell/log_proofs.hpp"

namespace bulkhead::shell {

namespace {

constexpr Range any_size{0, INT64_MAX};

void write_hashes(JsonWriter& json, std::string_view name, std::span<const Hash> hashes) {
    json.key(name);
    json.begin_array();
    for (const Hash& hash : hashes) json.value(to_base64(bytes_of(hash)));
    json.end_array();
}

Result<std::optional<std::uint64_t>> size_in(const Call& call, std::string_view name) {
    if (call.query(name).empty()) return std::nullopt;
    const auto number = number_of(call, name, 0, any_size);
    if (!number) return std::unexpected(number.error());
    return static_cast<std::uint64_t>(*number);
}

Result<std::uint64_t> index_in(const Call& call, LogProofs& proofs) {
    const std::string_view entry = call.query("entry");
    if (entry.empty() == call.query("index").empty())
        return fail(Code::invalid, "a proof is of one entry", "?index=N, or ?entry=HEX");
    if (entry.empty()) {
        const auto index = number_of(call, "index", 0, any_size);
        if (!index) return std::unexpected(index.error());
        return static_cast<std::uint64_t>(*index);
    }
    const auto bytes = from_hex(entry);
    const auto hash = bytes ? hash_from(*bytes) : std::nullopt;
    if (!hash) return fail(Code::invalid, "an entry is 32 bytes in hex", "64 digits, in lower case");
    return proofs.index_of(*hash);
}

}  // namespace

void Api::log_proof(const Call& call, const Respond& respond) {
    const std::string_view format = call.query("format");
    if (!format.empty() && format != "json" && format != "tlog-proof")
        return respond(problem(Error{Code::invalid, "a proof is given as json or as tlog-proof", "format=tlog-proof"}));
    const auto index = index_in(call, parts_.proofs);
    if (!index) return respond(problem(index.error()));
    const auto size = size_in(call, "size");
    if (!size) return respond(problem(size.error()));
    const auto shown = parts_.proofs.inclusion(*index, *size);
    if (!shown) return respond(problem(shown.error()));
    if (format == "tlog-proof") {
        if (shown->proof.checkpoint.empty())
            return respond(problem(
                Error{Code::invalid, "a tlog-proof ends in a checkpoint, and none is of this size", "leave size out"}));
        return respond({.content_type = "text/plain; charset=utf-8", .body = print(shown->proof)});
    }
    JsonWriter json;
    json.begin_object();
    json.member("version", "bulkhead.dev/log-inclusion/v1");
    json.member("index", static_cast<std::int64_t>(*index));
    json.member("size", static_cast<std::int64_t>(shown->size));
    json.member("entry", to_hex(shown->entry));
    json.member("root", to_base64(bytes_of(shown->root)));
    write_hashes(json, "proof", shown->proof.hashes);
    if (!shown->proof.checkpoint.empty()) json.member("checkpoint", shown->proof.checkpoint);
    json.end_object();
    respond({.body = json.take()});
}

void Api::log_consistency(const Call& call, const Respond& respond) {
    if (call.query("from").empty())
        return respond(problem(Error{Code::invalid, "consistency leads from one size to another",
                                     "?from=M, the size of the checkpoint you have"}));
    const auto from = size_in(call, "from"), to = size_in(call, "to");
    if (!from || !to) return respond(problem(!from ? from.error() : to.error()));
    const auto shown = parts_.proofs.consistency(**from, *to);
    if (!shown) return respond(problem(shown.error()));
    JsonWriter json;
    json.begin_object();
    json.member("version", "bulkhead.dev/log-consistency/v1");
    json.member("from", static_cast<std::int64_t>(shown->sizes.older));
    json.member("to", static_cast<std::int64_t>(shown->sizes.newer));
    json.member("fromRoot", to_base64(bytes_of(shown->older_root)));
    json.member("toRoot", to_base64(bytes_of(shown->newer_root)));
    write_hashes(json, "proof", shown->hashes);
    if (!shown->checkpoint.empty()) json.member("checkpoint", shown->checkpoint);
    json.end_object();
    respond({.body = json.take()});
}

void Api::log_key(const Call&, const Respond& respond) {
    respond({.content_type = "text/plain; charset=utf-8", .body = print(parts_.rotation.key()) + "\n"});
}

void Api::log_keys(const Call&, const Respond& respond) { respond({.body = parts_.rotation.history()}); }

void Api::rotate_log_key(const Call& call, const Respond& respond) {
    const auto key = parts_.rotation.rotate(call.caller.subject);
    if (!key) return respond(problem(key.error()));
    JsonWriter json;
    json.begin_object();
    json.member("key", print(*key));
    json.end_object();
    respond({.body = json.take()});
}

}  // namespace bulkhead::shell
