// A node that is killed at any moment: random orders, some of them twice or late, hardware that fails, lies and hangs,
// and a crash before, between or after anything that leaves the executor. The checker looks at the model from outside
// and shares no code with the gate.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/evidence/statement.hpp"
#include "bulkhead/node/executor.hpp"
#include "bulkhead/node/model.hpp"
#include "bulkhead/node/rig_test.hpp"

namespace bulkhead {
namespace {

struct Cut {
    std::string profile;
    std::uint8_t start, size;
};
const std::vector<Cut> cuts{{"1g.10gb", 0, 1}, {"1g.10gb", 3, 1}, {"2g.20gb", 2, 2}, {"3g.40gb", 0, 4},
                            {"3g.40gb", 4, 4}, {"4g.40gb", 0, 4}, {"7g.80gb", 0, 8}, {"", 0, 8}};

class Story {
public:
    explicit Story(std::uint64_t seed) : rng_{seed}, model_{{.gpus = 2, .drives = 2, .functions = 2}} {
        identity_.node = "node-1";
        identity_.grade = Grade::simulated;
        identity_.limits = {limit, limit, limit, limit, limit, limit, limit, limit, limit};
        start_process();
    }

    void live(int steps) {
        for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
            if (!executor_) start_process();
            act();
            now_ = now_ + Duration{static_cast<std::int64_t>(rng_.below(500))};
        }
        finish();
    }

    int prepared = 0, running = 0, verified = 0, failed = 0, crashes = 0, torn = 0, refused = 0;

private:
    static constexpr Duration limit{1'000'000};

    // ---- one process of the agent

    void start_process() {
        while (!executor_) {
            flying_.clear();
            const auto read = read_journal(disk_);
            ASSERT_TRUE(read) << read.error().what;
            disk_.resize(read->sound_bytes);
            sequence_ = read->next_sequence;
            executor_.emplace(identity_, test_key(), read->records);
            check_reports();
            carry(executor_->resume(now_, model_.boot_id()));
        }
    }

    void crash() {
        ++crashes;
        // What was under way has happened, or has not.
        while (!flying_.empty()) {
            const Operation operation = flying_.front().operation;
            flying_.pop_front();
            if (rng_.chance(500)) happen(operation);
        }
        executor_.reset();
    }

    // Journal, then operations, then reports; the process may die before each of them and within the first.
    void carry(const Outcome& outcome) {
        const bool fatal = rng_.chance(crash_thousandths_);
        const std::uint64_t when = fatal ? rng_.below(4) : 9;
        if (when == 0) return crash();
        if (!outcome.journal.empty()) {
            const std::string frame = journal_frame(sequence_, outcome.journal);
            if (when == 1) {
                disk_ += frame.substr(0, rng_.below(frame.size()));
                ++torn;
                return crash();
            }
            disk_ += frame;
            ++sequence_;
        }
        for (const JournalRecord& record : outcome.journal) check(record);
        for (const Operation& operation : outcome.begin) {
            if (when == 2 && rng_.chance(500)) return crash();
            flying_.push_back({operation, now_});
        }
        check_one_at_a_time();
        if (when == 2) return crash();
        for (const Report& report : outcome.reports) {
            if (when == 3 && rng_.chance(500)) return crash();
            leave(report);
        }
        if (when == 3) return crash();
    }

    // ---- what happens

    void act() {
        const std::uint64_t draw = rng_.below(100);
        if (draw < 10) return order(likely_prepare());
        if (draw < 22) return start_some();
        if (draw < 32) return release_some();
        if (draw < 40) return order(random_sanitize());
        if (draw < 45) return repeat_some();
        if (draw < 47) return misfortune();
        if (draw < 51) return wait();
        if (draw < 56) return acknowledge();
        answer();
    }

    void start_some() {
        std::vector<Key> ready;
        for (const auto& [key, lease] : executor_->ledger().leases)
            if (lease.phase == PartPhase::prepared) ready.push_back(key);
        if (!ready.empty() && rng_.chance(800)) return order(Start{ready[rng_.below(ready.size())]});
        if (const auto lease = random_lease()) order(Start{*lease});
    }
    void release_some() {
        if (const auto lease = random_lease()) order(release_of(*lease));
    }
    void repeat_some() {  // twice, or late
        if (!orders_.empty()) carry(executor_->on_order(now_, orders_[rng_.below(orders_.size())]));
    }
    void wait() {
        now_ = now_ + Duration{static_cast<std::int64_t>(rng_.below(rng_.chance(200) ? 2'000'000 : 10'000))};
        // What is about to be given up may still happen, some time.
        std::erase_if(flying_, [&](const Flying& flying) {
            if (flying.begun + limit > now_) return false;
            hung_.push_back(flying.operation);
            return true;
        });
        carry(executor_->tick(now_));
    }
    void acknowledge() {
        const auto open = executor_->unacknowledged();
        if (open.empty()) return;
        const std::int64_t number = open[rng_.below(open.size())].number;
        if (!left_.contains(number)) return;  // only what has left can be acknowledged
        acknowledged_ = std::max(acknowledged_, number);
        carry(executor_->on_ack(number));
    }

    void order(decltype(Order::what) what) {
        orders_.push_back({1, std::move(what)});
        const Order copy = orders_.back();
        carry(executor_->on_order(now_, copy));
    }

    void answer() {
        if (flying_.empty()) return;
        const auto at = static_cast<std::ptrdiff_t>(rng_.below(flying_.size()));
        const Operation operation = flying_[static_cast<std::size_t>(at)].operation;
        flying_.erase(flying_.begin() + at);
        now_ = now_ + model_.duration(operation);
        const auto result = happen(operation);
        if (!result) {
            hung_.push_back(operation);
            return;
        }
        carry(executor_->on_result(now_, *result));
    }

    std::optional<OperationResult> happen(const Operation& operation) {
        if (const auto* start = std::get_if<StartTenant>(&operation.what)) check_start(*start);
        const std::int64_t boots = model_.boots();
        auto result = model_.carry_out(operation);
        if (model_.boots() != boots) {  // nothing outlives a reboot
            flying_.clear();
            hung_.clear();
        }
        return result;
    }

    void misfortune() {
        const DeviceId device = rng_.chance(600)   ? DeviceId{UnitKind::memory, two()}
                                : rng_.chance(500) ? DeviceId{UnitKind::drive, two()}
                                : rng_.chance(500) ? DeviceId{UnitKind::vf, two()}
                                                   : DeviceId{UnitKind::host, 0};
        switch (rng_.below(9)) {
            case 0:
                model_.faults(device).fail = 1;
                break;
            case 1:
                model_.faults(device).lie = 1 + static_cast<std::uint32_t>(rng_.below(2));
                break;
            case 2:
                if (rng_.chance(300)) model_.faults(device).hang = 1;
                break;
            case 3:
                model_.set_lost(two(), rng_.chance(200));
                break;
            case 4:
                model_.fail_stops(1);
                break;
            case 5:
                if (rng_.chance(200)) (rng_.chance(500) ? model_.hang_starts(1) : model_.hang_stops(1));
                break;
            case 6:
                model_.set_image_good(!rng_.chance(200));
                break;
            case 7:  // the whole machine goes down, and the agent with it
                if (rng_.chance(100)) {
                    flying_.clear();
                    hung_.clear();
                    model_.crash_host();
                    crash();
                }
                break;
            default:
                if (!hung_.empty()) {  // what hung happens after all, too late
                    const Operation late = hung_.back();
                    hung_.pop_back();
                    const bool same_process = executor_ && late.number >> 32 == executor_->ledger().lives;
                    if (!same_process) break;  // it died with its process
                    if (const auto result = happen(late)) carry(executor_->on_result(now_, *result));
                }
        }
    }

    // ---- what is asked for

    std::uint16_t two() { return static_cast<std::uint16_t>(rng_.below(2)); }
    Key key() { return key_of(1, ++count_); }

    Prepare random_prepare() {
        Prepare order{.lease = key(), .tenant = rng_.chance(500) ? "acme" : "beta", .workload = "w"};
        order.tier = rng_.chance(500) ? Tier::container : Tier::vm;
        for (std::uint64_t parts = rng_.below(3); parts-- > 0;) {
            const Cut& cut = cuts[rng_.below(cuts.size())];
            order.gpus.push_back({two(), cut.start, cut.size, cut.profile, rng_.chance(300) ? 400 : 1000});
        }
        if (rng_.chance(400)) order.drives.push_back(two());
        if (rng_.chance(400)) order.functions.push_back(two());
        leases_[order.lease] = order;
        return order;
    }
    // Of several, one that might be let in, most of the time; the gate must say no to the others.
    Prepare likely_prepare() {
        Prepare order = random_prepare();
        for (int tries = rng_.chance(850) ? 20 : 0; tries > 0; --tries) {
            const auto free = [&](UnitId unit) {
                return unit.kind == UnitKind::host || executor_->ledger().clean(unit);
            };
            const bool joins = std::ranges::any_of(order.gpus, [](const GpuPart& part) { return part.share < 1000; });
            if ((joins && rng_.chance(100)) || std::ranges::all_of(units_of(order), free)) break;
            leases_.erase(order.lease);
            order = random_prepare();
        }
        return order;
    }
    std::optional<Key> random_lease() {
        if (leases_.empty()) return std::nullopt;
        const auto& known = executor_->ledger().leases;
        if (!known.empty() && rng_.chance(700))
            return std::next(known.begin(), static_cast<std::ptrdiff_t>(rng_.below(known.size())))->first;
        // Recent ones mostly: the others are over.
        const std::uint64_t back = rng_.below(std::min<std::uint64_t>(leases_.size(), rng_.chance(900) ? 6 : 1'000));
        return std::prev(leases_.end(), static_cast<std::ptrdiff_t>(back) + 1)->first;
    }
    Release release_of(Key lease) {
        const Prepare& order = leases_[lease];
        Release release{.lease = lease};
        if (rng_.chance(200)) return release;  // legal hold
        for (const GpuPart& part : order.gpus)
            release.wipes.push_back({UnitKind::memory, part.gpu, part.start, part.size, key()});
        for (const std::uint16_t drive : order.drives) release.wipes.push_back({UnitKind::drive, drive, 0, 1, key()});
        for (const std::uint16_t f : order.functions) release.wipes.push_back({UnitKind::vf, f, 0, 1, key()});
        if (rng_.chance(100)) release.wipes.push_back({UnitKind::host, 0, 0, 1, key()});
        return release;
    }
    Sanitize random_sanitize() {
        Sanitize order;
        if (rng_.chance(500)) order.wipes.push_back({UnitKind::memory, two(), 0, 8, key()});
        if (rng_.chance(300)) {
            const Cut& cut = cuts[rng_.below(cuts.size())];
            order.wipes.push_back({UnitKind::memory, two(), cut.start, cut.size, key()});
        }
        if (rng_.chance(400)) order.wipes.push_back({UnitKind::drive, two(), 0, 1, key()});
        if (rng_.chance(400)) order.wipes.push_back({UnitKind::vf, two(), 0, 1, key()});
        if (rng_.chance(100)) order.wipes.push_back({UnitKind::host, 0, 0, 1, key()});
        return order;
    }

    // ---- what must hold

    // Nothing of another lease may be there, unless it sits in the very same shared instance.
    void check_contents(const Prepare& lease, std::string_view moment) {
        const auto see = [&](UnitId unit, const GpuPart* shared) {
            const std::uint64_t tag = model_.read(unit);
            if (tag == 0 || tag == static_cast<std::uint64_t>(lease.lease)) return;
            bool sharer = false;
            if (shared != nullptr)
                if (const auto other = leases_.find(static_cast<Key>(tag)); other != leases_.end())
                    for (const GpuPart& part : other->second.gpus) {
                        GpuPart same = *shared;
                        same.share = part.share;
                        sharer = sharer || (part == same && part.share < 1000);
                    }
            EXPECT_TRUE(sharer) << moment << ": lease " << lease.lease << " finds " << tag << " on "
                                << unit_text(unit.kind, unit.device, unit.slice);
        };
        for (const GpuPart& part : lease.gpus)
            for (unsigned slice = part.start; slice < unsigned{part.start} + part.size; ++slice)
                see({UnitKind::memory, part.gpu, static_cast<std::uint8_t>(slice)},
                    part.share < 1000 ? &part : nullptr);
        for (const std::uint16_t drive : lease.drives) see({UnitKind::drive, drive, 0}, nullptr);
        for (const std::uint16_t function : lease.functions) see({UnitKind::vf, function, 0}, nullptr);
    }

    void check_start(const StartTenant& start) {
        if (!std::ranges::count(model_.running(), start.lease)) check_contents(leases_.at(start.lease), "at its start");
    }

    void check(const JournalRecord& record) {
        if (const auto* taken = std::get_if<journal::LeaseTaken>(&record)) check_contents(taken->order, "when taken");
        if (const auto* moved = std::get_if<journal::LeaseMoved>(&record)) {
            if (moved->phase == PartPhase::prepared) {
                ++prepared;
                check_contents(leases_.at(moved->lease), "when prepared");
            }
            if (moved->phase == PartPhase::running) ++running;
            if (moved->phase == PartPhase::stopped) {
                EXPECT_EQ(std::ranges::count(model_.running(), moved->lease), 0) << "stopped, and still there";
            }
        }
        if (std::get_if<journal::LeaseRefused>(&record)) ++refused;
        const auto* answered = std::get_if<journal::WipeAnswered>(&record);
        if (answered == nullptr) return;
        const WipeReport& report = answered->report;
        if (!report.verified) {
            ++failed;
            return;
        }
        ++verified;
        const auto statement = evidence::read_statement(report.evidence.statement);
        ASSERT_TRUE(statement) << statement.error().what;
        EXPECT_EQ(statement->result, evidence::WipeResult::verified);
        EXPECT_EQ(statement->unit, unit_text(report.kind, report.device, report.start, report.size));
        EXPECT_TRUE(evidence::verify_statement(test_key().public_key(), report.evidence));
        const unsigned size = report.kind == UnitKind::memory ? report.size : 1;
        for (unsigned i = 0; i < size; ++i) {
            const UnitId unit{report.kind, report.device, static_cast<std::uint8_t>(report.start + i)};
            EXPECT_EQ(model_.read(unit), 0u) << statement->unit << " is attested clean";
        }
    }

    void check_one_at_a_time() {
        std::set<std::string> busy;
        for (const auto& [operation, begun] : flying_) {
            std::string place;
            std::visit(
                [&](const auto& what) {
                    if constexpr (requires { what.gpu; })
                        place = "gpu" + std::to_string(what.gpu);
                    else if constexpr (requires { what.drive; })
                        place = "drive" + std::to_string(what.drive);
                    else if constexpr (requires { what.function; })
                        place = "vf" + std::to_string(what.function);
                    else if constexpr (requires { what.device; })
                        place = (what.kind == UnitKind::memory ? "gpu" : std::string{word(what.kind)}) +
                                std::to_string(what.device);
                    else
                        place = "lease" + std::to_string(what.lease);
                },
                operation.what);
            EXPECT_TRUE(busy.insert(place).second) << "two operations at once on " << place;
            if (place == "host0") {
                EXPECT_EQ(flying_.size(), 1u) << "something goes on while the host reboots";
            }
        }
    }

    // A report that has left keeps its number and its words, and stays until it is acknowledged.
    void leave(const Report& report) {
        const auto [before, fresh] = left_.emplace(report.number, report);
        EXPECT_EQ(before->second, report) << "number " << report.number << " said something else before";
    }
    void check_reports() {
        std::map<std::int64_t, Report> open;
        for (const Report& report : executor_->unacknowledged()) open[report.number] = report;
        for (const auto& [number, report] : left_) {
            if (number <= acknowledged_) continue;
            ASSERT_TRUE(open.contains(number)) << "report " << number << " is lost";
            EXPECT_EQ(open.at(number), report);
        }
    }

    // ---- the end: everything works again, and everything can be brought back

    void finish() {
        if (testing::Test::HasFailure()) return;
        crash_thousandths_ = 0;
        model_.clear_faults();
        flying_.clear();
        executor_.reset();
        start_process();
        settle();
        // Released until all are gone: a release that failed may be given again.
        std::vector<Key> known;
        for (const auto& [lease, entry] : executor_->ledger().leases) known.push_back(lease);
        for (const Key lease : known) order(release_of(lease));
        settle();
        EXPECT_TRUE(executor_->ledger().leases.empty());
        EXPECT_TRUE(executor_->ledger().wipes.empty());
        EXPECT_TRUE(executor_->idle());
        EXPECT_TRUE(model_.running().empty());
        Sanitize all;
        for (const std::uint16_t i : {std::uint16_t{0}, std::uint16_t{1}}) {
            all.wipes.push_back({UnitKind::memory, i, 0, 8, key()});
            all.wipes.push_back({UnitKind::drive, i, 0, 1, key()});
            all.wipes.push_back({UnitKind::vf, i, 0, 1, key()});
        }
        all.wipes.push_back({UnitKind::host, 0, 0, 1, key()});
        order(all);
        settle();
        for (const UnitId unit : model_.units()) {
            EXPECT_EQ(model_.read(unit), 0u);
            EXPECT_TRUE(executor_->ledger().clean(unit));
        }
        // And all of it can be handed out.
        Prepare last{.lease = key(), .tenant = "acme", .workload = "w", .tier = Tier::container};
        last.gpus = {{0, 0, 8, "7g.80gb"}, {1, 0, 8, ""}};
        last.drives = {0, 1};
        leases_[last.lease] = last;
        order(last);
        settle();
        EXPECT_EQ(executor_->ledger().leases.at(last.lease).phase, PartPhase::prepared);
        check_reports();
        // What the disk says is what the process knows.
        const auto read = read_journal(disk_);
        ASSERT_TRUE(read);
        EXPECT_EQ(read->dropped_bytes, 0u);
        Ledger rebuilt, compact;
        for (const JournalRecord& record : read->records) play_back(rebuilt, record);
        EXPECT_EQ(rebuilt, executor_->ledger());
        const auto short_journal = read_journal(journal_frame(0, executor_->compacted()));
        ASSERT_TRUE(short_journal);
        for (const JournalRecord& record : short_journal->records) play_back(compact, record);
        EXPECT_EQ(compact, executor_->ledger());
    }
    void settle() {
        while (!flying_.empty()) answer();
    }

    Rng rng_;
    NodeIdentity identity_;
    NodeModel model_;
    std::string disk_;
    std::uint64_t sequence_ = 0;
    std::optional<Executor> executor_;
    struct Flying {
        Operation operation;
        Instant begun;
    };
    std::deque<Flying> flying_;
    std::vector<Operation> hung_;
    Instant now_{1'000'000};
    std::int64_t count_ = 0;
    std::map<Key, Prepare> leases_;
    std::vector<Order> orders_;
    std::map<std::int64_t, Report> left_;
    std::int64_t acknowledged_ = 0;
    std::uint64_t crash_thousandths_ = 40;
};

TEST(NodeCrashes, whenever_it_dies_no_lease_meets_another_ones_bytes_and_nothing_said_is_lost) {
    int prepared = 0, running = 0, verified = 0, failed = 0, crashes = 0, torn = 0, refused = 0;
    const char* more = std::getenv("BULKHEAD_SEEDS");
    const std::uint64_t seeds = more != nullptr ? std::strtoull(more, nullptr, 10) : 60;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Story story{seed};
        story.live(600);
        prepared += story.prepared;
        running += story.running;
        verified += story.verified;
        failed += story.failed;
        crashes += story.crashes;
        torn += story.torn;
        refused += story.refused;
        if (HasFailure()) break;
    }
    // The story must be about something.
    EXPECT_GT(prepared, static_cast<int>(seeds) * 5);
    EXPECT_GT(running, static_cast<int>(seeds) * 3);
    EXPECT_GT(verified, static_cast<int>(seeds) * 20);
    EXPECT_GT(failed, static_cast<int>(seeds) * 5);
    EXPECT_GT(torn, static_cast<int>(seeds));
    std::cout << prepared << " leases prepared, " << running << " ran, " << refused << " refused; " << verified
              << " wipes verified, " << failed << " not; " << crashes << " crashes, " << torn
              << " with a torn journal\n";
}

}  // namespace
}  // namespace bulkhead
