#include "bulkhead/evidence/key_history.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/evidence/text.hpp"

namespace bulkhead::evidence {

namespace {

const std::string before_field = "before", after_field = "after";

std::unexpected<Error> in_change(std::size_t number, const Error& error) {
    return fail(error.code, fmt::format("change {} of the log's key: {}", number + 1, error.what), error.remedy);
}

Result<VerifierKey> key_in(const Record& record, const std::string& field) {
    const auto text = record.detail.find(field);
    if (text == record.detail.end())
        return fail(Code::invalid, fmt::format("the record has no {} in its detail", field),
                    "give the record that the control plane wrote");
    return parse_verifier_key(text->second);
}

struct ProvenChange {
    KeyChange change;
    std::uint64_t leaf = 0;
};

// What the record says, once both keys have signed a checkpoint over it.
Result<ProvenChange> proven_change(const Certificate& certificate) {
    const Result<Record> read = read_record(certificate.record.payload);
    if (!read) return std::unexpected(read.error());
    const Result<KeyChange> change = key_change_of(*read);
    if (!change) return std::unexpected(change.error());
    for (const VerifierKey& key : {change->before, change->after})
        if (const auto verified = verify_certificate(certificate, key); !verified)
            return std::unexpected(verified.error());
    return ProvenChange{*change, static_cast<std::uint64_t>(certificate.record.index)};
}

}  // namespace

std::string print(const KeyHistory& history) { return to_json(history); }

Result<KeyHistory> read_key_history(std::string_view json) {
    json.remove_prefix(std::min(json.find_first_not_of(" \t\r\n"), json.size()));
    Result<KeyHistory> history = read_text<KeyHistory>("key history", json);
    if (history && history->version != key_history_version)
        return fail(Code::invalid,
                    fmt::format("a key history of version \"{}\"; this program reads {}", shortened(history->version),
                                key_history_version),
                    "use the program that belongs to it");
    return history;
}

Record log_key_rotated(const KeyChange& change) {
    Record record{.kind = RecordKind::log_key_rotated};
    record.detail.emplace(before_field, print(change.before));
    record.detail.emplace(after_field, print(change.after));
    return record;
}

Result<KeyChange> key_change_of(const Record& record) {
    if (record.kind != RecordKind::log_key_rotated)
        return fail(Code::invalid, fmt::format("a record of kind {} changes no key of the log", word(record.kind)),
                    "give the record of kind log-key-rotated");
    Result<VerifierKey> before = key_in(record, before_field), after = key_in(record, after_field);
    if (!before || !after) return std::unexpected(!before ? before.error() : after.error());
    if (before->name != after->name || before->key == after->key)
        return fail(Code::invalid, "the record does not lead from one key of a log to another of the same log",
                    "do not accept it");
    return KeyChange{*std::move(before), *std::move(after)};
}

Result<LogKeys> keys_of(const KeyHistory& history, const VerifierKey& trusted) {
    Result<VerifierKey> first = parse_verifier_key(history.first);
    if (!first) return std::unexpected(first.error());
    std::vector<LogKeys::Term> terms{{*std::move(first)}};
    for (std::size_t i = 0; i < history.rotations.size(); ++i) {
        const Result<ProvenChange> next = proven_change(history.rotations[i]);
        if (!next) return in_change(i, next.error());
        if (next->change.before != terms.back().key)
            return in_change(i, {Code::corrupt, "it does not begin with the key before it", "get the history again"});
        if (terms.size() > 1 && next->leaf <= terms[terms.size() - 2].most)
            return in_change(i, {Code::corrupt,
                                 fmt::format("it is at leaf {}, and the one before it at leaf {}", next->leaf,
                                             terms[terms.size() - 2].most),
                                 "do not accept this history"});
        // A tree of so many leaves does not have the record yet.
        terms.back().most = next->leaf;
        terms.push_back({next->change.after});
    }
    if (std::ranges::none_of(terms, [&](const LogKeys::Term& term) { return term.key == trusted; }))
        return fail(Code::denied, fmt::format("the history does not have the key {}", print(trusted)),
                    "it is of another log, or somebody made it up: ask the log's operator in person");
    return LogKeys{std::move(terms)};
}

}  // namespace bulkhead::evidence
