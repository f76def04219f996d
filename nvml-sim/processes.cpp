// Who is on a device.
#include "exports.hpp"
#include "session.hpp"

namespace bulkhead::nvml {

namespace {

bool on(const Target& target, const driver::Process& process) { return !target.mig || process.where == target.where; }

std::uint64_t bytes_of(const driver::Gpu& gpu, const driver::Process& process) {
    std::uint64_t bytes = process.context_bytes;
    for (const auto& [base, held] : gpu.allocations)
        if (held.pid == process.pid && held.where == process.where) bytes += held.range.size;
    return bytes;
}

std::vector<ProcessInfo> processes_of(const driver::Model& model, const Target& target, driver::ProcessKind kind) {
    std::vector<ProcessInfo> list;
    const driver::Gpu& gpu = model.gpu(target.gpu());
    for (const driver::Process& process : gpu.processes)
        if (process.kind == kind && on(target, process))
            list.push_back({process.pid, bytes_of(gpu, process), process.where.gpu_instance.value_or(no_instance),
                            process.where.compute_instance.value_or(no_instance)});
    return list;
}

Return list_old(std::string_view call, Device device, driver::ProcessKind kind, std::uint32_t* count,
                ProcessInfoV1* out) {
    return ask(call, device, [&](const driver::Model& model, const Target& target) {
        std::vector<ProcessInfoV1> list;
        for (const ProcessInfo& process : processes_of(model, target, kind))
            list.push_back({process.pid, process.used_memory});
        return put_list(count, out, list);
    });
}

Return list_new(std::string_view call, Device device, driver::ProcessKind kind, std::uint32_t* count,
                ProcessInfo* out) {
    return ask(call, device, [&](const driver::Model& model, const Target& target) {
        return put_list(count, out, processes_of(model, target, kind));
    });
}

constexpr auto of_compute = driver::ProcessKind::compute, of_graphics = driver::ProcessKind::graphics,
               of_mps = driver::ProcessKind::mps;

}  // namespace

extern "C" {

Return nvmlDeviceGetComputeRunningProcesses(Device device, std::uint32_t* count, ProcessInfoV1* out) {
    return list_old("nvmlDeviceGetComputeRunningProcesses", device, of_compute, count, out);
}
Return nvmlDeviceGetComputeRunningProcesses_v2(Device device, std::uint32_t* count, ProcessInfo* out) {
    return list_new("nvmlDeviceGetComputeRunningProcesses_v2", device, of_compute, count, out);
}
Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, std::uint32_t* count, ProcessInfo* out) {
    return list_new("nvmlDeviceGetComputeRunningProcesses_v3", device, of_compute, count, out);
}
Return nvmlDeviceGetGraphicsRunningProcesses(Device device, std::uint32_t* count, ProcessInfoV1* out) {
    return list_old("nvmlDeviceGetGraphicsRunningProcesses", device, of_graphics, count, out);
}
Return nvmlDeviceGetGraphicsRunningProcesses_v2(Device device, std::uint32_t* count, ProcessInfo* out) {
    return list_new("nvmlDeviceGetGraphicsRunningProcesses_v2", device, of_graphics, count, out);
}
Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, std::uint32_t* count, ProcessInfo* out) {
    return list_new("nvmlDeviceGetGraphicsRunningProcesses_v3", device, of_graphics, count, out);
}
Return nvmlDeviceGetMPSComputeRunningProcesses(Device device, std::uint32_t* count, ProcessInfoV1* out) {
    return list_old("nvmlDeviceGetMPSComputeRunningProcesses", device, of_mps, count, out);
}
Return nvmlDeviceGetMPSComputeRunningProcesses_v2(Device device, std::uint32_t* count, ProcessInfo* out) {
    return list_new("nvmlDeviceGetMPSComputeRunningProcesses_v2", device, of_mps, count, out);
}
Return nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, std::uint32_t* count, ProcessInfo* out) {
    return list_new("nvmlDeviceGetMPSComputeRunningProcesses_v3", device, of_mps, count, out);
}

Return nvmlDeviceGetRunningProcessDetailList(Device device, ProcessDetailList* list) {
    return ask("nvmlDeviceGetRunningProcessDetailList", device, [&](const driver::Model& model, const Target& target) {
        if (list == nullptr) return Return::invalid_argument;
        if (list->version != process_details_v1) return Return::argument_version_mismatch;
        constexpr driver::ProcessKind kinds[] = {of_compute, of_graphics, of_mps};
        if (list->mode >= std::size(kinds)) return Return::invalid_argument;
        std::vector<ProcessDetail> details;
        for (const ProcessInfo& p : processes_of(model, target, kinds[list->mode]))
            details.push_back({p.pid, p.used_memory, p.gpu_instance, p.compute_instance, 0});
        return put_list(&list->count, list->entries, details);
    });
}

// One sample of each process that works; there is no history, so what was seen before "now" is seen again.
Return nvmlDeviceGetProcessUtilization(Device device, ProcessUtilizationSample* samples, std::uint32_t* count,
                                       std::uint64_t) {
    return ask("nvmlDeviceGetProcessUtilization", device, [&](const driver::Model& model, const Target& target) {
        if (model.gpu(target.gpu()).mig) return Return::not_supported;
        std::vector<ProcessUtilizationSample> list;
        for (const driver::Process& process : model.gpu(target.gpu()).processes)
            list.push_back({process.pid, static_cast<std::uint64_t>(now().ms) * 1000, process.sm_percent,
                            process.memory_percent, 0, 0});
        if (count == nullptr) return Return::invalid_argument;
        if (list.empty()) return Return::not_found;
        return put_list(count, samples, list);
    });
}

}  // extern "C"

}  // namespace bulkhead::nvml
