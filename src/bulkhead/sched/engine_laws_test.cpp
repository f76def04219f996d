// What holds whatever happens: random fleets, tenants and work; checked by code that shares nothing with the engine.
#include <numeric>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/sched/engine_test.hpp"
#include "bulkhead/sched/fleet_index.hpp"

namespace bulkhead::sched {
namespace {

struct Alive {
    JobRow row;
    JobNo job = 0;
};

struct World : Play {
    Rng rng;
    std::vector<TenantFacts> facts;
    std::vector<Alive> alive;
    int made = 0;
    std::size_t gpus_of_node = 0;

    static EngineSettings settings_of(std::uint64_t seed) {
        EngineSettings settings;
        settings.grow = seed % 3 != 0;
        return settings;
    }

    explicit World(std::uint64_t seed) : Play{settings_of(seed)}, rng{seed} {
        const auto count = static_cast<std::size_t>(rng.between(2, 5));
        for (std::size_t i = 0; i < count; ++i) {
            TenantFacts facts_of = team("t" + std::to_string(i), rng.between(0, 4), rng.between(0, 3));
            facts_of.domain = static_cast<std::uint32_t>(rng.between(1, 2));
            if (i > 0 && rng.below(3) == 0) facts_of.parent = rng.below(i);
            if (rng.below(4) == 0) facts_of.limit = Gpus::whole(rng.between(2, 10));
            if (rng.below(6) == 0 && facts_of.guarantee.thousandths > 0) facts_of.hard = true;
            facts_of.usage = rng.between(0, 1000);
            facts.push_back(facts_of);
        }
        tenants(facts);
        gpus_of_node = static_cast<std::size_t>(rng.between(1, 4));
        const auto machines = static_cast<std::size_t>(rng.between(1, 5));
        for (std::size_t i = 0; i < machines; ++i)
            node({.name = "n" + std::to_string(i),
                  .gpus = gpus_of_node,
                  .zone = "z" + std::to_string(i / 3),
                  .leaf = "l" + std::to_string(i / 2),
                  .cpu = rng.between(4, 16)});
    }

    void arrive() {
        JobRow row{.name = "j" + std::to_string(made++)};
        row.tenant = static_cast<TenantNo>(rng.below(facts.size()));
        row.priority = rng.between(0, 2);
        row.cpu = rng.between(0, 3);
        row.preemptible = rng.below(5) != 0;
        switch (rng.below(5)) {
            case 0:
                row.share = 100 * rng.between(1, 9);
                break;
            case 1:
                row.profile = rng.below(2) == 0 ? "1g.10gb" : "3g.40gb";
                break;
            case 2:
                row.gpus = rng.between(1, static_cast<std::int64_t>(gpus_of_node));
                row.tasks = static_cast<std::int32_t>(rng.between(2, 4));
                if (rng.below(2) == 0) row.least = static_cast<std::int32_t>(rng.between(1, row.tasks));
                if (row.least == 0 && rng.below(2) == 0) row.within = TopologyLevel::leaf;
                break;
            default:
                row.gpus = rng.between(1, static_cast<std::int64_t>(gpus_of_node));
        }
        const auto scope = static_cast<PeerTrust>(rng.below(3));
        row.sharing = {scope, scope, std::min(scope, PeerTrust::same_domain), scope};
        row.on_host_kernel = scope != PeerTrust::distrusting;
        if (rng.below(2) == 0) row.duration = Duration{rng.between(1, 100) * 60'000};
        if (rng.below(2) == 0) row.checkpoint = Duration{rng.between(1, 100) * 60'000};
        const JobNo job = submit(row);
        alive.push_back({row, job});
    }

    void depart() {
        std::vector<std::size_t> candidates;
        for (std::size_t i = 0; i < alive.size(); ++i)
            if (engine.running(alive[i].job)) candidates.push_back(i);
        if (candidates.empty()) return;
        const std::size_t at = candidates[rng.below(candidates.size())];
        engine.finish(alive[at].job);
        alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
    }

    std::uint32_t domain(TenantNo tenant) const { return facts[tenant].domain; }
    PeerTrust trust(TenantNo a, TenantNo b) const {
        if (a == b) return PeerTrust::same_tenant;
        return domain(a) == domain(b) ? PeerTrust::same_domain : PeerTrust::distrusting;
    }

    void check() const {
        struct Sitting {
            const Alive* who;
            TaskSeat task;
        };
        std::vector<std::vector<Sitting>> by_node(nodes.size());
        std::vector<std::int64_t> held(facts.size());
        for (const Alive& each : alive) {
            const std::vector<TaskSeat> tasks = engine.seats(each.job);
            if (engine.running(each.job)) {
                EXPECT_GE(std::ssize(tasks), each.row.least > 0 ? each.row.least : each.row.tasks) << each.row.name;
            }
            for (const TaskSeat& task : tasks) by_node[task.node].push_back({&each, task});
            const std::int64_t each_counts = !each.row.profile.empty() ? 125
                                             : each.row.share < 1000   ? each.row.share
                                                                       : each.row.gpus * 1000;
            for (std::optional<std::size_t> up = each.row.tenant; up; up = facts[*up].parent)
                held[*up] += std::ssize(tasks) * each_counts;
            if (!tasks.empty() && each.row.within == TopologyLevel::leaf)
                for (const TaskSeat& task : tasks) {
                    EXPECT_EQ(task.node / 2, tasks.front().node / 2) << each.row.name;
                }
        }
        for (std::size_t t = 0; t < facts.size(); ++t) {
            EXPECT_EQ(held[t], engine.held(static_cast<TenantNo>(t)));
            EXPECT_LE(held[t], facts[t].limit.value_or(Gpus::whole(1'000'000)).thousandths);
            EXPECT_TRUE(!facts[t].hard || held[t] <= facts[t].guarantee.thousandths);
        }
        for (const std::vector<Sitting>& here : by_node)
            for (std::size_t a = 0; a < here.size(); ++a)
                for (std::size_t b = a + 1; b < here.size(); ++b) {
                    const JobRow &x = here[a].who->row, &y = here[b].who->row;
                    const PeerTrust between = trust(x.tenant, y.tenant);
                    EXPECT_LE(between, std::min(x.sharing.node, y.sharing.node)) << x.name << " beside " << y.name;
                    EXPECT_TRUE(between != PeerTrust::distrusting || (!x.on_host_kernel && !y.on_host_kernel));
                    for (const std::uint16_t g : here[a].task.gpus)
                        for (const std::uint16_t h : here[b].task.gpus) {
                            if (g != h) continue;
                            const Seat &s = here[a].task.seats.front(), &t = here[b].task.seats.front();
                            EXPECT_LE(between, std::min(x.sharing.gpu, y.sharing.gpu));
                            const bool overlap = s.start < t.start + t.size && t.start < s.start + s.size;
                            if (!overlap) continue;
                            EXPECT_TRUE(s.share < 1000 && t.share < 1000) << x.name << " over " << y.name;
                            EXPECT_LE(between, std::min(x.sharing.instance, y.sharing.instance));
                        }
                }
        for (const std::vector<Sitting>& here : by_node) {
            std::vector<std::int64_t> shares(gpus_of_node);
            for (const Sitting& sitting : here)
                if (sitting.who->row.profile.empty())
                    for (const std::uint16_t g : sitting.task.gpus) shares[g] += sitting.task.seats.front().share;
            for (const std::int64_t share : shares) EXPECT_LE(share, 1000);
        }
    }

    std::string told() const {
        std::string out;
        for (const Alive& each : alive) {
            out += each.row.name + ":";
            for (const TaskSeat& task : engine.seats(each.job)) {
                out += " " + std::to_string(task.node) + "/";
                for (const std::uint16_t gpu : task.gpus) out += std::to_string(gpu) + ",";
            }
            out += "\n";
        }
        return out;
    }
};

TEST(EngineLaws, hold_for_random_work) {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        SCOPED_TRACE(seed);
        World world{seed};
        for (int step = 0; step < 30; ++step) {
            for (std::uint64_t n = world.rng.below(4); n > 0; --n) world.arrive();
            if (world.rng.below(2) == 0) world.depart();
            world.later(Duration{world.rng.between(0, 20) * 60'000});
            world.cycle();
            world.check();
            world.stop_evicted();
            world.check();
            if (::testing::Test::HasFailure()) return;
        }
    }
}

TEST(EngineLaws, nothing_moves_any_more_without_new_input) {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        SCOPED_TRACE(seed);
        World world{seed};
        for (int n = 0; n < 25; ++n) {
            world.arrive();
            if (n % 5 == 4) world.settle(60);
        }
        world.settle(60);
        // Time passes, usage is counted, deadlines near: still nobody is disturbed for nothing new.
        std::size_t disturbed = 0;
        for (int n = 0; n < 20; ++n) {
            world.later(Duration{60'000});
            world.cycle();
            disturbed += world.last.evict.size() + world.last.move.size();
            world.stop_evicted();
        }
        EXPECT_LE(disturbed, 2u);
        if (::testing::Test::HasFailure()) return;
    }
}

TEST(EngineLaws, the_same_story_has_the_same_end) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const auto play = [&] {
            World world{seed};
            for (int step = 0; step < 20; ++step) {
                world.arrive();
                world.arrive();
                world.depart();
                world.cycle();
                world.stop_evicted();
            }
            return world.told();
        };
        EXPECT_EQ(play(), play());
    }
}

// A thousand cycles with the same forty jobs, whatever is evicted waits again, one job ends and one comes now and then.
TEST(EngineLaws, a_long_soak_does_not_churn) {
    World world{7};
    for (int n = 0; n < 40; ++n) world.arrive();
    std::size_t evictions = 0, inputs = 40;
    for (int cycle = 0; cycle < 1000; ++cycle) {
        world.later(Duration{30'000});
        if (cycle % 20 == 19) {
            world.depart();
            world.arrive();
            inputs += 2;
        }
        world.cycle();
        evictions += world.last.evict.size() + world.last.move.size();
        world.stop_evicted();
    }
    world.check();
    EXPECT_LE(evictions, 3 * inputs);
}

// The index finds what looking at every node finds.
TEST(EngineLaws, a_single_task_gets_the_best_of_all_nodes) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(seed);
        Rng rng{seed};
        FleetIndex index;
        index.set_domains({1, 1, 2, 0});
        const auto machines = static_cast<NodeNo>(rng.between(3, 12));
        for (NodeNo n = 0; n < machines; ++n) {
            Node node = node_of({.name = "n" + std::to_string(n), .gpus = static_cast<std::size_t>(rng.between(1, 4))});
            node.cpu_free = rng.between(2, 12);
            index.add_node(node);
        }
        std::vector<std::pair<Job, ShapeNo>> kinds;
        for (int k = 0; k < 8; ++k) {
            JobRow row{.name = "k"};
            row.cpu = rng.between(0, 2);
            if (k % 3 == 0) row.share = 100 * rng.between(1, 9);
            if (k % 3 == 1) row.profile = rng.below(2) == 0 ? "1g.10gb" : "3g.40gb";
            if (k % 3 == 2) row.gpus = rng.between(1, 3);
            const auto scope = static_cast<PeerTrust>(rng.below(3));
            row.sharing = {scope, scope, std::min(scope, PeerTrust::same_domain), scope};
            row.on_host_kernel = scope != PeerTrust::distrusting;
            Job job;
            job.shape = index.shape(Play::need_of(row));
            index.count(job.shape, rng.between(1, 10));
            kinds.emplace_back(job, job.shape);
        }
        index.set_mix(index.observed_mix());
        std::vector<SeatNo> seats;
        for (int step = 0; step < 120; ++step) {
            if (!seats.empty() && rng.below(3) == 0) {
                const std::size_t at = rng.below(seats.size());
                index.release(seats[at], true);
                seats.erase(seats.begin() + static_cast<std::ptrdiff_t>(at));
                continue;
            }
            auto [job, shape] = kinds[rng.below(kinds.size())];
            job.tenant = static_cast<TenantNo>(rng.below(4));
            std::optional<FleetIndex::Standing> best;
            for (NodeNo n = 0; n < machines; ++n)
                if (const auto found = index.standing(n, shape, job.tenant); found && (!best || *found > *best))
                    best = found;
            const auto chosen = index.best(shape, job.tenant);
            ASSERT_EQ(chosen.has_value(), best.has_value()) << "step " << step;
            if (!chosen) continue;
            ASSERT_EQ(index.standing(*chosen, shape, job.tenant), best) << "step " << step;
            seats.push_back(index.take(*chosen, job, 0));
        }
    }
}

}  // namespace
}  // namespace bulkhead::sched
