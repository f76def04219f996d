#include "bulkhead/agent/runner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include "bulkhead/agent/model_hardware.hpp"
#include "bulkhead/base/rng.hpp"
#include "bulkhead/evidence/statement.hpp"

namespace bulkhead::agent {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

evidence::SigningKey key() { return *evidence::SigningKey::from_seed(std::string(32, 'k')); }

class Folder {
public:
    Folder() {
        std::string name = (fs::temp_directory_path() / "bulkhead-runner-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~Folder() { fs::remove_all(path_); }
    fs::path operator/(std::string_view name) const { return path_ / name; }

private:
    fs::path path_;
};

NodeModelSpec small() { return {.node = "node-1", .gpus = 1, .drives = 1}; }

// One life of the agent. Time is ours.
struct Life {
    explicit Life(const Folder& folder, std::size_t compact_above = 4 << 20) {
        auto opened = ModelHardware::open(folder / "model", small());
        EXPECT_TRUE(opened) << opened.error().what;
        hardware = opened->get();
        auto started = Runner::open(
            {.identity = {.node = "node-1"}, .journal = folder / "journal", .compact_above_bytes = compact_above},
            key(), std::move(*opened), [this](const Report& r) { reports.push_back(r); }, now);
        EXPECT_TRUE(started) << started.error().what;
        runner = std::move(*started);
    }
    void settle() {
        while (const auto due = runner->next_due()) {
            now = std::max(now, *due);
            ASSERT_TRUE(runner->poll(now));
        }
    }
    void order(decltype(Order::what) what) {
        ASSERT_TRUE(runner->handle(now, {1, std::move(what)}));
        settle();
    }
    template <class T>
    T last() const {
        for (auto it = reports.rbegin(); it != reports.rend(); ++it)
            if (const auto* what = std::get_if<T>(&it->what)) return *what;
        ADD_FAILURE() << "nothing of the kind was reported";
        return {};
    }

    Instant now{1'000'000};
    std::vector<Report> reports;
    ModelHardware* hardware = nullptr;
    std::unique_ptr<Runner> runner;
};

Prepare half(Key lease) {
    return {.lease = lease, .tenant = "acme", .tier = Tier::container, .gpus = {{0, 4, 4, "3g.40gb"}}};
}
Sanitize all(Key ticket) {
    return {.wipes = {{UnitKind::memory, 0, 0, 8, ticket}, {UnitKind::drive, 0, 0, 1, ticket + 1}}};
}

TEST(Runner, carries_a_lease_through_and_remembers_it_in_the_next_life) {
    const Folder folder;
    {
        Life life{folder};
        life.order(all(1));
        EXPECT_TRUE(life.last<WipeReport>().verified);
        life.order(half(10));
        life.order(Start{10});
        EXPECT_EQ(life.last<LeaseReport>().phase, PartPhase::running);
        const auto statement = evidence::read_statement(life.last<WipeReport>().evidence.statement);
        ASSERT_TRUE(statement);
        EXPECT_EQ(statement->grade, Grade::simulated) << "the hardware says how its results are known";
    }
    Life life{folder};
    EXPECT_EQ(life.hardware->model().running(), std::vector<Key>{10}) << "the model outlives the process";
    const auto hello = life.runner->hello();
    ASSERT_TRUE(hello);
    ASSERT_EQ(hello->leases.size(), 1u);
    EXPECT_EQ(hello->leases[0].phase, PartPhase::running);
    EXPECT_EQ(life.runner->unacknowledged().size(), 4u);
    ASSERT_TRUE(life.runner->acknowledge(3));
    EXPECT_EQ(life.runner->unacknowledged().size(), 1u);
    life.order(Release{10, {{UnitKind::memory, 0, 4, 4, 20}}});
    EXPECT_TRUE(life.last<WipeReport>().verified);
    EXPECT_TRUE(life.hardware->model().running().empty());
}

TEST(Runner, one_agent_at_a_time) {
    const Folder folder;
    Life life{folder};
    auto hardware = ModelHardware::open(folder / "model", small());
    ASSERT_TRUE(hardware);
    const auto second = Runner::open({.identity = {}, .journal = folder / "journal"}, key(), std::move(*hardware),
                                     [](const Report&) {}, {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::unavailable);
}

TEST(Runner, a_torn_end_is_cut_off_and_told) {
    const Folder folder;
    {
        Life life{folder};
        life.order(all(1));
    }
    const auto whole = fs::file_size(folder / "journal");
    std::ofstream{folder / "journal", std::ios::app | std::ios::binary} << "BHJ2 and then the power went";
    Life life{folder};
    const auto notes = life.runner->take_notes();
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_THAT(notes[0], HasSubstr("28 bytes"));
    EXPECT_TRUE(life.runner->take_notes().empty());
    life.order(half(10));
    EXPECT_EQ(life.last<LeaseReport>().phase, PartPhase::prepared);
    EXPECT_GT(fs::file_size(folder / "journal"), whole);
}

TEST(Runner, a_damaged_journal_is_an_error_and_not_a_guess) {
    const Folder folder;
    {
        Life life{folder};
        life.order(all(1));
    }
    {
        std::fstream file{folder / "journal", std::ios::in | std::ios::out | std::ios::binary};
        file.seekp(60);
        file.put('?');
    }
    auto hardware = ModelHardware::open(folder / "model", small());
    const auto opened = Runner::open({.identity = {}, .journal = folder / "journal"}, key(), std::move(*hardware),
                                     [](const Report&) {}, {});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::corrupt);
    EXPECT_THAT(opened.error().what, HasSubstr("journal"));
}

TEST(Runner, the_journal_is_rewritten_when_it_has_grown_and_says_the_same) {
    const Folder folder;
    Ledger before;
    {
        Life life{folder, 4'000};
        for (Key i = 0; i < 30; ++i) {
            life.order(all(1 + 2 * i));
            ASSERT_TRUE(life.runner->acknowledge(2 * i + 2));
        }
        before = life.runner->executor().ledger();
    }
    EXPECT_LT(fs::file_size(folder / "journal"), 15'000u) << "more than 1 kB for each wipe otherwise";
    Life life{folder};
    ++before.lives;
    EXPECT_EQ(life.runner->executor().ledger(), before);
}

TEST(Runner, an_older_control_plane_is_turned_away_and_the_runner_goes_on) {
    const Folder folder;
    Life life{folder};
    ASSERT_TRUE(life.runner->welcome(life.now, 5));
    const auto older = life.runner->welcome(life.now, 4);
    ASSERT_FALSE(older);
    EXPECT_EQ(older.error().code, Code::conflict);
    ASSERT_TRUE(life.runner->handle(life.now, {4, half(10)}));
    EXPECT_TRUE(life.reports.empty());
    EXPECT_EQ(life.runner->take_notes().size(), 2u);
    EXPECT_TRUE(life.runner->poll(life.now));
}

TEST(Runner, when_the_disk_fails_nothing_leaves_any_more) {
    const Folder folder;
    Life life{folder};
    life.order(all(1));
    const std::size_t said = life.reports.size();
    // No file may grow: a disk that is full, for this process.
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit full{fs::file_size(folder / "journal") + 10, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
    const auto refused = life.runner->handle(life.now, {1, half(10)});
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    ASSERT_FALSE(refused);
    EXPECT_EQ(life.reports.size(), said);
    EXPECT_FALSE(life.runner->poll(life.now)) << "broken stays broken, though the disk works again";
    EXPECT_FALSE(life.runner->hello());
    EXPECT_TRUE(life.runner->unacknowledged().empty()) << "it may know what is not durable";
    life.runner.reset();
    Life next{folder};
    EXPECT_TRUE(next.runner->executor().ledger().leases.empty()) << "what was not durable has not happened";
}

// Hardware that begins nothing, and says why not.
class Refusing : public Hardware {
public:
    Refusing(std::unique_ptr<ModelHardware> model, Code code) : model_{std::move(model)}, code_{code} {}
    Result<GpuNodeStatus> inventory() override { return model_->inventory(); }
    std::string boot_id() override { return model_->boot_id(); }
    Grade grade() const override { return model_->grade(); }
    Result<> begin(Instant, const Operation&) override { return fail(code_, "512 are under way", "wait"); }
    Result<News> poll(Instant now) override { return model_->poll(now); }
    Result<OutputPiece> output(const OutputPlace&) override { return OutputPiece{}; }
    std::optional<Instant> next_due() const override { return model_->next_due(); }

private:
    std::unique_ptr<ModelHardware> model_;
    Code code_;
};

TEST(Runner, what_the_hardware_says_of_one_operation_is_that_ones_failure) {
    struct Row {
        const char* says;
        Code code;
        bool lives;
    };
    const Row rows[] = {
        {"an odd order", Code::invalid, true},
        {"one more than it takes at once", Code::exhausted, true},
        {"hardware that is gone", Code::unavailable, false},
        {"a line that cannot be understood", Code::corrupt, false},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(row.says);
        const Folder folder;
        auto model = ModelHardware::open(folder / "model", small());
        ASSERT_TRUE(model);
        std::vector<Report> reports;
        auto runner = Runner::open({.identity = {.node = "node-1"}, .journal = folder / "journal"}, key(),
                                   std::make_unique<Refusing>(std::move(*model), row.code),
                                   [&](const Report& report) { reports.push_back(report); }, {1'000});
        ASSERT_TRUE(runner) << runner.error().what;
        const Order order{1, Sanitize{.wipes = {{UnitKind::memory, 0, 0, 8, 7}, {UnitKind::drive, 0, 0, 1, 8}}}};
        EXPECT_EQ((*runner)->handle({1'000}, order).has_value(), row.lives);
        EXPECT_EQ((*runner)->poll({2'000}).has_value(), row.lives);
        EXPECT_EQ((*runner)->hello().has_value(), row.lives);
        ASSERT_EQ(reports.size(), row.lives ? 2u : 0u) << "each of the two wipes has failed";
        for (const Report& report : reports) {
            EXPECT_FALSE(std::get<WipeReport>(report.what).verified);
            EXPECT_THAT(std::get<WipeReport>(report.what).why, HasSubstr("512 are under way"));
        }
        EXPECT_EQ((*runner)->take_notes().size(), row.lives ? 2u : 0u);
    }
}

// A process that works as fast as it can, and is killed whenever: what it leaves behind is taken up by the next one.
TEST(Runner, killed_at_any_moment_it_goes_on_and_what_it_attested_is_true) {
    const Folder folder;
    Rng rng{7};
    std::int64_t count = 0;
    const auto next_key = [&] { return ++count; };
    int running = 0;
    for (int life = 0; life < 25; ++life) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            auto hardware = ModelHardware::open(folder / "model", small(), 0);
            if (!hardware) ::_exit(2);
            auto runner = Runner::open(
                {.identity = {.node = "node-1"}, .journal = folder / "journal", .compact_above_bytes = 6'000}, key(),
                std::move(*hardware), [](const Report&) {}, {1'000'000});
            if (!runner) ::_exit(3);
            Instant now{1'000'000};
            const auto order = [&](decltype(Order::what) what) {
                if (!(*runner)->handle(now, {1, std::move(what)})) ::_exit(4);
                while ((*runner)->next_due() && *(*runner)->next_due() <= now)
                    if (!(*runner)->poll(now)) ::_exit(5);
            };
            for (std::int64_t i = 0;; ++i) {
                const Key base = 1'000'000 * (life + 1) + 10 * i;
                order(all(base));
                order(half(base + 2));
                order(Start{base + 2});
                order(Release{base + 2, {{UnitKind::memory, 0, 4, 4, base + 3}}});
                if (!(*runner)->acknowledge((*runner)->executor().ledger().reports)) ::_exit(6);
            }
        }
        ::usleep(static_cast<useconds_t>(rng.between(2'000, 60'000)));
        ::kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself with " << WEXITSTATUS(status);

        Life after{folder};
        after.settle();
        const Ledger& ledger = after.runner->executor().ledger();
        for (const UnitId unit : after.hardware->model().units())
            if (ledger.clean(unit)) {
                EXPECT_EQ(after.hardware->model().read(unit), 0u) << "in life " << life;
            }
        for (const Key lease : after.hardware->model().running())
            EXPECT_TRUE(ledger.leases.contains(lease)) << "a tenant runs that the journal does not know";
        for (const auto& [lease, entry] : ledger.leases) {
            running += entry.phase == PartPhase::running ? 1 : 0;
            after.order(Release{lease, {{UnitKind::memory, 0, 4, 4, 1'000'000 * (life + 1) + 900'000 + next_key()}}});
            EXPECT_TRUE(after.last<WipeReport>().verified) << after.last<WipeReport>().why;
            break;
        }
    }
    RecordProperty("found_running", running);  // differs from run to run: the scheduler decides where it dies
}

}  // namespace
}  // namespace bulkhead::agent
