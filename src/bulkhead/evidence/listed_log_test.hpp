// A log in memory, for tests, with leases, their wipes and what failed, of which lists of certificates are made as a
// server makes them.
#pragma once

#include <string>
#include <vector>

#include "bulkhead/evidence/certificate_list.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/evidence/keys_test.hpp"
#include "bulkhead/evidence/merkle.hpp"

namespace bulkhead::evidence {

struct ListedLog {
    ListedLog() { add(key_added({1}, "api:admin", "n0", node_key.public_key())); }

    std::int64_t add(const Record& record) {
        payloads.push_back(payload_of(record));
        hashes.push_back(leaf_hash(bytes_of(commit_to(salt, payloads.back()))));
        return std::ssize(payloads) - 1;
    }
    std::int64_t lease(const std::string& name, const std::vector<LeaseUnit>& units,
                       const std::string& tenant = "~acme") {
        Record record = lease_units(name, units);
        record.tenant = tenant;
        return add(record);
    }
    struct Of {
        std::string unit, lease = "lease-1", device = "GPU-1", tenant = "~acme";
        Grade grade = Grade::silicon;
    };
    std::int64_t wiped(const Of& of) {
        WipeStatement wipe;
        wipe.node = "n0";
        wipe.unit = of.unit;
        wipe.lease = of.lease;
        wipe.tenants = {"~other", of.tenant};
        wipe.device = of.device;
        wipe.method = "overwrite";
        wipe.result = WipeResult::verified;
        wipe.grade = of.grade;
        Record record = about(of, RecordKind::wiped);
        record.evidence = sign_statement(node_key, statement_text(wipe));
        return add(record);
    }
    std::int64_t failed(const Of& of, const std::string& why) {
        Record record = about(of, RecordKind::wipe_failed);
        record.detail["why"] = why;
        return add(record);
    }
    static Record about(const Of& of, RecordKind kind) {
        Record record{.kind = kind, .at = {9}, .actor = "node:n0"};
        record.node = "n0";
        record.unit = of.unit;
        record.lease = of.lease;
        record.tenant = of.tenant;
        record.grade = of.grade;
        return record;
    }

    Hash root(std::size_t begin, std::size_t end) const {
        Frontier frontier;
        for (std::size_t i = begin; i < end; ++i) frontier.append(hashes[i]);
        return frontier.root();
    }
    ProvenLeaf proven(std::int64_t index) const {
        const auto at = static_cast<std::uint64_t>(index);
        const auto proof = prove_inclusion(at, payloads.size(), [&](unsigned level, std::uint64_t i) -> Result<Hash> {
            return root(i << level, (i + 1) << level);
        });
        return proven_leaf(at, salt, payloads[at], *proof);
    }
    Certificate certify(std::int64_t index, bool with_key) const {
        Certificate made{.record = proven(index), .key = {}, .checkpoint = {}};
        if (with_key) made.key = proven(0);
        made.checkpoint = sign_checkpoint({origin, payloads.size(), root(0, payloads.size()), {}}, log_key);
        return made;
    }
    struct Parts {
        std::int64_t lease = -1;
        std::vector<std::int64_t> wipes, failed{};
        std::vector<Unwiped> unwiped{};
    };
    CertificateList list(const Parts& parts) const {
        CertificateList made{
            .version = std::string{lease_certificates_version}, .certificates = {}, .lease = "lease-1"};
        if (parts.lease >= 0) made.consists = certify(parts.lease, false);
        for (const std::int64_t one : parts.wipes) made.certificates.push_back(certify(one, true));
        for (const std::int64_t one : parts.failed) made.failed.push_back(certify(one, false));
        made.unwiped = parts.unwiped;
        return made;
    }
    VerifierKey verifier() const { return {origin, log_key.public_key()}; }

    const std::string origin = "log.example/fleet";
    const SigningKey log_key = key_of_seed('L'), node_key = key_of_seed('n');
    const std::string salt = std::string(16, 's');
    std::vector<std::string> payloads;
    std::vector<Hash> hashes;
};

}  // namespace bulkhead::evidence
