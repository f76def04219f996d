// A small fleet at one moment, as the referee sees it: tenants, machines, running work and one claimant that waits.
// Small integers only. GPUs are counted in eighths, which every unit of the scheduler can express exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/model/terms.hpp"

namespace bulkhead::referee {

inline constexpr int parts_of_gpu = 8;
inline constexpr int none = -1;

struct Owner {
    int parent = none;
    int domain = 1;  // 0: trusts no other tenant
    int guarantee = 0;
    int limit = none;
    int weight = 1;
    int surplus_priority = 0;
    bool hard = false;
    int reclaim_after = none, preempt_after = none;  // minutes; none: as its parent says
    friend bool operator==(const Owner&, const Owner&) = default;
};

struct Machine {
    int gpus = 1;
    int cores = 64;
    int leaf = 0;
    bool can_reboot = false;
    std::vector<int> used_by{};  // tenants whose code ran on the kernel since it was booted
};

// Where one task sits: one bit for each GPU.
struct Place {
    int node = 0;
    std::uint8_t gpus = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
};

enum class Within : std::uint8_t { anywhere, leaf, node };

struct Work {
    int tenant = 0;
    int gpus = 1;              // whole GPUs of one task
    int share = parts_of_gpu;  // below 8: so many eighths of one GPU
    bool time_sliced = false;  // a share by time slicing; else by MPS
    int tasks = 1;
    int least = 0;  // elastic: the fewest tasks worth running; 0: all
    int cores = 0;  // of one task
    Within within = Within::anywhere;
    int priority = 0;
    bool preemptible = true;
    PeerTrust node = PeerTrust::same_domain, gpu = PeerTrust::same_domain;  // the neighbours it bears
    bool host_kernel = true;
    int ran = 60;               // minutes
    int checkpoint = none;      // minutes
    std::vector<Place> runs{};  // empty: it waits
    int beside = none;          // of a task with which a gang grows: a node in the domain where the gang runs

    int fewest() const { return least > 0 ? least : tasks; }
    int part() const { return share < parts_of_gpu ? share : gpus * parts_of_gpu; }  // what one task leases
    int leases() const { return static_cast<int>(runs.size()) * part(); }
    bool is_share() const { return share < parts_of_gpu; }
    // Neighbours in the same memory: only time slicing lets other tenants in.
    PeerTrust instance() const { return time_sliced && is_share() ? gpu : PeerTrust::same_tenant; }
};

struct Scene {
    std::vector<Owner> owners;
    std::vector<Machine> machines;
    std::vector<Work> running;
    std::vector<Work> waiting;  // the claimant; more than one only where the order of arrival is tried
    int moves = 4;              // the most gangs that may be moved for one claimant
};

inline PeerTrust trust(const Scene& scene, int a, int b) {
    if (a == b) return PeerTrust::same_tenant;
    const int x = scene.owners[static_cast<std::size_t>(a)].domain,
              y = scene.owners[static_cast<std::size_t>(b)].domain;
    return x != 0 && x == y ? PeerTrust::same_domain : PeerTrust::distrusting;
}

// The scene as a `kind: Cluster` document, for `bulkhead schedule` and for people.
std::string document(const Scene& scene);

}  // namespace bulkhead::referee
