#include "bulkhead/policy/threat_model.hpp"

#include <algorithm>
#include <array>

namespace bulkhead {
namespace {

constexpr auto internal_controls = std::to_array<KeyControl>({
    {"quotas", "Every tenant has a quota, and guarantees never exceed what the fleet has."},
    {"priority-policed", "Nobody runs at a priority that was not granted by name."},
    {"no-untrusted-code", "Only code of the organisation and images it admits are run."},
    {"contention-attributed", "Utilisation and interference are measured per tenant."},
    {"versions-gated", "Driver, firmware and toolkit versions are held to advisories with due dates."},
});

constexpr auto cloud_controls = std::to_array<KeyControl>({
    {"quotas", "Every tenant has a quota, and guarantees never exceed what the fleet has."},
    {"priority-policed", "Nobody runs at a priority that was not granted by name."},
    {"no-soft-sharing", "MPS and time-slicing stay inside one tenant; between tenants a GPU is divided by MIG alone."},
    {"no-privileged-pods", "No privileged container, no host device, no host namespace."},
    {"default-deny-network", "Nothing passes between tenants, or to storage and management, that was not allowed."},
    {"versions-gated", "Driver, firmware and toolkit versions are pinned and held to advisories with due dates."},
    {"metrics-restricted", "Device-wide counters are kept from co-tenants where that can be enforced, else disclosed."},
    {"scrub-on-teardown", "Memory, drives and host are sanitised and verified before anyone else gets them."},
    {"firmware-current", "GPU, NIC and drive firmware is updated on a schedule and recorded."},
    {"mig-changes-audited", "Every change of a MIG layout is an entry in the audit log."},
    {"contention-attributed", "Utilisation and interference are measured per tenant."},
});

constexpr auto regulated_controls = std::to_array<KeyControl>({
    {"quotas", "Every tenant has a quota, and guarantees never exceed what the fleet has."},
    {"priority-policed", "Nobody runs at a priority that was not granted by name."},
    {"no-soft-sharing", "MPS and time-slicing stay inside one tenant; between tenants a GPU is divided by MIG alone."},
    {"dedicated-gpus", "A GPU has tenants of one trust domain only, and a compliant tenant's GPU has one tenant."},
    {"no-exceptions", "No tier exception counts, whoever grants it."},
    {"no-privileged-pods", "No privileged container, no host device, no host namespace."},
    {"default-deny-network", "Nothing passes between tenants, or to storage and management, that was not allowed."},
    {"versions-gated", "Driver, firmware and toolkit versions are pinned and held to advisories with due dates."},
    {"metrics-restricted", "Device-wide counters are kept from co-tenants where that can be enforced, else disclosed."},
    {"scrub-on-teardown", "Memory, drives and host are sanitised and verified before anyone else gets them."},
    {"verified-reboot", "Below a VM, a node proves what it booted before the next tenant."},
    {"firmware-current", "GPU, NIC and drive firmware is updated on a schedule and recorded."},
    {"mig-changes-audited", "Every change of a MIG layout is an entry in the audit log."},
    {"separation-of-duties", "Who grants, who operates and who audits are different people."},
    {"evidence-per-control", "Every control names the evidence that shows it in force; one without is a gap."},
    {"disclosure-in-ssp", "What is not isolated is written in the System Security Plan, by name."},
    {"site-pinned", "Work stays at the sites and under the law its tenant names."},
    {"contention-attributed", "Utilisation and interference are measured per tenant."},
});

constexpr auto presets = std::to_array<ThreatPreset>({
    {.model = ThreatModel::internal,
     .attacker = "nobody on purpose: teams of one organisation disturb each other by mistake",
     .floor_alone = Tier::process,
     .floor_in_domain = Tier::container,
     .floor_distrusting = Tier::vm,
     .soft_sharing_in_domain = true,
     .gpu_sharing_distrusting = true,
     .exceptions = true,
     .verified_reboot_required = false,
     .controls = internal_controls},
    {.model = ThreatModel::cloud,
     .attacker = "a tenant who runs any code, against its neighbours and the host; the operator is trusted",
     .floor_alone = Tier::container,
     .floor_in_domain = Tier::container,
     .floor_distrusting = Tier::vm,
     .soft_sharing_in_domain = false,
     .gpu_sharing_distrusting = true,
     .exceptions = true,
     .verified_reboot_required = false,
     .controls = cloud_controls},
    {.model = ThreatModel::regulated,
     .attacker = "as cloud, and an insider of the operator acting alone; every control must be shown to an auditor",
     .floor_alone = Tier::container,
     .floor_in_domain = Tier::vm,
     .floor_distrusting = Tier::vm,
     .soft_sharing_in_domain = false,
     .gpu_sharing_distrusting = false,
     .exceptions = false,
     .verified_reboot_required = true,
     .controls = regulated_controls},
});

constexpr bool has(const ThreatPreset& preset, std::string_view control) {
    return std::ranges::any_of(preset.controls, [&](const KeyControl& c) { return c.id == control; });
}

// Floors may only rise, permissions only fall, controls only grow; "no untrusted code" is the one that a cloud cannot
// keep and replaces by walls.
constexpr bool at_least_as_strict(const ThreatPreset& stricter, const ThreatPreset& than) {
    return stricter.floor_alone >= than.floor_alone && stricter.floor_in_domain >= than.floor_in_domain &&
           stricter.floor_distrusting >= than.floor_distrusting &&
           stricter.soft_sharing_in_domain <= than.soft_sharing_in_domain &&
           stricter.gpu_sharing_distrusting <= than.gpu_sharing_distrusting && stricter.exceptions <= than.exceptions &&
           stricter.verified_reboot_required >= than.verified_reboot_required &&
           std::ranges::all_of(than.controls,
                               [&](const KeyControl& c) { return c.id == "no-untrusted-code" || has(stricter, c.id); });
}
constexpr bool floors_follow_trust(const ThreatPreset& p) {
    return p.floor_alone <= p.floor_in_domain && p.floor_in_domain <= p.floor_distrusting;
}

static_assert(presets.size() == words(ThreatModel{}).size());
static_assert(at_least_as_strict(presets[1], presets[0]) && at_least_as_strict(presets[2], presets[1]));
static_assert(std::ranges::all_of(presets, floors_follow_trust));
static_assert(std::ranges::all_of(presets, [](const ThreatPreset& p) { return p.floor_distrusting >= Tier::vm; }));

}  // namespace

const ThreatPreset& preset_of(ThreatModel model) { return presets[static_cast<std::size_t>(model)]; }

}  // namespace bulkhead
