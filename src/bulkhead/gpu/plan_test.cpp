#include "bulkhead/gpu/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "bulkhead/gpu/boards_test.hpp"
#include "bulkhead/gpu/instance_list.hpp"
#include "bulkhead/gpu/why.hpp"

namespace bulkhead::gpu {
namespace {

std::expected<Plan, Refusal> ask(std::string_view gpu, std::string_view have, std::string_view idle,
                                 std::string_view want) {
    const Board& b = board(gpu);
    return plan(Geometry{b}, read_existing(b, have, idle).value(), read_wanted(b, want).value());
}

// "destroy 1g.10gb@4; create 3g.40gb@4; 3c@4.0": short enough for a table row.
std::string steps(const Board& b, const Plan& plan) {
    std::string text;
    for (const Step& step : plan.steps) {
        const std::string at = std::string{b.profiles[step.profile].name} + "@" + std::to_string(step.start);
        if (!text.empty()) text += "; ";
        switch (step.action) {
            case Action::destroy_compute_instances:
                text += "clear " + at;
                break;
            case Action::destroy_gpu_instance:
                text += "destroy " + at;
                break;
            case Action::create_gpu_instance:
                text += "create " + at;
                break;
            case Action::create_compute_instance:
                text += std::to_string(step.compute.size) + "c@" + std::to_string(step.start) + "." +
                        std::to_string(step.compute.start);
        }
    }
    return text;
}

TEST(Plan, does_the_least_that_gives_what_is_wanted) {
    struct Row {
        std::string_view says, gpu, have, idle, want, steps;
    };
    const Row rows[] = {
        {"an idle instance of the profile is handed over", "h100-80gb-sxm5", "", "3g.40gb@0", "3g.40gb", ""},
        {"an empty GPU puts a 3g at 4", "h100-80gb-sxm5", "", "", "3g.40gb", "create 3g.40gb@4; 3c@4.0"},
        {"a wish for a place is kept", "h100-80gb-sxm5", "", "", "3g.40gb@0", "create 3g.40gb@0; 3c@0.0"},
        {"an idle one elsewhere does not satisfy it", "h100-80gb-sxm5", "", "3g.40gb@4", "3g.40gb@0",
         "create 3g.40gb@0; 3c@0.0"},
        {"room is used before anything is destroyed", "h100-80gb-sxm5", "1g.10gb@0", "1g.10gb@1", "3g.40gb",
         "create 3g.40gb@4; 3c@4.0"},
        {"one destroy is better than two", "h100-80gb-sxm5", "", "1g.10gb@0,1g.10gb@1,1g.10gb@4", "3g.40gb,3g.40gb@0",
         "clear 1g.10gb@0; destroy 1g.10gb@0; clear 1g.10gb@1; destroy 1g.10gb@1; clear 1g.10gb@4; destroy 1g.10gb@4; "
         "create 3g.40gb@0; 3c@0.0; create 3g.40gb@4; 3c@4.0"},
        {"of two single destroys, the smaller", "h100-80gb-sxm5", "", "3g.40gb@0,2g.20gb@4", "3x1g.10gb",
         "clear 2g.20gb@4; destroy 2g.20gb@4; create 1g.10gb@4; 1c@4.0; create 1g.10gb@5; 1c@5.0; create 1g.10gb@6; "
         "1c@6.0"},
        {"a wanted idle one in the way is rebuilt elsewhere", "h100-80gb-sxm5", "1g.10gb@0", "1g.10gb@4",
         "3g.40gb,1g.10gb", "clear 1g.10gb@4; destroy 1g.10gb@4; create 1g.10gb@1; 1c@1.0; create 3g.40gb@4; 3c@4.0"},
        {"three 1c share one new 3g", "h100-80gb-sxm5", "", "", "3x1c.3g.40gb",
         "create 3g.40gb@4; 1c@4.0; 1c@4.1; 1c@4.2"},
        {"a 2c and a 1c share one too", "h100-80gb-sxm5", "", "", "1c.3g.40gb,2c.3g.40gb",
         "create 3g.40gb@4; 2c@4.0; 1c@4.2"},
        {"an idle 3g is cut anew, not destroyed", "h100-80gb-sxm5", "", "3g.40gb@0", "2x1c.3g.40gb",
         "clear 3g.40gb@0; 1c@0.0; 1c@0.1"},
        {"an idle 1c inside a used 3g is handed over", "h100-80gb-sxm5", "1c.3g.40gb@4", "1c.3g.40gb@4", "1c.3g.40gb",
         ""},
        {"of two idle 3g, the one already cut so", "h100-80gb-sxm5", "", "3g.40gb@0,3x1c.3g.40gb@4", "2x1c.3g.40gb",
         ""},
        {"each takes the one that suits it", "h100-80gb-sxm5", "", "3x1c.3g.40gb@0,3g.40gb@4", "3g.40gb,3x1c.3g.40gb",
         ""},
        {"who insists on a place is served first", "h100-80gb-sxm5", "1c.3g.40gb@4", "1c.3g.40gb@4",
         "1c.3g.40gb,1c.3g.40gb@4", "create 3g.40gb@0; 1c@0.0"},
        {"+me moves in where the idle +me goes out", "h100-80gb-sxm5", "", "1g.10gb+me@0", "1g.10gb+me@6",
         "clear 1g.10gb+me@0; destroy 1g.10gb+me@0; create 1g.10gb+me@6; 1c@6.0"},
        {"an idle plain instance goes for +me.all", "rtx-pro-6000", "1g.24gb-me@0", "1g.24gb@3", "1g.24gb+me.all",
         "clear 1g.24gb@3; destroy 1g.24gb@3; create 1g.24gb+me.all@1; 1c@1.0"},
        {"nothing wanted, nothing done", "h100-80gb-sxm5", "", "7g.80gb@0", "7g.80gb", ""},
    };
    for (const Row& row : rows) {
        const auto answer = ask(row.gpu, row.have, row.idle, row.want);
        ASSERT_TRUE(answer) << row.says;
        EXPECT_EQ(steps(board(row.gpu), *answer), row.steps) << row.says;
    }
}

TEST(Plan, names_the_one_instance_that_would_have_to_move) {
    struct Row {
        std::string_view says, gpu, have, idle, want, moves;
        unsigned from, to;
        bool stop_first;
        std::string_view then;
    };
    const Row rows[] = {
        {"the lonely 1g in the upper half", "h100-80gb-sxm5", "1g.10gb@0,1g.10gb@1,1g.10gb@5", "", "3g.40gb", "1g.10gb",
         5, 2, false, "create 3g.40gb@4; 3c@4.0"},
        {"the only one in the way of a 4g", "h100-80gb-sxm5", "2g.20gb@0,1g.10gb@6", "", "4g.40gb", "2g.20gb", 0, 4,
         false, "create 4g.40gb@0; 4c@0.0"},
        {"the smaller, though either would do", "h100-80gb-sxm5", "2g.20gb@0,1g.10gb@4", "", "3g.40gb", "1g.10gb", 4, 2,
         false, "create 3g.40gb@4; 3c@4.0"},
        {"idle ones give way to the move", "a30-24gb", "1g.6gb@0,1g.6gb@3", "1g.6gb@1,1g.6gb@2", "2g.12gb", "1g.6gb", 0,
         2, false, "clear 1g.6gb@1; destroy 1g.6gb@1; clear 1g.6gb@2; destroy 1g.6gb@2; create 2g.12gb@0; 2c@0.0"},
        {"a +me cannot exist twice, so it stops first", "h100-80gb-sxm5", "4g.40gb@0,1g.10gb+me@4", "", "2g.20gb",
         "1g.10gb+me", 4, 6, true, "create 2g.20gb@4; 2c@4.0"},
    };
    for (const Row& row : rows) {
        const auto answer = ask(row.gpu, row.have, row.idle, row.want);
        ASSERT_FALSE(answer) << row.says;
        ASSERT_TRUE(answer.error().move) << row.says;
        const Move& move = *answer.error().move;
        EXPECT_EQ(board(row.gpu).profiles[move.profile].name, row.moves) << row.says;
        EXPECT_EQ(move.from, row.from) << row.says;
        EXPECT_EQ(move.to, row.to) << row.says;
        EXPECT_EQ(move.stop_first, row.stop_first) << row.says;
        EXPECT_EQ(steps(board(row.gpu), answer.error().with_move), row.then) << row.says;
    }
}

// An independent judge: plain lists, no masks, no ranking tricks; the cheapest of everything that is possible.
struct Here {
    std::size_t profile;
    unsigned start;
};
struct Wish {
    std::size_t profile;
    std::optional<unsigned> start;
};
struct Cost {
    unsigned destroyed = 99, slices = 99;
    Value value;
};

bool may_join(const Board& b, const std::vector<Here>& here, Here guest) {
    for (const Here& other : here) {
        const Profile &host = b.profiles[other.profile], &p = b.profiles[guest.profile];
        if (host.at(other.start).overlaps(p.at(guest.start))) return false;
        if (host.attribute == "+me" && p.attribute == "+me") return false;
        if ((host.attribute == "+me.all" && p.attribute != "-me") ||
            (p.attribute == "+me.all" && host.attribute != "-me"))
            return false;
    }
    return true;
}

void settle(const Geometry& geometry, std::vector<Here> here, std::vector<Wish> wanted, Cost cost,
            std::optional<Cost>& best) {
    const Board& b = geometry.board();
    if (wanted.empty()) {
        Occupancy now;
        for (const Here& h : here) now = now.with(b.profiles[h.profile], h.start);
        cost.value = geometry.value(now);
        const auto worse = [&] {
            return std::tuple{cost.destroyed, cost.slices, best->value.ticks} >
                   std::tuple{best->destroyed, best->slices, cost.value.ticks};
        };
        if (!best || !worse()) best = cost;
        return;
    }
    const auto [p, only_there] = wanted.back();
    wanted.pop_back();
    for (const unsigned start : b.profiles[p].starts) {
        if ((only_there && *only_there != start) || !may_join(b, here, {p, start})) continue;
        here.push_back({p, start});
        settle(geometry, here, wanted, cost, best);
        here.pop_back();
    }
}

std::optional<Cost> exhaustive(const Geometry& geometry, const std::vector<Here>& used, const std::vector<Here>& idle,
                               const std::vector<Wish>& wanted) {
    const Board& b = geometry.board();
    std::optional<Cost> best;
    for (unsigned kept = 0; kept < 1u << idle.size(); ++kept) {
        std::vector<Here> here = used;
        std::vector<Wish> open = wanted;
        Cost cost{0, 0, {}};
        bool possible = true;
        for (std::size_t i = 0; i < idle.size(); ++i) {
            if ((kept >> i & 1u) == 0) {
                ++cost.destroyed;
                cost.slices += b.profiles[idle[i].profile].memory_slices;
                continue;
            }
            possible = possible && may_join(b, here, idle[i]);
            here.push_back(idle[i]);
            const auto fixed = [&](const Wish& w) { return w.profile == idle[i].profile && w.start == idle[i].start; };
            const auto open_to_any = [&](const Wish& w) { return w.profile == idle[i].profile && !w.start; };
            auto met = std::ranges::find_if(open, fixed);
            if (met == open.end()) met = std::ranges::find_if(open, open_to_any);
            if (met != open.end()) open.erase(met);
        }
        if (possible) settle(geometry, here, open, cost, best);
    }
    return best;
}

struct Story {
    std::vector<Here> used, idle;
    std::vector<Wish> wanted;
    std::vector<Instance> instances;
    std::vector<Wanted> request;
};

Story invent(const Board& b, std::mt19937_64& rng) {
    Story story;
    std::vector<Here> all;
    const std::size_t tries = rng() % 12;
    for (std::size_t i = 0; i < tries; ++i) {
        const std::size_t p = rng() % b.profiles.size();
        const Here guest{p, static_cast<unsigned>(rng() % b.memory_slices)};
        if (!b.profiles[p].starts.contains(guest.start) || !may_join(b, all, guest)) continue;
        all.push_back(guest);
        const bool in_use = rng() % 2 == 0;
        (in_use ? story.used : story.idle).push_back(guest);
        const Cut cut = Cut::whole(b.profiles[p].slices);
        story.instances.push_back({p, guest.start, in_use, cut, in_use ? Cut{} : cut});
    }
    const std::size_t wishes = 1 + rng() % 3;
    for (std::size_t i = 0; i < wishes; ++i) {
        const std::size_t p = rng() % b.profiles.size();
        const auto anywhere = static_cast<unsigned>(rng() % b.memory_slices);
        const bool fixed = rng() % 4 == 0 && b.profiles[p].starts.contains(anywhere);
        story.wanted.push_back({p, fixed ? std::optional{anywhere} : std::nullopt});
        story.request.push_back({{p, b.profiles[p].slices}, story.wanted.back().start});
    }
    return story;
}

// Carries out the steps as a driver would, and refuses what a driver would refuse.
void carry_out(const Board& b, const Story& story, const std::vector<Step>& steps, std::vector<Here>& here) {
    for (const Step& step : steps) {
        if (step.action == Action::destroy_gpu_instance) {
            const auto is = [&](const Here& h) { return h.profile == step.profile && h.start == step.start; };
            ASSERT_TRUE(std::ranges::none_of(story.used, is)) << "an instance in use is never touched";
            ASSERT_EQ(std::erase_if(here, is), 1u);
        } else if (step.action == Action::create_gpu_instance) {
            ASSERT_TRUE(b.profiles[step.profile].starts.contains(step.start));
            ASSERT_TRUE(may_join(b, here, {step.profile, step.start})) << "room is made before it is used";
            here.push_back({step.profile, step.start});
        }
    }
}

TEST(Plan, is_as_cheap_as_an_exhaustive_search_on_every_board) {
    for (const Board& b : boards()) {
        const Geometry geometry{b};
        int planned = 0, moved = 0, refused = 0;
        for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
            SCOPED_TRACE(std::string{b.id} + " seed " + std::to_string(seed));
            std::mt19937_64 rng{seed};
            const Story story = invent(b, rng);
            const auto expected = exhaustive(geometry, story.used, story.idle, story.wanted);
            const auto answer = plan(geometry, story.instances, story.request);
            ASSERT_EQ(answer.has_value(), expected.has_value());
            std::vector<Here> here = story.used;
            here.insert(here.end(), story.idle.begin(), story.idle.end());
            if (answer) {
                ++planned;
                EXPECT_EQ(answer->destroyed, expected->destroyed);
                EXPECT_EQ(answer->slices_destroyed, expected->slices);
                EXPECT_EQ(answer->value, expected->value);
                carry_out(b, story, answer->steps, here);
                for (const Grant& grant : answer->grants)
                    EXPECT_TRUE(std::ranges::any_of(
                        here, [&](const Here& h) { return h.profile == grant.what.index && h.start == grant.start; }));
                continue;
            }
            // No plan: does any single move of an instance in use open one? Try them all.
            bool some_move = false;
            for (std::size_t i = 0; i < story.used.size(); ++i)
                for (const unsigned to : b.profiles[story.used[i].profile].starts) {
                    std::vector<Here> used = story.used;
                    used.erase(used.begin() + static_cast<std::ptrdiff_t>(i));
                    if (to == story.used[i].start || !may_join(b, used, {story.used[i].profile, to})) continue;
                    used.push_back({story.used[i].profile, to});
                    some_move = some_move || exhaustive(geometry, used, story.idle, story.wanted).has_value();
                }
            ASSERT_EQ(answer.error().move.has_value(), some_move);
            EXPECT_FALSE(answer.error().reasons.empty());
            for (const Reason& reason : answer.error().reasons) EXPECT_FALSE(explain(reason).empty());
            if (!some_move) {
                ++refused;
                continue;
            }
            ++moved;
            // Destroys, then the move, then the creates: at no time may two instances claim one slice or engine.
            const Move& move = *answer.error().move;
            const auto& todo = answer.error().with_move.steps;
            const auto creates = std::ranges::find(todo, Action::create_gpu_instance, &Step::action);
            carry_out(b, story, {todo.begin(), creates}, here);
            const auto old = [&](const Here& h) { return h.profile == move.profile && h.start == move.from; };
            if (move.stop_first) std::erase_if(here, old);
            ASSERT_TRUE(may_join(b, here, {move.profile, move.to}));
            here.push_back({move.profile, move.to});
            std::erase_if(here, old);
            carry_out(b, {}, {creates, todo.end()}, here);
        }
        EXPECT_GT(planned, 100) << b.id;
        EXPECT_GT(refused, 5) << b.id;
        EXPECT_GT(moved, 8) << b.id;
    }
}

TEST(Plan, says_why_when_no_single_move_helps) {
    struct Row {
        std::string_view says, gpu, have, idle, want, why;
        bool move;
    };
    const Row rows[] = {
        {"more memory than there is", "h100-80gb-sxm5", "3g.40gb@0", "", "3g.40gb,1g.10gb",
         "need 9 memory slices; the GPU has 8", false},
        {"a second +me", "h100-80gb-sxm5", "1g.10gb+me@0", "", "1g.10gb+me",
         "at most 1 of 1g.10gb+me may exist on one GPU, not 2", false},
        {"two moves would be needed", "h100-80gb-sxm5", "1g.10gb@0,1g.10gb@1,1g.10gb@4,1g.10gb@5", "", "3g.40gb",
         "3g.40gb could start at 0, but in use there: 1g.10gb@0, 1g.10gb@1", false},
        {"one would", "h100-80gb-sxm5", "1g.10gb@0,1g.10gb@4", "", "3g.40gb",
         "3g.40gb could start at 4, but in use there: 1g.10gb@4", true},
        {"one half each, and neither whole", "a30-24gb", "1g.6gb@0,1g.6gb@3", "", "2g.12gb",
         "2g.12gb could start at 2, but in use there: 1g.6gb@3", true},
        {"each fits alone, not all", "h100-80gb-sxm5", "1g.10gb@1", "", "3x2g.20gb",
         "3 x 2g.20gb need 6 memory slices and 7 are not in use, but no choice of starts gives each its own", true},
        {"free compute slices in an instance in use", "h100-80gb-sxm5", "1c.3g.40gb@0,3g.40gb@4", "", "1c.3g.40gb",
         "3g.40gb at 0 is in use and is never touched, so no 1c.3g.40gb is created inside it", false},
        {"beside +me.all", "rtx-pro-6000", "1g.24gb+me.all@0", "", "1g.24gb", "owns every media engine", false},
    };
    for (const Row& row : rows) {
        const auto answer = ask(row.gpu, row.have, row.idle, row.want);
        ASSERT_FALSE(answer) << row.says;
        std::string all;
        for (const Reason& reason : answer.error().reasons) all += explain(reason) + "\n";
        EXPECT_NE(all.find(row.why), std::string::npos) << row.says << ": " << all;
        EXPECT_EQ(answer.error().move.has_value(), row.move) << row.says;
    }
}

}  // namespace
}  // namespace bulkhead::gpu
