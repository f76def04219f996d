// A log of two leaves, for tests: the key of a node, and what the node found when it attacked its own fences.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/evidence/certificate.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/evidence/fabric_statement.hpp"
#include "bulkhead/evidence/keys_test.hpp"
#include "bulkhead/evidence/lab_key.hpp"
#include "bulkhead/evidence/merkle.hpp"

namespace bulkhead::evidence {

inline FabricStatement some_fabric_test() {
    FabricStatement statement{.node = "node-1", .nic = "0000:3b:00.0"};
    statement.fence = FabricFence::nic;
    statement.began = Instant{1'000};
    statement.ended = Instant{9'000};
    statement.honest_passes = true;
    statement.attempts = {{"forged-mac", "a frame", AttemptEnd::stopped, "the NIC"},
                          {"forged-gid", "a frame", AttemptEnd::got_through, {}},
                          {"raw-ip-socket", "a socket", AttemptEnd::not_tried, "the tenant is root there"}};
    statement.grade = Grade::emulated;
    statement.boot = "boot-1";
    statement.ticket = 7;
    statement.agent_version = "0.1.0";
    return statement;
}

struct FabricLog {
    SigningKey log_key = key_of_seed('L'), node_key = key_of_seed('n'), lab_key = key_of_seed('B');
    VerifierKey verifier{"log.example/fleet", log_key.public_key()};

    // Under the log's own key; under its lab's, as servers sign what no hardware did.
    Certificate certificate_of(const Record& record, bool by_lab = true) const {
        const std::string salt(salt_size, 's');
        const std::string key = payload_of(key_added(Instant{1}, "core", "node-1", node_key.public_key()));
        const std::string tested = payload_of(record);
        const Hash key_entry = commit_to(salt, key), test_entry = commit_to(salt, tested);
        const Hash first = leaf_hash(bytes_of(key_entry)), second = leaf_hash(bytes_of(test_entry));
        const Hash root = node_hash(first, second);
        Certificate certificate{.record = proven_leaf(1, salt, tested, std::vector<Hash>{first}), .checkpoint = {}};
        certificate.key = proven_leaf(0, salt, key, std::vector<Hash>{second});
        certificate.checkpoint = sign_checkpoint({.origin = verifier.name, .size = 2, .root = root}, log_key);
        if (!by_lab) return certificate;
        Note introduction = introduced({lab_name(verifier.name), lab_key.public_key()});
        sign_note(introduction, verifier.name, log_key);
        certificate.lab = print(introduction);
        certificate.checkpoint = signed_by_lab(parse_note(certificate.checkpoint).value().text, verifier.name, lab_key);
        return certificate;
    }
    static Record record_of(const FabricStatement& statement, const SigningKey& by) {
        Record record{.kind = RecordKind::fabric_tested, .at = Instant{2}, .actor = "node:node-1"};
        record.node = "node-1";
        record.unit = "nic 0000:3b:00.0";
        const std::string text = fabric_statement_text(statement);
        record.detail["found"] = std::string{word(summary_of(statement, text).found)};
        record.grade = statement.grade;
        record.evidence = sign_statement(by, text);
        return record;
    }
};

}  // namespace bulkhead::evidence
