#include "bulkhead/shell/certificates.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "bulkhead/audit/tile_reader.hpp"
#include "bulkhead/evidence/record.hpp"

namespace bulkhead::shell {

namespace {

constexpr std::chrono::milliseconds checkpoint_within{500};  // a disk that refuses it keeps nobody waiting for long

struct Signed {
    std::string note;
    evidence::Checkpoint checkpoint;
};

Result<Signed> newest_of(const audit::TileReader& tiles, const evidence::VerifierKey& log) {
    auto note = tiles.note();
    if (!note) return std::unexpected(note.error());
    auto checkpoint = evidence::open_checkpoint(*note, log);
    if (!checkpoint) return std::unexpected(checkpoint.error());
    return Signed{*std::move(note), *std::move(checkpoint)};
}

}  // namespace

Certificates::Certificates(store::Options store, std::string tiles, const Signers& signers, std::string secret)
    : store_{std::move(store)},
      tiles_{std::move(tiles)},
      secret_{std::move(secret)},
      lab_{signers.lab},
      log_{signers.origin, signers.log.public_key()},
      lab_introduced_{evidence::introduced({evidence::lab_name(signers.origin), signers.lab.public_key()})} {
    sign_note(lab_introduced_, signers.origin, signers.log);
}
Certificates::~Certificates() = default;

Result<store::Reader*> Certificates::reader() {
    if (!reader_) {
        auto opened = store::Reader::open(store_);
        if (!opened) return std::unexpected(opened.error());
        reader_ = std::make_unique<store::Reader>(*std::move(opened));
    }
    return reader_.get();
}

Result<std::vector<Leaf>> Certificates::leaves(std::int64_t first, std::int64_t count) {
    const std::lock_guard lock{mutex_};
    const auto from = reader();
    if (!from) return std::unexpected(from.error());
    auto found = (*from)->leaves(first, count);
    if (!found) reader_.reset();  // a connection that failed is not trusted again
    return found;
}

Result<std::int64_t> Certificates::leaves_committed() {
    const auto from = reader();
    if (!from) return std::unexpected(from.error());
    const auto position = (*from)->position();
    if (position) return position->log_size;
    reader_.reset();
    return std::unexpected(position.error());
}

// The log only grows, so each leaf is looked at once.
Result<> Certificates::index_up_to(std::int64_t size) {
    constexpr std::int64_t at_once = 1000;
    const auto from = reader();
    if (!from) return std::unexpected(from.error());
    while (indexed_ < size) {
        const auto leaves = (*from)->leaves(indexed_, std::min(at_once, size - indexed_));
        if (!leaves) {
            reader_.reset();
            return std::unexpected(leaves.error());
        }
        if (leaves->empty()) break;
        for (const Leaf& leaf : *leaves) {
            ++indexed_;
            if (leaf.payload.empty()) continue;  // lost with a restore
            const auto record = evidence::read_record(leaf.payload);
            if (!record) continue;
            if (!record->tenant.empty() && !evidence::is_pseudonym(record->tenant) &&
                named_.insert(record->tenant).second)
                tenants_.emplace(pseudonym_of(record->tenant), record->tenant);
            // Some records name a tenant, others call it by its pseudonym: it is one tenant.
            const std::string whose = record->tenant.empty() || evidence::is_pseudonym(record->tenant)
                                          ? record->tenant
                                          : pseudonym_of(record->tenant);
            if (!whose.empty()) by_tenant_[whose].push_back(leaf.index);
            // Who takes a name up that was given back is somebody else, and begins with nothing.
            if (record->kind == evidence::RecordKind::deleted && record->object == "Tenant/" + record->tenant)
                by_tenant_.erase(whose);
            index(leaf.index, *record, whose);
        }
    }
    return {};
}

void Certificates::index(std::int64_t index, const evidence::Record& record, const std::string& whose) {
    using enum evidence::RecordKind;
    switch (record.kind) {
        case wiped: {
            const Wipe wipe{index, whose, record.unit};
            if (!record.lease.empty()) by_lease_[record.lease].push_back(wipe);
            if (!record.node.empty()) by_node_[record.node].push_back(wipe);
            return;
        }
        case fabric_tested:
            by_node_[record.node].push_back({index, {}, {}});
            return;
        case key_added:
            if (const auto key = evidence::key_of(record))
                keys_[record.node + '/' + evidence::key_id(*key)].push_back(index);
            return;
        case lease_units:
            leases_[record.lease] = {index, whose};
            if (const auto units = evidence::units_of(record))
                for (const evidence::LeaseUnit& one : *units)
                    handed_on_[one.node].push_back({index, one.unit, record.lease, one.shared});
            return;
        case deleted:
            if (constexpr std::string_view node = "GpuNode/"; record.object.starts_with(node))
                handed_on_[record.object.substr(node.size())].push_back({index, {}});
            return;
        case hold_lifted:
            lifted_[whose] = index;
            return;
        case wipe_failed:
        case quarantined:
        case released_from_quarantine:
        case held: {
            if (record.node.empty() || record.unit.empty()) return;  // the order to hold, not what came of it
            Setback one{index, record.kind, record.unit, whose, record.lease, {}};
            if (const auto why = record.detail.find("why"); why != record.detail.end()) one.why = why->second;
            if (const auto gone = record.detail.find("gone"); gone != record.detail.end()) one.gone = gone->second;
            setbacks_[record.node].push_back(std::move(one));
            return;
        }
        default:
            return;
    }
}

std::string Certificates::pseudonym_of(const std::string& tenant) const {
    return evidence::pseudonym(evidence::opening_of(secret_, tenant));
}

std::optional<evidence::TenantOpening> Certificates::known_opening(const std::string& pseudonym) const {
    const auto found = tenants_.find(pseudonym);
    if (found == tenants_.end()) return std::nullopt;
    return evidence::opening_of(secret_, found->second);
}

std::optional<evidence::TenantOpening> Certificates::opening(const std::string& pseudonym) {
    const std::lock_guard lock{mutex_};
    if (!tenants_.contains(pseudonym))
        if (const auto size = leaves_committed(); !size || !index_up_to(*size)) return std::nullopt;
    return known_opening(pseudonym);
}

void Certificates::introduce_lab_by(const evidence::SigningKey& next) {
    const std::lock_guard lock{mutex_};
    const bool has_signed = std::ranges::any_of(lab_introduced_.signatures, [&](const evidence::NoteSignature& by) {
        return by.key_id == evidence::note_key_id({log_.name, next.public_key()});
    });
    if (!has_signed) sign_note(lab_introduced_, log_.name, next);
}

void Certificates::trust(evidence::VerifierKey log) {
    const std::lock_guard lock{mutex_};
    log_ = std::move(log);
    std::erase_if(lab_introduced_.signatures,
                  [&](const evidence::NoteSignature& by) { return by.key_id != evidence::note_key_id(log_); });
}

Result<std::int64_t> Certificates::committed() {
    const std::lock_guard lock{mutex_};
    return leaves_committed();
}

Result<evidence::Certificate> Certificates::of_leaf(std::int64_t index) {
    const std::lock_guard lock{mutex_};
    const auto published = tiles();
    if (!published) return std::unexpected(published.error());
    const auto newest = newest_of(**published, log_);
    if (!newest) return std::unexpected(newest.error());
    if (std::cmp_greater_equal(index, newest->checkpoint.size))
        return fail(Code::not_found, fmt::format("entry {} is not published yet", index), "ask again in a moment");
    auto record = prove(index, newest->checkpoint.size);
    if (!record) return std::unexpected(record.error());
    return sealed(*std::move(record), newest->note);
}

// Under the log's own signature, or, where the record says that no hardware did it, under its lab's.
evidence::Certificate Certificates::sealed(evidence::ProvenLeaf record, const std::string& note) const {
    const auto read = evidence::read_record(record.payload);
    evidence::Certificate certificate{.record = std::move(record), .checkpoint = note};
    const auto parsed = evidence::parse_note(note);
    if (!read || !read->grade || !evidence::of_a_lab(*read->grade) || !parsed) return certificate;
    certificate.checkpoint = evidence::signed_by_lab(parsed->text, log_.name, lab_);
    certificate.lab = print(lab_introduced_);
    return certificate;
}

Result<> Certificates::add_key(evidence::Certificate& certificate, const evidence::Record& record, std::uint64_t size) {
    if (!record.evidence) return {};
    const auto key = keys_.find(record.node + '/' + record.evidence->key);
    if (key == keys_.end()) return {};
    // A key that was retired and came back was added more than once.
    const auto after = std::ranges::upper_bound(key->second, certificate.record.index);
    auto added = prove(after == key->second.begin() ? *after : *std::prev(after), size);
    if (!added) return std::unexpected(added.error());
    certificate.key = *std::move(added);
    return {};
}

// Kept: what proofs need of tiles is computed once.
Result<const audit::TileReader*> Certificates::tiles() {
    if (!reader_of_tiles_) {
        auto opened = audit::TileReader::open(tiles_);
        if (!opened) return std::unexpected(opened.error());
        reader_of_tiles_.emplace(*std::move(opened));
    }
    return &*reader_of_tiles_;
}

Result<evidence::ProvenLeaf> Certificates::prove(std::int64_t index, std::uint64_t size) {
    const auto from = reader();
    if (!from) return std::unexpected(from.error());
    const auto leaf = (*from)->leaf(index);
    if (!leaf) return std::unexpected(leaf.error());
    const auto published = tiles();
    if (!published) return std::unexpected(published.error());
    const auto proof = (*published)->prove(static_cast<std::uint64_t>(index), size);
    if (!proof) return std::unexpected(proof.error());
    return evidence::proven_leaf(static_cast<std::uint64_t>(index), leaf->salt, leaf->payload, *proof);
}

// Whoever has seen a lease end may ask a moment before the next checkpoint is signed. Without the lock: others need not
// wait.
void Certificates::wait_for_what_is_committed() {
    const auto [committed, log] = [&] {
        const std::lock_guard lock{mutex_};
        return std::pair{leaves_committed().value_or(0), log_};
    }();
    const auto published = audit::TileReader::open(tiles_);
    for (const auto until = std::chrono::steady_clock::now() + checkpoint_within;
         published && committed > 0 && std::chrono::steady_clock::now() < until;) {
        const auto newest = newest_of(*published, log);
        const std::uint64_t size = newest ? newest->checkpoint.size : 0;
        if (std::cmp_greater_equal(size, committed) || (!newest && newest.error().code != Code::not_found)) return;
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
}

Result<std::vector<Leaf>> Certificates::leaves_of(const std::string& tenant, std::int64_t first, std::int64_t count) {
    const std::lock_guard lock{mutex_};
    const auto committed = leaves_committed();
    if (!committed) return std::unexpected(committed.error());
    if (auto indexed = index_up_to(*committed); !indexed) return std::unexpected(indexed.error());
    std::vector<Leaf> out;
    const auto found = by_tenant_.find(pseudonym_of(tenant));
    if (found == by_tenant_.end()) return out;
    const auto from = reader();
    if (!from) return std::unexpected(from.error());
    for (auto at = static_cast<std::size_t>(first); at < found->second.size() && std::ssize(out) < count; ++at) {
        auto leaf = (*from)->leaf(found->second[at]);
        if (!leaf) {
            reader_.reset();
            return std::unexpected(leaf.error());
        }
        out.push_back(*std::move(leaf));
    }
    return out;
}

// With everything in it looked at.
Result<Certificates::Tree> Certificates::newest_tree() {
    const auto published = tiles();
    if (!published) return std::unexpected(published.error());
    auto newest = newest_of(**published, log_);
    if (!newest) return std::unexpected(newest.error());
    Tree tree{std::move(newest->note), static_cast<std::int64_t>(newest->checkpoint.size)};
    if (auto indexed = index_up_to(tree.size); !indexed) return std::unexpected(indexed.error());
    return tree;
}

Result<evidence::Certificate> Certificates::certified(std::int64_t index, const Tree& tree) {
    const auto size = static_cast<std::uint64_t>(tree.size);
    auto leaf = prove(index, size);
    if (!leaf) return std::unexpected(leaf.error());
    evidence::Certificate certificate = sealed(*std::move(leaf), tree.note);
    const auto record = evidence::read_record(certificate.record.payload);
    if (!record) return certificate;
    certificate.tenant = known_opening(record->tenant);
    const bool shows_a_statement =
        record->kind == evidence::RecordKind::wiped || record->kind == evidence::RecordKind::fabric_tested;
    if (shows_a_statement)
        if (auto added = add_key(certificate, *record, size); !added) return std::unexpected(added.error());
    return certificate;
}

Result<std::vector<evidence::Certificate>> Certificates::of_node(const std::string& name, std::size_t limit,
                                                                 const std::string& tenant) {
    wait_for_what_is_committed();
    const std::lock_guard lock{mutex_};
    const auto tree = newest_tree();
    if (!tree && tree.error().code != Code::not_found) return std::unexpected(tree.error());
    std::vector<evidence::Certificate> out;
    const auto found = by_node_.find(name);
    const auto none = [&] {
        return fail(Code::not_found, fmt::format("no wipe of node {} is on record", name),
                    "ask again when something on it was wiped");
    };
    if (!tree || found == by_node_.end()) return none();
    const std::string whose = tenant.empty() ? std::string{} : pseudonym_of(tenant);
    for (auto it = found->second.rbegin(); it != found->second.rend() && out.size() < limit; ++it) {
        if (it->index >= tree->size || (!whose.empty() && it->tenant != whose)) continue;
        auto certificate = certified(it->index, *tree);
        if (!certificate) return std::unexpected(certificate.error());
        out.push_back(*std::move(certificate));
    }
    if (out.empty()) return none();  // also where there are some, and they are somebody else's
    return out;
}

}  // namespace bulkhead::shell
