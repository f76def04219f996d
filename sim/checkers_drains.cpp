// GPUs that are drained, and GPUs that are reset. Which of them is drained is what struck the hardware, and that it is
// over is what was done to the hardware since; that the control plane knows is what it acknowledged, or wrote down.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "sim/checkers.hpp"
#include "sim/reading.hpp"

namespace bulkhead::sim {

std::string Checkers::gpu_name(const std::string& node, std::int64_t gpu) { return fmt::format("{}/gpu{}", node, gpu); }

void Checkers::drained(const std::string& node, const FaultReport& fault, std::int64_t report) {
    Drain& drain = drains_[gpu_name(node, fault.device)];
    // While the one before is not over, whoever knows of that keeps everybody away already.
    const bool known = drain.report != 0 && drain.open && drain.known;
    drain = {.why = fault.why, .report = report, .known = known};
}

void Checkers::acknowledged_report(const std::string& node, std::int64_t number) {
    for (auto& [gpu, drain] : drains_)
        if (gpu.starts_with(node + "/") && drain.report <= number) drain.known = true;
    acknowledged_fences(node, number);
}

void Checkers::read_drain(const boost::json::object& record) {
    if (text(record, "kind") == "leased") {
        for (const auto& [gpu, drain] : drains_)
            if (drain.open && drain.known) leased_beside_[text(record, "lease")].insert(gpu);
        return;
    }
    std::int64_t device = 0;
    std::sscanf(text(record, "unit").c_str(), "gpu%ld", &device);
    const std::string gpu = gpu_name(text(record, "node"), device);
    const auto drain = drains_.find(gpu);
    if (drain == drains_.end()) return;
    if (text(record, "kind") == "draining") {
        // By its reason: one that comes late is about a drain before this one.
        const boost::json::value* detail = record.if_contains("detail");
        if (detail != nullptr && text(detail->as_object(), "why") == drain->second.why) drain->second.known = true;
        return;
    }
    probe("a drain was over");
    if (drain->second.open && drain->second.known)
        violate(9, fmt::format("the drain of {} is called over, and not all of it was burnt in", gpu));
}

void Checkers::check_drains(const LeaseSeen& lease) {
    const auto beside = leased_beside_.find(lease.name);
    if (beside == leased_beside_.end()) return;
    for (const LeaseSeen::Piece& piece : lease.pieces)
        if (beside->second.contains(gpu_name(piece.node, piece.gpu)))
            violate(9, fmt::format("{} is given a part of {}, which is drained", lease.name,
                                   gpu_name(piece.node, piece.gpu)));
}

// Over when a burn-in has ended well and all of the GPU is empty (decision 0022).
void Checkers::follow_burn_in(const std::string& node, const NodeModel& model, const Operation& operation, bool ok) {
    const Wipe* wipe = std::get_if<Wipe>(&operation.what);
    const Verify* verify = std::get_if<Verify>(&operation.what);
    if (!ok || (wipe == nullptr && verify == nullptr)) return;
    if ((wipe != nullptr ? wipe->kind : verify->kind) != UnitKind::memory) return;
    const std::uint16_t gpu = wipe != nullptr ? wipe->device : verify->device;
    const auto drain = drains_.find(gpu_name(node, gpu));
    if (drain == drains_.end() || !drain->second.open) return;
    std::set<unsigned>& burning = drain->second.burning;
    if (wipe != nullptr) {
        for (unsigned slice = wipe->start; slice < unsigned{wipe->start} + wipe->size; ++slice)
            if (wipe->burn_in)
                burning.insert(slice);
            else
                burning.erase(slice);
        return;
    }
    bool empty = burning.contains(verify->start);
    for (unsigned slice = 0; slice < model.slices_per_gpu(); ++slice)
        empty = empty && model.read({UnitKind::memory, gpu, static_cast<std::uint8_t>(slice)}) == 0;
    if (empty) drain->second.open = false;
}

void Checkers::check_reset(const std::string& node, const ResetGpu& reset) {
    probe("a GPU was reset");
    for (const auto& [key, running] : running_[node])
        if (std::ranges::any_of(running.gpus, [&](const GpuPart& part) { return part.gpu == reset.gpu; }))
            violate(10, fmt::format("{} is reset while lease {} is on it", gpu_name(node, reset.gpu), key));
}

}  // namespace bulkhead::sim
