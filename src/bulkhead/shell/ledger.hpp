// What adds up while this server runs, for monitoring: GPU time by what came of it, interruptions by cause, wipes.
// Counters in Prometheus's sense: a new process begins at 0. What is billed is kept elsewhere, in rows.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "bulkhead/core/goodput.hpp"
#include "bulkhead/lifecycle/unit.hpp"
#include "bulkhead/shell/loop.hpp"

namespace bulkhead::shell {

class Ledger final : public Follower {
public:
    struct Interrupted {
        std::uint64_t leases = 0;
        std::int64_t lost_micros = 0;  // of GPU-seconds; an estimate
    };
    struct OfTenant {
        std::map<std::pair<Fate, Knowledge>, std::int64_t> micros;  // of GPU-seconds
        std::map<EndCause, Interrupted> interrupted;
        std::uint64_t closed = 0;
    };
    struct Wipes {
        static constexpr std::array<std::int64_t, 9> bounds_s{1, 2, 5, 10, 30, 60, 120, 300, 900};
        std::array<std::uint64_t, bounds_s.size() + 1> took{};     // not above each bound
        std::int64_t took_ms = 0;                                  // in all, by the nodes' clocks
        std::map<std::pair<UnitKind, bool>, std::uint64_t> ended;  // by kind, and whether it was verified
    };
    struct Books {
        std::map<std::string, OfTenant> tenants;
        Wipes wipes;
        std::uint64_t quarantined = 0, fenced = 0;
    };

    void loaded(const Reign& reign) override;
    void committed(const Batch& batch) override;

    // Tenants that are no more are forgotten first.
    Books books(const std::function<bool(const std::string&)>& exists);

private:
    void take(const Row& row);
    void note(const evidence::Record& record);
    void note_closed(const evidence::Record& record);
    void note_wipe(const evidence::Record& record);

    std::mutex mutex_;
    std::map<std::int64_t, std::string> open_;    // bodies of leases, by row
    std::map<std::string, std::string> closing_;  // of those whose rows are gone, until the log's word on it; by name
    Books books_;
};

}  // namespace bulkhead::shell
