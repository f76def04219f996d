#include "bulkhead/evidence/record.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/evidence/keys_test.hpp"

namespace bulkhead::evidence {
namespace {

WipeStatement some_wipe() {
    WipeStatement wipe;
    wipe.node = "node-7";
    wipe.device = "GPU-5e1f";
    wipe.model = "h200-141gb-sxm5";
    wipe.unit = "gpu3/slices 4-7";
    wipe.lease = "lease-81";
    wipe.tenants = {"acme", "beta"};
    wipe.method = "overwrite";
    wipe.began = {1'790'000'000'000};
    wipe.ended = {1'790'000'004'250};
    wipe.bytes = 75'161'927'680;
    wipe.bytes_verified = 75'161'927'680;
    wipe.ticket = -17;
    wipe.result = WipeResult::verified;
    wipe.grade = Grade::simulated;
    wipe.agent_version = "0.1.0";
    return wipe;
}

TEST(Record, is_compact_json_in_the_order_of_its_description) {
    Record record{.kind = RecordKind::lease_active, .at = {1'790'000'000'000}};
    record.actor = "node:node-7";
    record.tenant = "acme";
    record.lease = "lease-81";
    record.detail = {{"b", "two words"}, {"a", "\"quoted\"\n"}};
    EXPECT_EQ(payload_of(record),
              R"({"kind":"lease-active","at":"2026-09-21T14:13:20Z","actor":"node:node-7","tenant":"acme",)"
              R"("lease":"lease-81","detail":{"a":"\"quoted\"\n","b":"two words"}})");
    EXPECT_EQ(read_record(payload_of(record)), record);
}

TEST(Record, every_kind_has_its_own_word) {
    std::set<std::string_view> seen;
    for (const RecordKind kind : every<RecordKind>()) {
        EXPECT_TRUE(seen.insert(word(kind)).second) << word(kind);
        EXPECT_FALSE(word(kind).empty());
        EXPECT_EQ(read_record(payload_of({.kind = kind, .actor = "core"}))->kind, kind);
    }
    EXPECT_EQ(word(RecordKind::usage), "usage");
    EXPECT_EQ(word(RecordKind::key_added), "key-added");
    EXPECT_EQ(word(RecordKind::released_from_quarantine), "released-from-quarantine");
}

TEST(Record, carries_signed_evidence_unchanged) {
    const SigningKey key = key_of_seed('n');
    Record record{.kind = RecordKind::wiped, .at = {5}, .actor = "node:node-7"};
    record.grade = Grade::simulated;
    record.evidence = sign_statement(key, statement_text(some_wipe()));
    const Record again = read_record(payload_of(record)).value();
    EXPECT_EQ(again, record);
    EXPECT_TRUE(verify_statement(key.public_key(), *again.evidence));
    EXPECT_EQ(read_statement(again.evidence->statement), some_wipe());
}

TEST(Record, what_is_not_a_record_is_refused_with_the_place) {
    const std::string good = payload_of({.kind = RecordKind::started, .actor = "core"});
    EXPECT_TRUE(read_record(good));
    for (const std::string_view wrong :
         {"", "{}", "[]", "kind: started\nat: 2026-01-01T00:00:00Z\nactor: core\n", "{\"kind\":\"started\"}",
          R"({"kind":"exploded","at":"2026-01-01T00:00:00Z","actor":"core"})",
          R"({"kind":"started","at":"yesterday","actor":"core"})",
          R"({"kind":"started","at":"2026-01-01T00:00:00Z","actor":"core","colour":"red"})",
          R"({"kind":"started","at":"2026-01-01T00:00:00Z","actor":""})",
          R"({"kind":"started","at":"2026-01-01T00:00:00Z","actor":"core"}{})"})
        EXPECT_EQ(read_record(wrong).error().code, Code::invalid) << wrong;
    EXPECT_EQ(
        read_record(R"({"kind":"started","at":"2026-01-01T00:00:00Z","actr":"core","actor":"core"})").error().what,
        "record:1:47: unknown field \"actr\"");
}

RC_GTEST_PROP(Record, any_record_can_be_logged_and_read_back,
              (const std::string& actor, const std::string& unit, const std::map<std::string, std::string>& detail)) {
    const auto at = *rc::gen::inRange<std::int64_t>(0, 4'000'000'000'000);
    Record record{.kind = RecordKind::refused, .at = {at}};
    record.actor = actor;
    record.unit = unit;
    record.detail = detail;
    const auto again = read_record(payload_of(record));
    RC_ASSERT(again.has_value());
    RC_ASSERT(again->at == record.at);
    RC_ASSERT(again->detail.size() == detail.size());
    RC_ASSERT(payload_of(*again) == payload_of(record));
}

TEST(Record, of_a_key_gives_the_key_back) {
    const PublicKey key = key_of_seed('n').public_key();
    const Record added = key_added({7}, "api:admin", "node-7", key);
    EXPECT_EQ(added.node, "node-7");
    EXPECT_EQ(added.detail.at("key"), key_id(key));
    EXPECT_EQ(key_of(read_record(payload_of(added)).value()), key);

    Record spoiled = added;
    spoiled.detail["publicKey"] = "AAAA";
    EXPECT_FALSE(key_of(spoiled));
    spoiled.detail.erase("publicKey");
    EXPECT_FALSE(key_of(spoiled));
    spoiled = added;
    spoiled.kind = RecordKind::key_retired;
    EXPECT_FALSE(key_of(spoiled));
}

TEST(Statement, is_signed_under_a_prefix_of_its_own) {
    const SigningKey key = key_of_seed('n');
    const std::string text = statement_text(some_wipe());
    const SignedEvidence evidence = sign_statement(key, text);
    EXPECT_TRUE(verify(key.public_key(), "bulkhead.dev/evidence/v1\n" + text, *from_base64(evidence.signature)));
    SignedEvidence bare = evidence;
    bare.signature = to_base64(key.sign(text));
    EXPECT_EQ(verify_statement(key.public_key(), bare).error().code, Code::corrupt)
        << "a signature without the prefix could be of something else";
}

TEST(Statement, of_an_agent_that_knew_less_verifies_as_ever) {
    const std::string older =
        R"({"node":"node-7","device":"GPU-5e1f","unit":"gpu3/slices 4-7","tenants":["acme"],"method":"overwrite",)"
        R"("began":"2026-09-21T14:13:20Z","ended":"2026-09-21T14:13:24Z","bytes":4096,"bytesVerified":4096,)"
        R"("result":"verified","grade":"simulated","agentVersion":"0.1.0"})";
    const SigningKey key = key_of_seed('n');
    EXPECT_TRUE(verify_statement(key.public_key(), sign_statement(key, older)));
    const auto read = read_statement(older);
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(read->serial + read->board + read->driver + read->vbios, "");
    EXPECT_EQ(statement_text(*read), older) << "and what it did not know is not written either";
}

TEST(Statement, no_other_key_and_no_other_text_fits) {
    const SigningKey key = key_of_seed('n');
    const SignedEvidence evidence = sign_statement(key, statement_text(some_wipe()));
    EXPECT_TRUE(verify_statement(key.public_key(), evidence));
    EXPECT_EQ(verify_statement(key_of_seed('m').public_key(), evidence).error().code, Code::denied);
    SignedEvidence changed = evidence;
    changed.statement += ' ';
    EXPECT_EQ(verify_statement(key.public_key(), changed).error().code, Code::corrupt);
    changed = evidence;
    changed.signature = "nonsense";
    EXPECT_EQ(verify_statement(key.public_key(), changed).error().code, Code::corrupt);
}

}  // namespace
}  // namespace bulkhead::evidence
