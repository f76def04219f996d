// All usage there is, kept small: what leases have in common (tenant, class, silicon, prices) is kept once. A row that
// comes again changes nothing; another row under the same name is an error, never an overwrite.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bulkhead/meter/charges.hpp"

namespace bulkhead::meter {

class Ledger {
public:
    struct Terms {
        std::string tenant, account, tenant_class, currency;
        Mechanism mechanism{};
        bool known_mechanism = true;  // rows from before there were prices do not say
        Compliance compliance{};
        std::vector<MeteredUnits> units;
        std::vector<Rate> rates;
        friend bool operator==(const Terms&, const Terms&) = default;
    };
    struct Entry {
        std::string lease, workload;
        Interval time;
        std::uint32_t terms = 0;
        std::int64_t leaf = -1;
        std::vector<Interval> covered;
        std::unique_ptr<const UsageCorrection> correction;
        std::int64_t exclusive = 0;  // of capacity that was kept and not leased: which such row of the lease, from 1
    };

    Ledger();
    ~Ledger();
    Ledger(Ledger&&) noexcept;
    Ledger& operator=(Ledger&&) noexcept;

    // True: it is new. False: it was there. `conflict`: another one was there by that name.
    Result<bool> add(const UsageRow& row);
    // The lease's own row; null: it has none yet.
    const Entry* find(std::string_view lease) const { return find(lease, {}); }
    const Entry* find(std::string_view lease, std::string_view correction, std::int64_t exclusive = 0) const;

    const std::vector<Entry>& entries() const { return entries_; }
    const Terms& terms_of(const Entry& entry) const { return terms_[entry.terms]; }
    const std::vector<Terms>& terms() const { return terms_; }

private:
    std::uint32_t number_of(Terms terms);

    std::vector<Entry> entries_;
    std::vector<Terms> terms_;
    std::unordered_map<std::string, std::uint32_t> terms_by_text_;
    std::unordered_multimap<std::size_t, std::uint32_t> by_name_;  // hash of the name -> entry
    std::string text_;
};

}  // namespace bulkhead::meter
