// The three threat models as presets: how weak a tier may be, how far sharing may go, and the key controls that
// everything else relies on.
#pragma once

#include <span>
#include <string_view>

#include "bulkhead/model/terms.hpp"

namespace bulkhead {

struct KeyControl {
    std::string_view id;    // "metrics-restricted"
    std::string_view says;  // what is done, in one sentence
};

struct ThreatPreset {
    ThreatModel model{};
    std::string_view attacker;              // who is assumed to attack whom
    Tier floor_alone{};                     // the weakest tier on a node of one's own
    Tier floor_in_domain{};                 // beside tenants of the same trust domain
    Tier floor_distrusting{};               // beside distrusting tenants
    bool soft_sharing_in_domain = false;    // MPS and time-slicing between tenants of one domain
    bool gpu_sharing_distrusting = false;   // MIG-backed vGPU beside distrusting tenants
    bool exceptions = false;                // whether tier exceptions count
    bool verified_reboot_required = false;  // below vm, a node must be able to prove what it booted
    std::span<const KeyControl> controls;
};

const ThreatPreset& preset_of(ThreatModel model);

}  // namespace bulkhead
