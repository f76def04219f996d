// What the log can show: records as they were committed, and certificates that anyone can check without us. Reads the
// log through a connection of its own, and only as far as it has been published.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bulkhead/audit/tile_reader.hpp"
#include "bulkhead/evidence/certificate_list.hpp"
#include "bulkhead/store/reader.hpp"

namespace bulkhead::shell {

class Certificates {
public:
    // Who signs: the log, whose checkpoints are read, and its lab (decision 0039).
    struct Signers {
        std::string origin;
        evidence::SigningKey log, lab;
    };
    // `secret`: the fleet's, from which the salts of tenants' pseudonyms follow.
    Certificates(store::Options store, std::string tiles, const Signers& signers, std::string secret);
    ~Certificates();

    struct Page {
        std::size_t limit = 100;
        std::optional<std::int64_t> from{};  // a leaf: this one and older ones; none: the newest
    };
    // Of wipes on record, and of tests of fences, the newest first. `not_found` when there is none.
    // `tenant`, here and below: only of what this tenant left; empty: of everything.
    Result<std::vector<evidence::Certificate>> of_node(const std::string& name, std::size_t limit,
                                                       const std::string& tenant = {});
    // Of every wipe on record of what the lease had; what it had, and what no wipe is on record of. Pages after the
    // first have certificates alone. `not_found` when nothing was wiped.
    Result<evidence::CertificateList> of_lease(const std::string& name, const Page& page,
                                               const std::string& tenant = {});

    // Of one record, whatever it says. `not_found` until it is published.
    Result<evidence::Certificate> of_leaf(std::int64_t index);
    // Who is called by this pseudonym, as far as the log tells; nothing for any other name.
    std::optional<evidence::TenantOpening> opening(const std::string& pseudonym);
    // By which the log's wipes call this tenant.
    std::string pseudonym_of(const std::string& tenant) const;
    // While the log's key is replaced both introduce the lab's, so that certificates of that time hold under either.
    void introduce_lab_by(const evidence::SigningKey& next);
    void trust(evidence::VerifierKey log);  // the log has another key
    Result<std::int64_t> committed();       // how many leaves the log has

    // Leaves from an index on, whether published yet or not.
    Result<std::vector<Leaf>> leaves(std::int64_t first, std::int64_t count);
    // What is one tenant's business, counted by itself: where a record stands in the
    // log of everybody is nothing a tenant needs in order to read it.
    Result<std::vector<Leaf>> leaves_of(const std::string& tenant, std::int64_t first, std::int64_t count);

private:
    Result<store::Reader*> reader();
    Result<std::int64_t> leaves_committed();
    void wait_for_what_is_committed();
    std::optional<evidence::TenantOpening> known_opening(const std::string& pseudonym) const;
    Result<> index_up_to(std::int64_t size);
    Result<const audit::TileReader*> tiles();
    evidence::Certificate sealed(evidence::ProvenLeaf record, const std::string& note) const;
    Result<evidence::ProvenLeaf> prove(std::int64_t index, std::uint64_t size);
    Result<> add_key(evidence::Certificate& certificate, const evidence::Record& record, std::uint64_t size);
    void index(std::int64_t index, const evidence::Record& record, const std::string& whose);
    struct Tree {  // as it is published
        std::string note;
        std::int64_t size = 0;
    };
    Result<Tree> newest_tree();
    Result<evidence::Certificate> certified(std::int64_t index, const Tree& tree);
    struct Wipe {
        std::int64_t index = 0;
        std::string tenant;  // by pseudonym
        std::string unit;    // of a wipe
    };
    // What became of a unit that was to be wiped, other than a wipe.
    struct Setback {
        std::int64_t index = 0;
        evidence::RecordKind kind{};
        std::string unit, tenant, lease, why;
        std::optional<std::string> gone{};  // another is in the place of this one
    };
    // A unit was given to a lease, or given up with its node.
    struct HandedOn {
        std::int64_t index = 0;
        std::string unit;  // empty: all of the node, which was removed
        std::string lease{};
        bool shared = false;
    };
    struct LeaseEntry {
        std::int64_t index = 0;
        std::string tenant;  // by pseudonym
    };
    std::vector<Wipe> wipes_of(const std::string& name, const evidence::LeaseOnRecord* lease, std::int64_t size) const;
    Result<> add_account(evidence::CertificateList& list, const evidence::LeaseOnRecord& lease,
                         const std::vector<Wipe>& wipes, const Tree& tree);
    std::vector<std::int64_t> ends_of(const evidence::LeaseUnit& unit, const evidence::LeaseOnRecord& lease) const;
    const Setback* setback_of(const evidence::LeaseUnit& unit, const evidence::LeaseOnRecord& lease,
                              std::int64_t size) const;

    const store::Options store_;
    const std::string tiles_, secret_;
    const evidence::SigningKey lab_;

    std::mutex mutex_;
    evidence::VerifierKey log_;
    evidence::Note lab_introduced_;
    std::optional<audit::TileReader> reader_of_tiles_;
    std::unique_ptr<store::Reader> reader_;
    std::int64_t indexed_ = 0;
    std::map<std::string, std::vector<Wipe>> by_lease_, by_node_;
    std::map<std::string, std::vector<Setback>> setbacks_;        // by node
    std::map<std::string, std::vector<HandedOn>> handed_on_;      // by node
    std::map<std::string, LeaseEntry> leases_;                    // where it stands what they consist of
    std::map<std::string, std::int64_t> lifted_;                  // by pseudonym: where its last hold ended
    std::map<std::string, std::vector<std::int64_t>> by_tenant_;  // by pseudonym: everything that is its business
    std::set<std::string> named_;                                 // tenants, as the log names them
    std::map<std::string, std::string> tenants_;                  // the same, by pseudonym
    std::map<std::string, std::vector<std::int64_t>> keys_;       // by node and key id: where it was added
};

}  // namespace bulkhead::shell
