// What a tenant or auditor takes away: one record of the log, and everything needed to believe it without asking us
// again, given the log's verifier key. JSON; checked offline by `bulkhead verify`, or by anyone with SHA-256 and
// Ed25519.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/evidence/checkpoint.hpp"
#include "bulkhead/evidence/fabric_statement.hpp"
#include "bulkhead/evidence/lab_key.hpp"
#include "bulkhead/evidence/pseudonym.hpp"
#include "bulkhead/evidence/record.hpp"
#include "bulkhead/model/describe.hpp"

namespace bulkhead::evidence {

inline constexpr std::string_view certificate_version = "bulkhead.dev/certificate/v1";

// A leaf, opened, with its way to the root of the checkpoint.
struct ProvenLeaf {
    std::int64_t index = 0;
    std::string salt;                // hex
    std::string payload;             // the very text that was committed to
    std::vector<std::string> proof;  // base64, from the leaf's sibling up

    static constexpr void describe(auto&& field) {
        field("index", &ProvenLeaf::index, "The leaf's place in the log.", Rule{.required = true, .min = 0});
        field("salt", &ProvenLeaf::salt, "The salt of its commitment, in hex.",
              Rule{.required = true, .format = Format::line});
        field("payload", &ProvenLeaf::payload, "The record, as the text that was committed to.",
              Rule{.required = true});
        field("proof", &ProvenLeaf::proof, "The inclusion proof: hashes from the leaf to the root, base64.",
              Rule{.format = Format::line});
    }
    friend bool operator==(const ProvenLeaf&, const ProvenLeaf&) = default;
};

struct Certificate {
    std::string version{certificate_version};
    ProvenLeaf record;
    std::optional<ProvenLeaf> key;  // where the signing node's key was added; with a signed statement only
    std::string checkpoint;         // the signed note under which both are proven
    // Set: no hardware did this. The checkpoint is signed by the log's lab, whose key this note of the log introduces.
    std::optional<std::string> lab{};
    // Who the tenant is that record and statement call by a pseudonym. For the tenant and its operators; without it the
    // certificate proves the same to anybody else, and names nobody.
    std::optional<TenantOpening> tenant{};

    static constexpr void describe(auto&& field) {
        field("version", &Certificate::version, "The form of this certificate.",
              Rule{.required = true, .format = Format::line});
        field("record", &Certificate::record, "What is certified.", Rule{.required = true});
        field("key", &Certificate::key, "The record that added the key of the node that signed the statement.");
        field("checkpoint", &Certificate::checkpoint, "The log's signed checkpoint.", Rule{.required = true});
        field(
            "lab", &Certificate::lab,
            "Of what was simulated or emulated: the checkpoint is signed with the lab's key, and this note of the log "
            "says whose that is.");
        field("tenant", &Certificate::tenant,
              "Who the tenant is that the record calls by a pseudonym. Leave it out when you hand this on.");
    }
    friend bool operator==(const Certificate&, const Certificate&) = default;
};

ProvenLeaf proven_leaf(std::uint64_t index, std::string_view salt, std::string_view payload,
                       std::span<const Hash> proof);
std::string print(const Certificate& certificate);  // indented JSON
Result<Certificate> read_certificate(std::string_view json);

// What whoever checks wants it to be about. Empty: anything.
struct Expectations {
    std::string tenant, lease, node, unit;
    std::optional<Grade> weakest;  // refuse evidence known less well than this
    bool accept_lab = false;       // evidence that is not about hardware will do
};

struct Verified {
    Record record;
    std::uint64_t index = 0;
    Checkpoint checkpoint;                   // which log, and how large it was
    std::optional<WipeStatement> statement;  // set: a wipe is proven, not only that a record is in the log
    std::optional<FabricStatement> fabric;   // set: a node's test of its fences is proven
    std::optional<PublicKey> node_key;       // that signed the statement
    bool of_lab = false;                     // not about hardware; seen only where that was accepted
    std::optional<VerifierKey> lab;          // that signed it; none where an older server signed with the log's key
    std::string tenant;                      // by name; where the certificate does not open it, by its pseudonym
    std::vector<std::string> proven;         // in words, for a person
    std::vector<std::string> not_proven;     // what this certificate cannot show
};

Result<Verified> verify_certificate(const Certificate& certificate, const LogKeys& log,
                                    const Expectations& expected = {});

}  // namespace bulkhead::evidence
