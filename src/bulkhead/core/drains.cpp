// Drains: a GPU that works, and should not much longer. Its node says so and keeps its own gate shut; the control plane
// sends nobody there, shows why, and remembers it in its rows. Who is on it stays. What is free of it, and what they
// leave when it is wiped, goes out of use, and comes back by a burn-in of all of it (decision 0022).
#include <algorithm>

#include "bulkhead/core/state.hpp"

namespace bulkhead {

using lifecycle::UnitEvent;
using lifecycle::UnitState;

namespace {

std::string print_all(const Device& device) {
    return unit_text(device.kind, device.index, 0, static_cast<unsigned>(device.units.size()));
}

void set_drain(Turn& turn, NodeRun& node, Device& device, std::string why) {
    device.draining = std::move(why);
    device.changed = true;
    turn.changed_nodes.insert(node.key);
    turn.state.fleet_stale.insert(node.key);
}

void take_out_of_use(Turn& turn, NodeRun& node, Device& device, std::size_t first, std::size_t count,
                     const std::string& why) {
    for (std::size_t i = first; i < first + count;) {
        std::size_t end = i;
        for (; end < first + count && device.units[end].state == UnitState::available; ++end)
            change_unit(turn, node, device, end, UnitEvent::fault);
        if (end > i)
            turn.log(
                {.kind = evidence::RecordKind::quarantined,
                 .actor = "node:" + node.object.metadata.name,
                 .node = node.object.metadata.name,
                 .unit = unit_text(device.kind, device.index, static_cast<unsigned>(i), static_cast<unsigned>(end - i)),
                 .detail = {{"why", "drained: " + why}}});
        i = std::max(end, i + 1);
    }
}

}  // namespace

// Also what has passed a burn-in already: whatever is said now was found after it.
void begin_drain(Turn& turn, NodeRun& node, Device& device, const std::string& said) {
    if (turn.state.settings.planted == Planted::ignore_drains) return;
    const std::string why = words_of_node(said);
    // Of other devices no part is handed out while another is in use, and nothing burns them in.
    if (device.kind == UnitKind::memory && device.draining != why) {
        set_drain(turn, node, device, why);
        turn.log({.kind = evidence::RecordKind::draining,
                  .actor = "node:" + node.object.metadata.name,
                  .node = node.object.metadata.name,
                  .unit = print_all(device),
                  .detail = {{"why", why}}});
    }
    take_out_of_use(turn, node, device, 0, device.units.size(), why);
}

void hear_of_drains(Turn& turn, NodeRun& node, const GpuNodeStatus& inventory) {
    std::size_t index = 0;
    for (const NodeGpus& group : inventory.gpus)
        for (std::int64_t i = 0; i < group.count; ++i, ++index)
            if (Device* device = node.device(UnitKind::memory, index);
                device != nullptr && !group.draining.empty() && words_of_node(group.draining) != device->draining)
                begin_drain(turn, node, *device, group.draining);
}

void settle_drain(Turn& turn, NodeRun& node, Device& device, Wiped wiped) {
    if (device.draining.empty()) return;
    if (!wiped.burnt_in)
        return take_out_of_use(turn, node, device, wiped.first, wiped.count, std::string{device.draining});
    // The part of a GPU that was burnt in says nothing of the rest, which somebody may still be on.
    if (std::ranges::any_of(device.units, [](const Unit& unit) { return unit.state != UnitState::available; })) return;
    turn.log({.kind = evidence::RecordKind::drain_over,
              .actor = "node:" + node.object.metadata.name,
              .node = node.object.metadata.name,
              .unit = print_all(device),
              .detail = {{"was", device.draining}}});
    set_drain(turn, node, device, {});
    turn.state.cycle_wanted = true;
}

}  // namespace bulkhead
