// The loop with the real core and the real store: what it promises when the disk does not.
#include "bulkhead/shell/loop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <future>
#include <mutex>
#include <thread>

#include "bulkhead/codec/load.hpp"
#include "bulkhead/evidence/commitment.hpp"
#include "bulkhead/evidence/record.hpp"
#include "bulkhead/shell/body.hpp"
#include "bulkhead/shell/catalog.hpp"
#include "bulkhead/shell/fixture_test.hpp"

namespace bulkhead::shell {
namespace {

using testing::HasSubstr;

class Notes final : public Follower {
public:
    void loaded(const Reign& reign) override {
        const std::lock_guard lock{mutex};
        epochs.push_back(reign.epoch);
        EXPECT_TRUE(catalog.replace(reign.rows));
    }
    void committed(const Batch& batch) override {
        const std::lock_guard lock{mutex};
        for (const Leaf& leaf : batch.leaves) {
            EXPECT_EQ(leaf.salt.size(), evidence::salt_size);
            EXPECT_EQ(leaf.entry, evidence::commit_to(leaf.salt, leaf.payload));
            EXPECT_TRUE(evidence::read_record(leaf.payload)) << leaf.payload;
            indexes.push_back(leaf.index);
        }
        clocks.push_back(batch.clock);
        EXPECT_TRUE(catalog.feed(batch.rows));
    }
    Catalog catalog{1};
    std::mutex mutex;
    std::vector<std::int64_t> epochs, indexes;
    std::vector<Instant> clocks;
};

command::Apply apply(const std::string& yaml) {
    Request request;
    request.body = yaml;
    auto objects = read_objects(request);
    EXPECT_TRUE(objects) << yaml;
    return {.objects = objects ? *std::move(objects) : std::vector<AnyObject>{}};
}

struct Running {
    explicit Running(const ScratchFolder& folder, Loop::Settings settings = {}) {
        settings.store.path = folder / "store.db";
        settings.store.sync = store::Sync::off;
        if (settings.retry == Loop::Settings{}.retry) settings.retry = Duration{20};
        auto started = Loop::start(std::move(settings), {&notes}, log);
        EXPECT_TRUE(started) << (started ? "" : started.error().what);
        if (started) loop = *std::move(started);
    }
    Log log{-1};
    Notes notes;
    std::unique_ptr<Loop> loop;
};

bool within(std::chrono::milliseconds limit, const std::function<bool()>& holds) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < until) {
        if (holds()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return holds();
}

TEST(Loop, an_answer_means_that_it_is_durable_and_can_be_read) {
    const ScratchFolder folder;
    std::int64_t before = 0;
    {
        Running running{folder};
        const Answer answer = running.loop->ask("admin", apply(policy_yaml + "---\n" + tenant_yaml));
        ASSERT_TRUE(answer.outcome) << answer.outcome.error().what;
        EXPECT_TRUE(running.notes.catalog.get(ObjectKind::tenant, "acme"));
        before = running.notes.epochs.back();
    }
    Running again{folder};
    EXPECT_TRUE(again.notes.catalog.get(ObjectKind::tenant, "acme")) << "it survives the process";
    EXPECT_GT(again.notes.epochs.back(), before) << "and each start is a reign of its own";
    for (std::size_t i = 1; i < again.notes.indexes.size(); ++i)
        EXPECT_EQ(again.notes.indexes[i], again.notes.indexes[i - 1] + 1);
}

TEST(Loop, a_refused_command_leaves_no_trace) {
    const ScratchFolder folder;
    Running running{folder};
    const auto leaves = running.loop->meter().log_size.load();
    const Answer answer = running.loop->ask("admin", apply(tenant_yaml));  // without a policy
    ASSERT_FALSE(answer.outcome);
    EXPECT_FALSE(answer.findings.empty());
    EXPECT_EQ(running.loop->meter().log_size.load(), leaves);
    EXPECT_FALSE(running.notes.catalog.get(ObjectKind::tenant, "acme"));
}

TEST(Loop, rows_that_go_with_a_command_go_with_its_fate) {
    const ScratchFolder folder;
    {
        Running running{folder};
        const auto send = [&](const std::string& yaml, std::int64_t key) {
            std::promise<Answer> done;
            EXPECT_TRUE(running.loop->submit("admin", apply(yaml), [&](Answer answer) { done.set_value(answer); },
                                             {{Table::token, key, "{}", false}}));
            return done.get_future().get().outcome.has_value();
        };
        EXPECT_FALSE(send(tenant_yaml, 1));
        EXPECT_TRUE(send(policy_yaml, 2));
    }
    auto store = store::Store::open({.path = folder / "store.db"});
    ASSERT_TRUE(store);
    std::vector<std::int64_t> tokens;
    ASSERT_TRUE(store->load([&](Row&& row) -> Result<> {
        if (row.table == Table::token) tokens.push_back(row.key);
        return {};
    }));
    EXPECT_THAT(tokens, testing::ElementsAre(2));
}

TEST(Loop, time_never_runs_back_even_when_the_machine_says_so) {
    const ScratchFolder folder;
    {
        Running running{folder, {.clock = [] { return Instant{5'000'000}; }}};
        ASSERT_TRUE(running.loop->ask("admin", apply(policy_yaml)).outcome);
    }
    Running later{folder, {.clock = [] { return Instant{1'000'000}; }}};
    ASSERT_TRUE(later.loop->ask("admin", apply(tenant_yaml)).outcome);
    for (const Instant at : later.notes.clocks) EXPECT_GE(at.ms, 5'000'000);
}

TEST(Loop, what_waits_shares_one_commit) {
    const ScratchFolder folder;
    Running running{folder};
    ASSERT_TRUE(running.loop->ask("admin", apply(policy_yaml)).outcome);
    const auto before = running.loop->meter().commits.load();
    std::atomic<int> answered{0};
    constexpr int count = 400;
    for (int i = 0; i < count; ++i) {
        const auto taken = running.loop->submit("admin", apply(tenant_json("t" + std::to_string(i))),
                                                [&](const Answer& answer) { answered += answer.outcome ? 1 : 0; });
        ASSERT_TRUE(taken);
    }
    ASSERT_TRUE(within(std::chrono::seconds{60}, [&] { return answered.load() == count; }));
    EXPECT_LT(running.loop->meter().commits.load() - before, count);
    EXPECT_EQ(running.notes.catalog.count(ObjectKind::tenant), static_cast<std::size_t>(count));
}

TEST(Loop, a_full_queue_is_said_and_not_suffered) {
    const ScratchFolder folder;
    Loop::Settings settings;
    settings.queue = 8;
    Running running{folder, settings};
    std::promise<void> entered, release;
    auto released = release.get_future().share();
    ASSERT_TRUE(running.loop->submit("admin", command::Queue{}, [&](const Answer&) {
        entered.set_value();
        released.wait();  // the loop stands still
    }));
    entered.get_future().wait();
    int taken = 0, told = 0;
    for (int i = 0; i < 20; ++i) {
        told += running.loop->tell(AgentHeartbeat{"n", 1}) ? 1 : 0;
        const auto submitted = running.loop->submit("admin", command::Queue{}, [](const Answer&) {});
        taken += submitted ? 1 : 0;
        EXPECT_TRUE(submitted || submitted.error().code == Code::exhausted);
    }
    EXPECT_LE(taken + told, 8);
    EXPECT_LE(told, 6) << "nodes leave room for operators";
    EXPECT_TRUE(running.loop->tell(AgentGone{"n", 1})) << "that a session is over is always heard";
    release.set_value();
    EXPECT_TRUE(within(std::chrono::seconds{60}, [&] { return running.loop->waiting() == 0; }));
}

TEST(Loop, another_control_plane_takes_over_and_this_one_stops_for_good) {
    const ScratchFolder folder;
    Loop::Settings settings;
    std::promise<Error> fenced;
    settings.on_fenced = [&](const Error& error) { fenced.set_value(error); };
    Running running{folder, settings};
    ASSERT_TRUE(running.loop->ask("admin", apply(policy_yaml)).outcome);
    {
        auto other = store::Store::open({.path = folder / "store.db"});
        ASSERT_TRUE(other);
        ASSERT_TRUE(other->raise_epoch());
    }
    const Answer answer = running.loop->ask("admin", apply(tenant_yaml));
    ASSERT_FALSE(answer.outcome);
    EXPECT_EQ(answer.outcome.error().code, Code::unavailable);
    EXPECT_THAT(fenced.get_future().get().what, HasSubstr("another control plane"));
    EXPECT_EQ(running.loop->state(), LoopState::fenced);
    EXPECT_FALSE(running.notes.catalog.get(ObjectKind::tenant, "acme"));
    EXPECT_FALSE(running.loop->ask("admin", command::Queue{}).outcome);
}

// The limit on file sizes makes the kernel refuse writes, as a failing disk does.
class NoWrites {
public:
    NoWrites() {
        std::signal(SIGXFSZ, SIG_IGN);
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit none{0, before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &none);
    }
    ~NoWrites() { setrlimit(RLIMIT_FSIZE, &before_); }

private:
    rlimit before_{};
};

TEST(Loop, a_disk_that_refuses_makes_it_read_only_until_it_does_not) {
    const ScratchFolder folder;
    Running running{folder};
    ASSERT_TRUE(running.loop->ask("admin", apply(policy_yaml)).outcome);
    const auto epoch = running.loop->meter().epoch.load();
    {
        const NoWrites refused;
        const Answer answer = running.loop->ask("admin", apply(tenant_yaml));
        ASSERT_FALSE(answer.outcome);
        EXPECT_EQ(answer.outcome.error().code, Code::unavailable);
        EXPECT_FALSE(answer.outcome.error().remedy.empty());
        EXPECT_EQ(running.loop->state(), LoopState::read_only);
        EXPECT_TRUE(running.notes.catalog.get(ObjectKind::policy, "fleet")) << "reading goes on";
        EXPECT_FALSE(running.notes.catalog.get(ObjectKind::tenant, "acme")) << "nobody sees what was not stored";
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
        EXPECT_EQ(running.loop->state(), LoopState::read_only);
        EXPECT_EQ(running.loop->ask("admin", apply(tenant_yaml)).outcome.error().code, Code::unavailable);
    }
    ASSERT_TRUE(within(std::chrono::seconds{60}, [&] { return running.loop->state() == LoopState::running; }));
    EXPECT_GT(running.loop->meter().epoch.load(), epoch) << "a new reign, so that agents say everything again";
    const Answer again = running.loop->ask("admin", apply(tenant_yaml));
    ASSERT_TRUE(again.outcome) << again.outcome.error().what;
    EXPECT_TRUE(running.notes.catalog.get(ObjectKind::tenant, "acme"));
}

TEST(Loop, stopping_answers_everyone) {
    const ScratchFolder folder;
    Running running{folder};
    std::atomic<int> answered{0};
    int taken = 0;
    for (int i = 0; i < 50; ++i)
        taken += running.loop->submit("admin", command::Queue{}, [&](const Answer&) { ++answered; }) ? 1 : 0;
    running.loop->stop();
    EXPECT_EQ(answered.load(), taken);
    const Answer late = running.loop->ask("admin", command::Queue{});
    ASSERT_FALSE(late.outcome);
    EXPECT_EQ(late.outcome.error().code, Code::unavailable);
}

}  // namespace
}  // namespace bulkhead::shell
