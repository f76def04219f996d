// The vm tier of a node's GPUs: a machine gets whole GPUs by VFIO, and what comes back says by which way it came.
#include <fmt/format.h>

#include <algorithm>

#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/agent/machine_domain.hpp"
#include "bulkhead/gpu/board.hpp"

namespace bulkhead::agent {

// VFIO gives a GPU with all that is on it: the gates answered for what the order names, and for nothing else.
Result<> GpuHardware::gets_whole_gpus(const StartTenant& what) const {
    for (const GpuPart& part : what.gpus) {
        const auto gpu = this->gpu(part.gpu);
        if (!gpu) return std::unexpected(gpu.error());
        const gpu::Board* const board = gpu::find_board_by_pci(fmt::format("0x{:08X}", (*gpu)->pci_device));
        const bool is_all = board == nullptr || (part.start == 0 && part.size >= board->memory_slices);
        if (what.mechanism == Mechanism::whole && part.profile.empty() && part.share >= 1000 && is_all) continue;
        return fail(
            Code::conflict,
            fmt::format("lease {} has {} thousandths of {} memory slices from {} on of GPU {}, by {}: in tier {} "
                        "a machine would get all of it",
                        what.lease, part.share, part.size, part.start, part.gpu, word(what.mechanism), word(what.tier)),
            "tier vm has whole GPUs: gpu.count, mechanism whole");
    }
    return {};
}

OperationResult GpuHardware::start_machine(const StartTenant& what) {
    const auto machines = reach_machines();
    if (!machines) return {.ok = false, .why = fmt::format("this node has no vm tier: {}", machines.error().what)};
    const bool names_image = std::ranges::any_of(
        what.program.environment, [](const std::string& variable) { return variable.starts_with("BULKHEAD_IMAGE="); });
    if (what.program.words.empty() && !names_image) return {.ok = true};  // it holds what it holds
    const auto node = inventory();
    if (!node) return {.ok = false, .why = node.error().what};
    const MachineGifts gifts{.devices = has_devices(), .drives = [&] { return drives_->lent(what.drives); }};
    if (const auto started = (*machines)->start(what, *node, gifts); !started)
        return {.ok = false, .why = started.error().what};
    return {.ok = true};
}

// Simulated GPUs are on no bus, unless somebody says that others there stand for them.
bool GpuHardware::has_devices() const { return !nvml_.is_simulated() || settings_.machines.stand_ins; }

OperationResult GpuHardware::stop_machine(const StopTenant& what) {
    OperationResult result;
    if (what.save.ms > 0)
        result.saved =
            Saved{false, "it runs in a machine of its own, which nobody reaches into: it saves its work itself"};
    const auto machines = reach_machines();
    if (!machines) {  // it may well run: nobody says that it was stopped until somebody has looked
        result.why = fmt::format("lease {} has a machine here, and libvirt cannot be reached: {}", what.lease,
                                 machines.error().what);
        return result;
    }
    const auto stopped = (*machines)->stop(what.lease, settings_.grace);
    if (!stopped) {
        result.why = stopped.error().what;
        return result;
    }
    result.ok = true;
    result.method = *stopped;
    return result;
}

bool GpuHardware::is_in_machine(const nvml::Gpu& gpu) const { return records_.holds(kernel_address(gpu.bus_id)); }

std::string GpuHardware::return_path(std::uint16_t gpu) const {
    if (gpu >= gpus_->size()) return {};
    const auto path = records_.returned_by(kernel_address(gpus_->at(gpu)->bus_id));
    return path ? fmt::format("vfio-return: {}, ", *path) : std::string{};
}

void GpuHardware::forget_return(std::uint16_t gpu) const {
    if (gpu < gpus_->size()) records_.forget_return(kernel_address(gpus_->at(gpu)->bus_id));
}

// Only what was seen: libvirt answers, an image is there to boot, and the kernel keeps devices apart.
void GpuHardware::add_machines(GpuNodeStatus& status) const {
    Machines* const machines = this->machines();
    if (machines == nullptr || !machines->may_start()) return;
    const auto images = vm::image_names(machines->images());
    if (!images || images->empty()) return;
    const vm::Vfio& vfio = machines->vfio();
    if (has_devices() && !vfio.has_groups()) return;
    const Grade known = machines->are_emulated() && grade() == Grade::silicon ? Grade::emulated : grade();
    status.capabilities.push_back({Capability::virtual_machines, known, std::nullopt});
    std::vector<std::string> devices;
    for (const nvml::Gpu& gpu : gpus_->all())
        if (!gpu.lost) devices.push_back(kernel_address(gpu.bus_id));
    if (const auto shared = vfio.not_alone(devices); shared && shared->empty())
        status.capabilities.push_back({Capability::iommu_groups, known, std::nullopt});
}

// The end of one whose start was not told yet waits for that.
void GpuHardware::look_at_machines(News& news) {
    Machines* const machines = this->machines();
    if (machines == nullptr) return;
    for (TenantExit& exit : machines->exits()) machine_exits_.push_back(std::move(exit));
    std::erase_if(machine_exits_, [&](TenantExit& exit) {
        if (std::ranges::any_of(starting_, [&](const auto& start) { return start.second == exit.lease; })) return false;
        news.exits.push_back(std::move(exit));
        return true;
    });
}

}  // namespace bulkhead::agent
