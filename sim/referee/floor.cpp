#include "sim/referee/floor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace bulkhead::referee {

namespace {

bool bear(const Scene& scene, const Work& a, PeerTrust a_bears, const Work& b, PeerTrust b_bears) {
    const PeerTrust between = trust(scene, a.tenant, b.tenant);
    return between <= a_bears && between <= b_bears;
}

bool bear_on_node(const Scene& scene, const Work& a, const Work& b) {
    const bool strangers = trust(scene, a.tenant, b.tenant) == PeerTrust::distrusting;
    return bear(scene, a, a.node, b, b.node) && !(strangers && (a.host_kernel || b.host_kernel));
}

bool bear_on_gpu(const Scene& scene, const Work& a, const Work& b) {
    return a.is_share() && b.is_share() && a.time_sliced == b.time_sliced && bear(scene, a, a.gpu, b, b.gpu) &&
           bear(scene, a, a.instance(), b, b.instance());
}

}  // namespace

Manners::Manners(const Scene& scene) {
    for (const Work& work : scene.running) jobs_.push_back(&work);
    for (const Work& work : scene.waiting) jobs_.push_back(&work);
    for (std::size_t a = 0; a < jobs_.size(); ++a) {
        for (std::size_t b = 0; b < jobs_.size(); ++b) {
            if (a == b) continue;
            if (!bear_on_node(scene, *jobs_[a], *jobs_[b])) node_[a] = static_cast<JobSet>(node_[a] | only(b));
            if (!bear_on_gpu(scene, *jobs_[a], *jobs_[b])) gpu_[a] = static_cast<JobSet>(gpu_[a] | only(b));
        }
        for (std::size_t node = 0; node < scene.machines.size(); ++node)
            for (const int user : scene.machines[node].used_by)
                if (trust(scene, jobs_[a]->tenant, user) == PeerTrust::distrusting)
                    hosts_[a] = static_cast<std::uint8_t>(hosts_[a] | 1u << node);
    }
}

Floor::Floor(const Scene& scene, const Manners& manners) : scene_{&scene}, manners_{&manners} {
    for (std::size_t node = 0; node < scene.machines.size(); ++node) sites[node].cores = scene.machines[node].cores;
    for (std::size_t job = 0; job < scene.running.size(); ++job)
        for (const Place& place : scene.running[job].runs) add(job, place);
}

void Floor::add(std::size_t job, const Place& place) {
    const Work& work = manners_->job(job);
    Site& site = sites[static_cast<std::size_t>(place.node)];
    for (unsigned bits = place.gpus; bits != 0; bits &= bits - 1) {
        Bench& gpu = site.gpus[static_cast<std::size_t>(std::countr_zero(bits))];
        gpu.used = static_cast<std::uint8_t>(gpu.used + work.share);
        gpu.jobs = static_cast<JobSet>(gpu.jobs | only(job));
        ++gpu.tasks[job];
    }
    site.cores -= work.cores;
    ++site.tasks[job];
    site.jobs = static_cast<JobSet>(site.jobs | only(job));
}

void Floor::remove(std::size_t job, const Place& place) {
    const Work& work = manners_->job(job);
    Site& site = sites[static_cast<std::size_t>(place.node)];
    for (unsigned bits = place.gpus; bits != 0; bits &= bits - 1) {
        Bench& gpu = site.gpus[static_cast<std::size_t>(std::countr_zero(bits))];
        gpu.used = static_cast<std::uint8_t>(gpu.used - work.share);
        if (--gpu.tasks[job] == 0) gpu.jobs = static_cast<JobSet>(gpu.jobs & ~only(job));
    }
    site.cores += work.cores;
    if (--site.tasks[job] == 0) site.jobs = static_cast<JobSet>(site.jobs & ~only(job));
}

void Floor::remove_all(std::size_t job) {
    for (const Place& place : manners_->job(job).runs) remove(job, place);
}

bool Floor::takes_share(std::size_t job, const Bench& gpu) const {
    return gpu.used + manners_->job(job).share <= parts_of_gpu && (gpu.jobs & manners_->not_on_gpu_of(job)) == 0;
}

int Floor::capacity(std::size_t job, std::size_t node, bool reboot) const {
    const Work& work = manners_->job(job);
    const Site& site = sites[node];
    if ((site.jobs & manners_->not_on_node_of(job)) != 0) return 0;
    if (manners_->needs_reboot(job, node) && !(reboot && site.jobs == 0 && scene_->machines[node].can_reboot)) return 0;
    int tasks = 0, empty = 0;
    for (std::size_t g = 0; g < static_cast<std::size_t>(scene_->machines[node].gpus); ++g) {
        const Bench& gpu = site.gpus[g];
        if (gpu.used == 0) ++empty;
        if (work.is_share() && takes_share(job, gpu)) tasks += (parts_of_gpu - gpu.used) / work.share;
    }
    if (!work.is_share()) tasks = empty / work.gpus;
    if (work.cores > 0) tasks = std::min(tasks, std::max(site.cores, 0) / work.cores);
    return tasks;
}

bool Floor::fits(std::size_t job, int tasks) const {
    const Within within = manners_->job(job).within;
    const int beside = manners_->job(job).beside;
    const auto bin_of = [&](std::size_t node) {
        if (within == Within::leaf) return static_cast<std::size_t>(scene_->machines[node].leaf);
        return within == Within::node ? node : 0;
    };
    std::array<int, most_machines> room{};
    for (std::size_t node = 0; node < scene_->machines.size(); ++node) {
        const int takes = capacity(job, node, true);
        const std::size_t bin = bin_of(node);
        if (takes == 0 || (beside != none && bin != bin_of(static_cast<std::size_t>(beside)))) continue;
        room[bin] += takes;
        if (room[bin] >= tasks) return true;
    }
    return false;
}

std::vector<std::string> faults(const Scene& scene, const Manners& manners, std::span<const std::vector<Place>> seats,
                                unsigned rebooted, JobSet newly) {
    std::vector<std::string> out;
    struct Sitting {
        std::size_t job;
        Place place;
    };
    for (std::size_t node = 0; node < scene.machines.size(); ++node) {
        const Machine& machine = scene.machines[node];
        std::vector<Sitting> here;
        int cores = 0;
        std::array<int, most_gpus> used{};
        for (std::size_t job = 0; job < seats.size(); ++job)
            for (const Place& place : seats[job]) {
                if (static_cast<std::size_t>(place.node) != node) continue;
                here.push_back({job, place});
                cores += manners.job(job).cores;
                for (std::size_t g = 0; g < most_gpus; ++g)
                    if ((place.gpus >> g & 1u) != 0) used[g] += manners.job(job).share;
                if ((place.gpus >> machine.gpus) != 0) out.push_back(fmt::format("node {} has no such GPU", node));
                const int asked = manners.job(job).is_share() ? 1 : manners.job(job).gpus;
                if (std::popcount(static_cast<unsigned>(place.gpus)) != asked)
                    out.push_back(fmt::format("a task of job {} has not as many GPUs as it asks for", job));
            }
        if (cores > machine.cores)
            out.push_back(fmt::format("node {} has {} cores, leased {}", node, machine.cores, cores));
        for (std::size_t g = 0; g < most_gpus; ++g)
            if (used[g] > parts_of_gpu)
                out.push_back(fmt::format("GPU {} of node {} is leased {}/8", g, node, used[g]));
        for (std::size_t a = 0; a < here.size(); ++a) {
            const Work& guest = manners.job(here[a].job);
            for (std::size_t b = a + 1; b < here.size(); ++b) {
                if (here[a].job == here[b].job) continue;
                const Work& other = manners.job(here[b].job);
                if (!bear_on_node(scene, guest, other))
                    out.push_back(fmt::format("jobs {} and {} do not bear each other on node {}", here[a].job,
                                              here[b].job, node));
                if ((here[a].place.gpus & here[b].place.gpus) != 0 && !bear_on_gpu(scene, guest, other))
                    out.push_back(fmt::format("jobs {} and {} do not bear each other on a GPU of node {}", here[a].job,
                                              here[b].job, node));
            }
            if ((newly & only(here[a].job)) != 0 && (rebooted >> node & 1u) == 0 &&
                manners.needs_reboot(here[a].job, node))
                out.push_back(
                    fmt::format("job {} sits on node {}, whose kernel a distrusted tenant used", here[a].job, node));
        }
    }
    for (std::size_t job = 0; job < seats.size(); ++job) {
        const Work& work = manners.job(job);
        const auto apart = [&](const Place& a, const Place& b) {
            if (work.within == Within::node) return a.node != b.node;
            return work.within == Within::leaf && scene.machines[static_cast<std::size_t>(a.node)].leaf !=
                                                      scene.machines[static_cast<std::size_t>(b.node)].leaf;
        };
        for (const Place& place : seats[job])
            if (apart(place, seats[job].front())) out.push_back(fmt::format("job {} is spread too far", job));
    }
    return out;
}

}  // namespace bulkhead::referee
