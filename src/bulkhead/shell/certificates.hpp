// What the log can show: records as they were committed, and certificates that anyone can check without us. Reads the
// log through a connection of its own, and only as far as it has been published.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bulkhead/evidence/certificate.hpp"
#include "bulkhead/store/reader.hpp"

namespace bulkhead::shell {

class Certificates {
public:
    // `secret` is the store's: leases are signed for by their keys, and their names follow from it.
    Certificates(store::Options store, std::string tiles, evidence::VerifierKey log);
    ~Certificates();

    enum class About : std::uint8_t { lease, node };
    // Of every wipe on record, the newest first, at most `limit`. `not_found` when there is none.
    Result<std::vector<evidence::Certificate>> of(About about, const std::string& name, std::size_t limit);

    // Leaves from an index on, whether published yet or not.
    Result<std::vector<Leaf>> leaves(std::int64_t first, std::int64_t count);

private:
    Result<store::Reader*> reader();
    Result<std::int64_t> leaves_committed();
    void wait_for_what_is_committed();
    Result<> index_up_to(std::int64_t size);
    Result<evidence::ProvenLeaf> prove(std::int64_t index, std::uint64_t size);

    const store::Options store_;
    const std::string tiles_;
    const evidence::VerifierKey log_;

    std::mutex mutex_;
    std::unique_ptr<store::Reader> reader_;
    std::int64_t indexed_ = 0;
    std::map<std::string, std::vector<std::int64_t>> by_lease_, by_node_;  // wipes
    std::map<std::string, std::vector<std::int64_t>> keys_;                // by node and key id: where it was added
};

}  // namespace bulkhead::shell
