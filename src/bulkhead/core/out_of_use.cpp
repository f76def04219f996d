// Why a drive is out of use. Its node says what it found and what helps; the control plane keeps that beside the gate's
// state, adds the command that lets the drive back in, and shows both wherever the node is shown: whoever sees
// `quarantined` must not have to search the log for the reason.
#include <fmt/format.h>

#include "bulkhead/core/state.hpp"

namespace bulkhead {

using lifecycle::UnitState;

// A node's own words are shown to people.
std::string words_of_node(const std::string& said) {
    return !said.empty() && is_valid(Format::line, said) ? said : "its node gives no reason that can be shown";
}

void remember_why(Turn& turn, NodeRun& node, Device& device, const std::string& said) {
    if (device.kind != UnitKind::drive) return;
    std::string why = words_of_node(said);
    if (device.why == why) return;
    device.why = std::move(why);
    device.changed = true;
    turn.changed_nodes.insert(node.key);
}

std::string why_out_of_use(const NodeRun& node, const Device& device) {
    const UnitState state = device.units[0].state;
    if (state == UnitState::held) return device.why;  // no repair ends a legal hold
    if (state != UnitState::quarantined) return {};
    return fmt::format("{}; when that is settled: bulkhead repair {} drive{} --why ...",
                       device.why.empty() ? "the log has the reason" : device.why, node.object.metadata.name,
                       device.index);
}

}  // namespace bulkhead
