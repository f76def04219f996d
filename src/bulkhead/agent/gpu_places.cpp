#include "bulkhead/agent/gpu_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::agent {

namespace {

// "GPU-5a... 00000000:3B:00.0 0x233510DE mig 18 NVIDIA H200"; earlier agents wrote the UUID alone.
nvml::Gpu gpu_of_line(const std::string& line) {
    nvml::Gpu gpu;
    std::istringstream words{line};
    std::string mig;
    words >> gpu.uuid >> gpu.bus_id >> std::hex >> gpu.pci_device >> std::dec >> mig >> gpu.nvlinks >> std::ws;
    std::getline(words, gpu.name);
    if (mig == "mig") gpu.mig = nvml::MigMode::disabled;  // whole, as a machine has it
    return gpu;
}

std::string line_of(const nvml::Gpu& gpu) {
    if (gpu.bus_id.empty()) return gpu.uuid + "\n";
    return fmt::format("{} {} 0x{:08X} {} {} {}\n", gpu.uuid, gpu.bus_id, gpu.pci_device, gpu.mig ? "mig" : "-",
                       gpu.nvlinks, gpu.name);
}

}  // namespace

void GpuPlaces::add(nvml::Gpu gpu, bool away) {
    gpu.index = static_cast<unsigned>(places_.size());
    seen_.push_back(std::move(gpu));
    places_.push_back({&seen_.back(), away});
}

Result<std::unique_ptr<GpuPlaces>> GpuPlaces::open(const std::string& path, const std::vector<nvml::Gpu>& there,
                                                   const IsHeld& is_held) {
    auto places = std::make_unique<GpuPlaces>();
    std::string before, text;
    std::ifstream file{path};
    for (std::string line; std::getline(file, line);) {
        before += line + "\n";
        nvml::Gpu known = gpu_of_line(line);
        if (known.uuid.empty()) continue;
        const auto found = std::ranges::find(there, known.uuid, &nvml::Gpu::uuid);
        text += found != there.end() ? line_of(*found) : line + "\n";
        if (found != there.end()) {
            places->add(*found, false);
        } else {
            known.lost = known.bus_id.empty() || !is_held(known);
            places->add(std::move(known), true);
        }
    }
    const auto is_placed = [&](const nvml::Gpu& gpu) {
        return std::ranges::any_of(places->seen_, [&](const nvml::Gpu& one) { return one.uuid == gpu.uuid; });
    };
    for (const nvml::Gpu& gpu : there) {
        if (gpu.lost || is_placed(gpu)) continue;
        text += line_of(gpu);
        places->add(gpu, false);
    }
    if (text != before)
        if (auto kept = container::write_durably(path, text); !kept) return std::unexpected(kept.error());
    return places;
}

std::size_t GpuPlaces::size() const {
    const std::scoped_lock lock{mutex_};
    return places_.size();
}

std::vector<nvml::Gpu> GpuPlaces::all() const {
    const std::scoped_lock lock{mutex_};
    std::vector<nvml::Gpu> all;
    std::ranges::transform(places_, std::back_inserter(all), [](const Place& place) { return *place.gpu; });
    return all;
}

const nvml::Gpu* GpuPlaces::at(std::size_t number) const {
    const std::scoped_lock lock{mutex_};
    return places_[number].gpu;
}

bool GpuPlaces::is_away(std::size_t number) const {
    const std::scoped_lock lock{mutex_};
    return places_[number].away;
}

void GpuPlaces::see(const std::vector<nvml::Gpu>& there) {
    const std::scoped_lock lock{mutex_};
    for (Place& place : places_) {
        if (!place.away) continue;
        const auto found =
            std::ranges::find_if(there, [&](const nvml::Gpu& one) { return !one.lost && one.uuid == place.gpu->uuid; });
        if (found == there.end()) continue;
        nvml::Gpu gpu = *found;
        gpu.index = place.gpu->index;
        seen_.push_back(std::move(gpu));
        place = {&seen_.back(), false};
    }
}

}  // namespace bulkhead::agent
