// An engine that is built anew for every cycle from what is known outside of it, as the control plane does.
#pragma once

#include "bulkhead/sched/engine_test.hpp"

namespace bulkhead::sched {

class Rebuilt {
public:
    explicit Rebuilt(EngineSettings settings = {}) : settings_{settings} {}

    void tenants(std::vector<TenantFacts> facts) {
        tenants_ = std::move(facts);
        for (TenantFacts& each : tenants_)
            if (each.domain == 0) each.domain = 1;
    }
    void node(const NodeRow& row) { nodes_.push_back(node_of(row)); }
    void open(const std::string& name, bool is_open) { std::ranges::find(nodes_, name, &Node::name)->open = is_open; }
    void submit(const JobRow& row) { jobs_.push_back({row, now_, {}, {}, false}); }
    void hold_back(const std::string& name, bool is) { find(name).held_back = is; }
    void later(Duration by) { now_ = now_ + by; }
    bool runs(const std::string& name) { return !find(name).seats.empty(); }

    const Statement& cycle() {
        Play play{settings_};
        play.now = now_;
        play.tenants(tenants_);
        for (const Node& each : nodes_) play.engine.add_node(each);
        for (Known& each : jobs_) {
            play.now = each.submitted;
            each.number = play.submit(each.row, each.held_back);
            if (!each.seats.empty()) play.engine.adopt(each.number, each.seats, each.started);
        }
        for (const Promise& promise : promises_)
            play.engine.keep(jobs_[static_cast<std::size_t>(promise.workload)].number, promise);
        last_ = play.engine.cycle(now_);
        promises_ = play.engine.promises();
        evicted.clear();
        for (Known& each : jobs_) {
            const bool ran = !each.seats.empty();
            each.seats = play.engine.seats(each.number);
            if (!ran && !each.seats.empty()) each.started = now_;
        }
        for (const Eviction& each : last_.evict) evicted.push_back(job(each).row.name);
        return last_;
    }
    void carry_out_evictions() {
        for (const Eviction& each : last_.evict)
            if (each.whole) job(each).seats.clear();
    }

    std::vector<std::string> evicted;

private:
    struct Known {
        JobRow row;
        Instant submitted, started;
        std::vector<TaskSeat> seats;
        bool held_back = false;
        JobNo number = 0;
    };
    Known& find(const std::string& name) {
        return *std::ranges::find(jobs_, name, [](const Known& each) { return each.row.name; });
    }
    Known& job(const Eviction& eviction) { return jobs_[static_cast<std::size_t>(eviction.workload)]; }

    EngineSettings settings_;
    Instant now_ = Play::noon;
    std::vector<TenantFacts> tenants_;
    std::vector<Node> nodes_;
    std::vector<Known> jobs_;
    std::vector<Promise> promises_;
    Statement last_;
};

}  // namespace bulkhead::sched
