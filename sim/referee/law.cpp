#include "sim/referee/law.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

namespace bulkhead::referee {

namespace {

constexpr double slack = 1e-6;  // far below the least difference between two footprints of so small a fleet

int size_of(const Work& work, std::uint8_t tasks) { return std::popcount(static_cast<unsigned>(tasks)) * work.part(); }

}  // namespace

Law::Law(const Scene& scene, const Manners& manners, const Floor& start, Dues dues)
    : scene_{&scene},
      manners_{&manners},
      dues_{std::move(dues)},
      claimant_{scene.running.size()},
      mine_{scene.waiting.front().tenant},
      asked_{scene.waiting.front().fewest() * scene.waiting.front().part()} {
    const std::size_t count = scene.owners.size();
    lines_.resize(count);
    has_children_.resize(count);
    guarantee_.resize(count);
    own_guarantee_.resize(count);
    held_.resize(count);
    own_.resize(count);
    entitlement_.resize(count);
    footprint_.resize(count);
    for (std::size_t t = 0; t < count; ++t) {
        for (int up = static_cast<int>(t); up != none; up = scene.owners[at(up)].parent) lines_[t].push_back(up);
        if (scene.owners[t].parent != none) has_children_[at(scene.owners[t].parent)] = true;
    }
    // Parents come before their children in a scene.
    std::vector<int> below(count);
    for (std::size_t t = count; t-- > 0;) {
        guarantee_[t] = std::max(scene.owners[t].guarantee, below[t]);
        own_guarantee_[t] = guarantee_[t] - below[t];
        if (scene.owners[t].parent != none) below[at(scene.owners[t].parent)] += guarantee_[t];
    }
    for (const Work& work : scene.running) {
        own_[at(work.tenant)] += work.leases();
        for (const int up : lines_[at(work.tenant)]) held_[at(up)] += work.leases();
    }
    // Entitlements: the smallest set of nodes that has as many GPUs as a trust domain's guarantees; where all are not
    // enough, the guarantees rounded up to whole nodes of the largest kind.
    int largest = 0, total = 0;
    for (const Machine& machine : scene.machines) {
        largest = std::max(largest, machine.gpus * parts_of_gpu);
        total += machine.gpus * parts_of_gpu;
    }
    const auto domain = [&](std::size_t t) {
        return scene.owners[t].domain != 0 ? scene.owners[t].domain : -1 - static_cast<int>(t);
    };
    std::map<int, int> guaranteed;
    for (std::size_t t = 0; t < count; ++t) guaranteed[domain(t)] += own_guarantee_[t];
    for (std::size_t t = 0; t < count; ++t) {
        const int sum = guaranteed[domain(t)];
        if (sum == 0 || largest == 0) continue;
        int rounded = total < sum ? (sum + largest - 1) / largest * largest : total;
        for (unsigned set = 0; set < 1u << scene.machines.size(); ++set) {
            int has = 0;
            for (std::size_t node = 0; node < scene.machines.size(); ++node)
                if ((set >> node & 1u) != 0) has += scene.machines[node].gpus * parts_of_gpu;
            if (has >= sum) rounded = std::min(rounded, has);
        }
        for (const int up : lines_[t]) entitlement_[at(up)] += static_cast<double>(own_guarantee_[t]) * rounded / sum;
    }
    free_ = total;
    for (const Work& work : scene.running) free_ -= work.leases();
    for (std::size_t t = 0; t < count; ++t) footprint_[t] = footprint(start, static_cast<int>(t));
}

bool Law::is_ancestor(int above, int tenant) const {
    return std::ranges::find(lines_[at(tenant)], above) != lines_[at(tenant)].end();
}

double Law::closed_on(const Floor& floor, std::size_t node, const std::function<bool(int)>& counts) const {
    const Site& site = floor.sites[node];
    const auto is_its = [&](std::size_t job) { return counts(manners_->job(job).tenant); };
    double all = 0, its = 0;
    bool closed = false;
    for (std::size_t job = 0; job < manners_->count(); ++job) {
        if (site.tasks[job] == 0) continue;
        const Work& work = manners_->job(job);
        const double leased = site.tasks[job] * work.part();
        all += leased;
        if (is_its(job)) its += leased;
        closed = closed || work.host_kernel || work.node != PeerTrust::distrusting;
    }
    if (its == 0) return 0;
    if (closed) return its + (scene_->machines[node].gpus * parts_of_gpu - all) * its / all;
    for (const Bench& gpu : site.gpus) {
        if (gpu.used == 0 || gpu.used == parts_of_gpu) continue;
        double here = 0;
        bool shut = false;
        for (std::size_t job = 0; job < manners_->count(); ++job) {
            if (gpu.tasks[job] == 0) continue;
            const Work& work = manners_->job(job);
            shut = shut || work.gpu != PeerTrust::distrusting || work.instance() != PeerTrust::distrusting;
            if (is_its(job)) here += gpu.tasks[job] * work.share;
        }
        if (shut) its += (parts_of_gpu - gpu.used) * here / gpu.used;
    }
    return its;
}

double Law::footprint(const Floor& floor, int tenant) const {
    double sum = 0;
    for (std::size_t node = 0; node < scene_->machines.size(); ++node)
        sum += closed_on(floor, node, [&](int other) { return is_ancestor(tenant, other); });
    return sum + empty_nodes_closed(floor, tenant);
}

// A node that was used and cannot be rebooted serves the trust domain of its users only. While it is empty, work of
// that domain on nodes that are not so bound closes it too, as far as that work would have room there.
double Law::empty_nodes_closed(const Floor& floor, int tenant) const {
    const auto domain_of = [&](int each) {
        return scene_->owners[at(each)].domain != 0 ? scene_->owners[at(each)].domain : -1 - each;
    };
    const auto bound_to = [&](std::size_t node) {
        const Machine& machine = scene_->machines[node];
        std::optional<int> whose;
        if (machine.can_reboot) return whose;
        for (const int user : machine.used_by) {
            if (whose && *whose != domain_of(user)) return std::optional<int>{};
            whose = domain_of(user);
        }
        return whose;
    };
    double sum = 0;
    std::map<int, double> empty;
    for (std::size_t node = 0; node < scene_->machines.size(); ++node)
        if (const auto whose = bound_to(node); whose && floor.sites[node].jobs == 0)
            empty[*whose] += scene_->machines[node].gpus * parts_of_gpu;
    for (const auto& [domain, parts] : empty) {
        double all = 0, its = 0;
        for (std::size_t node = 0; node < scene_->machines.size(); ++node) {
            if (bound_to(node)) continue;
            for (int owner = 0; std::cmp_less(owner, scene_->owners.size()); ++owner) {
                if (domain_of(owner) != domain) continue;
                const double here = closed_on(floor, node, [&](int other) { return other == owner; });
                all += here;
                if (is_ancestor(tenant, owner)) its += here;
            }
        }
        if (all > 0) sum += std::min(parts, all) * its / all;
    }
    return sum;
}

bool Law::is_inside_entitlement(std::size_t job) const {
    const std::size_t tenant = at(manners_->job(job).tenant);
    return footprint_[tenant] <= entitlement_[tenant] + slack;
}

// The levels of a tenant's branch seen from the claimant: its own work where it has children, then the tenant and those
// above it, up to where the claimant's line begins.
template <class Visit>
bool Law::all_levels(int tenant, const Visit& visit) const {
    if (has_children_[at(tenant)] && !visit(tenant, true)) return false;
    for (const int up : lines_[at(tenant)]) {
        if (is_ancestor(up, mine_)) break;
        if (!visit(up, false)) return false;
    }
    return true;
}

bool Law::is_within_guarantee(std::size_t job) const {
    return !all_levels(manners_->job(job).tenant, [&](int level, bool own) {
        return own ? own_[at(level)] > own_guarantee_[at(level)] : held_[at(level)] > guarantee_[at(level)];
    });
}

int Law::least_run(int tenant, Ground ground) const {
    const std::vector<int>& theirs = lines_[at(tenant)];
    std::size_t step = 0;  // one below where the two lines meet
    while (step + 1 < theirs.size() && !is_ancestor(theirs[step + 1], mine_)) ++step;
    for (std::size_t i = step; i < theirs.size(); ++i) {
        const Owner& owner = scene_->owners[at(theirs[i])];
        const int said = ground == Ground::preemption ? owner.preempt_after : owner.reclaim_after;
        if (said != none) return said;
    }
    return 0;
}

bool Law::may_be_taken(std::size_t job, Ground ground) const {
    const Work& work = manners_->job(job);
    if (!work.preemptible || work.ran < least_run(work.tenant, ground)) return false;
    if (ground == Ground::preemption) return work.tenant == mine_ && work.priority < manners_->job(claimant_).priority;
    if (work.tenant == mine_) return false;
    Taken alone{};
    alone[job] = 1;
    return is_ordered(alone, ground);
}

bool Law::may_be_moved(std::size_t job) const {
    const Work& work = manners_->job(job);
    if (!work.preemptible || work.ran < least_run(work.tenant, Ground::guarantee)) return false;
    return work.tenant == mine_ || !is_protected(job);
}

std::array<Law::Losses, 2> Law::losses(const Taken& taken) const {
    std::array<Losses, 2> out;
    for (std::size_t job = 0; job < claimant_; ++job) {
        if (taken[job] == 0) continue;
        const Work& work = manners_->job(job);
        const int size = size_of(work, taken[job]);
        all_levels(work.tenant, [&](int level, bool own) {
            Losses& losses = out[own ? 1 : 0];
            losses.touched[at(level)] = true;
            losses.sum[at(level)] += size;
            losses.largest[at(level)] = std::max(losses.largest[at(level)], size);
            return true;
        });
    }
    return out;
}

bool Law::is_ordered(const Taken& taken, Ground ground) const {
    if (ground == Ground::preemption) return true;
    const auto [whole, own] = losses(taken);
    for (std::size_t t = 0; t < scene_->owners.size(); ++t) {
        if (ground == Ground::guarantee) {
            if (whole.touched[t] && whole.sum[t] - whole.largest[t] >= held_[t] - guarantee_[t]) return false;
            if (own.touched[t] && own.sum[t] - own.largest[t] >= own_[t] - own_guarantee_[t]) return false;
            continue;
        }
        if (whole.touched[t] &&
            (scene_->owners[t].hard || whole.sum[t] - whole.largest[t] >= held_[t] - dues_.all[t] - slack ||
             held_[t] - whole.sum[t] < guarantee_[t]))
            return false;
        if (own.touched[t] &&
            (own.sum[t] - own.largest[t] >= own_[t] - dues_.own[t] - slack || own_[t] - own.sum[t] < own_guarantee_[t]))
            return false;
    }
    return true;
}

bool Law::takes_below(const Taken& taken, Ground ground) const {
    if (ground == Ground::preemption) return false;
    const auto [whole, own] = losses(taken);
    const bool by_guarantee = ground == Ground::guarantee;
    for (std::size_t t = 0; t < scene_->owners.size(); ++t) {
        const double all = by_guarantee ? guarantee_[t] : dues_.all[t] - slack;
        const double own_part = by_guarantee ? own_guarantee_[t] : dues_.own[t] - slack;
        if (whole.touched[t] && held_[t] - whole.sum[t] < all) return true;
        if (own.touched[t] && own_[t] - own.sum[t] < own_part) return true;
    }
    return false;
}

// The claimant's line stays within its guarantee, or its due, below the highest level that it shares with a victim.
bool Law::may_claim(const Taken& taken, Ground ground) const {
    if (ground == Ground::preemption) return true;
    const bool by_guarantee = ground == Ground::guarantee;
    if (has_children_[at(mine_)] &&
        own_[at(mine_)] + asked_ > (by_guarantee ? own_guarantee_[at(mine_)] : dues_.own[at(mine_)] + slack))
        return false;
    const std::vector<int>& line = lines_[at(mine_)];
    bool any = false;
    std::size_t top = 0;  // into the line; levels below it count
    std::vector<int> credit(line.size());
    for (std::size_t job = 0; job < claimant_; ++job) {
        if (taken[job] == 0) continue;
        any = true;
        const Work& work = manners_->job(job);
        std::size_t meet = 0;
        while (meet < line.size() && !is_ancestor(line[meet], work.tenant)) ++meet;
        top = std::max(top, meet);
        for (std::size_t i = meet; i < line.size(); ++i) credit[i] += size_of(work, taken[job]);
    }
    if (!any) top = line.size();
    for (std::size_t i = 0; i < top; ++i) {
        const std::size_t level = at(line[i]);
        const double allowed = by_guarantee ? guarantee_[level] : dues_.all[level] + slack;
        if (held_[level] - credit[i] + asked_ > allowed) return false;
    }
    return true;
}

std::optional<int> Law::most(int tenant) const {
    const Owner& owner = scene_->owners[at(tenant)];
    std::optional<int> out;
    if (owner.limit != none) out = owner.limit;
    if (owner.hard) out = std::min(out.value_or(owner.guarantee), owner.guarantee);
    return out;
}

// Limits of the claimant's line, and GPUs that hard partitions of others have not leased yet stay free.
bool Law::is_within_limits(const Taken& taken) const {
    std::vector<int> after = held_;
    int free = free_;
    for (std::size_t job = 0; job < claimant_; ++job) {
        if (taken[job] == 0) continue;
        const int size = size_of(manners_->job(job), taken[job]);
        free += size;
        for (const int up : lines_[at(manners_->job(job).tenant)]) after[at(up)] -= size;
    }
    for (const int up : lines_[at(mine_)])
        if (const auto bound = most(up); bound && after[at(up)] + asked_ > *bound) return false;
    std::vector<int> owed(scene_->owners.size());
    for (std::size_t t = scene_->owners.size(); t-- > 0;) {
        if (!scene_->owners[t].hard) continue;
        // What the hard partitions below it are owed is part of what it is owed.
        int inner = 0;
        for (std::size_t below = t + 1; below < scene_->owners.size(); ++below) {
            if (!is_ancestor(static_cast<int>(t), static_cast<int>(below)) || owed[below] == 0) continue;
            inner += owed[below];
        }
        owed[t] = std::max(scene_->owners[t].guarantee - after[t] - inner, 0);
    }
    int others = 0, own = 0;
    for (std::size_t t = 0; t < owed.size(); ++t) (is_ancestor(static_cast<int>(t), mine_) ? own : others) += owed[t];
    const int beyond = asked_ - std::min(asked_, own);
    return others == 0 || beyond == 0 || free - beyond >= others;
}

bool Law::keeps_footprints(const Floor& moved, JobSet jobs) const {
    for (std::size_t job = 0; job < claimant_; ++job) {
        if ((jobs & only(job)) == 0 || manners_->job(job).tenant == mine_ || !is_scattered(job)) continue;
        const int tenant = manners_->job(job).tenant;
        if (footprint(moved, tenant) > footprint_[at(tenant)] + slack) return false;
    }
    return true;
}

}  // namespace bulkhead::referee
