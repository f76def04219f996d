// All usage rows as they were committed, ready to be asked about. One thread feeds it, any thread asks. Who asks takes
// in what has come since: a report, however long it takes, keeps no commit waiting.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bulkhead/meter/report.hpp"
#include "bulkhead/shell/loop.hpp"

namespace bulkhead::shell {

class UsageBook final : public Follower {
public:
    void loaded(const Reign& reign) override;
    void committed(const Batch& batch) override;

    // While nothing is added. `contradictions`: rows that could not be taken in, in words.
    using Read = std::function<void(const meter::Ledger&, const std::vector<std::string>& contradictions)>;
    void read(const Read& read);
    // Whether a tenant of this name ever used anything.
    bool knows(const std::string& tenant);

private:
    void take_in_what_came();  // with reading_ held
    void take(const Row& row);

    std::mutex arriving_mutex_;  // held for moments
    std::vector<Row> arrived_;
    bool anew_ = false;  // they are all there are

    std::mutex reading_;
    meter::Ledger ledger_;
    std::set<std::string> tenants_;
    std::vector<std::string> contradictions_;
};

// A running lease as if it ended now.
UsageRow usage_until(const GpuLease& lease, const Pricing& pricing, Instant now);
// Likewise, of capacity that its work keeps from others and does not lease; nothing where it keeps none.
std::optional<UsageRow> kept_until(const GpuLease& lease, const Pricing& pricing, Instant now);

}  // namespace bulkhead::shell
