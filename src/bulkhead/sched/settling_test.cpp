// Nothing goes round in circles: after anything that happens, evicted work waits again and the engine comes to rest.
#include "bulkhead/base/rng.hpp"
#include "bulkhead/sched/engine_test.hpp"

// A sanitizer makes a search for victims ten times slower.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BULKHEAD_FEWER_STORIES
#endif
#endif

namespace bulkhead::sched {
namespace {

#ifdef BULKHEAD_FEWER_STORIES
constexpr std::uint64_t stories = 75;
#else
constexpr std::uint64_t stories = 600;
#endif

struct Story : Play {
    Rng rng;
    std::vector<TenantFacts> facts;
    std::vector<std::string> alive;
    int made = 0;

    explicit Story(std::uint64_t seed) : rng{seed} {
        const auto count = static_cast<std::size_t>(rng.between(2, 5));
        for (std::size_t i = 0; i < count; ++i) {
            const std::int64_t guarantee = rng.between(0, 5);
            const std::int64_t weight = rng.between(0, 3);
            facts.push_back(team("t" + std::to_string(i), guarantee, weight));
            facts.back().domain = static_cast<std::uint32_t>(rng.between(1, 3));
            if (i > 0 && rng.below(3) == 0) facts.back().parent = rng.below(i);
            if (rng.below(6) == 0) facts.back().hard = facts.back().guarantee > Gpus{};
        }
        tenants(facts);
        const std::int64_t machines = rng.between(1, 4);
        for (std::int64_t i = 0; i < machines; ++i)
            node({.name = "n" + std::to_string(i), .gpus = static_cast<std::size_t>(rng.between(2, 8))});
    }

    void arrive() {
        JobRow row{.name = "j" + std::to_string(made++)};
        row.tenant = static_cast<TenantNo>(rng.below(facts.size()));
        row.gpus = rng.between(1, 3);
        row.priority = rng.between(0, 2);
        row.preemptible = rng.below(5) != 0;
        if (rng.below(3) == 0) {
            row.tasks = static_cast<std::int32_t>(rng.between(2, 6));
            row.gpus = 1;
            row.least = static_cast<std::int32_t>(rng.between(1, row.tasks));
        }
        if (rng.below(5) == 0) row.share = 100 * rng.between(1, 9);
        if (rng.below(3) == 0)
            row.sharing = {PeerTrust::same_tenant, PeerTrust::same_tenant, PeerTrust::same_tenant,
                           PeerTrust::same_tenant};
        submit(row);
        alive.push_back(row.name);
    }
    void depart() {
        if (alive.empty()) return;
        const std::size_t at = rng.below(alive.size());
        engine.finish(jobs.at(alive[at]));
        alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
    }
    void change_a_limit() {
        TenantFacts& tenant = facts[rng.below(facts.size())];
        if (rng.below(3) == 0)
            tenant.limit.reset();
        else
            tenant.limit = Gpus::whole(rng.between(0, 6));
        if (rng.below(3) == 0) tenant.guarantee = Gpus::whole(rng.between(0, 5));
        tenants(facts);
    }
    // No tenant leases more than its limit, unless the statement says so.
    void check_limits() const {
        for (TenantNo tenant = 0; tenant < facts.size(); ++tenant) {
            if (!facts[tenant].limit) continue;
            const bool told = std::ranges::find(last.over_limit, tenant, &OverLimit::tenant) != last.over_limit.end();
            EXPECT_TRUE(Gpus{engine.held(tenant)} <= *facts[tenant].limit || told) << facts[tenant].name;
        }
    }
};

TEST(Settling, every_story_comes_to_rest_within_a_thousand_cycles) {
    int longest = 0;
    for (std::uint64_t seed = 1; seed <= stories; ++seed) {
        SCOPED_TRACE(seed);
        Story story{seed};
        for (int step = 0; step < 12; ++step) {
            for (std::uint64_t n = story.rng.below(4); n > 0; --n) story.arrive();
            if (story.rng.below(3) == 0) story.depart();
            if (story.rng.below(4) == 0) story.change_a_limit();
            story.later(Duration{story.rng.between(0, 20) * 60'000});
            longest = std::max(longest, story.settle(1000));
            story.check_limits();
            if (::testing::Test::HasFailure()) return;
        }
    }
    EXPECT_LT(longest, 100);
}

}  // namespace
}  // namespace bulkhead::sched
