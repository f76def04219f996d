#include "bulkhead/render/vgpu_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bulkhead/gpu/profile_name.hpp"
#include "bulkhead/policy/version_gate.hpp"

namespace bulkhead::render {

namespace {

bool is_found(const GpuNode& node, Capability wanted) {
    return std::ranges::find(node.status.capabilities, wanted, &DetectedCapability::name) !=
           node.status.capabilities.end();
}

std::string version_of(const GpuNode& node, Component component) {
    const auto found = std::ranges::find(node.status.versions, component, &InstalledVersion::component);
    return found == node.status.versions.end() ? std::string{not_installed} : found->version;
}

// What the profile is called as a vGPU: 3g.40gb is -3-40C.
std::optional<VgpuShape> shape_of_profile(const gpu::ProfileName& name) {
    if (name.compute != name.gpu) return std::nullopt;  // a vGPU takes the whole instance
    if (name.sign != 0 && !(name.sign == '+' && name.attributes == std::vector<std::string>{"me"})) return std::nullopt;
    return VgpuShape{name.gpu, name.gigabytes, name.sign == '+'};
}

std::vector<std::string> host_objections(const VgpuHost& host, const FleetPolicySpec& policy, Instant now) {
    std::vector<std::string> why;
    if (version_of(host.node, Component::vgpu_manager) == not_installed)
        why.emplace_back("it has no vGPU manager, only a plain driver or none");
    if (!is_found(host.node, Capability::virtual_machines)) why.emplace_back("it runs no virtual machines");
    if (!is_found(host.node, Capability::iommu_groups))
        why.emplace_back("its devices are not in IOMMU groups of their own");
    if (!host.mig_is_on) why.emplace_back("MIG mode is off");
    for (const OpenAdvisory& open : open_advisories(host.node, policy, now))
        if (closes(open, Tier::vm, Mechanism::mig_vgpu))
            why.push_back(fmt::format("{} is open in {} {}{}", open.advisory.id, word(open.advisory.component),
                                      open.installed,
                                      open.wanted.empty() ? "" : fmt::format(", and fixed in {}", open.wanted)));
    if (host.functions.empty())
        why.emplace_back("its GPU shows no virtual functions: sriov-manage -e makes them, where BIOS and board can");
    else if (std::ranges::none_of(host.functions,
                                  [](const VgpuFunction& one) { return one.creatable || one.mediated; }))
        why.push_back(
            fmt::format("kernel {} with driver {} shows neither mediated devices nor vGPU types on virtual functions",
                        host.kernel, version_of(host.node, Component::driver)));
    return why;
}

struct Choice {
    const VgpuFunction* function = nullptr;
    VgpuType type;
    VgpuFramework framework{};
};

// The first free function that offers the shape; of several types of one shape, the one that is listed first.
std::optional<Choice> choose(const VgpuHost& host, const VgpuShape& wanted, std::vector<std::string>& offered) {
    for (const VgpuFunction& function : host.functions) {
        if (function.current != 0) continue;
        const bool newer = function.creatable.has_value();
        const auto& types = newer ? function.creatable : function.mediated;
        if (!types) continue;
        for (const VgpuType& type : *types) {
            if (shape_of(type.name) == wanted)
                return Choice{&function, type, newer ? VgpuFramework::functions : VgpuFramework::mediated};
            if (std::ranges::find(offered, type.name) == offered.end()) offered.push_back(type.name);
        }
    }
    return std::nullopt;
}

}  // namespace

Result<VgpuPlan> plan_vgpu(const VgpuHost& host, const VgpuWish& wish, const FleetPolicySpec& policy, Instant now) {
    std::vector<std::string> why = host_objections(host, policy, now);
    const auto name = gpu::parse_profile_name(wish.profile);
    if (!name) return std::unexpected(name.error());
    const auto shape = shape_of_profile(*name);
    if (!shape) why.push_back(fmt::format("no vGPU stands on a profile like {}", wish.profile));
    if (const auto board = gpu::find_board(host.gpu_model); !board)
        why.push_back(fmt::format("{} is no board that MIG is known of", host.gpu_model));
    else if (const auto there = gpu::find_profile(**board, wish.profile); !there)
        why.push_back(there.error().what);
    if (std::ranges::find(host.instances, wish.profile) == host.instances.end())
        why.push_back(fmt::format("no instance {} is cut that carries no vGPU yet", wish.profile));
    std::vector<std::string> offered;
    const auto choice = shape ? choose(host, *shape, offered) : std::nullopt;
    if (!choice && shape && !host.functions.empty())
        why.push_back(offered.empty() ? std::string{"no virtual function is free"}
                                      : fmt::format("no free virtual function offers a type for {}; they offer {}",
                                                    wish.profile, fmt::join(offered, ", ")));
    if (!why.empty())
        return fail(Code::conflict,
                    fmt::format("node {} cannot make a vGPU of {}: {}", host.node.metadata.name, wish.profile,
                                fmt::join(why, "; ")),
                    "mechanism whole in tier vm passes the GPU through instead");

    VgpuPlan plan{.framework = choice->framework, .type = choice->type};
    const std::string address = print(choice->function->address);
    if (plan.framework == VgpuFramework::functions) {
        const std::string file = fmt::format("/sys/bus/pci/devices/{}/nvidia/current_vgpu_type", address);
        plan.make = {{file, plan.type.id}};
        plan.take_apart = {{file, "0"}};
        plan.device = choice->function->address;
    } else {
        plan.mediated = domain_uuid(host.node.metadata.name, wish.machine + " " + address);
        plan.make = {{fmt::format("/sys/class/mdev_bus/{}/mdev_supported_types/{}/create", address, plan.type.id),
                      plan.mediated}};
        plan.take_apart = {{fmt::format("/sys/bus/mdev/devices/{}/remove", plan.mediated), "1"}};
    }
    return plan;
}

void add_vgpu(DomainSpec& spec, const VgpuPlan& plan) {
    if (plan.device)
        spec.devices.push_back(*plan.device);
    else
        spec.mediated.push_back(plan.mediated);
}

}  // namespace bulkhead::render
