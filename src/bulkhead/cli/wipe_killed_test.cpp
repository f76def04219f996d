// kill -9 of an agent, of its hands or of the process that wipes, before any system call of a wipe and of what makes it
// count. After each: the journal can be read, nothing has been handed out, and whoever comes next either finishes the
// wipe, with nothing left of what was in memory, or keeps the GPU out of use.
//
// A part of the points is tried, others every time. BULKHEAD_KILLS=all tries every one, BULKHEAD_KILLS=17 that one.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <thread>

#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/agent/hands.hpp"
#include "bulkhead/agent/runner.hpp"
#include "bulkhead/cli/clock.hpp"
#include "bulkhead/cli/host_places_test.hpp"
#include "bulkhead/cli/kill_point_test.hpp"
#include "bulkhead/cli/said_test.hpp"
#include "bulkhead/evidence/statement.hpp"
#include "bulkhead/hw/cuda/driver.hpp"
#include "bulkhead/hw/nvml/nvml.hpp"
#include "bulkhead/hw/program/program.hpp"
#include "bulkhead/node/driver_model.hpp"
#include "bulkhead/node/journal.hpp"

#ifndef __has_feature  // g++ has none
#define __has_feature(name) 0
#endif

namespace bulkhead::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t residue = 0xDEADBEEF;
// What is wiped here: all of the GPU, or half of it beside somebody who is at work on the other.
const GpuPart whole_gpu{.gpu = 0, .start = 0, .size = 8};
const GpuPart half_gpu{.gpu = 0, .start = 4, .size = 4, .profile = "3g.71gb"};
constexpr std::uint32_t neighbour = 4'000'000;  // a process that does not exist
constexpr Key wipe_ticket = key_of(1, 1);
enum class Whom : unsigned { agent = 0, hands = 1, wiper = 2 };

// What an agent of this test has said, one line for each thing, in a file that outlives it.
struct Spoken {
    std::vector<std::string> lines;
    bool have(std::string_view beginning) const {
        return std::ranges::any_of(lines, [&](const std::string& line) { return line.starts_with(beginning); });
    }
    std::string print() const {
        std::string all;
        for (const std::string& line : lines) all += line + "\n";
        return all;
    }
};

class WipeKilled : public testing::Test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "hands are root's";
#if __has_feature(address_sanitizer)
        GTEST_SKIP() << "whoever is traced cannot be searched for leaks";
#endif
        std::string pattern = fs::temp_directory_path() / "bulkhead-killed-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
        ::setenv("BULKHEAD_SIM_NODE", node().c_str(), 1);
        simulate({"new", "--gpus", "1 x h200-141gb"});
        simulate({"keep-residue", "--gpu", "0"});
        leave_residue();
        fs::copy_file(node() / "state.bin", folder_ / "dirty");
        ASSERT_TRUE(residue_is_there());
        // Orphans come to us, so that it is known when the last is gone.
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    }
    void TearDown() override {
        if (folder_.empty()) return;
        while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
        }
        ::prctl(PR_SET_CHILD_SUBREAPER, 0);
        ::unsetenv("BULKHEAD_SIM_NODE");
        clear(agent::host_places(folder_ / "agent"));
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }

    fs::path node() const { return folder_ / "gpus"; }
    fs::path journal() const { return folder_ / "agent/journal"; }

    void simulate(const std::vector<std::string>& words) const {
        std::vector<std::string> command{fs::path{BULKHEAD_PROGRAM}.parent_path() / "bulkhead-gpusim", words.front(),
                                         node()};
        command.insert(command.end(), words.begin() + 1, words.end());
        const auto ran = program::run(command, {}, "", std::chrono::seconds{30});
        ASSERT_TRUE(ran && ran->status == 0);
    }
    // A tenant that had nearly all of it, and is gone. A process of its own: a driver knows one node for as long as it
    // is loaded.
    static void leave_residue() {
        const pid_t tenant = ::fork();
        if (tenant == 0) ::_exit(write_residue() ? 0 : 1);
        int status = -1;
        ASSERT_EQ(::waitpid(tenant, &status, 0), tenant);
        ASSERT_EQ(status, 0);
    }
    static bool write_residue() {
        const auto driver = cuda::Driver::open(BULKHEAD_SIM_LIBRARIES "/libcuda.so.1");
        if (!driver) return false;
        auto context = driver->context(0);
        if (!context) return false;
        constexpr std::uint64_t piece_bytes = std::uint64_t{13} << 30;
        for (int i = 0; i < 10; ++i) {
            const auto piece = context->allocate(piece_bytes);
            if (!piece || !*piece || !context->set_words((*piece)->at, residue, piece_bytes / 4)) return false;
        }
        return context->finish().has_value();
    }
    driver::Model model() const {
        auto read = driver::Model::from_bytes(slurp(node() / "state.bin"));
        if (!read) throw std::runtime_error{read.error().what};
        return *std::move(read);
    }
    bool residue_is_there() const {
        const driver::Model model = this->model();
        const std::uint64_t slice = model.memory({.gpu = 0}).total / 8 >> 21 << 21;
        const driver::Range wanted{part_.start * slice, part_.size * slice};
        return std::ranges::any_of(model.gpu(0).contents.all(), [&](const auto& run) {
            return run.second.bytes.empty() && run.second.pattern == driver::Pattern::of_word(residue) &&
                   wanted.overlaps({run.first, run.second.size});
        });
    }
    // The lower half goes to somebody who stays there.
    void cut() {
        const auto nvml = nvml::Nvml::open(BULKHEAD_SIM_LIBRARIES "/libnvidia-ml.so.1");
        ASSERT_TRUE(nvml) << nvml.error().what;
        const std::string uuid = nvml->gpus()->front().uuid;
        ASSERT_TRUE(nvml->set_mig(uuid, true));
        const auto profiles = nvml->profiles(uuid);
        ASSERT_TRUE(profiles);
        const auto lower = std::ranges::find(*profiles, half_gpu.profile, &nvml::Profile::name);
        ASSERT_NE(lower, profiles->end());
        const auto made = nvml->create_instance(uuid, lower->id, {0, 4});
        ASSERT_TRUE(made) << made.error().what;
        simulate({"start", "--mig", made->uuid, "--pid", std::to_string(neighbour)});
        fs::copy_file(node() / "state.bin", folder_ / "dirty", fs::copy_options::overwrite_existing);
        part_ = half_gpu;
        ASSERT_TRUE(residue_is_there());
    }
    bool neighbour_is_there() const {
        if (part_ == whole_gpu) return true;
        const driver::Model model = this->model();
        return std::ranges::any_of(model.gpu(0).processes, [&](const driver::Process& process) {
            const auto* instance = model.instance(0, process.where.gpu_instance.value_or(~0U));
            return process.pid == neighbour && instance != nullptr && instance->start == 0;
        });
    }
    // Everything as it was before the wipe: the node in use before, its agent never started.
    void begin_anew() const {
        reap();
        fs::remove_all(folder_ / "agent");
        fs::create_directories(folder_ / "agent");
        fs::permissions(folder_ / "agent", fs::perms::owner_all);
        fs::copy_file(folder_ / "dirty", node() / "state.bin", fs::copy_options::overwrite_existing);
    }
    static void reap() {
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
    }
    // What the journal lets the node hand out.
    void expect_a_journal_that_says_nothing_wrong() const {
        const auto read = read_journal(slurp(journal()));
        ASSERT_TRUE(read) << read.error().what;
        Ledger ledger;
        for (const JournalRecord& record : read->records) play_back(ledger, record);
        for (std::uint8_t slice = part_.start; slice < part_.start + part_.size; ++slice)
            ASSERT_FALSE(ledger.clean({UnitKind::memory, 0, slice}) && residue_is_there()) << "slice " << int{slice};
        ASSERT_TRUE(neighbour_is_there());
    }

    // --- The agent: what cli/agent.cpp runs, with orders of its own instead of a line to a control plane. ---

    Prepare lease(std::int64_t count) const {
        return {.lease = key_of(1, count),
                .tenant = "acme",
                .workload = "w",
                .mechanism = part_ == whole_gpu ? Mechanism::whole : Mechanism::mig,
                .tier = Tier::process,
                .gpus = {part_}};
    }
    Result<std::unique_ptr<agent::Hands>> real_hands() const {
        return agent::Hands::start({BULKHEAD_PROGRAM, "agent-hands", "--data", folder_ / "agent", "--nvml",
                                    BULKHEAD_SIM_LIBRARIES "/libnvidia-ml.so.1", "--cuda",
                                    BULKHEAD_SIM_LIBRARIES "/libcuda.so.1"});
    }
    // The same, told to leave the overwrite out, which the program itself has no word for.
    Result<std::unique_ptr<agent::Hands>> hands_that_overwrite_nothing() const {
        auto lines = agent::make_hands_lines();
        if (!lines) return std::unexpected(lines.error());
        const pid_t process = ::fork();
        if (process == 0) {
            lines->agent.close();
            for (const int inherited : {said_, alive_}) ::close(inherited);
            const int lock = ::open((folder_ / "agent/hands.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
            ::flock(lock, LOCK_EX);
            auto hardware = agent::GpuHardware::open(
                {.nvml = BULKHEAD_SIM_LIBRARIES "/libnvidia-ml.so.1",
                 .cuda = BULKHEAD_SIM_LIBRARIES "/libcuda.so.1",
                 .folder = folder_ / "agent",
                 .scrub = {BULKHEAD_PROGRAM, "scrub", "--skip-overwrite"},
                 .tenant_program = fs::path{BULKHEAD_PROGRAM}.parent_path() / "bulkhead-tenant"});
            agent::HandsLine line{std::move(lines->hands)};
            if (hardware) (void)agent::serve_hands(line, **hardware, true);
            line.close();
            if (hardware) hardware->reset();
            ::_exit(0);
        }
        lines->hands.close();
        return agent::Hands::meet(std::move(lines->agent), process);
    }

    void say(const std::string& line) const {
        const std::string whole = line + "\n";
        if (::write(said_, whole.data(), whole.size()) < 0) ::_exit(1);
    }
    void say(const Report& report) const {
        if (const auto* wipe = std::get_if<WipeReport>(&report.what)) {
            say(fmt::format("wipe {} {}", wipe->verified ? "verified" : "failed", wipe->why));
            say("evidence " + wipe->evidence.statement);
        }
        if (const auto* told = std::get_if<LeaseReport>(&report.what))
            say(fmt::format("lease {} {} {}", told->lease % (Key{1} << 32), word(told->phase), told->why));
    }
    // One life: asks for a lease first, has the GPU wiped, and asks again.
    void live(bool is_first) const {
        auto hands = overwrites_ ? real_hands() : hands_that_overwrite_nothing();
        if (!hands) return say("error " + hands.error().what);
        const Prepare before = lease(is_first ? 10 : 20), after = lease(is_first ? 11 : 21);
        // `taken`: by a lease that the life before this one was preparing, and of which we hear yet.
        bool answered = false, told = false, told_before = false, taken = false, prepared = false;
        const auto hear = [&](const Report& report) {
            say(report);
            answered = answered || std::holds_alternative<WipeReport>(report.what);
            const auto* of_lease = std::get_if<LeaseReport>(&report.what);
            if (of_lease == nullptr) return;
            told = told || of_lease->lease == after.lease;
            told_before = told_before || of_lease->lease == before.lease;
            taken = taken || of_lease->why.contains("is in use by lease");
            prepared = prepared || of_lease->phase == PartPhase::prepared;
        };
        auto runner = agent::Runner::open({.identity = {.node = "n"}, .journal = journal()},
                                          *evidence::SigningKey::from_seed(std::string(32, 'k')), *std::move(hands),
                                          hear, clock_now());
        if (!runner) return say("error " + runner.error().what);
        for (const Report& report : (*runner)->unacknowledged()) hear(report);
        if (is_first) ::raise(SIGUSR1);
        const auto order = [&](decltype(Order::what) what) {
            return (*runner)->handle(clock_now(), {1, std::move(what)}).has_value();
        };
        if (!order(before)) return say("error: the first lease");
        if (!order(Sanitize{{{UnitKind::memory, 0, part_.start, part_.size, wipe_ticket}}}))
            return say("error: the wipe");
        const auto poll_until = [&](const bool& heard) {
            for (const auto until = std::chrono::steady_clock::now() + std::chrono::minutes{2}; !heard;) {
                if (std::chrono::steady_clock::now() > until) {
                    say("error: no answer");
                    return false;
                }
                if (const auto polled = (*runner)->poll(clock_now()); !polled) {
                    say("error " + polled.error().what);
                    return false;
                }
                std::this_thread::sleep_for(std::chrono::milliseconds{2});
            }
            return true;
        };
        if (!poll_until(answered)) return;
        if (!order(after)) return say("error: the second lease");
        if (!poll_until(told) || !poll_until(told_before)) return;
        if (!taken || poll_until(prepared)) say("done");
    }
    // Runs somebody who keeps `alive_` open while he lives, and reads what he said once he does no longer, whoever of
    // his still does.
    Spoken words_of(const std::string& name, const std::function<void()>& start) {
        std::array<int, 2> life{};
        EXPECT_EQ(::pipe2(life.data(), O_CLOEXEC), 0);
        alive_ = life[1];
        const fs::path path = folder_ / name;
        said_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
        start();
        ::close(alive_);
        char nothing = 0;
        EXPECT_EQ(::read(life[0], &nothing, 1), 0);
        ::close(life[0]);
        ::close(said_);
        Spoken words;
        std::istringstream lines{slurp(path)};
        for (std::string line; std::getline(lines, line);) words.lines.push_back(line);
        return words;
    }
    Followed first_life(KillPoint point, Spoken& words) {
        Followed followed;
        words = words_of("first", [&] { followed = follow_and_kill(point, [&] { live(true); }); });
        return followed;
    }
    Spoken next_life() {
        return words_of("next", [&] {
            if (::fork() != 0) return;
            live(false);
            ::_exit(0);
        });
    }

    // --- What is tried. ---

    struct Ends {
        int verified = 0, out_of_use = 0;
    };
    // Killed at that call, and started again; false: it was over before.
    bool try_point(Whom whom, int call, Ends& ends) {
        begin_anew();
        Spoken first;
        const bool killed = first_life({static_cast<unsigned>(whom), call}, first).killed;
        expect_a_journal_that_says_nothing_wrong();
        EXPECT_FALSE(first.have("lease 10 prepared")) << "before it was wiped";
        EXPECT_FALSE(first.have("lease 11 prepared") && residue_is_there());
        const Spoken next = next_life();
        expect_a_journal_that_says_nothing_wrong();
        const std::string all = first.print() + "--- and after it:\n" + next.print();
        EXPECT_TRUE(next.have("done")) << all;
        const bool verified = first.have("wipe verified") || next.have("wipe verified");
        const bool handed_out = first.have("lease 11 prepared") || next.have("lease 11 prepared") ||
                                next.have("lease 20 prepared") || next.have("lease 21 prepared");
        EXPECT_EQ(verified, handed_out) << all;
        ++(verified ? ends.verified : ends.out_of_use);
        if (overwrites_) {
            EXPECT_FALSE(verified && residue_is_there()) << all;
            // Whoever is started again has all of it to do, and nothing in its way.
            EXPECT_TRUE(verified || whom == Whom::wiper) << all;
        } else {
            EXPECT_FALSE(verified) << all;
            EXPECT_TRUE(residue_is_there()) << "nobody overwrites here";
            EXPECT_TRUE(all.find("bytesFound") != std::string::npos || whom == Whom::wiper) << all;
        }
        return killed;
    }
    Ends try_points(Whom whom, int samples) {
        Ends ends;
        begin_anew();
        Spoken words;
        const Followed whole = first_life({static_cast<unsigned>(whom), std::numeric_limits<int>::max()}, words);
        EXPECT_FALSE(whole.killed);
        EXPECT_TRUE(words.have("done")) << words.print();
        EXPECT_GT(whole.calls, samples) << "so many would be no sample";
        const char* const wish = std::getenv("BULKHEAD_KILLS");
        const bool every = wish != nullptr && wish == std::string_view{"all"};
        const int stride = every ? 1 : std::max(1, whole.calls / samples);
        int call = 1 + static_cast<int>(clock_now().ms % stride), last = std::numeric_limits<int>::max();
        if (wish != nullptr && !every) call = last = std::atoi(wish);
        // Agents look for news as often as there is time, so that no two lives are of the same length.
        for (bool killed = true; killed && call <= last && !HasFailure(); call += stride) {
            SCOPED_TRACE(fmt::format("BULKHEAD_KILLS={} of {} calls", call, whole.calls));
            killed = try_point(whom, call, ends);
        }
        RecordProperty("calls", whole.calls);
        RecordProperty("verified", ends.verified);
        RecordProperty("out_of_use", ends.out_of_use);
        return ends;
    }

    fs::path folder_;
    int said_ = -1, alive_ = -1;
    bool overwrites_ = true;
    GpuPart part_ = whole_gpu;
};

TEST_F(WipeKilled, an_agent_killed_anywhere_is_followed_by_one_that_finishes_the_wipe) {
    const Ends ends = try_points(Whom::agent, 40);
    EXPECT_GT(ends.verified, 0);
    EXPECT_EQ(ends.out_of_use, 0);
}

TEST_F(WipeKilled, hands_killed_anywhere_are_followed_by_others_that_finish_the_wipe) {
    const Ends ends = try_points(Whom::hands, 50);
    EXPECT_GT(ends.verified, 0);
    EXPECT_EQ(ends.out_of_use, 0);
}

TEST_F(WipeKilled, a_wipe_killed_anywhere_is_not_verified) {
    const Ends ends = try_points(Whom::wiper, 50);
    EXPECT_GT(ends.out_of_use, 0);
}

// Of a GPU that is cut the instance to wipe through is made and taken apart again: more to be killed in the middle of.
TEST_F(WipeKilled, slices_are_wiped_or_out_of_use_and_their_neighbour_is_left_alone_whoever_is_killed) {
    cut();
    if (HasFatalFailure()) return;
    for (const Whom whom : {Whom::agent, Whom::hands, Whom::wiper}) {
        SCOPED_TRACE(static_cast<unsigned>(whom));
        const Ends ends = try_points(whom, 15);
        EXPECT_GT(whom == Whom::wiper ? ends.out_of_use : ends.verified, 0);
    }
}

// Red: where the overwrite is left out, no kill makes what was there count as gone.
TEST_F(WipeKilled, nothing_that_was_left_in_memory_is_let_through_by_a_kill) {
    overwrites_ = false;
    for (const Whom whom : {Whom::agent, Whom::hands, Whom::wiper}) {
        SCOPED_TRACE(static_cast<unsigned>(whom));
        EXPECT_EQ(try_points(whom, 10).verified, 0);
    }
}

}  // namespace
}  // namespace bulkhead::cli
