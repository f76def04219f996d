// Saving a tenant's work, in both tiers: by its own command, in its own world, once and for a bounded time.
#include "bulkhead/hw/container/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "bulkhead/hw/container/node_test.hpp"

namespace bulkhead::container {

namespace {

using testing::HasSubstr;

class Saving : public Node, public testing::WithParamInterface<Tier> {
protected:
    void SetUp() override {
        Node::SetUp();
        if (GetParam() == Tier::container && ::access(places.runtime.c_str(), X_OK) != 0)
            GTEST_SKIP() << places.runtime << " is not installed";
    }
    TenantSpec wanted(LeaseKey lease, std::string script, std::string saver) {
        TenantSpec spec = Node::spec(lease, std::move(script));
        spec.tier = GetParam();
        if (!saver.empty()) spec.checkpoint = {"sh", "-c", std::move(saver)};
        return spec;
    }
    // Starts it and waits until it has said "up".
    void run(Tenants& tenants, const TenantSpec& spec) {
        const Result<> started = tenants.start(spec);
        ASSERT_TRUE(started) << words_of(started.error());
        ASSERT_TRUE(eventually([&] { return said(tenants, spec.lease).starts_with("up\n"); }));
    }
    Checkpoint saved(Tenants& tenants, LeaseKey lease, Duration within = Duration::hours(1)) {
        Checkpoint found;
        EXPECT_TRUE(eventually([&] {
            const auto checkpoint = tenants.save(lease, within);
            EXPECT_TRUE(checkpoint) << words_of(checkpoint.error());
            if (checkpoint && *checkpoint) found = **checkpoint;
            return !checkpoint || checkpoint->has_value();
        }));
        return found;
    }
    std::vector<pid_t> processes_of(LeaseKey lease, Room room) {
        return LeaseCgroup{*find_hierarchies(), places.cgroup_parent, lease}.processes(room).value();
    }
};

INSTANTIATE_TEST_SUITE_P(InBothTiers, Saving, testing::Values(Tier::process, Tier::container), [](const auto& tier) {
    return std::string{words(tier.param)[static_cast<std::size_t>(tier.param)]};
});

constexpr const char* works = "echo 41 > /job/step; echo up; while :; do sleep 1000 & wait; done";

TEST_P(Saving, it_sees_the_work_and_what_it_prints_comes_back) {
    Tenants tenants = opened();
    TenantSpec spec = wanted(1, works, "echo step $(cat step) of $NAME");
    spec.environment.emplace_back("NAME", "acme");
    run(tenants, spec);
    EXPECT_EQ(saved(tenants, 1), (Checkpoint{true, "step 41 of acme"}));
    EXPECT_EQ(tenants.look(1)->state, Look::State::running) << "it is saved, not stopped";
}

TEST_P(Saving, it_can_tell_the_work_to_save_itself) {
    Tenants tenants = opened();
    run(tenants, wanted(1, "trap 'echo 42 > /job/saved' USR1; echo up; while :; do sleep 1000 & wait; done",
                        "kill -USR1 $BULKHEAD_PID; while ! test -s saved; do sleep 0.01; done; cat saved"));
    EXPECT_EQ(saved(tenants, 1), (Checkpoint{true, "42"}));
}

TEST_P(Saving, it_is_no_more_than_the_tenant_is) {
    Tenants tenants = opened();
    run(tenants, wanted(1, works, R"sh(
        grep CapEff /proc/self/status | grep -q 0000000000000000 || { echo it has capabilities; exit 1; }
        grep -q 'NoNewPrivs:.*1' /proc/self/status || { echo it may gain privileges; exit 1; }
        grep -q 'Seccomp:.*2' /proc/self/status || { echo no filter; exit 1; }
        touch /usr/mine 2>/dev/null && { echo it writes to the system; exit 1; }
        # Of a program that was started: the shell's own come and go with its pipes.
        ls /proc/self/fd > fds; test "$(wc -l < fds)" -le 4 || { echo open: $(cat fds); exit 1; }
        test "$(hostname)" = lease-1 || { echo another host name; exit 1; }
        grep -c : /proc/net/dev; id -u)sh"));
    const Checkpoint checkpoint = saved(tenants, 1);
    EXPECT_TRUE(checkpoint.saved) << checkpoint.words;
    // One network device, the loopback; and the tenant's own user.
    const std::uint32_t user = GetParam() == Tier::process ? first_id(1) : 0;
    EXPECT_EQ(checkpoint.words, fmt::format("1\n{}", user));
}

TEST_P(Saving, it_counts_against_the_tenants_limits_and_goes_with_the_tenant) {
    Tenants tenants = opened();
    run(tenants, wanted(1, works, "echo begun; trap '' TERM; while :; do sleep 1000; done"));
    const std::size_t before = processes_of(1, Room::tenant).size();
    ASSERT_FALSE(tenants.save(1, Duration::hours(1))->has_value());
    ASSERT_TRUE(eventually([&] { return processes_of(1, Room::tenant).size() > before; }));
    ASSERT_TRUE(tenants.begin_stop(1, Duration{0}));
    ASSERT_TRUE(eventually([&] { return tenants.stopped(1).value_or(false); })) << "what saves does not hold up a stop";
    EXPECT_TRUE(processes_of(1, Room::tenant).empty());
    EXPECT_FALSE(saved(tenants, 1).saved);
}

TEST_P(Saving, one_that_fails_or_takes_too_long_or_says_too_much_has_not_saved) {
    Tenants tenants = opened();
    run(tenants, wanted(1, works, "echo half; echo the disk is full >&2; exit 4"));
    Checkpoint checkpoint = saved(tenants, 1);
    EXPECT_FALSE(checkpoint.saved);
    EXPECT_THAT(checkpoint.words, HasSubstr("status 4: the disk is full"));

    run(tenants, wanted(2, works, "sleep 1000"));
    checkpoint = saved(tenants, 2, Duration{50});
    EXPECT_FALSE(checkpoint.saved);
    EXPECT_THAT(checkpoint.words, HasSubstr("longer than 50 ms"));

    run(tenants, wanted(3, works, "head -c 100000 /dev/zero | tr '\\0' x"));
    checkpoint = saved(tenants, 3);
    EXPECT_FALSE(checkpoint.saved);
    EXPECT_THAT(checkpoint.words, HasSubstr("more than 2048 bytes"));

    TenantSpec spec = wanted(4, works, "");
    spec.checkpoint = {"/nobody/has/this"};
    run(tenants, spec);
    checkpoint = saved(tenants, 4);
    EXPECT_FALSE(checkpoint.saved);
    EXPECT_THAT(checkpoint.words, HasSubstr("/nobody/has/this"));
}

TEST_P(Saving, it_is_run_once_however_often_it_is_asked_for) {
    Tenants tenants = opened();
    run(tenants, wanted(1, works, "echo x >> times; wc -l < times"));
    EXPECT_EQ(saved(tenants, 1), (Checkpoint{true, "1"}));
    Tenants another = opened();
    EXPECT_EQ(saved(another, 1), (Checkpoint{true, "1"}));
}

TEST_P(Saving, what_was_killed_at_it_has_not_saved_and_is_not_run_again) {
    Tenants tenants = opened();
    run(tenants, wanted(1, works, "echo x >> times; sleep 1000"));
    const auto keepers = processes_of(1, Room::keeper);
    ASSERT_FALSE(tenants.save(1, Duration::hours(1))->has_value());
    pid_t saver = 0;
    ASSERT_TRUE(eventually([&] {
        for (const pid_t process : processes_of(1, Room::keeper))
            if (saver == 0 && std::ranges::find(keepers, process) == keepers.end()) saver = process;
        return saver != 0;
    }));
    ASSERT_EQ(::kill(saver, SIGKILL), 0);
    const Checkpoint checkpoint = saved(tenants, 1);
    EXPECT_FALSE(checkpoint.saved);
    EXPECT_THAT(checkpoint.words, HasSubstr("killed"));
}

TEST_P(Saving, one_without_such_a_command_or_that_has_ended_says_so) {
    Tenants tenants = opened();
    run(tenants, wanted(1, works, ""));
    EXPECT_THAT(saved(tenants, 1).words, HasSubstr("no checkpoint command"));
    run(tenants, wanted(2, "echo up", "echo saved"));
    end_of(tenants, 2);
    const Checkpoint checkpoint = saved(tenants, 2);
    EXPECT_FALSE(checkpoint.saved);
    EXPECT_THAT(checkpoint.words, HasSubstr("not running"));
    EXPECT_FALSE(saved(tenants, 19).saved) << "a lease nobody knows";
}

}  // namespace

}  // namespace bulkhead::container
