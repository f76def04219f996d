#include "bulkhead/node/ledger.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace bulkhead {

std::string print(DeviceId device) {
    switch (device.kind) {
        case UnitKind::memory:
            return fmt::format("gpu{}", device.device);
        case UnitKind::drive:
            return fmt::format("drive{}", device.device);
        case UnitKind::vf:
            return fmt::format("vf{}", device.device);
        case UnitKind::host:
            return "host";
    }
    return {};
}

std::string print_units(const WipeTask& task) { return unit_text(task.kind, task.device, task.start, task.size); }

std::vector<UnitId> units_of(const WipeTask& task) {
    if (task.kind != UnitKind::memory) return {{task.kind, task.device, 0}};
    std::vector<UnitId> units;
    for (unsigned slice = task.start; slice < unsigned{task.start} + task.size && slice < 256; ++slice)
        units.push_back({task.kind, task.device, static_cast<std::uint8_t>(slice)});
    return units;
}

std::vector<UnitId> units_of(const Prepare& lease) {
    std::vector<UnitId> units;
    for (const GpuPart& part : lease.gpus)
        for (const UnitId unit : units_of(WipeTask{UnitKind::memory, part.gpu, part.start, part.size}))
            units.push_back(unit);
    for (const std::uint16_t drive : lease.drives) units.push_back({UnitKind::drive, drive, 0});
    for (const std::uint16_t function : lease.functions) units.push_back({UnitKind::vf, function, 0});
    if (lease.tier < Tier::vm) units.push_back({UnitKind::host, 0, 0});
    return units;
}

bool touches(const WipeTask& task, UnitId unit) {
    if (task.kind != unit.kind || task.device != unit.device) return false;
    return task.kind != UnitKind::memory || (unit.slice >= task.start && unit.slice - task.start < task.size);
}

bool touches(const Prepare& lease, UnitId unit) {
    switch (unit.kind) {
        case UnitKind::memory:
            return std::ranges::any_of(lease.gpus, [&](const GpuPart& part) {
                return touches(WipeTask{UnitKind::memory, part.gpu, part.start, part.size}, unit);
            });
        case UnitKind::drive:
            return std::ranges::find(lease.drives, unit.device) != lease.drives.end();
        case UnitKind::vf:
            return std::ranges::find(lease.functions, unit.device) != lease.functions.end();
        case UnitKind::host:
            return lease.tier < Tier::vm;
    }
    return false;
}

std::vector<Key> Ledger::holders(UnitId unit) const {
    std::vector<Key> found;
    for (const auto& [key, lease] : leases)
        if (touches(lease.order, unit)) found.push_back(key);
    return found;
}

std::vector<Key> Ledger::wipes_of(UnitId unit) const {
    std::vector<Key> found;
    for (const auto& [ticket, wipe] : wipes)
        if (touches(wipe.task, unit)) found.push_back(ticket);
    return found;
}

bool Ledger::clean(UnitId unit) const {
    const auto known = units.find(unit);
    return known != units.end() && known->second.clean;
}

std::optional<PartPhase> Ledger::closed_as(Key lease) const {
    if (leases.contains(lease)) return std::nullopt;
    if (const auto known = closed.find(lease); known != closed.end()) return known->second;
    return lease <= closed_up_to ? std::optional{PartPhase::stopped} : std::nullopt;
}

}  // namespace bulkhead
