// The advisories that ship with Bulkhead, as published in NVIDIA's product-security repository up to August 2026.
//
// Which tiers a flaw closes follows from who shares the flawed code:
//   driver             one kernel module serves every process and container of a host, so both close. A VM with a whole
//                      GPU brings its own driver; what it breaks is its own.
//   vgpu-manager       serves every VM with a vGPU: vm, for vgpu and mig-vgpu.
//   container-toolkit, gpu-operator, device-plugin, mig-manager
//                      start containers as root: container. A VM tier on the same node does not run tenants' images.
//   dcgm               the exporter answers anyone who reaches its port, and its profiles may carry names of other
//                      tenants' work: process and container. A guest's network does not reach the host's exporter
//                      under default-deny, so vm stays open.
//   CVE-2026-24197     is about cutting a GPU anew, whoever sits on it: every tier, for what is built on MIG.
// `escape` is set where code, or a write it controls, leaves its container or VM. A driver flaw with code execution or
// more privilege is one: /dev/nvidia* is open inside the container. Denial of service alone is none.
//
// Where sources disagree the stricter holds: 1.17.3 for CVE-2024-0135 to 0137 (bulletin 1.17.1, GPU Operator
// documentation 1.17.3), 25.3.2 for CVE-2025-23266 and 23267 (first revision 25.3.1), 580.129.08 for CVE-2025-33219
// and 33220 in the vGPU manager (bulletin 5821 calls the same release 580.126.08), 535.274.03 for CVE-2025-23352
// (printed as 575.274.02). The DCGM exporter is listed with 4.8.2 as both flawed and fixed; DCGM's own 4.5.3 decides.
// Conditions of a configuration (CDI or not, crun or runc) are not relied on: a setting changes in an afternoon.
#include <array>
#include <string>
#include <string_view>

#include "bulkhead/policy/version_gate.hpp"

namespace bulkhead {
namespace {

struct Flaw {
    std::string_view id;
    Severity severity{};
    bool escape = false;
};

struct Fix {
    std::string_view branch, version;
};

// A bulletin's row: flaws of one component that share their fixed versions.
struct Row {
    std::string_view source;
    std::string_view month;  // publication counts from its first day: the sources name the month
    Component component{};
    std::span<const Flaw> flaws;
    std::span<const Fix> fixed;
    std::span<const Tier> tiers;            // empty: all
    std::span<const Mechanism> mechanisms;  // empty: all
};

using enum Severity;

constexpr std::array on_shared_kernel{Tier::process, Tier::container};
constexpr std::array containers{Tier::container};
constexpr std::array guests{Tier::vm};
constexpr std::array vgpus{Mechanism::vgpu, Mechanism::mig_vgpu};
constexpr std::array on_mig{Mechanism::mig, Mechanism::mig_vgpu, Mechanism::mps_in_mig};

constexpr std::string_view b5551 = "NVIDIA/product-security bulletin 5551 (2024-06)";
constexpr Flaw driver_5551[]{{"CVE-2024-0090", high, true}, {"CVE-2024-0092", medium}};
constexpr Fix driver_fix_5551[]{{"550", "550.90.07"}, {"535", "535.183.01"}, {"470", "470.256.02"}};
constexpr Flaw vgpu_5551[]{{"CVE-2024-0084", high, true},
                           {"CVE-2024-0090", high, true},
                           {"CVE-2024-0092", medium},
                           {"CVE-2024-0093", medium},
                           {"CVE-2024-0099", high, true}};
constexpr Fix vgpu_fix_5551[]{{"550", "550.90.05"}, {"535", "535.183.04"}, {"470", "470.256.02"}};

constexpr std::string_view b5582 = "NVIDIA/product-security bulletin 5582 (2024-09)";
constexpr Flaw toolkit_5582[]{{"CVE-2024-0132", critical, true}, {"CVE-2024-0133", medium}};
constexpr Fix toolkit_fix_5582[]{{"", "1.16.2"}};
constexpr Fix operator_fix_5582[]{{"", "24.6.2"}};

constexpr std::string_view b5585 = "NVIDIA/product-security bulletin 5585 (2024-11)";
constexpr Flaw toolkit_5585[]{{"CVE-2024-0134", medium}};
constexpr Fix toolkit_fix_5585[]{{"", "1.17.0"}};
constexpr Fix operator_fix_5585[]{{"", "24.9.0"}};

constexpr std::string_view b5599 =
    "NVIDIA/product-security bulletin 5599 (2025-01); GPU Operator documentation, security";
constexpr Flaw toolkit_5599[]{
    {"CVE-2024-0135", high, true}, {"CVE-2024-0136", high, true}, {"CVE-2024-0137", medium, true}};
constexpr Fix toolkit_fix_5599[]{{"", "1.17.3"}};
constexpr Fix operator_fix_5599[]{{"", "24.9.1"}};

constexpr std::string_view b5616 = "NVIDIA/product-security bulletin 5616 (2025-02)";
constexpr Flaw toolkit_5616[]{{"CVE-2025-23359", high, true}};
constexpr Fix toolkit_fix_5616[]{{"", "1.17.4"}};
constexpr Fix operator_fix_5616[]{{"", "24.9.2"}};

constexpr std::string_view b5630 = "NVIDIA/product-security bulletin 5630 (2025-04)";
constexpr Flaw driver_5630[]{{"CVE-2025-23244", high, true}};
constexpr Fix driver_fix_5630[]{
    {"535", "535.247.01"}, {"550", "550.163.01"}, {"570", "570.133.07"}, {"575", "575.51.02"}};

constexpr std::string_view b5659 = "NVIDIA/product-security bulletin 5659 (2025-07, revised 2025-08)";
constexpr Flaw toolkit_5659[]{{"CVE-2025-23266", critical, true}, {"CVE-2025-23267", high, true}};
constexpr Fix toolkit_fix_5659[]{{"", "1.17.8"}};
constexpr Fix operator_fix_5659[]{{"", "25.3.2"}};
constexpr Fix plugin_fix_5659[]{{"", "0.17.3"}};
constexpr Fix mig_manager_fix_5659[]{{"", "0.12.2"}};

constexpr std::string_view b5670 = "NVIDIA/product-security bulletin 5670 (2025-07)";
constexpr Flaw vgpu_5670[]{{"CVE-2025-23283", high, true},
                           {"CVE-2025-23284", high, true},
                           {"CVE-2025-23285", medium},
                           {"CVE-2025-23290", low}};
constexpr Fix vgpu_fix_5670[]{{"570", "570.172.07"}, {"535", "535.261.04"}};

constexpr std::string_view b5703 = "NVIDIA/product-security bulletin 5703 (2025-10)";
constexpr Flaw driver_5703[]{{"CVE-2025-23280", high, true}, {"CVE-2025-23282", high, true},
                             {"CVE-2025-23300", medium},     {"CVE-2025-23330", medium},
                             {"CVE-2025-23332", medium},     {"CVE-2025-23345", medium}};
constexpr Fix driver_fix_5703[]{{"535", "535.274.02"}, {"570", "570.195.03"}, {"580", "580.95.05"}};
constexpr Flaw vgpu_5703[]{{"CVE-2025-23352", high, true}};
constexpr Fix vgpu_fix_5703[]{{"535", "535.274.03"}, {"570", "570.195.02"}, {"580", "580.95.02"}};

constexpr std::string_view b5747 = "NVIDIA/product-security bulletin 5747 (2026-01)";
constexpr Flaw driver_5747[]{{"CVE-2025-33219", high, true}};
constexpr Fix driver_fix_5747[]{
    {"535", "535.288.01"}, {"570", "570.211.01"}, {"580", "580.126.09"}, {"590", "590.48.01"}};
// 33220 is a flaw of the vGPU manager, listed under the driver's versions too: a host that names only its driver is
// held.
constexpr Flaw manager_5747[]{{"CVE-2025-33220", high, true}};
constexpr Flaw vgpu_5747[]{{"CVE-2025-33219", high, true}, {"CVE-2025-33220", high, true}};
constexpr Fix vgpu_fix_5747[]{{"535", "535.288.01"}, {"570", "570.211.01"}, {"580", "580.129.08"}};

constexpr std::string_view b5821 = "NVIDIA/product-security bulletin 5821 (2026-05)";
constexpr Flaw mig_5821[]{{"CVE-2026-24197", medium}};
constexpr Flaw driver_5821[]{{"CVE-2025-33221", medium},     {"CVE-2026-24187", high, true},
                             {"CVE-2026-24190", high, true}, {"CVE-2026-24192", high, true},
                             {"CVE-2026-24193", high, true}, {"CVE-2026-24194", high, true},
                             {"CVE-2026-24196", high},       {"CVE-2026-24199", medium}};
constexpr Fix driver_fix_5821[]{{"535", "535.309.01"}, {"580", "580.159.03"}, {"595", "595.71.05"}};
constexpr Fix mig_vgpu_fix_5821[]{{"580", "580.159.01"}, {"595", "595.71.03"}};
constexpr Flaw vgpu_5821[]{{"CVE-2026-24200", high, true}, {"CVE-2026-24201", medium}};
constexpr Fix vgpu_fix_5821[]{{"535", "535.309.01"}, {"580", "580.159.01"}, {"595", "595.71.03"}};

constexpr std::string_view b5850 = "NVIDIA/product-security bulletin 5850 (2026-06)";
constexpr Flaw toolkit_5850[]{{"CVE-2026-24260", high, true}};
constexpr Fix toolkit_fix_5850[]{{"", "1.19.1"}};
constexpr Fix operator_fix_5850[]{{"", "26.3.2"}};

constexpr std::string_view b5857 = "NVIDIA/product-security bulletin 5857 (2026-07)";
constexpr Flaw dcgm_5857[]{{"CVE-2026-47483", high}};
constexpr Fix dcgm_fix_5857[]{{"", "4.5.3"}};

using enum Component;
constexpr auto rows = std::to_array<Row>({
    {b5551, "2024-06", driver, driver_5551, driver_fix_5551, on_shared_kernel, {}},
    {b5551, "2024-06", vgpu_manager, vgpu_5551, vgpu_fix_5551, guests, vgpus},
    {b5582, "2024-09", container_toolkit, toolkit_5582, toolkit_fix_5582, containers, {}},
    {b5582, "2024-09", gpu_operator, toolkit_5582, operator_fix_5582, containers, {}},
    {b5585, "2024-11", container_toolkit, toolkit_5585, toolkit_fix_5585, containers, {}},
    {b5585, "2024-11", gpu_operator, toolkit_5585, operator_fix_5585, containers, {}},
    {b5599, "2025-01", container_toolkit, toolkit_5599, toolkit_fix_5599, containers, {}},
    {b5599, "2025-01", gpu_operator, toolkit_5599, operator_fix_5599, containers, {}},
    {b5616, "2025-02", container_toolkit, toolkit_5616, toolkit_fix_5616, containers, {}},
    {b5616, "2025-02", gpu_operator, toolkit_5616, operator_fix_5616, containers, {}},
    {b5630, "2025-04", driver, driver_5630, driver_fix_5630, on_shared_kernel, {}},
    {b5659, "2025-07", container_toolkit, toolkit_5659, toolkit_fix_5659, containers, {}},
    {b5659, "2025-07", gpu_operator, toolkit_5659, operator_fix_5659, containers, {}},
    {b5659, "2025-07", device_plugin, toolkit_5659, plugin_fix_5659, containers, {}},
    {b5659, "2025-07", mig_manager, toolkit_5659, mig_manager_fix_5659, containers, {}},
    {b5670, "2025-07", vgpu_manager, vgpu_5670, vgpu_fix_5670, guests, vgpus},
    {b5703, "2025-10", driver, driver_5703, driver_fix_5703, on_shared_kernel, {}},
    {b5703, "2025-10", vgpu_manager, vgpu_5703, vgpu_fix_5703, guests, vgpus},
    {b5747, "2026-01", driver, driver_5747, driver_fix_5747, on_shared_kernel, {}},
    {b5747, "2026-01", driver, manager_5747, driver_fix_5747, guests, vgpus},
    {b5747, "2026-01", vgpu_manager, vgpu_5747, vgpu_fix_5747, guests, vgpus},
    {b5821, "2026-05", driver, mig_5821, driver_fix_5821, {}, on_mig},
    {b5821, "2026-05", vgpu_manager, mig_5821, mig_vgpu_fix_5821, {}, on_mig},
    {b5821, "2026-05", driver, driver_5821, driver_fix_5821, on_shared_kernel, {}},
    {b5821, "2026-05", vgpu_manager, vgpu_5821, vgpu_fix_5821, guests, vgpus},
    {b5850, "2026-06", container_toolkit, toolkit_5850, toolkit_fix_5850, containers, {}},
    {b5850, "2026-06", gpu_operator, toolkit_5850, operator_fix_5850, containers, {}},
    {b5857, "2026-07", dcgm, dcgm_5857, dcgm_fix_5857, on_shared_kernel, {}},
});

std::vector<Advisory> spelled_out() {
    std::vector<Advisory> all;
    for (const Row& row : rows)
        for (const Flaw& flaw : row.flaws) {
            Advisory advisory;
            advisory.id = flaw.id;
            advisory.component = row.component;
            for (const Fix& fix : row.fixed)
                advisory.fixed.push_back({std::string{fix.branch}, std::string{fix.version}});
            advisory.severity = flaw.severity;
            advisory.escape = flaw.escape;
            advisory.closesTiers.assign(row.tiers.begin(), row.tiers.end());
            advisory.closesMechanisms.assign(row.mechanisms.begin(), row.mechanisms.end());
            advisory.published = parse_instant(std::string{row.month} + "-01T00:00:00Z").value();
            advisory.source = row.source;
            all.push_back(std::move(advisory));
        }
    return all;
}

}  // namespace

std::span<const Advisory> shipped_advisories() {
    static const std::vector<Advisory> all = spelled_out();
    return all;
}

}  // namespace bulkhead
