// Which GPU has which number on this node. What is clean, and what is leased, is known by a GPU's number; NVML counts
// anew when one vanishes or is exchanged, so the numbers are the node's own: a UUID keeps the one it had first, and a
// GPU that is gone leaves its place empty.
//
// A GPU that a tenant's machine holds is not with NVML either: it is as it was when it was last seen. Whatever was away
// when the agent started is looked at anew when NVML shows it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bulkhead/hw/nvml/nvml.hpp"

namespace bulkhead::agent {

class GpuPlaces {
public:
    using IsHeld = std::function<bool(const nvml::Gpu&)>;  // by some machine
    // The file at `path` has a line for each: its UUID, and what it takes to know it while it is away.
    static Result<std::unique_ptr<GpuPlaces>> open(const std::string& path, const std::vector<nvml::Gpu>& there,
                                                   const IsHeld& is_held);

    std::size_t size() const;
    std::vector<nvml::Gpu> all() const;
    const nvml::Gpu* at(std::size_t number) const;  // stays as it is for as long as this does
    bool is_away(std::size_t number) const;         // it was not there when it was last looked for
    void see(const std::vector<nvml::Gpu>& there);  // takes up those that are back

private:
    struct Place {
        const nvml::Gpu* gpu = nullptr;
        bool away = false;
    };
    void add(nvml::Gpu gpu, bool away);

    mutable std::mutex mutex_;  // guards what follows
    std::deque<nvml::Gpu> seen_;
    std::vector<Place> places_;
};

}  // namespace bulkhead::agent
