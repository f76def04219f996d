// The life of a tenant, in both tiers: it starts once, is seen, is stopped for good, and leaves how it ended.
#include "bulkhead/hw/container/tenants.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

#include "bulkhead/hw/container/node_test.hpp"

namespace bulkhead::container {

namespace {

class TenantLife : public Node, public testing::WithParamInterface<Tier> {
protected:
    TenantSpec wanted(LeaseKey lease, std::string script) {
        TenantSpec spec = Node::spec(lease, std::move(script));
        spec.tier = GetParam();
        return spec;
    }
    void SetUp() override {
        Node::SetUp();
        if (GetParam() == Tier::container && ::access(places.runtime.c_str(), X_OK) != 0)
            GTEST_SKIP() << places.runtime << " is not installed";
    }
    bool stop_and_wait(Tenants& tenants, LeaseKey lease, Duration grace) {
        EXPECT_TRUE(tenants.begin_stop(lease, grace));
        return eventually([&] { return tenants.stopped(lease).value_or(false); });
    }
    std::size_t processes_of(LeaseKey lease) {
        return LeaseCgroup{*find_hierarchies(), places.cgroup_parent, lease}.processes(Room::tenant).value().size();
    }
};

INSTANTIATE_TEST_SUITE_P(InBothTiers, TenantLife, testing::Values(Tier::process, Tier::container),
                         [](const auto& tier) {
                             return std::string{words(tier.param)[static_cast<std::size_t>(tier.param)]};
                         });

TEST_P(TenantLife, what_it_prints_and_how_it_ends_come_back) {
    Tenants tenants = opened();
    const Result<> started = tenants.start(wanted(1, "echo hello; echo oh >&2; exit 7"));
    ASSERT_TRUE(started) << words_of(started.error());
    const Look seen = end_of(tenants, 1);
    EXPECT_EQ(seen.state, Look::State::exited);
    EXPECT_EQ(seen.exit.code, 7);
    EXPECT_EQ(seen.exit.signal, 0);
    EXPECT_GT(seen.exit.when.ms, 1'700'000'000'000);
    EXPECT_EQ(said(tenants, 1), "hello\n");
    EXPECT_EQ(said(tenants, 1, Stream::err), "oh\n");
}

TEST_P(TenantLife, a_program_is_found_by_its_name) {
    Tenants tenants = opened();
    TenantSpec spec = wanted(1, "");
    spec.command = {"echo", "here"};
    EXPECT_EQ(output_of(tenants, spec), "here\n");
    spec = wanted(2, "");
    spec.command = {"nobody-has-this"};
    EXPECT_TRUE(output_of(tenants, spec).contains("nobody-has-this"));
}

// Process 1 of a container gets no signal that it has not asked for: alone, it is not worth an hour.
TEST_P(TenantLife, whoever_cannot_hear_that_it_is_to_end_is_not_waited_for) {
    Tenants tenants = opened();
    ASSERT_TRUE(tenants.start(wanted(1, "exec sleep 600")));
    EXPECT_TRUE(stop_and_wait(tenants, 1, Duration::hours(1)));
}

TEST_P(TenantLife, whoever_can_do_something_about_its_end_has_the_time_for_it) {
    Tenants tenants = opened();
    // A script that goes on when the program in front has ended.
    ASSERT_TRUE(tenants.start(wanted(1, "trap : USR1; echo here; sleep 600; echo after")));
    ASSERT_TRUE(eventually([&] { return said(tenants, 1) == "here\n" && processes_of(1) > 1; }));
    EXPECT_TRUE(stop_and_wait(tenants, 1, Duration::hours(1)));
    EXPECT_EQ(said(tenants, 1), GetParam() == Tier::container ? "here\nafter\n" : "here\n");
    // One that waits for the signal without a handler.
    ASSERT_TRUE(
        tenants.start(wanted(2,
                             "exec python3 -c \"import signal, time; signal.pthread_sigmask(0, [15]); "
                             "print('here', flush=True); signal.sigwait([15]); time.sleep(1); print('saved')\"")));
    ASSERT_TRUE(eventually([&] { return said(tenants, 2).starts_with("here"); }));
    EXPECT_TRUE(stop_and_wait(tenants, 2, Duration::hours(1)));
    EXPECT_TRUE(said(tenants, 2).contains("saved")) << said(tenants, 2);
}

TEST_P(TenantLife, a_signal_that_ends_it_comes_back) {
    Tenants tenants = opened();
    // Process 1 of a container is deaf to its own signals; one below it is not.
    TenantSpec spec = wanted(1, GetParam() == Tier::process ? "kill -SEGV $$" : "sh -c 'kill -SEGV $$'; exit $?");
    ASSERT_TRUE(tenants.start(spec));
    const Look seen = end_of(tenants, 1);
    ASSERT_EQ(seen.state, Look::State::exited);
    if (GetParam() == Tier::process) {
        EXPECT_EQ(seen.exit.signal, SIGSEGV);
    } else {
        EXPECT_EQ(seen.exit.code, 128 + SIGSEGV);
    }
}

TEST_P(TenantLife, a_lease_starts_once_however_often_it_is_asked_for) {
    Tenants tenants = opened();
    const TenantSpec spec = wanted(1, "echo once; sleep 1000");
    ASSERT_TRUE(tenants.start(spec));
    ASSERT_TRUE(tenants.start(spec));
    ASSERT_TRUE(opened().start(spec));
    ASSERT_TRUE(eventually([&] { return !said(tenants, 1).empty(); }));
    EXPECT_EQ(said(tenants, 1), "once\n");
    const Result<> other = tenants.start(wanted(1, "echo twice"));
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, Code::conflict);
    ASSERT_TRUE(stop_and_wait(tenants, 1, Duration{0}));
    ASSERT_TRUE(tenants.start(spec)) << "a lease that ended is not started again";
    EXPECT_EQ(tenants.look(1)->state, Look::State::exited);
    EXPECT_EQ(said(tenants, 1), "once\n");
}

TEST_P(TenantLife, who_heeds_a_request_to_end_is_not_killed) {
    Tenants tenants = opened();
    ASSERT_TRUE(tenants.start(wanted(1, "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 1000 & wait; done")));
    ASSERT_TRUE(eventually([&] { return said(tenants, 1) == "up\n"; }));
    EXPECT_FALSE(tenants.stopped(1).value()) << "nobody asked it to stop";
    EXPECT_EQ(tenants.remove(1).error().code, Code::conflict);
    ASSERT_TRUE(stop_and_wait(tenants, 1, Duration::hours(1)));
    const Look seen = tenants.look(1).value();
    EXPECT_EQ(seen.exit.code, 3);
    EXPECT_EQ(said(tenants, 1), "up\nbye\n");
}

TEST_P(TenantLife, who_does_not_is_killed_with_all_it_hid) {
    Tenants tenants = opened();
    // Children that left session and parent behind, as daemons do, and hear no signal that can be refused.
    ASSERT_TRUE(tenants.start(
        wanted(1,
               "trap '' TERM INT HUP; for i in 1 2 3; do (setsid sh -c 'sleep 1000 & exec sleep 1000' &) ; done;"
               "echo up; while :; do sleep 1000; done")));
    ASSERT_TRUE(eventually([&] { return said(tenants, 1) == "up\n" && processes_of(1) >= 8; }));
    ASSERT_TRUE(stop_and_wait(tenants, 1, Duration{20}));
    EXPECT_EQ(processes_of(1), 0u);
    const Look seen = tenants.look(1).value();
    EXPECT_EQ(seen.state, Look::State::exited);
    EXPECT_EQ(seen.exit.signal, SIGKILL);
}

TEST_P(TenantLife, what_it_leaves_running_ends_with_it) {
    Tenants tenants = opened();
    ASSERT_TRUE(tenants.start(wanted(1, "setsid sleep 1000 & sleep 1000 & echo done")));
    EXPECT_EQ(end_of(tenants, 1).exit.code, 0);
    ASSERT_TRUE(eventually([&] { return tenants.stopped(1).value(); }));
    EXPECT_EQ(processes_of(1), 0u);
}

TEST_P(TenantLife, it_outlives_whoever_started_it_and_is_known_to_the_next) {
    const TenantSpec spec =
        wanted(1, "echo up; while [ ! -e /tmp/never ] && ! read line < /job/go; do sleep 0.01; done; exit 42");
    TenantSpec with_work = spec;
    with_work.work_dir = places.directory + "/job";
    std::filesystem::create_directory(with_work.work_dir);
    ASSERT_EQ(::chown(with_work.work_dir.c_str(), spec.ids.first, spec.ids.first), 0);
    const pid_t agent = ::fork();
    if (agent == 0) {
        (void)opened().start(with_work);
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(agent, &status, 0), agent);
    ASSERT_TRUE(WIFSIGNALED(status));
    Tenants next = opened();
    EXPECT_EQ(next.leases().value(), std::vector<LeaseKey>{1});
    EXPECT_EQ(next.look(1)->state, Look::State::running);
    std::ofstream{with_work.work_dir + "/go"} << "go\n";
    const Look seen = end_of(next, 1);
    EXPECT_EQ(seen.state, Look::State::exited);
    EXPECT_EQ(seen.exit.code, 42);
}

TEST_P(TenantLife, a_start_that_fails_says_why_and_leaves_nothing_running) {
    Tenants tenants = opened();
    TenantSpec spec = wanted(1, "");
    spec.command = {"/usr/bin/no-such-program"};
    const Result<> started = tenants.start(spec);
    ASSERT_FALSE(started);
    EXPECT_TRUE(started.error().what.contains("no-such-program")) << words_of(started.error());
    EXPECT_EQ(tenants.look(1)->state, Look::State::failed);
    EXPECT_TRUE(eventually([&] { return tenants.stopped(1).value(); }));
    EXPECT_FALSE(tenants.start(spec)) << "and says so again";
}

TEST_P(TenantLife, a_keeper_that_is_killed_is_noticed) {
    Tenants tenants = opened();
    ASSERT_TRUE(tenants.start(wanted(1, "sleep 1000")));
    const LeaseCgroup group{*find_hierarchies(), places.cgroup_parent, 1};
    const std::vector<pid_t> keepers = group.processes(Room::keeper).value();
    ASSERT_EQ(keepers.size(), 1u);
    for (const pid_t keeper : keepers) ::kill(keeper, SIGKILL);
    if (GetParam() == Tier::container) {
        // The container runs on, seen by its control group, and can be stopped.
        ASSERT_TRUE(eventually([&] { return group.processes(Room::keeper)->empty(); }));
        EXPECT_EQ(tenants.look(1)->state, Look::State::running);
        ASSERT_TRUE(stop_and_wait(tenants, 1, Duration{0}));
    }
    EXPECT_EQ(end_of(tenants, 1).state, Look::State::lost);
    EXPECT_TRUE(eventually([&] { return tenants.stopped(1).value(); }));
}

TEST_P(TenantLife, a_lease_that_is_removed_is_as_if_it_never_was) {
    Tenants tenants = opened();
    ASSERT_TRUE(tenants.start(wanted(1, "echo first; exit 1")));
    end_of(tenants, 1);
    ASSERT_TRUE(eventually([&] { return tenants.stopped(1).value(); }));
    ASSERT_TRUE(tenants.remove(1));
    ASSERT_TRUE(tenants.remove(1));
    EXPECT_EQ(tenants.look(1)->state, Look::State::unknown);
    EXPECT_TRUE(tenants.leases()->empty());
    EXPECT_EQ(said(tenants, 1), "");
    for (const std::string& tree : find_hierarchies()->all())
        EXPECT_FALSE(std::filesystem::exists(tree + "/" + places.cgroup_parent + "/lease-1")) << tree;
    ASSERT_TRUE(tenants.start(wanted(1, "echo second"))) << "its number may be used again";
    EXPECT_EQ(end_of(tenants, 1).exit.code, 0);
    EXPECT_EQ(said(tenants, 1), "second\n");
}

TEST_P(TenantLife, only_the_latest_of_a_long_log_is_kept) {
    Tenants tenants = opened();
    TenantSpec spec = wanted(1, "i=0; while [ $i -lt 4000 ]; do printf '%099d\\n' $i; i=$((i+1)); done");
    spec.limits.log_bytes = 65'536;
    ASSERT_TRUE(tenants.start(spec));
    end_of(tenants, 1);
    const LogPiece piece = tenants.log(1, Stream::out, 0, 1 << 20).value();
    EXPECT_LE(piece.bytes.size(), 65'536u);
    EXPECT_GE(piece.bytes.size(), 32'768u);
    EXPECT_EQ(piece.next(), 400'000);
    EXPECT_TRUE(piece.bytes.ends_with("3999\n"));
    const LogPiece tail = tenants.log(1, Stream::out, 399'995, 3).value();
    EXPECT_EQ(tail.bytes, "399");
    EXPECT_EQ(tail.from, 399'995);
    EXPECT_EQ(tenants.log(1, Stream::out, 400'000, 100)->bytes, "");
}

TEST_P(TenantLife, a_lease_told_to_stop_before_it_began_never_begins) {
    Tenants tenants = opened();
    const TenantSpec spec = wanted(1, "echo up");
    // What a death between record and keeper leaves.
    const LeaseFiles files{places.directory + "/lease-1"};
    ASSERT_TRUE(files.make());
    ASSERT_TRUE(files.write(spec));
    EXPECT_EQ(tenants.look(1)->state, Look::State::unknown);
    ASSERT_TRUE(tenants.begin_stop(1, Duration{0}));
    EXPECT_TRUE(tenants.stopped(1).value());
    EXPECT_EQ(tenants.start(spec).error().code, Code::conflict);
    EXPECT_EQ(said(tenants, 1), "");
}

class Strays : public Node {};

TEST_F(Strays, a_lease_nobody_knows_is_unknown_and_stopped) {
    Tenants tenants = opened();
    EXPECT_EQ(tenants.look(5)->state, Look::State::unknown);
    EXPECT_TRUE(tenants.stopped(5).value());
    EXPECT_TRUE(tenants.begin_stop(5, Duration{0}));
    EXPECT_TRUE(tenants.remove(5));
}

TEST_F(Strays, processes_without_a_record_are_seen_and_can_be_stopped) {
    Tenants tenants = opened();
    ASSERT_TRUE(tenants.start(spec(1, "sleep 1000")));
    std::filesystem::remove_all(places.directory + "/lease-1");
    EXPECT_EQ(tenants.look(1)->state, Look::State::running);
    EXPECT_EQ(tenants.start(spec(1, "echo")).error().code, Code::conflict);
    ASSERT_TRUE(tenants.begin_stop(1, Duration{0}));
    EXPECT_TRUE(eventually([&] { return tenants.stopped(1).value_or(false); }));
}

TEST_F(Strays, a_damaged_record_is_an_error_and_not_a_guess) {
    Tenants tenants = opened();
    ASSERT_TRUE(tenants.start(spec(1, "exit 0")));
    end_of(tenants, 1);
    std::ofstream{places.directory + "/lease-1/outcome.json"} << "{\"version\":1,\"state\":\"happy\"}";
    ASSERT_FALSE(tenants.look(1));
    EXPECT_EQ(tenants.look(1).error().code, Code::corrupt);
}

TEST_F(Strays, what_the_host_contradicts_is_refused) {
    Tenants tenants = opened();
    TenantSpec renumbered = spec(1, "echo");
    renumbered.devices = {{"/dev/null", 'c', 1, 3}};
    EXPECT_FALSE(tenants.start(renumbered)) << "null is always there";
    renumbered.devices = {{"/dev/kmsg", 'c', 1, 12}};
    ASSERT_FALSE(tenants.start(renumbered));
    EXPECT_TRUE(tenants.start(renumbered).error().what.contains("1:11"));
    TenantSpec anothers = spec(2, "echo");
    anothers.work_dir = "/etc";
    ASSERT_FALSE(tenants.start(anothers));
    EXPECT_TRUE(tenants.start(anothers).error().what.contains("its owner is 0"));
    EXPECT_TRUE(tenants.leases()->empty());
}

}  // namespace

}  // namespace bulkhead::container
