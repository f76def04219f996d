#include "sim/referee/trial.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "bulkhead/base/rng.hpp"

namespace bulkhead::referee {

namespace {

// Which tasks of a job are no longer where they were.
std::uint8_t lost_tasks(const Work& work, std::vector<Place> left) {
    std::uint8_t out = 0;
    for (std::size_t task = 0; task < work.runs.size(); ++task) {
        const auto found = std::ranges::find(left, work.runs[task]);
        if (found == left.end())
            out = static_cast<std::uint8_t>(out | 1u << task);
        else
            left.erase(found);
    }
    return out;
}

std::vector<std::string> broken_limits(const Scene& scene, const Manners& manners, const Outcome& outcome) {
    std::vector<std::string> out;
    for (std::size_t t = 0; t < scene.owners.size(); ++t) {
        const Owner& owner = scene.owners[t];
        int before = 0, after = 0;
        for (std::size_t job = 0; job < manners.count(); ++job)
            for (int up = manners.job(job).tenant; up != none; up = scene.owners[static_cast<std::size_t>(up)].parent)
                if (static_cast<std::size_t>(up) == t) {
                    before += manners.job(job).leases();
                    after += static_cast<int>(outcome.seats[job].size()) * manners.job(job).part();
                }
        if (after <= before) continue;
        if (owner.limit != none && after > owner.limit) out.push_back(fmt::format("t{} exceeds its limit", t));
        if (owner.hard && after > owner.guarantee) out.push_back(fmt::format("t{} exceeds its hard partition", t));
    }
    return out;
}

// Whether one task of the job that waits fits without a reboot.
bool fits_now(const Scene& scene, const Manners& manners) {
    const Floor floor{scene, manners};
    for (std::size_t node = 0; node < scene.machines.size(); ++node)
        if (floor.capacity(scene.running.size(), node, false) > 0) return true;
    return false;
}

// Where empty nodes may be rebooted before any work is disturbed: the claimant could start then, or its guarantee
// reserves a place, because evictions alone would make room if every minimum run time were over.
bool may_reboot_first(const Scene& scene, const Dues& dues) {
    Scene later = scene;
    later.moves = 0;
    for (Work& work : later.running) work.ran = std::numeric_limits<int>::max();
    const Manners manners{later};
    const std::optional<Plan> plan = Plans{later, manners, dues}.find();
    return plan && plan->ground.value_or(Ground::guarantee) == Ground::guarantee;
}

// No tenant has used the kernels of nodes that were rebooted; one bit for each node.
Scene after_reboots(const Scene& scene, unsigned nodes) {
    Scene after = scene;
    for (std::size_t node = 0; node < after.machines.size(); ++node)
        if ((nodes >> node & 1u) != 0) after.machines[node].used_by.clear();
    return after;
}

// What is wrong with the reboots before any work was disturbed. Empty: nothing.
std::vector<std::string> unlawful_reboots(const Scene& scene, const Outcome& outcome) {
    std::vector<std::string> out;
    if (outcome.rebooted_first == 0) return out;
    for (std::size_t node = 0; node < scene.machines.size(); ++node) {
        if ((outcome.rebooted_first >> node & 1u) == 0) continue;
        if (!scene.machines[node].can_reboot)
            out.push_back(fmt::format("node {} was rebooted and cannot show a verified reboot", node));
        for (std::size_t job = 0; job < scene.running.size(); ++job)
            if (std::ranges::any_of(scene.running[job].runs,
                                    [&](const Place& at) { return std::cmp_equal(at.node, node); }))
                out.push_back(fmt::format("node {} was rebooted while j{} ran there", node, job + 1));
    }
    if (!may_reboot_first(scene, outcome.dues))
        out.emplace_back("nodes were rebooted for a claimant that has no place there");
    return out;
}

}  // namespace

Trial compare(const Scene& scene) {
    Trial trial;
    const auto disagree = [&](const char* kind, std::string what) {
        trial.disagreements.emplace_back(kind, std::move(what));
    };
    const Outcome outcome = play(scene);
    const Manners manners{scene};
    Plans plans{scene, manners, outcome.dues};
    std::optional<Plan> plan = plans.find();
    trial.plans = plans.tried();
    for (std::string& fault : unlawful_reboots(scene, outcome)) disagree("unlawful", std::move(fault));
    // A node that waits for its reboot is no room for work that moves. After the reboot it is.
    if (!plan && outcome.rebooted_first != 0) {
        const Scene after = after_reboots(scene, outcome.rebooted_first);
        const Manners then{after};
        Plans later{after, then, outcome.dues};
        plan = later.find();
        trial.plans += later.tried();
    }
    if (plan) {
        trial.answer = plan->ground ? static_cast<Answer>(1 + static_cast<int>(*plan->ground)) : Answer::room;
        trial.moves = plan->moved != 0;
    }
    const std::size_t claimant = scene.running.size();
    const bool served = std::ssize(outcome.seats[claimant]) >= scene.waiting.front().fewest();
    if (!outcome.settled) disagree("unsettled", fmt::format("not settled after {} cycles", outcome.cycles));
    if (outcome.budget_spent) disagree("budget", "the search budget was spent");
    if (!served && !outcome.seats[claimant].empty()) disagree("fault", "the claimant runs with too few tasks");
    if (plan && !served) {
        std::string taken;
        for (std::size_t job = 0; job < claimant; ++job) {
            if (plan->taken[job] != 0) taken += fmt::format(" j{}:{:#b}", job + 1, plan->taken[job]);
            if ((plan->moved & only(job)) != 0) taken += fmt::format(" j{}:moved", job + 1);
        }
        disagree("missed",
                 fmt::format("an allowed plan exists ({}):{}", words(Answer{})[static_cast<std::size_t>(trial.answer)],
                             taken.empty() ? " none" : taken));
    }
    // What the engine did.
    Taken taken{};
    JobSet newly = only(claimant);
    Floor after_moves{scene, manners};
    for (std::size_t job = 0; job < claimant; ++job) {
        const Work& work = scene.running[job];
        if ((outcome.moved & only(job)) != 0) {
            newly = static_cast<JobSet>(newly | only(job));
            after_moves.remove_all(job);
            if (outcome.seats[job].size() != work.runs.size())
                disagree("unlawful", fmt::format("j{} was moved and lost tasks", job + 1));
        } else {
            taken[job] = lost_tasks(work, outcome.seats[job]);
        }
    }
    for (std::size_t job = 0; job < claimant; ++job)
        if ((outcome.moved & only(job)) != 0)
            for (const Place& place : outcome.seats[job]) after_moves.add(job, place);
    const bool disturbed =
        outcome.moved != 0 || std::ranges::any_of(taken, [](std::uint8_t tasks) { return tasks != 0; });
    if (disturbed && !served) disagree("for nothing", "work was disturbed and the claimant does not run");
    if (disturbed && plan && !plan->disturbs()) disagree("for nothing", "work was disturbed where free room would do");
    if (disturbed || (served && !plan)) {
        const auto ground = plans.ground_of(taken, outcome.moved, after_moves);
        if (!ground) disagree("unlawful", ground.error());
        if (ground && served && disturbed) trial.harsh = plans.has_gentler(plans.kind_of(taken, *ground), *ground);
    }
    for (std::string& fault : faults(scene, manners, outcome.seats, outcome.rebooted, newly))
        disagree("fault", std::move(fault));
    for (std::string& fault : broken_limits(scene, manners, outcome)) disagree("fault", std::move(fault));
    if (served && !plan && trial.disagreements.empty())
        disagree("unlawful", "the claimant runs; the referee knows no plan");
    return trial;
}

std::vector<std::string> compare_growth(const Scene& scene) {
    const auto grower = std::ranges::find_if(scene.running, [](const Work& work) {
        return work.preemptible && work.least > 0 && std::ssize(work.runs) < work.tasks;
    });
    if (grower == scene.running.end()) return {};
    // The next task as a job of its own.
    const auto next_of = [](const Work& gang) {
        Work next = gang;
        next.tasks = 1;
        next.least = 0;
        next.beside = gang.runs.front().node;
        next.runs.clear();
        return next;
    };
    const Outcome outcome = play(scene, {.grow = true});
    Scene before = scene;
    before.waiting = {next_of(*grower)};
    const Manners manners{before};
    std::vector<std::string> out;
    if (!outcome.settled) out.push_back(fmt::format("not settled after {} cycles", outcome.cycles));
    if (outcome.budget_spent) out.emplace_back("the search budget was spent");
    const Floor floor{before, manners};
    const Law law{before, manners, floor, outcome.dues};
    Scene after = scene;
    after.running.clear();
    after.moves = 0;  // a gang that runs grows by what others give, not by moving them
    JobSet newly = outcome.moved;
    for (std::size_t job = 0; job < scene.running.size(); ++job) {
        const Work& work = scene.running[job];
        if (outcome.seats[job].size() > work.runs.size()) newly = static_cast<JobSet>(newly | only(job));
        const bool lost = outcome.seats[job].size() < work.runs.size();
        if (lost && !work.preemptible) out.push_back(fmt::format("j{} is not preemptible and lost tasks", job + 1));
        if (lost && law.is_within_guarantee(job))
            out.push_back(fmt::format("j{} is within guarantee and lost tasks", job + 1));
        if (outcome.seats[job].empty()) continue;
        Work left = work;
        left.runs = outcome.seats[job];
        if (&work == &*grower) {
            left.preemptible = false;  // it does not make room for itself
            after.waiting = {next_of(work)};
        }
        after.running.push_back(std::move(left));
    }
    auto seats = outcome.seats;
    seats.emplace_back();
    for (std::string& fault : faults(before, manners, seats, outcome.rebooted, newly)) out.push_back(std::move(fault));
    const auto tasks = outcome.seats[static_cast<std::size_t>(grower - scene.running.begin())].size();
    if (!out.empty() || after.waiting.empty() || tasks == static_cast<std::size_t>(grower->tasks)) return out;
    for (std::size_t node = 0; node < after.machines.size(); ++node) {
        if ((outcome.rebooted >> node & 1u) != 0) after.machines[node].used_by.clear();
        for (const Work& work : after.running)
            for (const Place& place : work.runs)
                if (static_cast<std::size_t>(place.node) == node && work.host_kernel)
                    after.machines[node].used_by.push_back(work.tenant);
    }
    const Manners still{after};
    Plans plans{after, still, outcome.dues};
    const auto plan = plans.find();
    // A host is rebooted for a spare task only within the guarantee.
    const bool owed = plan && (plan->ground ? *plan->ground == Ground::guarantee
                                            : plans.law().may_claim({}, Ground::guarantee) || fits_now(after, still));
    if (owed)
        out.push_back(fmt::format("j{} stays at {} of {} tasks, though {}", grower - scene.running.begin() + 1, tasks,
                                  grower->tasks, plan->ground ? "law A allows a plan" : "there is free room"));
    return out;
}

std::vector<std::string> compare_limits(const Scene& scene) {
    const Outcome outcome = play(scene);
    const Manners manners{scene};
    std::vector<std::string> out;
    if (!outcome.settled) out.push_back(fmt::format("not settled after {} cycles", outcome.cycles));
    const auto is_below = [&](int tenant, std::size_t above) {
        for (int up = tenant; up != none; up = scene.owners[static_cast<std::size_t>(up)].parent)
            if (static_cast<std::size_t>(up) == above) return true;
        return false;
    };
    std::vector<int> before(scene.owners.size()), after(scene.owners.size());
    std::vector<bool> yields(scene.owners.size());  // some work below may still give way
    for (std::size_t t = 0; t < scene.owners.size(); ++t)
        for (std::size_t job = 0; job < scene.running.size(); ++job) {
            const Work& work = scene.running[job];
            if (!is_below(work.tenant, t)) continue;
            before[t] += work.leases();
            after[t] += static_cast<int>(outcome.seats[job].size()) * work.part();
            if (work.preemptible && work.ran >= 90 && !outcome.seats[job].empty()) yields[t] = true;
        }
    for (std::size_t t = 0; t < scene.owners.size(); ++t) {
        const int limit = scene.owners[t].limit;
        if (limit != none && after[t] > limit && yields[t])
            out.push_back(fmt::format("t{} leases {}/8 beyond its limit {}/8 and has work that may give way", t,
                                      after[t], limit));
    }
    for (std::size_t job = 0; job < scene.running.size(); ++job) {
        const Work& work = scene.running[job];
        const int lost = work.leases() - static_cast<int>(outcome.seats[job].size()) * work.part();
        if (lost == 0) continue;
        if (!work.preemptible) out.push_back(fmt::format("j{} is not preemptible and lost tasks", job + 1));
        if (!outcome.seats[job].empty()) continue;  // spare tasks go first
        // It ended because some tenant above it would be beyond its limit with it.
        bool needed = false;
        for (std::size_t t = 0; t < scene.owners.size(); ++t)
            needed = needed || (is_below(work.tenant, t) && scene.owners[t].limit != none &&
                                after[t] + work.leases() > scene.owners[t].limit);
        if (!needed) out.push_back(fmt::format("j{} ended though no limit forbids it", job + 1));
        // Guaranteed work ends only where no other work could have ended in its place.
        const auto own = static_cast<std::size_t>(work.tenant);
        if (before[own] > scene.owners[own].guarantee) continue;
        for (std::size_t other = 0; other < scene.running.size(); ++other) {
            const Work& stays = scene.running[other];
            const int holds = static_cast<int>(outcome.seats[other].size()) * stays.part();
            if (holds == 0 || !stays.preemptible || stays.ran < 90) continue;
            const auto changed = [&](std::size_t t) {
                return after[t] + (is_below(work.tenant, t) ? work.leases() : 0) -
                       (is_below(stays.tenant, t) ? holds : 0);
            };
            bool instead = true;
            for (std::size_t t = 0; t < scene.owners.size(); ++t) {
                const Owner& owner = scene.owners[t];
                if (owner.limit != none && changed(t) > std::max(owner.limit, after[t])) instead = false;
                if (owner.hard && changed(t) > std::max(owner.guarantee, after[t])) instead = false;
                // The own work of a tenant with others below it has a guarantee of its own, which is not counted here.
                if (static_cast<int>(t) != stays.tenant && scene.owners[t].parent == stays.tenant) instead = false;
                if (is_below(stays.tenant, t) && changed(t) < owner.guarantee) instead = false;
            }
            if (instead) out.push_back(fmt::format("guaranteed j{} ended where j{} could have", job + 1, other + 1));
        }
    }
    return out;
}

OrderTrial compare_orders(const Scene& scene, std::uint64_t seed) {
    constexpr int orders_tried = 4;
    Rng rng{seed};
    OrderTrial out;
    const Outcome first = play(scene, {.wait_again = true});
    if (!first.settled) out.difference = "not settled";
    std::vector<std::size_t> order(scene.waiting.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int i = 0; i < orders_tried && out.difference.empty(); ++i) {
        for (std::size_t at = order.size(); at > 1; --at) std::swap(order[at - 1], order[rng.below(at)]);
        // Within one tenant the earlier goes first; how the jobs of different tenants arrive must not matter.
        for (std::size_t a = 0; a < order.size(); ++a)
            for (std::size_t b = a + 1; b < order.size(); ++b)
                if (scene.waiting[order[a]].tenant == scene.waiting[order[b]].tenant && order[a] > order[b])
                    std::swap(order[a], order[b]);
        ++out.orders;
        const Outcome other = play(scene, {.wait_again = true, .order = order});
        if (other.leased != first.leased)
            out.difference = fmt::format("submitted as [{}] tenants lease [{}], else [{}]", fmt::join(order, " "),
                                         fmt::join(other.leased, " "), fmt::join(first.leased, " "));
    }
    return out;
}

}  // namespace bulkhead::referee
