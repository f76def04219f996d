#include "bulkhead/policy/slice.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/gpu/amd.hpp"
#include "bulkhead/gpu/board.hpp"
#include "bulkhead/gpu/mps.hpp"
#include "bulkhead/gpu/profile_name.hpp"

namespace bulkhead {

namespace {

std::int64_t up(std::int64_t numerator, std::int64_t denominator) {
    return numerator / denominator + (numerator % denominator != 0 ? 1 : 0);
}

std::string known(gpu::Known number) { return number ? fmt::format("{}", *number) : "unknown"; }

std::string engines_of(const gpu::Profile& profile) {
    const gpu::Engines& e = profile.engines;
    return fmt::format("{} SMs, {} copy, {} decode, {} encode, {} JPEG, {} optical flow", known(profile.sms),
                       known(e.copy), known(e.decoders), known(e.encoders), known(e.jpeg), known(e.ofa));
}

// The smallest plain profile that is at least that much of the board, in compute and in memory: the fewest compute
// slices, then the least memory.
const gpu::Profile* smallest_for(const gpu::Board& board, const GpuRequest& request) {
    const gpu::Profile* best = nullptr;
    for (const gpu::Profile& profile : board.profiles) {
        if (!profile.plain()) continue;
        if (request.fraction && (gpu_unit * profile.slices < request.fraction->units * board.slices ||
                                 gpu_unit * profile.memory_slices < request.fraction->units * board.memory_slices))
            continue;
        if (request.memory &&
            (!profile.memory_mib || (std::int64_t{*profile.memory_mib} << 20) < request.memory->bytes))
            continue;
        const auto size = [](const gpu::Profile& each) { return std::pair{each.slices, each.memory_slices}; };
        if (best == nullptr || size(profile) < size(*best)) best = &profile;
    }
    return best;
}

// The instance a request means on a board, and how many tasks share it as compute instances.
struct MigSlice {
    const gpu::Profile* profile = nullptr;
    unsigned compute = 0;
    std::int64_t tasks_each = 1;
};

std::optional<MigSlice> mig_slice(const gpu::Board* board, const GpuRequest& request) {
    if (board == nullptr) return std::nullopt;
    if (request.profile.empty()) {
        const gpu::Profile* profile = smallest_for(*board, request);
        return profile == nullptr ? std::nullopt : std::optional{MigSlice{profile, profile->slices}};
    }
    for (const gpu::Profile& profile : board->profiles)  // what nearly everybody writes, without parsing
        if (profile.name == request.profile) return MigSlice{&profile, profile.slices};
    const char first = request.profile.front();
    if (first != 'n' && first != 'i' && (first < '0' || first > '9')) return std::nullopt;  // no profile begins so
    const auto choice = gpu::find_profile(*board, request.profile);
    if (!choice) return std::nullopt;
    const gpu::Profile& profile = board->profiles[choice->index];
    MigSlice slice{&profile, choice->compute};
    if (choice->compute < profile.slices)
        slice.tasks_each = gpu::compute_starts(profile.slices, choice->compute).count();
    return slice;
}

// "cpx_nps4": the resource name without its vendor.
std::string amd_profile(gpu::ComputeMode compute, gpu::MemoryMode memory) {
    const std::string resource = gpu::amd_resource_name(compute, memory);
    return resource.substr(resource.find('/') + 1);
}

struct AmdSlice {
    gpu::ComputeMode compute{};
    gpu::MemoryMode memory{};
    gpu::AmdVerdict verdict;
};

// The asked-for modes, or the most partitions that are each large enough.
std::optional<AmdSlice> amd_slice(const gpu::AmdBoard* board, const GpuRequest& request) {
    if (board == nullptr) return std::nullopt;
    std::optional<AmdSlice> best;
    for (const gpu::ComputeMode compute : board->compute_modes)
        for (const gpu::MemoryMode memory : board->memory_modes) {
            gpu::AmdVerdict way = gpu::judge(*board, compute, memory);
            if (way.standing == gpu::Standing::invalid) continue;
            if (!request.profile.empty() && request.profile != amd_profile(compute, memory)) continue;
            if (request.fraction && request.fraction->units * way.partitions > gpu_unit) continue;
            if (request.memory && (!way.memory_gb || *way.memory_gb * 1'000'000'000LL < request.memory->bytes))
                continue;
            if (best && best->verdict.partitions >= way.partitions) continue;
            best = AmdSlice{compute, memory, std::move(way)};
        }
    return best;
}

// What a board has in all. Vendors mean less by a GB than a GiB; taking them at the smaller promises nothing too much.
std::optional<std::int64_t> memory_mib_of(const Silicon& silicon) {
    if (silicon.nvidia != nullptr && silicon.nvidia->memory_mib) return *silicon.nvidia->memory_mib;
    if (silicon.amd != nullptr && silicon.amd->memory_gb) return *silicon.amd->memory_gb * 1'000'000'000LL >> 20;
    return std::nullopt;
}

// A share of a GPU that software keeps: by fraction, or by memory where the board's size is known.
std::optional<SliceFacts> soft_slice(const Silicon& silicon, const GpuRequest& request) {
    if (request.fraction)
        return SliceFacts{
            .parts = request.fraction->units, .of = gpu_unit, .per_gpu = gpu_unit / request.fraction->units};
    const auto total = memory_mib_of(silicon);
    if (!request.memory || !total) return std::nullopt;
    const std::int64_t wanted = up(request.memory->bytes, 1 << 20);  // in MiB, so that no product overflows
    if (wanted > *total) return std::nullopt;
    const std::int64_t parts = up(wanted * gpu_unit, *total);  // rounded up to the unit of quota
    return SliceFacts{.parts = parts, .of = gpu_unit, .per_gpu = gpu_unit / parts};
}

// A time-sliced vGPU type such as "A100-20C" or "A100X-8C" begins with the name of its board ("a100-40gb"). Which of
// them exist, the host's vGPU manager knows.
bool is_vgpu_type_of(std::string_view model, std::string_view type) {
    const std::string_view family = model.substr(0, model.find('-'));
    const std::size_t dash = type.find('-');
    const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
    if (dash == std::string_view::npos || dash < family.size() || !is_capital(type.back())) return false;
    if (type.find('-', dash + 1) != std::string_view::npos) return false;  // "A100-1-5C" is MIG-backed: mig-vgpu's
    if (!std::ranges::all_of(type.substr(family.size(), dash - family.size()), is_capital)) return false;  // "A100X"
    const auto same = [](char lower, char upper) {
        return lower == upper || (lower >= 'a' && lower - 'a' + 'A' == upper);
    };
    return std::ranges::equal(family, type.substr(0, family.size()), same);
}

}  // namespace

Silicon silicon_of(std::string_view model) {
    Silicon silicon{.model = model};
    for (const gpu::Board& board : gpu::boards())
        if (board.id == model) {
            silicon.nvidia = &board;
            silicon.confidential =
                board.architecture.starts_with("Hopper") || board.architecture.starts_with("Blackwell");
        }
    for (const gpu::AmdBoard& board : gpu::amd_boards())
        if (board.id == model) silicon.amd = &board;
    return silicon;
}

std::vector<std::string> profiles_like(const Silicon& silicon, std::string_view typed) {
    std::vector<std::string> out;
    const auto name = gpu::parse_profile_name(typed);
    if (const gpu::Board* board = silicon.nvidia) {
        for (const gpu::Profile& profile : board->profiles)  // the same compute slices under this board's name
            if (profile.plain() && name && profile.slices == name->gpu) out.emplace_back(profile.name);
        for (const gpu::Profile& profile : board->profiles)  // else something larger
            if (profile.plain() && (!name || profile.slices > name->gpu)) out.emplace_back(profile.name);
    }
    if (const gpu::AmdBoard* board = silicon.amd)
        for (const gpu::AmdTested& tested : board->tested) out.push_back(amd_profile(tested.compute, tested.memory));
    return out;
}

std::optional<SliceFacts> slice_on(const Silicon& silicon, const GpuRequest& request, Mechanism mechanism) {
    const bool part = request.fraction || request.memory || !request.profile.empty();
    const std::int64_t count = request.count.value_or(1);
    switch (mechanism) {
        case Mechanism::whole:
            if (part) return std::nullopt;
            return SliceFacts{.parts = count};
        case Mechanism::mig:
        case Mechanism::mig_vgpu:
        case Mechanism::mps_in_mig: {
            if (!part) return std::nullopt;
            const gpu::Board* board = silicon.nvidia;
            const auto slice = mig_slice(board, request);
            if (!slice) return std::nullopt;
            // Quota counts compute slices; whether the memory fits is a matter of placing.
            return SliceFacts{.parts = slice->profile->slices,
                              .of = board->slices * slice->tasks_each,
                              .per_gpu = slice->profile->max_instances * slice->tasks_each,
                              .grade = gpu::grade(board->basis),
                              .part_of_instance = slice->compute < slice->profile->slices};
        }
        case Mechanism::mps:
        case Mechanism::time_slicing:
            if (request.fraction || request.memory) {
                auto slice = soft_slice(silicon, request);
                if (slice && mechanism == Mechanism::mps) slice->per_gpu = std::min(slice->per_gpu, gpu::mps_clients);
                return slice;
            }
            if (part) return std::nullopt;
            // A process is a client of one server, and a server has one GPU.
            if (mechanism == Mechanism::mps && count > 1) return std::nullopt;
            return SliceFacts{.parts = count};  // shared GPUs: each counts whole, whoever else is on it
        case Mechanism::vgpu:
            if (request.profile.empty()) return soft_slice(silicon, request);
            if (!is_vgpu_type_of(silicon.model, request.profile)) return std::nullopt;
            return SliceFacts{.grade = Grade::assumed};
        case Mechanism::amd_partition: {
            if (!part) return std::nullopt;
            const auto slice = amd_slice(silicon.amd, request);
            if (!slice) return std::nullopt;
            const gpu::AmdVerdict& verdict = slice->verdict;
            return SliceFacts{
                .of = verdict.partitions,
                .per_gpu = verdict.partitions,
                .grade = verdict.standing == gpu::Standing::validated ? Grade::documented : Grade::assumed};
        }
    }
    return std::nullopt;
}

SliceText slice_text(const Silicon& silicon, const GpuRequest& request, Mechanism mechanism) {
    if (mechanism == Mechanism::amd_partition) {
        if (const auto slice = amd_slice(silicon.amd, request))
            return {amd_profile(slice->compute, slice->memory),
                    slice->verdict.compute_units ? fmt::format("{} compute units", *slice->verdict.compute_units) : ""};
    } else if (mechanism == Mechanism::mig || mechanism == Mechanism::mig_vgpu || mechanism == Mechanism::mps_in_mig) {
        const gpu::Board* board = silicon.nvidia;
        if (const auto slice = mig_slice(board, request)) {
            const auto index = static_cast<std::size_t>(slice->profile - board->profiles.data());
            std::string engines = engines_of(*slice->profile);
            if (slice->compute < slice->profile->slices)
                engines = fmt::format("{} of {} compute slices of a GPU instance; shared inside it: {}", slice->compute,
                                      slice->profile->slices, engines);
            return {gpu::print(*board, {index, slice->compute}), std::move(engines)};
        }
    }
    if (!request.profile.empty()) return {request.profile, ""};
    if (request.fraction) return {fmt::format("{} GPU", print(*request.fraction)), ""};
    if (request.memory) return {fmt::format("{} GPU memory", print(*request.memory)), ""};
    const std::int64_t count = request.count.value_or(1);
    return {fmt::format("{} {}GPU{}", count, mechanism == Mechanism::whole ? "" : "shared ", count == 1 ? "" : "s"),
            ""};
}

}  // namespace bulkhead
