#include "bulkhead/core/goodput.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/core/plane_test.hpp"

namespace bulkhead {
namespace {

using testing::ElementsAre;

GpuLeaseStatus two_gpus(std::int64_t bound, std::int64_t active, std::int64_t ended) {
    return {.phase = LeasePhase::ending,
            .gpus = Gpus::whole(2),
            .boundAt = Instant{bound},
            .activeAt = Instant{active},
            .endedAt = Instant{ended}};
}

evidence::Record closed_at(std::int64_t ms, std::map<std::string, std::string> detail) {
    return {
        .kind = evidence::RecordKind::lease_closed, .at = Instant{ms}, .actor = "core", .detail = std::move(detail)};
}

TEST(Goodput, is_what_ran_and_was_not_lost) {
    using enum Fate;
    using enum Knowledge;
    struct Row {
        std::string_view says;
        std::map<std::string, std::string> detail;
        std::vector<GpuTime> ran;  // in millionths of a GPU-second
    };
    const Row rows[] = {
        {"whoever deletes its work had what it wanted", {}, {{kept, measurement, 20'000'000}}},
        {"a command that ended well", {{"exit-status", "0"}}, {{kept, measurement, 20'000'000}}},
        {"one that did not", {{"exit-status", "137"}}, {{failed, measurement, 20'000'000}}},
        {"saved on every node, by the word of its own command",
         {{"lost-gpu-ms", "0"}, {"lost-basis", "saved"}},
         {{kept, measurement, 20'000'000}}},
        {"it says how often it saves itself",
         {{"lost-gpu-ms", "4000"}, {"lost-basis", "interval"}},
         {{kept, estimate, 16'000'000}, {lost, estimate, 4'000'000}}},
        {"nothing is known to be saved",
         {{"lost-gpu-ms", "20000"}, {"lost-basis", "start"}},
         {{lost, estimate, 20'000'000}}},
        {"more lost than there was", {{"lost-gpu-ms", "99999"}}, {{lost, estimate, 20'000'000}}},
        {"less than nothing", {{"lost-gpu-ms", "-5"}}, {{kept, estimate, 20'000'000}}},
    };
    for (const Row& row : rows) {
        std::vector<GpuTime> expected{{preparing, measurement, 2'000'000}};
        expected.insert(expected.end(), row.ran.begin(), row.ran.end());
        expected.push_back({ending, measurement, 6'000'000});
        for (GpuTime& part : expected) part.unit_ms *= gpu_unit / 1000;
        EXPECT_EQ(divide_time(two_gpus(1'000, 2'000, 12'000), closed_at(15'000, row.detail)), expected) << row.says;
    }
}

TEST(Goodput, a_lease_that_never_became_active_has_none) {
    GpuLeaseStatus status = two_gpus(1'000, 0, 4'000);
    status.activeAt.reset();
    EXPECT_THAT(divide_time(status, closed_at(5'000, {})),
                ElementsAre(GpuTime{Fate::preparing, Knowledge::measurement, 6'000 * gpu_unit},
                            GpuTime{Fate::ending, Knowledge::measurement, 2'000 * gpu_unit}));
}

TEST(Goodput, parts_add_up_to_the_whole) {
    for (std::uint64_t seed = 1; seed <= 500; ++seed) {
        Rng rng{seed};
        const std::int64_t bound = rng.between(0, 1'000'000), active = bound + rng.between(0, 100'000),
                           ended = active + rng.between(0, 10'000'000), closed = ended + rng.between(0, 100'000);
        GpuLeaseStatus status = two_gpus(bound, active, ended);
        status.gpus = {rng.between(1, 16 * gpu_unit)};
        std::map<std::string, std::string> detail;
        if (rng.chance(500)) detail["lost-gpu-ms"] = std::to_string(rng.between(0, 20'000'000));
        if (rng.chance(200)) detail["exit-status"] = std::to_string(rng.between(0, 255));
        std::int64_t sum = 0;
        for (const GpuTime& part : divide_time(status, closed_at(closed, detail))) sum += part.unit_ms;
        EXPECT_EQ(sum, (closed - bound) * status.gpus.units) << "seed " << seed;
    }
}

// Two nodes, and two tenants of one lab: who is owed nothing gets what is idle.
struct Ends : Plane {
    Ends() : Plane{2} {
        apply_a_lab();
        submit("gang", "early", 4);
        settle();
        EXPECT_EQ(workload("gang").status->phase, WorkloadPhase::running);
        settle(600);
    }
    void submit(const std::string& name, const std::string& owner, int tasks) {
        const Answer answer = apply("apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {name: " + name +
                                    "}\nspec: {tenant: " + owner + ", gpu: {count: 1, mechanism: whole}, tasks: " +
                                    std::to_string(tasks) + ", preemptible: true}\n");
        ASSERT_TRUE(answer.outcome) << answer.outcome.error().what;
    }
    evidence::Record last(std::string_view kind) const {
        for (auto entry = log.rbegin(); entry != log.rend(); ++entry)
            if (entry->starts_with("{\"kind\":\"" + std::string{kind} + "\"") && entry->contains("GpuWorkload/gang"))
                return evidence::read_record(*entry).value_or(evidence::Record{});
        return {};
    }
    EndCause cause() const {
        const evidence::Record ending = last("lease-ending");
        const auto why = ending.detail.find("why");
        return why == ending.detail.end() ? EndCause::other : cause_of_end(why->second);
    }
};

// The words are the core's own, as it says them when each of these happens.
TEST(Goodput, why_a_lease_ended_is_told_by_its_own_words) {
    struct Row {
        std::string_view says;
        std::function<void(Ends&)> happens;
        EndCause cause;
        bool interrupted;
    };
    const Row rows[] = {
        {"its owner deletes it", [](Ends& plane) { plane.remove(ObjectKind::workload, "gang"); }, EndCause::owner,
         false},
        {"somebody is owed what it was lent", [](Ends& plane) { plane.submit("claim", "owner", 2); },
         EndCause::reclaimed, true},
        {"an operator drains its node", [](Ends& plane) { plane.ask(command::Drain{.node = "n0"}); }, EndCause::drained,
         true},
        {"its tenant is frozen",
         [](Ends& plane) { plane.ask(command::Freeze{.tenant = "early", .why = "an incident"}); }, EndCause::policy,
         true},
        {"a GPU falls off the bus",
         [](Ends& plane) { plane.fault("n0", {UnitKind::memory, 0, "it has fallen off the bus"}); }, EndCause::device,
         true},
    };
    for (const Row& row : rows) {
        Ends plane;
        row.happens(plane);
        plane.settle(120);
        EXPECT_EQ(plane.cause(), row.cause) << row.says;
        const evidence::Record closed = plane.last("lease-closed");
        EXPECT_EQ(closed.detail.contains("lost-gpu-ms"), row.interrupted) << row.says;
        EXPECT_EQ(closed.detail.contains("lost-basis"), row.interrupted) << row.says;
    }
}

}  // namespace
}  // namespace bulkhead
