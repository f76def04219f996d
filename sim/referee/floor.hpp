// Where work sits, and every rule about sitting there, written anew: neighbours on the node and on the GPU, kernels
// that other tenants used, cores, whole GPUs and shares.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/referee/scene.hpp"

namespace bulkhead::referee {

inline constexpr std::size_t most_machines = 4, most_gpus = 8, most_jobs = 12;
using JobSet = std::uint16_t;  // one bit for each job

constexpr JobSet only(std::size_t job) { return static_cast<JobSet>(1u << job); }

// Which jobs bear each other. Job `running.size() + i` is the i-th that waits.
class Manners {
public:
    explicit Manners(const Scene& scene);

    const Work& job(std::size_t number) const { return *jobs_[number]; }
    std::size_t count() const { return jobs_.size(); }
    JobSet not_on_node_of(std::size_t job) const { return node_[job]; }
    JobSet not_on_gpu_of(std::size_t job) const { return gpu_[job]; }
    // The node's kernel was used by a tenant that this job's tenant distrusts.
    bool needs_reboot(std::size_t job, std::size_t node) const { return (hosts_[job] >> node & 1u) != 0; }

private:
    std::vector<const Work*> jobs_;
    std::array<JobSet, most_jobs> node_{}, gpu_{};
    std::array<std::uint8_t, most_jobs> hosts_{};
};

struct Bench {              // one GPU
    std::uint8_t used = 0;  // eighths
    JobSet jobs = 0;
    std::array<std::uint8_t, most_jobs> tasks{};  // of each job
    friend bool operator==(const Bench&, const Bench&) = default;
};

struct Site {  // one node
    std::array<Bench, most_gpus> gpus{};
    JobSet jobs = 0;
    std::array<std::uint8_t, most_jobs> tasks{};  // of each job
    int cores = 0;                                // free
};

class Floor {
public:
    Floor(const Scene& scene, const Manners& manners);  // with all that runs

    void remove(std::size_t job, const Place& place);
    void add(std::size_t job, const Place& place);
    void remove_all(std::size_t job);

    // How many tasks of the job the node takes now. With `reboot`, an empty node that can be rebooted counts as
    // rebooted.
    int capacity(std::size_t job, std::size_t node, bool reboot) const;
    // Whether so many tasks fit, reboots included.
    bool fits(std::size_t job, int tasks) const;

    // Each way to seat one task on the node that differs from the others.
    template <class Visit>
    bool each_seat(std::size_t job, std::size_t node, const Visit& visit) const {
        if (capacity(job, node, false) == 0) return false;
        const Work& work = manners_->job(job);
        const Site& here = sites[node];
        const auto count = static_cast<std::size_t>(scene_->machines[node].gpus);
        if (!work.is_share()) {
            Place place{static_cast<int>(node), 0};
            int left = work.gpus;
            for (std::size_t g = 0; g < count && left > 0; ++g)
                if (here.gpus[g].used == 0) {
                    place.gpus = static_cast<std::uint8_t>(place.gpus | 1u << g);
                    --left;
                }
            return left == 0 && visit(place);
        }
        for (std::size_t g = 0; g < count; ++g) {
            bool seen = false;
            for (std::size_t other = 0; other < g; ++other) seen = seen || here.gpus[other] == here.gpus[g];
            if (seen || !takes_share(job, here.gpus[g])) continue;
            if (visit(Place{static_cast<int>(node), static_cast<std::uint8_t>(1u << g)})) return true;
        }
        return false;
    }

    std::array<Site, most_machines> sites{};

private:
    bool takes_share(std::size_t job, const Bench& gpu) const;

    const Scene* scene_;
    const Manners* manners_;
};

// Every rule that the seats break, in words; empty: none. `rebooted`: one bit for each node that was rebooted
// meanwhile. `newly`: jobs that started or moved after the scene began; the others were allowed to sit beside the
// kernel's users.
std::vector<std::string> faults(const Scene& scene, const Manners& manners, std::span<const std::vector<Place>> seats,
                                unsigned rebooted, JobSet newly);

}  // namespace bulkhead::referee
