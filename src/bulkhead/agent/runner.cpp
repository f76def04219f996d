#include "bulkhead/agent/runner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

namespace bulkhead::agent {

Runner::Runner(RunnerSettings settings, Executor executor, JournalFile journal, std::unique_ptr<Hardware> hardware,
               Deliver deliver)
    : settings_{std::move(settings)},
      executor_{std::move(executor)},
      journal_{std::move(journal)},
      hardware_{std::move(hardware)},
      deliver_{std::move(deliver)} {}

Result<std::unique_ptr<Runner>> Runner::open(RunnerSettings settings, evidence::SigningKey key,
                                             std::unique_ptr<Hardware> hardware, Deliver deliver, Instant now) {
    auto opened = JournalFile::open(settings.journal);
    if (!opened) return std::unexpected(opened.error());
    settings.identity.grade = hardware->grade();
    Executor executor{settings.identity, std::move(key), opened->records};
    std::unique_ptr<Runner> runner{new Runner{std::move(settings), std::move(executor), std::move(opened->file),
                                              std::move(hardware), std::move(deliver)}};
    if (opened->dropped_bytes > 0)
        runner->notes_.push_back(fmt::format(
            "the last {} bytes of the journal were cut short by a crash and are dropped; nothing they would have "
            "allowed has happened",
            opened->dropped_bytes));
    runner->boot_ = runner->hardware_->boot_id();
    if (const auto carried = runner->carry(now, runner->executor_.resume(now, runner->boot_)); !carried)
        return std::unexpected(carried.error());
    if (const auto tested = runner->test_by_itself(); !tested) return std::unexpected(tested.error());
    return runner;
}

// Before anybody is offered a function; it goes on beside whatever comes.
Result<> Runner::test_by_itself() {
    const auto begun = test_fabric(0);
    is_untested_ = !begun;
    if (begun) return {};
    if (begun.error().code == Code::unavailable) return begun;
    if (begun.error().code != Code::not_found)
        notes_.push_back(fmt::format("the fences are not tested now: {}", begun.error().what));
    return {};
}

// By what the journal says: a function that a lease has, or that waits for its wipe, is none to test with.
Result<> Runner::test_fabric(Key ticket) {
    FabricTestOrder order{.ticket = ticket, .held = {}, .clean = {}};
    const Ledger& ledger = executor_.ledger();
    std::set<std::uint16_t> held;
    const auto note = [&](const std::vector<UnitId>& units) {
        for (const UnitId& unit : units)
            if (unit.kind == UnitKind::vf) held.insert(unit.device);
    };
    for (const auto& [key, lease] : ledger.leases) note(units_of(lease.order));
    for (const auto& [key, wipe] : ledger.wipes) note(units_of(wipe.task));
    for (const auto& [device, why] : ledger.faulty)
        if (device.kind == UnitKind::vf) held.insert(device.device);
    order.held.assign(held.begin(), held.end());
    for (const auto& [unit, known] : ledger.units)
        if (unit.kind == UnitKind::vf && known.clean && !held.contains(unit.device)) order.clean.push_back(unit.device);
    return hardware_->test_fabric(order);
}

// Whoever ended over one odd order would be given it again by the journal, and never do anything else.
Result<> Runner::carry(Instant now, const Outcome& outcome) {
    std::vector<OperationResult> refused;
    if (const auto carried = carry_out(now, outcome, refused); !carried) return carried;
    for (std::size_t i = 0; i < refused.size(); ++i) {  // what follows from one may be refused as well
        const OperationResult result = refused[i];
        if (const auto carried = carry_out(now, executor_.on_result(now, result), refused); !carried) return carried;
    }
    return {};
}

Result<> Runner::carry_out(Instant now, const Outcome& outcome, std::vector<OperationResult>& refused) {
    if (broken_) return std::unexpected(*broken_);
    const auto broken = [this](const Error& why) {
        broken_ = why;
        return std::unexpected(why);
    };
    if (!outcome.ignored.empty()) notes_.push_back(outcome.ignored);
    if (const auto durable = journal_.append(outcome.journal); !durable) return broken(durable.error());
    for (const Operation& operation : outcome.begin) {
        const auto begun = hardware_->begin(now, operation);
        if (begun) continue;
        const Error& why = begun.error();
        if (why.code != Code::invalid && why.code != Code::exhausted) return broken(why);
        notes_.push_back(fmt::format("operation {} was not begun: {}", operation.number, why.what));
        refused.push_back({.number = operation.number, .why = why.what, .untouched = true});
    }
    if (outcome.test_fabric)
        if (const auto begun = test_fabric(*outcome.test_fabric); !begun) {
            if (begun.error().code == Code::unavailable) return broken(begun.error());
            const Outcome told = executor_.on_no_fabric_test(*outcome.test_fabric, begun.error().what);
            if (const auto carried = carry_out(now, told, refused); !carried) return carried;
        }
    for (const Report& report : outcome.reports) deliver_(report);
    if (const auto compacted = compact_if_large(); !compacted) return broken(compacted.error());
    return {};
}

Result<> Runner::compact_if_large() {
    const std::size_t bytes = journal_.bytes();
    if (bytes <= settings_.compact_above_bytes || bytes < 2 * compacted_bytes_) return {};
    if (const auto replaced = journal_.replace(executor_.compacted()); !replaced) return replaced;
    compacted_bytes_ = journal_.bytes();
    return {};
}

Result<> Runner::handle(Instant now, const Order& order) {
    if (broken_) return std::unexpected(*broken_);
    return carry(now, executor_.on_order(now, order));
}

Result<> Runner::welcome(Instant now, std::int64_t epoch) {
    if (broken_) return std::unexpected(*broken_);
    const Outcome outcome = executor_.on_welcome(epoch);
    if (const auto carried = carry(now, outcome); !carried) return carried;
    if (!outcome.ignored.empty())
        return fail(Code::conflict, outcome.ignored,
                    "an older control plane is still running, or one was restored under an old epoch: stop it");
    return {};
}

Result<> Runner::acknowledge(std::int64_t number) {
    if (broken_) return std::unexpected(*broken_);
    return carry({}, executor_.on_ack(number));
}

Result<> Runner::poll(Instant now) {
    if (broken_) return std::unexpected(*broken_);
    auto news = hardware_->poll(now);
    if (!news) {
        broken_ = news.error();
        return std::unexpected(*broken_);
    }
    for (std::string& note : news->notes) notes_.push_back(std::move(note));
    has_other_stock_ = has_other_stock_ || news->stock_changed;
    if (news->stock_changed && is_untested_)  // a NIC may be what has come
        if (const auto tested = test_by_itself(); !tested) {
            broken_ = tested.error();
            return tested;
        }
    for (const OperationResult& result : news->results)
        if (const auto carried = carry(now, executor_.on_result(now, result)); !carried) return carried;
    if (std::string boot = hardware_->boot_id(); boot != boot_) {
        boot_ = std::move(boot);
        if (const auto carried = carry(now, executor_.on_boot(now, boot_)); !carried) return carried;
    }
    for (const FaultReport& fault : news->faults)
        if (const auto carried = carry(now, executor_.on_fault(now, fault)); !carried) return carried;
    for (evidence::FabricStatement& found : news->fabric)
        if (const auto carried = carry(now, executor_.on_fabric_tested(std::move(found))); !carried) return carried;
    for (FabricTestReport& not_made : news->fabric_given_up) {
        notes_.push_back(fmt::format("a test of the fences was given up: {}", not_made.why));
        if (not_made.ticket == 0) continue;
        if (const auto carried = carry(now, executor_.on_no_fabric_test(not_made.ticket, std::move(not_made.why)));
            !carried)
            return carried;
    }
    for (const TenantExit& exit : news->exits)
        if (const auto carried = carry(now, executor_.on_exit(now, exit)); !carried) return carried;
    return carry(now, executor_.tick(now));
}

Result<Hello> Runner::hello() {
    if (broken_) return std::unexpected(*broken_);
    has_other_stock_ = false;
    auto inventory = hardware_->inventory();
    if (!inventory) return std::unexpected(inventory.error());
    return executor_.hello(std::move(*inventory), hardware_->boot_id());
}

// After a failed append the executor knows reports that are not durable.
std::vector<Report> Runner::unacknowledged() const {
    return broken_ ? std::vector<Report>{} : executor_.unacknowledged();
}

std::optional<Instant> Runner::next_due() const {
    std::optional<Instant> due = hardware_->next_due();
    if (const auto deadline = executor_.next_deadline(); deadline && (!due || *deadline < *due)) due = deadline;
    return due;
}

std::vector<std::string> Runner::take_notes() { return std::exchange(notes_, {}); }

}  // namespace bulkhead::agent
