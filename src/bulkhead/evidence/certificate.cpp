#include "bulkhead/evidence/certificate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bulkhead/codec/diagnostic.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/evidence/merkle.hpp"
#include "bulkhead/evidence/text.hpp"

namespace bulkhead::evidence {

namespace {

std::unexpected<Error> within(std::string_view place, const Error& error) {
    return fail(error.code, fmt::format("{}: {}", place, error.what), error.remedy);
}

std::unexpected<Error> mismatch(std::string what, std::string remedy = "do not accept this certificate") {
    return fail(Code::corrupt, std::move(what), std::move(remedy));
}

Result<std::vector<Hash>> proof_of(const ProvenLeaf& leaf) {
    std::vector<Hash> hashes;
    for (const std::string& text : leaf.proof) {
        const auto bytes = from_base64(text);
        const auto hash = bytes ? hash_from(*bytes) : std::nullopt;
        if (!hash)
            return fail(Code::invalid, fmt::format("\"{}\" in the proof is no hash in base64", shortened(text)),
                        "get the certificate again");
        hashes.push_back(*hash);
    }
    return hashes;
}

// The record in a leaf, once the leaf is shown to be in the tree of the checkpoint.
Result<Record> opened(const ProvenLeaf& leaf, const Checkpoint& checkpoint, std::string_view name) {
    const std::string place = fmt::format("the {} at leaf {}", name, leaf.index);
    const auto salt = from_hex(leaf.salt);
    if (!salt || salt->size() != salt_size)
        return fail(Code::invalid, fmt::format("{}: its salt is not 16 bytes in hex", place),
                    "get the certificate again");
    if (leaf.index < 0) return fail(Code::invalid, fmt::format("{}: leaves are counted from 0", place));
    const Result<std::vector<Hash>> proof = proof_of(leaf);
    if (!proof) return within(place, proof.error());
    const Hash entry = commit_to(*salt, leaf.payload);
    const InclusionClaim claim{static_cast<std::uint64_t>(leaf.index), checkpoint.size, leaf_hash(bytes_of(entry)),
                               checkpoint.root};
    if (const Result<> included = verify_inclusion(claim, *proof); !included)
        return within(place + " is not what the log holds there", included.error());
    Result<Record> record = read_record(leaf.payload);
    return record ? std::move(record) : within(place, record.error());
}

// Which tree, and whether the log signed for it or its lab.
struct SignedTree {
    Checkpoint checkpoint;
    std::optional<VerifierKey> lab;
};

Result<SignedTree> signed_tree(const Certificate& certificate, const LogKeys& log) {
    if (certificate.lab) {
        Result<LabCheckpoint> opened = open_lab_checkpoint(certificate.checkpoint, *certificate.lab, log);
        if (!opened) return std::unexpected(opened.error());
        return SignedTree{std::move(opened->checkpoint), std::move(opened->lab)};
    }
    Result<Checkpoint> checkpoint = open_checkpoint(certificate.checkpoint, log);
    if (!checkpoint) return std::unexpected(checkpoint.error());
    return SignedTree{*std::move(checkpoint), std::nullopt};
}

// A lab's key signs for what no hardware did and for nothing else, the log's key for all the rest. What older servers
// gave away under the log's key is let through where nobody wants hardware anyway.
Result<> grade_fits_key(const Record& record, const SignedTree& tree, const Expectations& expected) {
    const std::string_view graded = record.grade ? word(*record.grade) : "not at all";
    const bool lab = record.grade && of_a_lab(*record.grade);
    if (tree.lab && !lab)
        return mismatch(
            fmt::format("the record is graded {}, and the lab's key {} signed for it", graded, print(*tree.lab)));
    if (!lab || expected.accept_lab) return {};
    if (!tree.lab)
        return mismatch(fmt::format("the record is graded {}, and signed with the log's own key", graded),
                        "ask its server for it again: it signs what no hardware did with its lab's key; or say that "
                        "you accept a lab's evidence");
    return fail(Code::denied,
                fmt::format("this was {}, and is signed with the lab's key {}: it is not about hardware", graded,
                            print(*tree.lab)),
                "say that you accept a lab's evidence, if that is what you want");
}

struct Agreement {
    std::string_view what;
    const std::string &left, &right;
};

Result<> agree(std::string_view says, std::span<const Agreement> pairs, std::string_view but) {
    for (const auto& [what, left, right] : pairs)
        if (left != right)
            return mismatch(
                fmt::format("{} {} \"{}\", and {} \"{}\"", says, what, shortened(left), but, shortened(right)));
    return {};
}

// The tenant's name, as far as the certificate gives it.
Result<std::string> tenant_of(const Certificate& certificate, const Record& record) {
    if (!certificate.tenant) return record.tenant;
    if (!is_pseudonym(record.tenant) || pseudonym(*certificate.tenant) != record.tenant)
        return mismatch(fmt::format("the certificate says its tenant is \"{}\", and the record does not",
                                    shortened(certificate.tenant->name)));
    return certificate.tenant->name;
}

Result<> check_expectations(const Record& record, const std::string& tenant, const Expectations& expected) {
    if (!expected.tenant.empty() && is_pseudonym(tenant) && !is_pseudonym(expected.tenant))
        return mismatch(fmt::format("the record names its tenant by the pseudonym {} alone", tenant),
                        "ask the tenant, or the operator, for the certificate that opens it");
    const Agreement wanted[] = {{"tenant", tenant, expected.tenant},
                                {"lease", record.lease, expected.lease},
                                {"node", record.node, expected.node},
                                {"unit", record.unit, expected.unit}};
    for (const Agreement& one : wanted)
        if (!one.right.empty() && one.left != one.right)
            return mismatch(fmt::format("the record is about {} \"{}\", and you asked about \"{}\"", one.what,
                                        shortened(one.left), one.right),
                            "ask for the certificate of what you mean");
    if (!expected.weakest) return {};
    if (!record.grade)
        return mismatch(
            fmt::format("the record has no grade, and you asked for {} or better", word(*expected.weakest)));
    if (*record.grade > *expected.weakest)
        return mismatch(fmt::format("the record is graded {}, and you asked for {} or better", word(*record.grade),
                                    word(*expected.weakest)));
    return {};
}

// The key with which the record's statement must have been signed: the log had it from the same node, and before.
Result<PublicKey> key_for(const Certificate& certificate, const Record& record, const Checkpoint& checkpoint) {
    if (!certificate.key)
        return mismatch("the record has a signed statement, and the certificate does not show whose key signed it");
    const Result<Record> added = opened(*certificate.key, checkpoint, "key record");
    if (!added) return std::unexpected(added.error());
    const Result<PublicKey> key = key_of(*added);
    if (!key) return within("the key record", key.error());
    if (const Result<> same = agree("the record is about", std::array{Agreement{"node", record.node, added->node}},
                                    "the key was added for node");
        !same)
        return std::unexpected(same.error());
    if (certificate.key->index >= certificate.record.index)
        return mismatch(fmt::format("the key was added at leaf {}, after the record at leaf {}", certificate.key->index,
                                    certificate.record.index));
    return *key;
}

Result<WipeStatement> statement_of(const Record& record, const PublicKey& key) {
    if (const Result<> signed_ = verify_statement(key, *record.evidence); !signed_)
        return within(fmt::format("the statement of node {}", record.node), signed_.error());
    Result<WipeStatement> statement = read_statement(record.evidence->statement);
    if (!statement) return statement;
    const Agreement pairs[] = {{"node", record.node, statement->node},
                               {"unit", record.unit, statement->unit},
                               {"lease", record.lease, statement->lease}};
    if (const Result<> same = agree("the record is about", pairs, "the signed statement says"); !same)
        return std::unexpected(same.error());
    const bool of_nobody = record.tenant.empty() && statement->tenants.empty();
    if (!of_nobody && std::ranges::find(statement->tenants, record.tenant) == statement->tenants.end())
        return mismatch(fmt::format("the record is about tenant '{}', whom the signed statement does not name",
                                    shortened(record.tenant)));
    if (record.grade != statement->grade)
        return mismatch(fmt::format("the record is graded {}, and the signed statement {}",
                                    record.grade ? word(*record.grade) : "not at all", word(statement->grade)));
    if (statement->result != WipeResult::verified)
        return mismatch(
            fmt::format("the record says wiped, and the signed statement says {}", word(statement->result)));
    if (statement->ended < statement->began || statement->bytes_verified > statement->bytes)
        return mismatch(
            "the signed statement contradicts itself: it ended before it began, or verified more than it wiped");
    return statement;
}

Result<FabricStatement> fabric_statement_of(const Record& record, const PublicKey& key) {
    if (const Result<> signed_ = verify_statement(key, *record.evidence); !signed_)
        return within(fmt::format("the statement of node {}", record.node), signed_.error());
    Result<FabricStatement> statement = read_fabric_statement(record.evidence->statement);
    if (!statement) return statement;
    if (statement->fence == FabricFence::off)
        return mismatch("the signed statement is of a test with the fences off, which says nothing of them");
    const std::string nic = "nic " + statement->nic;
    const Agreement pairs[] = {{"node", record.node, statement->node}, {"unit", record.unit, nic}};
    if (const Result<> same = agree("the record is about", pairs, "the signed statement says"); !same)
        return std::unexpected(same.error());
    if (record.grade != statement->grade)
        return mismatch(fmt::format("the record is graded {}, and the signed statement {}",
                                    record.grade ? word(*record.grade) : "not at all", word(statement->grade)));
    const NodeFabricTest test = summary_of(*statement, record.evidence->statement);
    const auto found = record.detail.find("found");
    if (found == record.detail.end() || found->second != word(test.found))
        return mismatch(
            fmt::format("the record does not say what the signed statement comes to: {}", word(test.found)));
    return statement;
}

void say_what_was_tested(Verified& verified) {
    const FabricStatement& of = *verified.fabric;
    const NodeFabricTest test = summary_of(of, verified.record.evidence->statement);
    const auto names = [](const std::vector<std::string>& all) { return fmt::format("{}", fmt::join(all, ", ")); };
    verified.proven.push_back(fmt::format(
        "node {} signed, with key {}, that it attacked the fences of NIC {} ({}, fence {}), and that they are {}",
        of.node, key_id(*verified.node_key), of.nic, of.between.empty() ? "no two ends" : of.between, word(of.fence),
        word(test.found)));
    verified.proven.push_back("that key had been added to the log for this node before");
    if (!test.stopped.empty()) verified.proven.push_back("stopped: " + names(test.stopped));
    if (!test.through.empty()) verified.proven.push_back("GOT THROUGH: " + names(test.through));
    if (!test.why.empty()) verified.not_proven.push_back("that anything was stopped by a fence: " + test.why);
    if (!test.unclear.empty()) verified.not_proven.push_back("by which fence these failed: " + names(test.unclear));
    if (!test.untried.empty()) verified.not_proven.push_back("anything of what was not tried: " + names(test.untried));
    verified.not_proven.push_back(fmt::format("more than its grade says: the result is known as {}", word(of.grade)));
    verified.not_proven.emplace_back(
        "that the node's key had not been retired before: read the log, or ask its operator");
    verified.not_proven.emplace_back("that the fences were the same before or after, or of other functions of the NIC");
}

void say_what_is_proven(Verified& verified) {
    const Record& record = verified.record;
    verified.proven.push_back(fmt::format("the log {} holds this record ({}) at leaf {} of the {} it has signed for",
                                          verified.checkpoint.origin, word(record.kind), verified.index,
                                          verified.checkpoint.size));
    if (verified.of_lab)
        verified.not_proven.push_back(fmt::format(
            "anything about hardware: this was {}, {}", word(*record.grade),
            verified.lab ? fmt::format("and is signed with the lab's key {}", print(*verified.lab))
                         : std::string{"and signed with the log's own key, as was done before labs had one"}));
    if (verified.fabric) return say_what_was_tested(verified);
    if (!verified.statement) {
        verified.not_proven.emplace_back("that anything was wiped: this certificate shows only what was recorded");
        return;
    }
    const WipeStatement& wipe = *verified.statement;
    verified.proven.push_back(fmt::format(
        "node {} signed, with key {}, that {} of device {} was wiped ({}, {} bytes, {} of them read back) and verified",
        wipe.node, key_id(*verified.node_key), wipe.unit, wipe.device, wipe.method, wipe.bytes, wipe.bytes_verified));
    verified.proven.push_back("that key had been added to the log for this node before");
    if (is_pseudonym(record.tenant) && verified.tenant != record.tenant)
        verified.proven.push_back(
            fmt::format("it was {} that had used it, here called {}", verified.tenant, record.tenant));
    if (!wipe.claim.empty())
        verified.proven.push_back(fmt::format("what the node claims for this method: {}", wipe.claim));
    for (const std::string& skipped : wipe.skipped)
        verified.proven.push_back(fmt::format("it was not wiped by {}", skipped));
    if (!wipe.samples.empty())
        verified.not_proven.push_back(fmt::format("that every byte of it is empty: {}", wipe.samples));
    if (wipe.bytes_unreachable > 0)
        verified.not_proven.push_back(
            fmt::format("anything about {} bytes of it that no program can reach", wipe.bytes_unreachable));
    verified.not_proven.push_back(fmt::format("more than its grade says: the result is known as {}", word(wipe.grade)));
    verified.not_proven.emplace_back(
        "that the node's key had not been retired before: read the log, or ask its operator");
    verified.not_proven.emplace_back("what happened to the device after this record");
}

}  // namespace

ProvenLeaf proven_leaf(std::uint64_t index, std::string_view salt, std::string_view payload,
                       std::span<const Hash> proof) {
    ProvenLeaf leaf{
        .index = static_cast<std::int64_t>(index), .salt = to_hex(salt), .payload = std::string{payload}, .proof = {}};
    for (const Hash& hash : proof) leaf.proof.push_back(to_base64(bytes_of(hash)));
    return leaf;
}

std::string print(const Certificate& certificate) { return to_json(certificate); }

Result<Certificate> read_certificate(std::string_view json) {
    json.remove_prefix(std::min(json.find_first_not_of(" \t\r\n"), json.size()));
    Result<Certificate> certificate = read_text<Certificate>("certificate", json);
    if (certificate && certificate->version != certificate_version)
        return fail(Code::invalid,
                    fmt::format("a certificate of version \"{}\"; this program reads {}",
                                shortened(certificate->version), certificate_version),
                    "use the program that belongs to it");
    return certificate;
}

Result<Verified> verify_certificate(const Certificate& certificate, const LogKeys& log, const Expectations& expected) {
    Result<SignedTree> tree = signed_tree(certificate, log);
    if (!tree) return within("the checkpoint", tree.error());
    Result<Record> record = opened(certificate.record, tree->checkpoint, "record");
    if (!record) return std::unexpected(record.error());
    if (const Result<> fits = grade_fits_key(*record, *tree, expected); !fits) return std::unexpected(fits.error());

    Verified verified{.record = std::move(*record),
                      .index = static_cast<std::uint64_t>(certificate.record.index),
                      .checkpoint = std::move(tree->checkpoint),
                      .lab = std::move(tree->lab)};
    verified.of_lab = verified.record.grade && of_a_lab(*verified.record.grade);
    Result<std::string> tenant = tenant_of(certificate, verified.record);
    if (!tenant) return std::unexpected(tenant.error());
    verified.tenant = *std::move(tenant);
    const bool is_wipe = verified.record.kind == RecordKind::wiped;
    if (is_wipe || verified.record.kind == RecordKind::fabric_tested) {
        if (!verified.record.evidence)
            return mismatch(
                fmt::format("the record says {}, and no node has signed for it", is_wipe ? "wiped" : "tested"));
        const Result<PublicKey> key = key_for(certificate, verified.record, verified.checkpoint);
        if (!key) return std::unexpected(key.error());
        verified.node_key = *key;
        if (is_wipe) {
            Result<WipeStatement> statement = statement_of(verified.record, *key);
            if (!statement) return std::unexpected(statement.error());
            verified.statement = std::move(*statement);
        } else {
            Result<FabricStatement> statement = fabric_statement_of(verified.record, *key);
            if (!statement) return std::unexpected(statement.error());
            verified.fabric = std::move(*statement);
        }
    } else if (certificate.key) {
        return mismatch(fmt::format("a record of kind {} needs no key, and the certificate brings one",
                                    word(verified.record.kind)));
    }
    if (const Result<> fits = check_expectations(verified.record, verified.tenant, expected); !fits)
        return std::unexpected(fits.error());
    say_what_is_proven(verified);
    return verified;
}

}  // namespace bulkhead::evidence
