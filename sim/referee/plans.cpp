#include "sim/referee/plans.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace bulkhead::referee {

namespace {

std::uint8_t all_tasks(const Work& work) { return static_cast<std::uint8_t>((1u << work.runs.size()) - 1u); }

void take(Floor& floor, std::size_t job, const Work& work, std::uint8_t tasks) {
    for (std::size_t task = 0; task < work.runs.size(); ++task)
        if ((tasks >> task & 1u) != 0) floor.remove(job, work.runs[task]);
}

}  // namespace

bool Plan::disturbs() const {
    return moved != 0 || std::ranges::any_of(taken, [](std::uint8_t tasks) { return tasks != 0; });
}

Plans::Plans(const Scene& scene, const Manners& manners, Dues dues)
    : scene_{scene},
      manners_{manners},
      start_{scene, manners},
      law_{scene, manners, start_, std::move(dues)},
      claimant_{scene.running.size()},
      fewest_{scene.waiting.front().fewest()} {}

// Of work that may be moved: others' work that its guarantee protects from ending.
bool Plans::is_scattered(std::size_t job) const {
    return manners_.job(job).tenant != scene_.waiting.front().tenant && law_.is_within_guarantee(job);
}

// For a guarantee claim scattered work does not count, and a scene has fewer jobs than such a claim may move.
bool Plans::moves_too_many(JobSet moved, Ground ground) const {
    int counted = 0;
    for (std::size_t job = 0; job < claimant_; ++job)
        if ((moved & only(job)) != 0 && (ground != Ground::guarantee || !is_scattered(job))) ++counted;
    return counted > scene_.moves || (scene_.moves == 0 && moved != 0);
}

void Plans::look_at(Ground ground) {
    ground_ = ground;
    takeable_ = movable_ = 0;
    for (std::size_t job = 0; job < claimant_; ++job) {
        if (law_.may_be_taken(job, ground)) takeable_ = static_cast<JobSet>(takeable_ | only(job));
        if (ground != Ground::preemption && law_.may_be_moved(job))
            movable_ = static_cast<JobSet>(movable_ | only(job));
    }
}

Kind Plans::kind_of(const Taken& taken, Ground ground) const {
    Kind out = Kind::moves;
    for (std::size_t job = 0; job < claimant_; ++job) {
        if (taken[job] == 0) continue;
        out = std::max(out, taken[job] == all_tasks(manners_.job(job)) ? Kind::gentle : Kind::spare);
    }
    return out == Kind::gentle && law_.takes_below(taken, ground) ? Kind::below : out;
}

bool Plans::has_gentler(Kind kind, Ground ground) {
    if (kind <= Kind::spare || ground == Ground::preemption) return false;
    look_at(ground);
    moves_ = 0;
    plan_ = {.ground = ground, .taken = {}, .moved = 0};
    most_ = kind == Kind::below ? Kind::gentle : Kind::spare;
    const bool found = choose(0);
    most_ = Kind::below;
    return found;
}

std::optional<Plan> Plans::find() {
    plan_ = {};
    if (law_.is_within_limits({}) && start_.fits(claimant_, fewest_)) return plan_;
    for (const Ground ground : {Ground::guarantee, Ground::fair_share, Ground::preemption}) {
        look_at(ground);
        const int most = std::popcount(static_cast<unsigned>(movable_));
        for (moves_ = 0; moves_ <= most; ++moves_) {
            plan_ = {.ground = ground, .taken = {}, .moved = 0};
            if (choose(0)) return plan_;
        }
    }
    return std::nullopt;
}

// Whether the claimant would fit if every job from this one on that may be taken or moved were gone.
bool Plans::optimistic(std::size_t from) const {
    Floor floor = start_;
    for (std::size_t job = 0; job < claimant_; ++job) {
        const Work& work = manners_.job(job);
        const bool open = job >= from && ((takeable_ | (moves_ > 0 ? movable_ : 0)) & only(job)) != 0;
        const bool moved = (plan_.moved & only(job)) != 0;
        take(floor, job, work, open || moved ? all_tasks(work) : plan_.taken[job]);
    }
    return floor.fits(claimant_, fewest_);
}

// One decision for each job: it stays, it ends in part or as a whole, or it moves.
bool Plans::choose(std::size_t job) {
    const int left = moves_ - std::popcount(static_cast<unsigned>(plan_.moved));
    if (left > std::popcount(static_cast<unsigned>(movable_) >> job) || !optimistic(job)) return false;
    if (job == claimant_) return settle();
    if (choose(job + 1)) return true;
    const Work& work = manners_.job(job);
    if ((takeable_ & only(job)) != 0) {
        const std::uint8_t all = all_tasks(work);
        for (unsigned tasks = 1; tasks <= all; ++tasks) {
            const int stay = static_cast<int>(work.runs.size()) - std::popcount(tasks);
            if (tasks != all && (work.least == 0 || stay < work.least)) continue;
            if (tasks == all && most_ < Kind::gentle) continue;
            plan_.taken[job] = static_cast<std::uint8_t>(tasks);
            if (law_.is_ordered(plan_.taken, ground_) && choose(job + 1)) return true;
        }
        plan_.taken[job] = 0;
    }
    if (left > 0 && (movable_ & only(job)) != 0) {
        plan_.moved = static_cast<JobSet>(plan_.moved | only(job));
        if (!moves_too_many(plan_.moved, ground_) && choose(job + 1)) return true;
        plan_.moved = static_cast<JobSet>(plan_.moved & ~only(job));
    }
    return false;
}

bool Plans::settle() {
    ++tried_;
    if (most_ < Kind::below && law_.takes_below(plan_.taken, ground_)) return false;
    if (!law_.may_claim(plan_.taken, ground_) || !law_.is_within_limits(plan_.taken)) return false;
    // Moved work is seated while those who will be evicted are still there.
    Floor floor = start_;
    for (std::size_t job = 0; job < claimant_; ++job)
        if ((plan_.moved & only(job)) != 0) floor.remove_all(job);
    return seat_moved(0, 0, 0, floor);
}

bool Plans::seat_moved(std::size_t job, std::size_t task, std::size_t from, Floor& floor) {
    while (job < claimant_ && (plan_.moved & only(job)) == 0) ++job;
    if (job == claimant_) {
        if (!law_.keeps_footprints(floor, plan_.moved)) return false;
        Floor then = floor;
        for (std::size_t each = 0; each < claimant_; ++each)
            if ((plan_.moved & only(each)) == 0) take(then, each, manners_.job(each), plan_.taken[each]);
        return then.fits(claimant_, fewest_);
    }
    const Work& work = manners_.job(job);
    if (task == work.runs.size()) return seat_moved(job + 1, 0, 0, floor);
    const auto near = [&](std::size_t node) {  // to the tasks that are seated already
        if (task == 0 || work.within == Within::anywhere || node == from) return true;
        return work.within == Within::leaf && scene_.machines[node].leaf == scene_.machines[from].leaf;
    };
    for (std::size_t node = from; node < scene_.machines.size(); ++node) {
        if (!near(node)) continue;
        if (floor.each_seat(job, node, [&](const Place& place) {
                floor.add(job, place);
                const bool found = seat_moved(job, task + 1, node, floor);
                floor.remove(job, place);
                return found;
            }))
            return true;
    }
    return false;
}

std::expected<Ground, std::string> Plans::ground_of(const Taken& taken, JobSet moved, const Floor& after_moves) const {
    for (std::size_t job = 0; job < claimant_; ++job) {
        const Work& work = manners_.job(job);
        const bool is_moved = (moved & only(job)) != 0;
        if ((taken[job] != 0 || is_moved) && !work.preemptible)
            return std::unexpected(fmt::format("job {} is not preemptible and was disturbed", job));
        if (is_moved && !law_.may_be_moved(job)) return std::unexpected(fmt::format("job {} may not be moved", job));
        const auto gone = std::popcount(static_cast<unsigned>(taken[job]));
        const int stay = static_cast<int>(work.runs.size()) - gone;
        if (gone > 0 && stay > 0 && (work.least == 0 || stay < work.least))
            return std::unexpected(fmt::format("job {} was left with {} tasks", job, stay));
    }
    if (!law_.keeps_footprints(after_moves, moved))
        return std::unexpected("a move made the footprint of scattered work larger");
    if (!law_.is_within_limits(taken)) return std::unexpected("a limit or a hard partition of others is violated");
    std::string why;
    for (const Ground ground : {Ground::guarantee, Ground::fair_share, Ground::preemption}) {
        constexpr const char* names[] = {"law A", "law B", "preemption"};
        std::string broken;
        for (std::size_t job = 0; job < claimant_ && broken.empty(); ++job)
            if (taken[job] != 0 && !law_.may_be_taken(job, ground))
                broken = fmt::format("job {} may not be taken", job);
        if (broken.empty() && !law_.is_ordered(taken, ground)) broken = "a level loses too much";
        if (broken.empty() && !law_.may_claim(taken, ground)) broken = "the claimant's line is beyond its bound";
        if (broken.empty() && moves_too_many(moved, ground)) broken = "more gangs were moved than allowed";
        if (broken.empty() && ground == Ground::preemption && moved != 0) broken = "preemption moves no work";
        if (broken.empty()) return ground;
        why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", names[static_cast<int>(ground)], broken);
    }
    return std::unexpected(why);
}

}  // namespace bulkhead::referee
