#include "bulkhead/evidence/record.hpp"

#include <fmt/core.h>

#include "bulkhead/evidence/text.hpp"

namespace bulkhead::evidence {

namespace {

constexpr std::string_view public_key_field = "publicKey", key_id_field = "key";

}  // namespace

std::string payload_of(Record record) { return compact_text(std::move(record)); }

Result<Record> read_record(std::string_view payload) { return read_text<Record>("record", payload); }

Record key_added(Instant at, std::string_view actor, std::string_view node, const PublicKey& key) {
    Record record{.kind = RecordKind::key_added, .at = at};
    record.actor = actor;
    record.node = node;
    record.detail.emplace(key_id_field, key_id(key));
    record.detail.emplace(public_key_field, print(key));
    return record;
}

Result<PublicKey> key_of(const Record& key_added) {
    if (key_added.kind != RecordKind::key_added)
        return fail(Code::invalid, fmt::format("a record of kind {} adds no key", word(key_added.kind)),
                    "give the record of kind key-added");
    const auto text = key_added.detail.find(std::string{public_key_field});
    if (text == key_added.detail.end())
        return fail(Code::invalid, fmt::format("the record has no {} in its detail", public_key_field),
                    "give the record that the control plane wrote");
    return parse_public_key(text->second);
}

}  // namespace bulkhead::evidence
