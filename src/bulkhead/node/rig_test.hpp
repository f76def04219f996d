// A node for tests: an executor, its journal as a list, and a model of its hardware, carried by hand.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/evidence/statement.hpp"
#include "bulkhead/node/executor.hpp"
#include "bulkhead/node/model.hpp"

namespace bulkhead {

inline evidence::SigningKey test_key() { return *evidence::SigningKey::from_seed(std::string(32, 'k')); }

inline evidence::WipeStatement statement_in(const WipeReport& report) {
    EXPECT_TRUE(evidence::verify_statement(test_key().public_key(), report.evidence));
    const auto read = evidence::read_statement(report.evidence.statement);
    EXPECT_TRUE(read) << read.error().what;
    return read ? *read : evidence::WipeStatement{};
}

struct Rig {
    explicit Rig(NodeModelSpec spec = {.gpus = 2, .drives = 2, .functions = 2}, NodeIdentity as = {})
        : identity{std::move(as)}, model{std::move(spec)} {
        identity.node = "node-1";
        identity.grade = Grade::simulated;
        restart();
    }

    NodeIdentity identity;
    NodeModel model;
    std::vector<JournalRecord> journal;
    std::optional<Executor> executor;
    std::deque<Operation> begun;  // not carried out yet
    std::vector<Operation> ever_begun;
    std::vector<Report> reports;
    std::string ignored;
    Instant now{1'000'000};
    std::int64_t epoch = 1;
    std::int64_t count = 0;

    Key key() { return key_of(epoch, ++count); }

    void carry(const Outcome& outcome) {
        journal.insert(journal.end(), outcome.journal.begin(), outcome.journal.end());
        begun.insert(begun.end(), outcome.begin.begin(), outcome.begin.end());
        ever_begun.insert(ever_begun.end(), outcome.begin.begin(), outcome.begin.end());
        reports.insert(reports.end(), outcome.reports.begin(), outcome.reports.end());
        ignored = outcome.ignored;
    }
    void give(decltype(Order::what) what) { carry(executor->on_order(now, Order{epoch, std::move(what)})); }
    // Carries out the first operation; true when there was one.
    bool step() {
        if (begun.empty()) return false;
        const Operation operation = begun.front();
        begun.pop_front();
        now = now + model.duration(operation);
        if (const auto result = model.carry_out(operation)) carry(executor->on_result(now, *result));
        return true;
    }
    void settle() {
        while (step()) {
        }
    }
    void order(decltype(Order::what) what) {
        give(std::move(what));
        settle();
    }
    void pass(Duration time) {
        now = now + time;
        carry(executor->tick(now));
        settle();
    }
    // The process dies and another takes up the journal; hardware forgets what had not been carried out.
    void restart() {
        begun.clear();
        executor.emplace(identity, test_key(), journal);
        carry(executor->resume(now, model.boot_id()));
    }

    // Everything, as a control plane would: each GPU, each drive, each function.
    Sanitize all_units() {
        Sanitize order;
        const auto& spec = model.spec();
        for (std::uint16_t gpu = 0; gpu < spec.gpus; ++gpu)
            order.wipes.push_back({UnitKind::memory, gpu, 0, model.slices_per_gpu(), key()});
        for (std::uint16_t drive = 0; drive < spec.drives; ++drive)
            order.wipes.push_back({UnitKind::drive, drive, 0, 1, key()});
        for (std::uint16_t function = 0; function < spec.functions; ++function)
            order.wipes.push_back({UnitKind::vf, function, 0, 1, key()});
        return order;
    }
    void clean_all() {
        order(all_units());
        reports.clear();
    }

    // A container on half of a GPU.
    Prepare half(std::uint8_t start = 4, std::uint16_t gpu = 0) {
        return {.lease = key(),
                .tenant = "acme",
                .workload = "w",
                .mechanism = Mechanism::mig,
                .tier = Tier::container,
                .gpus = {{.gpu = gpu, .start = start, .size = 4, .profile = "3g.40gb"}}};
    }
    Release release_of(const Prepare& lease) {
        Release order{.lease = lease.lease};
        for (const GpuPart& part : lease.gpus)
            order.wipes.push_back({UnitKind::memory, part.gpu, part.start, part.size, key()});
        for (const std::uint16_t drive : lease.drives) order.wipes.push_back({UnitKind::drive, drive, 0, 1, key()});
        for (const std::uint16_t f : lease.functions) order.wipes.push_back({UnitKind::vf, f, 0, 1, key()});
        for (WipeTask& wipe : order.wipes) {
            wipe.lease = fmt::format("lease-{}", lease.lease);
            wipe.tenants = {lease.tenant};
        }
        return order;
    }

    template <class T>
    std::vector<T> all() const {
        std::vector<T> found;
        for (const Report& report : reports)
            if (const auto* what = std::get_if<T>(&report.what)) found.push_back(*what);
        return found;
    }
    template <class T>
    T last() const {
        const std::vector<T> found = all<T>();
        EXPECT_FALSE(found.empty()) << "nothing of the kind was reported";
        return found.empty() ? T{} : found.back();
    }
    PartPhase phase() const { return last<LeaseReport>().phase; }
    template <class T>
    std::vector<T> operations() const {
        std::vector<T> found;
        for (const Operation& operation : ever_begun)
            if (const auto* what = std::get_if<T>(&operation.what)) found.push_back(*what);
        return found;
    }
};

}  // namespace bulkhead
