#include "bulkhead/sched/need.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "bulkhead/gpu/profile_name.hpp"
#include "bulkhead/policy/slice.hpp"

namespace bulkhead::sched {

namespace {

// The automaton of a board costs a millisecond to build and is the same for ever.
const gpu::Geometry& geometry_of(const gpu::Board& board) {
    thread_local std::map<const gpu::Board*, std::unique_ptr<gpu::Geometry>> built;
    std::unique_ptr<gpu::Geometry>& geometry = built[&board];
    if (!geometry) geometry = std::make_unique<gpu::Geometry>(board);
    return *geometry;
}

// The thousandths of a GPU that a software mechanism keeps for a task. A fraction such as 1/7 is rounded down, so that
// seven of them fit a GPU, as quota counts them. A request in bytes is rounded up, but never so far that fewer of them
// fit a GPU than its memory holds: three requests for a third of the memory keep 333 each.
std::int64_t share_of(const GpuRequest& asked, const SliceFacts& facts) {
    const Gpus size{facts.units(1)};
    const std::int64_t share = size.thousandths() + (asked.fraction || size.is_decimal() ? 0 : 1);
    const std::int64_t most = asked.memory ? 1000 / std::max<std::int64_t>(facts.per_gpu, 1) : 1000;
    return std::clamp<std::int64_t>(share, 1, most);
}

std::optional<Want> want_on(const GpuRequest& asked, Mechanism mechanism, const Slice& slice) {
    const Silicon silicon = silicon_of(slice.model);
    const std::optional<SliceFacts> facts = slice_on(silicon, asked, mechanism);
    if (!facts) return std::nullopt;
    Want want{.model = slice.model};
    switch (mechanism) {
        case Mechanism::whole:
            want.count = asked.count.value_or(1);
            return want;
        case Mechanism::mig:
        case Mechanism::mig_vgpu:
        case Mechanism::mps_in_mig: {
            // A compute instance is given a GPU instance of its own here: sharing one is left to the full engine.
            const auto choice = gpu::find_profile(*silicon.nvidia, slice.slice);
            if (!choice) return std::nullopt;
            const gpu::Profile& profile = silicon.nvidia->profiles[choice->index];
            want.form = Want::Form::instance;
            want.geometry = &geometry_of(*silicon.nvidia);
            want.profile = choice->index;
            want.size = static_cast<std::uint8_t>(profile.memory_slices);
            want.profile_name = profile.name;
            return want;
        }
        case Mechanism::mps:
        case Mechanism::time_slicing:
        case Mechanism::vgpu:
            want.form = Want::Form::share;
            want.count = asked.count.value_or(1);
            want.share = asked.count ? 1000 : share_of(asked, *facts);
            return want;
        case Mechanism::amd_partition:
            want.form = Want::Form::partition;
            want.size = static_cast<std::uint8_t>(std::max<std::int64_t>(8 * facts->parts / facts->of, 1));
            want.profile_name = slice.slice;
            return want;
    }
    return std::nullopt;
}

}  // namespace

std::vector<Want> wants_of(const GpuRequest& asked, const Contract& contract) {
    std::vector<Want> wants;
    for (const Slice& slice : contract.slices)
        if (auto want = want_on(asked, contract.mechanism, slice)) wants.push_back(std::move(*want));
    return wants;
}

std::uint8_t nps_of(std::string_view profile) {
    const std::size_t at = profile.find("_nps");
    if (at == std::string_view::npos || at + 5 != profile.size()) return 0;
    const char digit = profile[at + 4];
    return digit >= '1' && digit <= '8' ? static_cast<std::uint8_t>(digit - '0') : std::uint8_t{0};
}

TaskNeed need_of(const GpuWorkloadSpec& spec, const Contract& contract) {
    return {.wants = wants_of(spec.gpu, contract),
            .any_model = spec.gpu.models.empty(),
            .mechanism = contract.mechanism,
            .cpu = spec.cpu.value_or(0),
            .memory = spec.memory.value_or(ByteSize{}).bytes,
            .nvme = spec.storage.localNvme.value_or(ByteSize{}).bytes,
            .rdma = spec.network.rdma,
            .sharing = contract.sharing,
            .on_host_kernel = contract.tier < Tier::vm,
            .keeps_node = contract.exclusivity && contract.exclusivity->node,
            .keeps_gpu = contract.exclusivity && contract.exclusivity->gpu,
            .excepted = {},
            .kinds = {}};
}

}  // namespace bulkhead::sched
