// The history as it was committed: runs of workloads that have ended. One thread feeds it, any thread asks; a reader
// never keeps a commit waiting for longer than it takes to hand over rows.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/core/persisted.hpp"
#include "bulkhead/shell/loop.hpp"

namespace bulkhead::shell {

struct HistoryQuestion {
    std::string tenant, workload;  // empty: any
    std::optional<Instant> since, until;
    std::optional<HistoryState> state;
    std::size_t limit = 1000;
};
struct HistoryAnswer {
    std::vector<HistoryRow> rows;  // by when they ended, the newest last
    bool more = false;             // there are older ones
};

class HistoryBook final : public Follower {
public:
    void loaded(const Reign& reign) override;
    void committed(const Batch& batch) override;
    HistoryAnswer ask(const HistoryQuestion& question);

private:
    void take_in_what_came();  // with reading_ held

    std::mutex arriving_mutex_;  // held for moments
    std::vector<Row> arrived_;
    bool anew_ = false;  // they are all there are

    std::mutex reading_;
    std::map<std::int64_t, HistoryRow> rows_;  // by key, which is by when they were written
};

}  // namespace bulkhead::shell
