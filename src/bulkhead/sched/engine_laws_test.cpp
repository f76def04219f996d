// What holds whatever happens: random fleets, tenants and work; checked by code that shares nothing with the engine.
#include <numeric>

#include "bulkhead/base/rng.hpp"
#include "bulkhead/sched/engine_test.hpp"
#include "bulkhead/sched/fleet_index.hpp"

// A sanitizer makes a search for victims ten times slower.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BULKHEAD_FEWER_WORLDS
#endif
#endif

namespace bulkhead::sched {
namespace {

#ifdef BULKHEAD_FEWER_WORLDS
constexpr std::uint64_t worlds = 40;
#else
constexpr std::uint64_t worlds = 400;
#endif

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
            // One draw a line: compilers differ in the order of arguments.
            const std::int64_t guarantee = rng.between(0, 4);
            const std::int64_t weight = rng.between(0, 3);
            TenantFacts facts_of = team("t" + std::to_string(i), guarantee, weight);
            facts_of.domain = static_cast<std::uint32_t>(rng.between(1, 2));
            if (i > 0 && rng.below(3) == 0) facts_of.parent = rng.below(i);
            if (rng.below(4) == 0) facts_of.limit = Gpus::whole(rng.between(2, 10));
            if (rng.below(6) == 0 && facts_of.guarantee.units > 0) facts_of.hard = true;
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
            for (std::optional<std::size_t> up = each.row.tenant; up; up = facts[*up].parent)
                held[*up] += std::ssize(tasks) * Play::counted(each.row).units;
            if (!tasks.empty() && each.row.within == TopologyLevel::leaf)
                for (const TaskSeat& task : tasks) {
                    EXPECT_EQ(task.node / 2, tasks.front().node / 2) << each.row.name;
                }
        }
        for (std::size_t t = 0; t < facts.size(); ++t) {
            EXPECT_EQ(held[t], engine.held(static_cast<TenantNo>(t)));
            EXPECT_LE(held[t], facts[t].limit.value_or(Gpus::whole(1'000'000)).units);
            EXPECT_TRUE(!facts[t].hard || held[t] <= facts[t].guarantee.units);
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
    for (std::uint64_t seed = 1; seed <= worlds; ++seed) {
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
    for (std::uint64_t seed = 1; seed <= worlds / 4; ++seed) {
        SCOPED_TRACE(seed);
        World world{seed};
        for (int n = 0; n < 25; ++n) {
            world.arrive();
            if (n % 5 == 4) world.settle(60);
        }
        world.settle(60);
        // Time passes, usage is counted, deadlines near. Patience ends once, after ten minutes, and somebody who has
        // waited may then take from one who takes from another; after that nobody is disturbed for nothing new.
        std::size_t disturbed = 0, late = 0;
        for (int minute = 0; minute < 60; ++minute) {
            world.later(Duration{60'000});
            world.cycle();
            const std::size_t now = world.last.evict.size() + world.last.move.size();
            disturbed += now;
            if (minute >= 30) late += now;
            world.stop_evicted();
        }
        EXPECT_LE(disturbed, 6u);
        EXPECT_EQ(late, 0u);
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
            const auto on_gpu = static_cast<PeerTrust>(rng.below(static_cast<std::uint64_t>(scope) + 1));
            row.sharing = {scope, on_gpu, std::min(on_gpu, PeerTrust::same_domain), scope};
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
            // An empty node is not closed while a node that is in use would do.
            for (NodeNo n = 0; index.closes_node(shape) && index.residents(*chosen).empty() && n < machines; ++n)
                ASSERT_TRUE(index.residents(n).empty() || index.capacity(n, shape, job.tenant) == 0) << "step " << step;
            seats.push_back(index.take(*chosen, job, 0));
        }
    }
}

// A small fleet in racks of leaves, some of its GPUs taken.
struct Racks {
    struct Machine {
        std::string rack, leaf;
        std::int64_t gpus = 0;
    };
    std::vector<Machine> machines;
    Play play;

    explicit Racks(Rng& rng) {
        play.tenants({{.name = "t", .guarantee = Gpus::whole(100)}});
        const auto count = rng.between(2, 9);
        for (std::int64_t n = 0; n < count; ++n) {
            const auto rack = rng.between(0, 2);
            machines.push_back({"r" + std::to_string(rack), "l" + std::to_string(rack) + std::to_string(rng.below(2)),
                                rng.between(1, 4)});
            play.node({.name = "n" + std::to_string(n),
                       .gpus = static_cast<std::size_t>(machines.back().gpus),
                       .rack = machines.back().rack,
                       .leaf = machines.back().leaf});
        }
        std::int64_t all = 0;
        for (const Machine& machine : machines) all += machine.gpus;
        for (std::int64_t n = rng.between(0, all / 2); n > 0; --n) play.run({.name = "taken" + std::to_string(n)});
    }
    std::string domain(std::size_t node, TopologyLevel level) const {
        switch (level) {
            case TopologyLevel::node:
                return std::to_string(node);
            case TopologyLevel::leaf:
                return machines[node].leaf;
            case TopologyLevel::rack:
                return machines[node].rack;
            default:
                return "all";
        }
    }
    // How many tasks each node takes, from who runs where.
    std::vector<std::int64_t> room(std::int64_t gpus) const {
        std::vector<std::int64_t> free;
        for (const Machine& machine : machines) free.push_back(machine.gpus);
        for (const auto& [name, job] : play.jobs)
            for (const TaskSeat& task : play.engine.seats(job)) free[task.node] -= std::ssize(task.gpus);
        for (std::int64_t& each : free) each /= gpus;
        return free;
    }
};

// One domain, in it groups that each stay in a smaller one: counted by hand, for every gang and every fleet.
TEST(EngineLaws, a_gang_is_placed_whenever_it_could_be_and_as_it_asked) {
    int placed = 0, refused = 0;
    for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
        SCOPED_TRACE(seed);
        Rng rng{seed};
        Racks racks{rng};
        constexpr std::array levels{TopologyLevel::none, TopologyLevel::node, TopologyLevel::leaf, TopologyLevel::rack};
        JobRow row{.name = "gang", .gpus = rng.between(1, 2)};
        row.group = static_cast<std::int32_t>(rng.between(0, 3));
        row.tasks = static_cast<std::int32_t>(rng.between(1, 3)) * std::max(row.group, 1);
        row.within = levels[rng.below(levels.size())];
        if (row.group > 1) row.group_within = rng.chance(500) ? TopologyLevel::leaf : TopologyLevel::node;
        const std::int64_t unit = row.group > 1 ? row.group : 1;

        std::map<std::pair<std::string, std::string>, std::int64_t> bins;
        const std::vector<std::int64_t> room = racks.room(row.gpus);
        for (std::size_t n = 0; n < room.size(); ++n)
            bins[{racks.domain(n, row.within), unit > 1 ? racks.domain(n, row.group_within) : ""}] += room[n];
        std::map<std::string, std::int64_t> together;
        for (const auto& [key, tasks] : bins) together[key.first] += tasks / unit * unit;
        const bool possible = std::ranges::any_of(together, [&](const auto& each) { return each.second >= row.tasks; });

        const JobNo gang = racks.play.submit(row);
        ASSERT_EQ(racks.play.engine.allocate(gang, racks.play.now), possible);
        possible ? ++placed : ++refused;
        if (!possible) continue;
        const std::vector<TaskSeat> seats = racks.play.engine.seats(gang);
        ASSERT_EQ(std::ssize(seats), row.tasks);
        std::map<std::string, std::int64_t> groups;
        for (const TaskSeat& seat : seats) {
            ASSERT_EQ(racks.domain(seat.node, row.within), racks.domain(seats.front().node, row.within));
            ++groups[unit > 1 ? racks.domain(seat.node, row.group_within) : ""];
        }
        for (const auto& [name, tasks] : groups) ASSERT_EQ(tasks % unit, 0) << name;
        for (const std::int64_t left : racks.room(1)) ASSERT_GE(left, 0);
    }
    EXPECT_GT(placed, 500);
    EXPECT_GT(refused, 500);
}

// Every set of those who could be evicted is tried; nobody needs fewer than the engine takes by more than one in a
// gang.
TEST(EngineLaws, no_set_of_victims_is_much_smaller) {
    int exact = 0, more = 0;
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        SCOPED_TRACE(seed);
        Rng rng{seed};
        Play play{{.moves = 0}};
        const auto machines = rng.between(1, 3);
        play.tenants({{.name = "lent", .guarantee = Gpus{}}, {.name = "due", .guarantee = Gpus::whole(4 * machines)}});
        for (std::int64_t n = 0; n < machines; ++n) play.node({.name = "n" + std::to_string(n), .gpus = 4});
        for (int n = 0; n < 9; ++n) play.submit({.name = "v" + std::to_string(n), .gpus = rng.between(1, 3)});
        play.cycle();
        std::vector<std::vector<TaskSeat>> victims;
        for (int n = 0; n < 9; ++n)
            if (play.engine.running(play.jobs.at("v" + std::to_string(n))))
                victims.push_back(play.engine.seats(play.jobs.at("v" + std::to_string(n))));
        JobRow row{.name = "claim", .tenant = 1, .gpus = rng.between(1, 4)};
        row.tasks = static_cast<std::int32_t>(rng.between(1, machines));
        const JobNo claim = play.submit(row);
        // It asks for more than there is, so that the others are due nothing.
        for (std::int64_t n = 0; n < machines; ++n)
            play.submit({.name = "more" + std::to_string(n), .tenant = 1, .gpus = 4});
        const auto fits_without = [&](unsigned gone) {
            std::vector<std::int64_t> free(static_cast<std::size_t>(machines), 4);
            for (std::size_t v = 0; v < victims.size(); ++v)
                if ((gone >> v & 1u) == 0)
                    for (const TaskSeat& task : victims[v]) free[task.node] -= std::ssize(task.gpus);
            std::int64_t room = 0;
            for (const std::int64_t each : free) room += each / row.gpus;
            return room >= row.tasks;
        };
        if (fits_without(0)) continue;
        int fewest = 99;
        for (unsigned gone = 1; gone < 1u << victims.size(); ++gone)
            if (fits_without(gone)) fewest = std::min(fewest, std::popcount(gone));
        const auto taken = static_cast<int>(play.engine.would_reclaim(claim, play.now).size());
        ASSERT_EQ(taken > 0, fewest < 99);
        ASSERT_GE(taken, fewest < 99 ? fewest : 0);
        if (row.tasks == 1) {
            ASSERT_EQ(taken, fewest < 99 ? fewest : 0);
        }
        if (fewest == 99) continue;
        ASSERT_LE(taken, 2 * fewest);
        taken == fewest ? ++exact : ++more;
    }
    EXPECT_GT(exact, 100);
    EXPECT_LT(more, exact / 4);
}

}  // namespace
}  // namespace bulkhead::sched
