#include "sim/referee/draw.hpp"

#include <algorithm>
#include <map>

#include "sim/referee/floor.hpp"

namespace bulkhead::referee {

namespace {

class Artist {
public:
    Artist(std::uint64_t seed, Dimensions allowed) : rng_{seed} {
        for (std::size_t i = 0; i < dimension_count; ++i) {
            const auto dimension = static_cast<Dimension>(i);
            if (rng_.below(2) == 0 && allowed.contains(dimension)) uses_.insert(dimension);
        }
    }

    void insist_on(Dimension dimension) { uses_.insert(dimension); }
    Rng& rng() { return rng_; }

    Scene draw(int claimants) {
        draw_machines();
        draw_owners();
        draw_guarantees();
        draw_history();
        const int most = static_cast<int>(most_running) + 1 - std::max(claimants, 1);
        const auto wanted = static_cast<int>(rng_.between(1, most));
        for (int tries = 0; tries < 2 * most && std::ssize(scene_.running) < wanted; ++tries) draw_running();
        for (int i = 0; i < claimants; ++i) draw_claimant();
        return std::move(scene_);
    }

private:
    static constexpr std::size_t most_running = 7;

    bool uses(Dimension dimension) const { return uses_.contains(dimension); }
    int between(int low, int high) { return static_cast<int>(rng_.between(low, std::max(low, high))); }
    bool one_in(int count) { return rng_.below(static_cast<std::uint64_t>(count)) == 0; }
    Owner& owner(int number) { return scene_.owners[static_cast<std::size_t>(number)]; }
    int owners() const { return static_cast<int>(scene_.owners.size()); }

    void draw_machines() {
        const int count = between(1, 4);
        const int sizes[] = {1, 2, 2, 3, 4, 4, 8};
        const int alike = sizes[rng_.below(std::size(sizes))];
        const bool differ = one_in(4);
        for (int i = 0; i < count; ++i) {
            Machine machine{.gpus = alike};
            if (differ) machine.gpus = between(1, 8);
            if (uses(Dimension::topology)) machine.leaf = i / 2;
            if (uses(Dimension::cores)) machine.cores = between(1, 6);
            machine.can_reboot = !one_in(3);
            largest_ = std::max(largest_, machine.gpus);
            total_ += machine.gpus;
            scene_.machines.push_back(std::move(machine));
        }
    }

    void draw_owners() {
        const int count = between(2, 5);
        const int departments = uses(Dimension::tree) ? between(1, 2) : 0;
        const int domains = between(2, 3);
        for (int i = 0; i < count; ++i) {
            Owner made;
            if (departments > 0 && i >= departments && !one_in(4)) made.parent = between(0, departments - 1);
            if (uses(Dimension::trust)) made.domain = one_in(8) ? 0 : between(1, domains);
            made.weight = between(0, 3);
            made.surplus_priority = one_in(5) ? 1 : 0;
            if (uses(Dimension::times)) {
                if (one_in(2)) made.reclaim_after = 30 * between(0, 3);
                if (one_in(3)) made.preempt_after = 30 * between(0, 3);
            }
            scene_.owners.push_back(made);
        }
    }

    int nodes_needed() const {
        std::map<int, int> guaranteed;
        std::vector<int> below(scene_.owners.size());
        for (std::size_t t = scene_.owners.size(); t-- > 0;) {
            const Owner& each = scene_.owners[t];
            const int domain = each.domain != 0 ? each.domain : -1 - static_cast<int>(t);
            guaranteed[domain] += std::max(each.guarantee - below[t], 0);
            if (each.parent != none) below[static_cast<std::size_t>(each.parent)] += std::max(each.guarantee, below[t]);
        }
        int nodes = 0;
        for (const auto& [domain, sum] : guaranteed)
            nodes += (sum + largest_ * parts_of_gpu - 1) / (largest_ * parts_of_gpu);
        return nodes;
    }

    void draw_guarantees() {
        for (int i = owners() - 1; i >= 0; --i) {
            int below = 0;
            for (int child = i + 1; child < owners(); ++child)
                if (owner(child).parent == i) below += owner(child).guarantee;
            const int most = uses(Dimension::scatter) ? std::max(total_ / 2, 1) : largest_;
            const int own = one_in(2) ? between(1, most) * parts_of_gpu : 0;
            owner(i).guarantee = below > 0 && one_in(3) ? 0 : below + own;
            if (uses(Dimension::shares) && owner(i).guarantee > 0 && one_in(4)) owner(i).guarantee -= 4;
        }
        if (!one_in(8))  // most of the time all guarantees can be kept at once
            for (int tries = 0; tries < 20 && nodes_needed() > std::ssize(scene_.machines); ++tries) {
                Owner& less = owner(between(0, owners() - 1));
                less.guarantee = less.guarantee / 16 * parts_of_gpu;
            }
        for (Owner& each : scene_.owners) {
            if (uses(Dimension::limits) && one_in(3)) each.limit = each.guarantee + between(0, 4) * parts_of_gpu;
            each.hard = uses(Dimension::hard) && each.guarantee > 0 && one_in(3);
        }
    }

    void draw_history() {
        if (!uses(Dimension::hosts)) return;
        for (Machine& machine : scene_.machines)
            if (one_in(2)) machine.used_by.push_back(between(0, owners() - 1));
    }

    // What it asks for; whose it is, is said before.
    void draw_shape(Work& work, int most_gpus_of_task) {
        work.gpus = between(1, std::min(most_gpus_of_task, largest_));
        if (uses(Dimension::shares) && one_in(2)) {
            const int parts[] = {1, 2, 2, 4, 4, 6};
            work.gpus = 1;
            work.share = parts[rng_.below(std::size(parts))];
            work.time_sliced = one_in(2);
        }
        if (uses(Dimension::gangs) && one_in(2)) {
            work.tasks = between(2, 4);
            work.gpus = std::max(1, work.gpus / work.tasks);
        }
        if (uses(Dimension::elastic) && one_in(2)) {
            work.tasks = between(2, 4);
            work.gpus = std::max(1, work.gpus / work.tasks);
            work.least = between(1, work.tasks - 1);
        }
        if (uses(Dimension::topology) && work.tasks > 1 && work.least == 0 && one_in(2))
            work.within = one_in(2) ? Within::node : Within::leaf;
        if (uses(Dimension::cores)) work.cores = between(0, 2);
        work.priority = between(0, 2);
        if (uses(Dimension::vm) && one_in(2)) {
            work.host_kernel = false;
            work.node = one_in(4) ? PeerTrust::same_tenant : PeerTrust::distrusting;
            work.gpu = static_cast<PeerTrust>(rng_.below(3));
            work.gpu = std::min(work.gpu, work.node);
        } else if (one_in(6)) {
            work.node = work.gpu = PeerTrust::same_tenant;
        }
        if (one_in(2)) work.checkpoint = 30 * between(1, 3);
    }

    bool is_within_limits(const Work& work, int size) const {
        for (int up = work.tenant; up != none; up = scene_.owners[static_cast<std::size_t>(up)].parent) {
            const Owner& each = scene_.owners[static_cast<std::size_t>(up)];
            int held = size;
            for (const Work& other : scene_.running)
                for (int above = other.tenant; above != none;
                     above = scene_.owners[static_cast<std::size_t>(above)].parent)
                    if (above == up) held += other.leases();
            if (each.limit != none && held > each.limit) return false;
            if (each.hard && held > each.guarantee) return false;
        }
        return true;
    }

    void draw_running() {
        Work work;
        work.tenant = between(0, owners() - 1);
        if (owner(work.tenant).guarantee > 0 && one_in(3)) work.tenant = between(0, owners() - 1);
        draw_shape(work, uses(Dimension::scatter) ? 2 : 4);
        work.ran = uses(Dimension::times) ? between(0, 120) : between(1, 8) * 15 + 90;
        const int tasks = work.least > 0 ? between(work.least, work.tasks) : work.tasks;
        if (!is_within_limits(work, tasks * work.part())) return;
        // Work that is not preemptible runs inside its tenant's guarantee.
        if (uses(Dimension::pinned) && one_in(3) && tasks * work.part() <= owner(work.tenant).guarantee)
            work.preemptible = false;
        scene_.running.push_back(work);
        const std::size_t number = scene_.running.size() - 1;
        const Manners manners{scene_};
        Floor floor{scene_, manners};
        std::vector<Place> places;
        for (int task = 0; task < tasks; ++task) {
            std::vector<Place> could;
            for (std::size_t node = 0; node < scene_.machines.size(); ++node) {
                if (!places.empty() && work.within != Within::anywhere) {
                    const auto first = static_cast<std::size_t>(places.front().node);
                    if (work.within == Within::node && node != first) continue;
                    if (scene_.machines[node].leaf != scene_.machines[first].leaf) continue;
                }
                floor.each_seat(number, node, [&](const Place& place) {
                    could.push_back(place);
                    return false;
                });
            }
            if (could.empty()) break;
            places.push_back(could[rng_.below(could.size())]);
            floor.add(number, places.back());
        }
        if (std::ssize(places) < tasks) return scene_.running.pop_back();
        for (const Place& place : places) {
            Machine& machine = scene_.machines[static_cast<std::size_t>(place.node)];
            if (work.host_kernel && std::ranges::find(machine.used_by, work.tenant) == machine.used_by.end())
                machine.used_by.push_back(work.tenant);
        }
        scene_.running.back().runs = std::move(places);
    }

    void draw_claimant() {
        Work work;
        work.tenant = between(0, owners() - 1);
        for (int tries = 0; tries < 3 && owner(work.tenant).guarantee == 0; ++tries)
            work.tenant = between(0, owners() - 1);
        draw_shape(work, 8);
        work.priority = between(0, 3);
        // Most claimants ask for no more than they are guaranteed.
        const int guarantee = owner(work.tenant).guarantee;
        if (guarantee >= parts_of_gpu && !work.is_share() && !one_in(4))
            work.gpus = std::clamp(work.gpus, 1, std::max(1, guarantee / parts_of_gpu / work.fewest()));
        scene_.waiting.push_back(work);
    }

    Rng rng_;
    Dimensions uses_;
    Scene scene_;
    int largest_ = 0, total_ = 0;
};

}  // namespace

Dimensions all_dimensions() {
    Dimensions out;
    for (std::size_t i = 0; i < dimension_count; ++i) out.insert(static_cast<Dimension>(i));
    return out;
}

Scene draw(std::uint64_t seed, Dimensions allowed, int claimants) { return Artist{seed, allowed}.draw(claimants); }

Scene draw_growth(std::uint64_t seed, Dimensions allowed) {
    Artist artist{seed, allowed};
    artist.insist_on(Dimension::elastic);
    Scene scene = artist.draw(0);
    bool found = false;
    for (Work& work : scene.running) {
        if (work.least == 0) continue;
        work.preemptible = true;
        if (found) work.tasks = static_cast<int>(work.runs.size());
        const bool grows = !found && work.runs.size() < static_cast<std::size_t>(work.tasks);
        found = found || grows;
        // Every second gang that grows must stay where it is.
        if (!grows || artist.rng().below(2) != 0) continue;
        const auto leaf_of = [&](const Place& place) {
            return scene.machines[static_cast<std::size_t>(place.node)].leaf;
        };
        const Place first = work.runs.front();
        if (std::ranges::all_of(work.runs, [&](const Place& place) { return place.node == first.node; }))
            work.within = Within::node;
        else if (std::ranges::all_of(work.runs, [&](const Place& at) { return leaf_of(at) == leaf_of(first); }))
            work.within = Within::leaf;
    }
    return scene;
}

Scene draw_lowered_limits(std::uint64_t seed, Dimensions allowed) {
    Artist artist{seed, allowed};
    Scene scene = artist.draw(0);
    for (Owner& owner : scene.owners) {
        const auto lowered = static_cast<int>(artist.rng().between(0, 4)) * parts_of_gpu;
        if (artist.rng().below(3) == 0 && !owner.hard) owner.limit = std::max(owner.guarantee / 2, lowered);
    }
    return scene;
}

}  // namespace bulkhead::referee
