// Figures for Prometheus: of everything for operators, and of one tenant for itself. Counters are kept here and in the
// ledger; everything else is asked for when somebody looks. docs/metrics.md says what each figure means.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/auth/token.hpp"
#include "bulkhead/shell/catalog.hpp"
#include "bulkhead/shell/census.hpp"
#include "bulkhead/shell/exposition.hpp"
#include "bulkhead/shell/ledger.hpp"
#include "bulkhead/shell/loop.hpp"
#include "bulkhead/shell/telemetry_board.hpp"

namespace bulkhead::shell {

class Metrics {
public:
    void note_request(std::string_view route, int status, std::int64_t microseconds);
    Ledger& ledger() { return ledger_; }  // a follower of the loop

    struct Sources {
        const Catalog& catalog;
        const Loop& loop;
        Instant now = {};
        std::size_t agents = 0;
        std::uint64_t log_published = 0;
        std::map<std::string, Sampled> samples = {};                         // by node
        std::map<std::string, Instant> node_certificates = {};               // until when they are good, by node
        std::vector<std::pair<std::string, Instant>> own_certificates = {};  // likewise: ca, server
        std::vector<auth::StoredToken> tokens = {};
    };
    std::string text(const Sources& sources);
    // The tenant exists.
    std::string tenant_text(const std::string& tenant, const Sources& sources);

private:
    void tell_requests(Exposition& out);
    Ledger::Books books(const Catalog& catalog);

    struct Count {
        std::uint64_t requests = 0;
        std::int64_t microseconds = 0;
    };
    std::mutex mutex_;
    std::map<std::pair<std::string_view, int>, Count> counts_;  // routes are the table's own words
    Census census_;
    Ledger ledger_;
};

}  // namespace bulkhead::shell
