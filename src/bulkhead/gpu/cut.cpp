#include "bulkhead/gpu/cut.hpp"

#include "bulkhead/gpu/profile_name.hpp"

namespace bulkhead::gpu {

namespace {

// Largest first; a 3c may have to stand at 4 so that two 2c fit before it, so the lowest start is not always right.
bool place_rest(unsigned gpu_slices, Cut rest, unsigned taken, std::vector<Placement>& placed) {
    std::size_t size = rest.count.size() - 1;
    while (size > 0 && rest.count[size] == 0) --size;
    if (size == 0) return true;
    --rest.count[size];
    for (const unsigned start : compute_starts(gpu_slices, static_cast<unsigned>(size))) {
        const Placement place{start, static_cast<unsigned>(size)};
        if ((taken & place.mask()) != 0) continue;
        placed.push_back(place);
        if (place_rest(gpu_slices, rest, taken | place.mask(), placed)) return true;
        placed.pop_back();
    }
    return false;
}

}  // namespace

std::optional<std::vector<Placement>> arrange_cut(unsigned gpu_slices, const Cut& cut) {
    unsigned wanted = 0;
    for (std::size_t size = 1; size < cut.count.size(); ++size) wanted += static_cast<unsigned>(size) * cut.count[size];
    std::vector<Placement> placed;
    if (wanted > gpu_slices || !place_rest(gpu_slices, cut, 0, placed)) return std::nullopt;
    return placed;
}

std::optional<CiEnum> compute_profile(const Board& board, const Profile& profile, unsigned compute) {
    // The first row of a size is the regular one: the wide 1c of a 2g and the failing 7g of some drivers come last.
    for (const ComputeProfile& ci : board.compute_profiles)
        if (ci.gpu_instance == profile.nvml && ci.slices == compute) return ci.nvml;
    return std::nullopt;
}

}  // namespace bulkhead::gpu
