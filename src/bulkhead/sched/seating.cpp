#include "bulkhead/sched/seating.hpp"

#include <algorithm>
#include <bit>
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

std::optional<Want> want_on(const Request& request, const Slice& slice) {
    const GpuRequest& asked = request.spec->gpu;
    const Silicon silicon = silicon_of(slice.model);
    const Mechanism mechanism = request.contract->mechanism;
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
            want.share = asked.count ? 1000 : std::min<std::int64_t>(facts->thousandths(1), 1000);
            return want;
        case Mechanism::amd_partition:
            want.form = Want::Form::partition;
            want.size = static_cast<std::uint8_t>(std::max<std::int64_t>(8 * facts->parts / facts->of, 1));
            want.profile_name = slice.slice;
            return want;
    }
    return std::nullopt;
}

// What MIG sees taken: every slice that is not available, and the media engines of the instances that are there.
gpu::Occupancy occupancy_of(const Gpu& gpu) {
    gpu::Media most = gpu::Media::none;
    for (const Seat& seat : gpu.seats)
        if (!seat.profile.empty())
            if (const auto choice = gpu::find_profile(*gpu.board, seat.profile))
                most = std::max(most, gpu.board->profiles[choice->index].media);
    const unsigned taken = static_cast<unsigned>(~gpu.available) & 0xFFu & gpu.all();
    return gpu::Occupancy::of_state(static_cast<std::size_t>(most) << 8 | taken);
}

bool only_instances(const Gpu& gpu) {
    return std::ranges::none_of(gpu.seats, [](const Seat& seat) { return seat.profile.empty(); });
}

// Of several GPUs with room the fullest, so that empty ones stay whole.
std::optional<std::pair<std::uint16_t, std::uint8_t>> place_instance(const Node& node, const Want& want,
                                                                     const std::vector<bool>& allowed) {
    std::optional<std::pair<std::uint16_t, std::uint8_t>> best;
    int best_free = 99;
    for (std::size_t i = 0; i < node.gpus.size(); ++i) {
        const Gpu& gpu = node.gpus[i];
        if (!allowed[i] || gpu.model != want.model || gpu.board == nullptr || !only_instances(gpu)) continue;
        const int free = std::popcount(gpu.available);
        if (free >= best_free) continue;
        const auto start = want.geometry->place(occupancy_of(gpu), want.profile);
        if (!start) continue;
        best = {static_cast<std::uint16_t>(i), static_cast<std::uint8_t>(*start)};
        best_free = free;
    }
    return best;
}

std::optional<std::pair<std::uint16_t, std::uint8_t>> place_partition(const Node& node, const Want& want,
                                                                      const std::vector<bool>& allowed) {
    for (std::size_t i = 0; i < node.gpus.size(); ++i) {
        const Gpu& gpu = node.gpus[i];
        // One pair of modes holds for the whole GPU.
        const bool same_mode =
            std::ranges::all_of(gpu.seats, [&](const Seat& seat) { return seat.profile == want.profile_name; });
        if (!allowed[i] || gpu.model != want.model || !same_mode) continue;
        for (unsigned start = 0; start + want.size <= gpu.slices; start += want.size) {
            const unsigned mask = gpu::Placement{start, want.size}.mask();
            if ((gpu.available & mask) == mask)
                return {{static_cast<std::uint16_t>(i), static_cast<std::uint8_t>(start)}};
        }
    }
    return std::nullopt;
}

// A GPU that others of the same mechanism already share and that has enough left, else an empty one.
std::optional<std::uint16_t> place_share(const Node& node, const Want& want, Mechanism mechanism,
                                         const std::vector<bool>& allowed,
                                         const std::vector<std::vector<bool>>& joinable) {
    std::optional<std::uint16_t> empty;
    for (std::size_t i = 0; i < node.gpus.size(); ++i) {
        const Gpu& gpu = node.gpus[i];
        if (!allowed[i] || gpu.model != want.model) continue;
        if (gpu.empty()) {
            if (!empty) empty = static_cast<std::uint16_t>(i);
            continue;
        }
        std::int64_t taken = 0;
        bool joins = !gpu.seats.empty() && want.share < 1000 && gpu.held == gpu.all();
        for (std::size_t k = 0; k < gpu.seats.size(); ++k) {
            const Seat& seat = gpu.seats[k];
            joins = joins && joinable[i][k] && seat.mechanism == mechanism && seat.profile.empty() &&
                    seat.share < 1000 && seat.size == gpu.slices;
            taken += seat.share;
        }
        if (joins && taken + want.share <= 1000) return static_cast<std::uint16_t>(i);
    }
    return empty;
}

}  // namespace

std::vector<Want> wants_of(const Request& request) {
    std::vector<Want> wants;
    for (const Slice& slice : request.contract->slices)
        if (auto want = want_on(request, slice)) wants.push_back(std::move(*want));
    return wants;
}

namespace seating {

bool find_devices(const Node& node, const Request& request, TaskSeat& task) {
    if (request.spec->network.rdma) {
        if (node.functions.empty()) return false;
        task.functions.push_back(node.functions.front());
    }
    if (const auto& bytes = request.spec->storage.localNvme) {
        // A drive is one tenant's at a time; of those large enough the smallest.
        std::optional<std::size_t> best;
        for (std::size_t i = 0; i < node.drives.size(); ++i)
            if (node.drive_bytes[i] >= bytes->bytes && (!best || node.drive_bytes[i] < node.drive_bytes[*best]))
                best = i;
        if (!best) return false;
        task.drives.push_back(node.drives[*best]);
    }
    return true;
}

std::optional<std::pair<std::vector<std::uint16_t>, std::vector<Seat>>> find_gpus(
    const Node& node, const Want& want, Mechanism mechanism, const std::vector<bool>& gpu_allowed,
    const std::vector<std::vector<bool>>& seat_joinable) {
    std::vector<std::uint16_t> gpus;
    std::vector<Seat> seats;
    const auto add = [&](std::uint16_t gpu, std::uint8_t start, std::uint8_t size) {
        gpus.push_back(gpu);
        seats.push_back(
            {.start = start, .size = size, .profile = want.profile_name, .share = want.share, .mechanism = mechanism});
    };
    switch (want.form) {
        case Want::Form::whole:
            for (std::size_t i = 0; i < node.gpus.size() && std::ssize(gpus) < want.count; ++i)
                if (gpu_allowed[i] && node.gpus[i].model == want.model && node.gpus[i].empty())
                    add(static_cast<std::uint16_t>(i), 0, node.gpus[i].slices);
            if (std::ssize(gpus) < want.count) return std::nullopt;
            break;
        case Want::Form::instance:
        case Want::Form::partition: {
            const auto place = want.form == Want::Form::instance ? place_instance(node, want, gpu_allowed)
                                                                 : place_partition(node, want, gpu_allowed);
            if (!place) return std::nullopt;
            add(place->first, place->second, want.size);
            break;
        }
        case Want::Form::share: {
            if (want.count > 1) {  // several shared GPUs: each a whole one, so that no two tasks meet twice
                for (std::size_t i = 0; i < node.gpus.size() && std::ssize(gpus) < want.count; ++i)
                    if (gpu_allowed[i] && node.gpus[i].model == want.model && node.gpus[i].empty())
                        add(static_cast<std::uint16_t>(i), 0, node.gpus[i].slices);
                if (std::ssize(gpus) < want.count) return std::nullopt;
                break;
            }
            const auto gpu = place_share(node, want, mechanism, gpu_allowed, seat_joinable);
            if (!gpu) return std::nullopt;
            add(*gpu, 0, node.gpus[*gpu].slices);
            break;
        }
    }
    return {{std::move(gpus), std::move(seats)}};
}

}  // namespace seating

void take(Node& node, const TaskSeat& task, const Request& request) {
    for (std::size_t i = 0; i < task.gpus.size(); ++i) {
        Gpu& gpu = node.gpus[task.gpus[i]];
        const Seat& seat = task.seats[i];
        gpu.available &= static_cast<std::uint8_t>(~gpu::Placement{seat.start, seat.size}.mask());
        gpu.held |= gpu::Placement{seat.start, seat.size}.mask();
        gpu.seats.push_back(seat);
    }
    for (const std::uint16_t drive : task.drives) {
        const auto at = std::ranges::find(node.drives, drive) - node.drives.begin();
        node.drives.erase(node.drives.begin() + at);
        node.drive_bytes.erase(node.drive_bytes.begin() + at);
    }
    for (const std::uint16_t function : task.functions) std::erase(node.functions, function);
    node.cpu_free -= request.spec->cpu.value_or(0);
    if (request.spec->memory) node.memory_free -= request.spec->memory->bytes;
}

}  // namespace bulkhead::sched
