// Wiping: the memory of a whole GPU, or of some of its slices through instances made for the purpose, each by a process
// of its own; what that process read back answers the Verify that follows.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/gpu/board.hpp"
#include "bulkhead/hw/program/program.hpp"

namespace bulkhead::agent {

namespace {

constexpr std::chrono::minutes scrub_patience{9};  // a second pass must fit into the executor's ten

OperationResult refused(const Error& error) { return {.ok = false, .why = error.what}; }

// What several scrubs say together.
void add(OperationResult& all, OperationResult& read, const nvml::Gpu& gpu, const GpuScrub& one) {
    if (one.device != gpu.uuid) all.board = gpu.uuid;
    all.serial = gpu.serial;
    all.vbios = gpu.vbios;
    all.driver = one.driver;
    all.device_identity = all.device_identity.empty() ? one.device : all.device_identity + ", " + one.device;
    all.model = one.model;
    all.bytes += one.bytes_reached;
    all.bytes_unreachable += one.bytes_unreachable();
    all.unreachable = all.unreachable.empty() ? one.unreachable() : all.unreachable + "; " + one.unreachable();
    if (one.bytes_found) all.bytes_found = all.bytes_found.value_or(0) + *one.bytes_found;
    read.bytes += one.bytes_verified;
    read.bytes_residue += one.bytes_other;
    read.digest = read.digest.empty() ? one.digest : read.digest + " " + one.digest;
    read.ok = read.ok && one.verified;
    if (!one.verified && read.why.empty()) read.why = one.why_not;
}

// What was done, not what was meant to be.
std::string method_of(const Wipe& what, std::int64_t passes, bool verified) {
    if (!what.burn_in) return "overwrite";
    if (!verified) return fmt::format("burn-in that was not passed, {} passes in", passes);
    return fmt::format("overwrite, burn-in of {} passes and a computation", passes);
}

}  // namespace

Result<GpuScrub> GpuHardware::scrub_device(const std::string& uuid, bool burn_in) const {
    std::vector<std::string> command = settings_.scrub;
    if (burn_in) command.insert(command.end(), {"--burn-in", std::to_string(settings_.burn_in_passes)});
    command.insert(command.end(), {"--gpu", uuid, "--cuda", settings_.cuda, "--nvml", settings_.nvml, "-o", "report"});
    const auto ran = program::run_tied(command, settings_.lock, scrub_patience);
    if (!ran) return std::unexpected(ran.error());
    // 3: tried, and not verified; the report says why.
    if (ran->status != 0 && ran->status != 3)
        return fail(Code::unavailable,
                    fmt::format("wiping {} ended with status {}: {}", uuid, ran->status, ran->output.substr(0, 500)),
                    "");
    auto report = read_scrub(ran->output);
    if (!report) return std::unexpected(report.error());
    if (report->device != uuid)
        return fail(Code::corrupt, fmt::format("{} was to be wiped, and {} was", uuid, report->device), "");
    return report;
}

OperationResult GpuHardware::scrub_whole(const nvml::Gpu& gpu, const Wipe& what) {
    const auto now = nvml_.gpus();
    if (!now) return refused(now.error());
    const auto current = std::ranges::find(*now, gpu.uuid, &nvml::Gpu::uuid);
    if (current == now->end()) return {.ok = false, .why = fmt::format("{} is gone", gpu.uuid)};
    if (current->mig == nvml::MigMode::enabled) {
        const auto instances = nvml_.instances(gpu.uuid);
        if (!instances) return refused(instances.error());
        for (const nvml::Instance& one : *instances)
            if (const auto gone = nvml_.destroy_instance(gpu.uuid, one.id); !gone) return refused(gone.error());
        if (const auto off = set_mig(gpu.uuid, false); !off) return refused(off.error());
    } else if (const auto whole = want_mig(gpu.uuid, false); !whole) {
        return refused(whole.error());
    }
    const auto scrub = scrub_device(gpu.uuid, what.burn_in);
    if (!scrub) return refused(scrub.error());
    OperationResult all{.ok = true}, read{.ok = true};
    add(all, read, gpu, *scrub);
    all.method = return_path(what.device) + method_of(what, scrub->burn_in_passes, read.ok);
    const std::scoped_lock lock{mutex_};
    verified_[{what.device, what.start}] = {what.size, std::move(read)};
    return all;
}

// Memory of a GPU that is cut is reached through instances alone. Those over these slices that nobody uses are taken
// apart, and others made, largest first, until every slice was in one; a slice that fits into none without a neighbour
// that is in use stays unwiped, and the wipe fails.
OperationResult GpuHardware::scrub_slices(const nvml::Gpu& gpu, const Wipe& what) {
    const gpu::Placement wanted{what.start, what.size};
    auto instances = nvml_.instances(gpu.uuid);
    if (!instances) return refused(instances.error());
    unsigned taken = 0;
    for (const nvml::Instance& one : *instances) {
        if (!one.place.overlaps(wanted)) {
            taken |= one.place.mask();
            continue;
        }
        if (const auto gone = nvml_.destroy_instance(gpu.uuid, one.id); !gone) return refused(gone.error());
    }
    auto profiles = nvml_.profiles(gpu.uuid);
    if (!profiles) return refused(profiles.error());
    struct Way {
        unsigned profile;
        gpu::Placement place;
    };
    std::vector<Way> ways;
    for (const nvml::Profile& profile : *profiles)
        for (const gpu::Placement place : profile.places)
            if (place.overlaps(wanted) && (place.mask() & taken) == 0) ways.push_back({profile.id, place});
    // The largest that stays within first; then those that reach beyond, over slices nobody has.
    std::ranges::sort(ways, {}, [&](const Way& way) {
        const bool within = way.place.start >= wanted.start && way.place.end() <= wanted.end();
        return std::tuple{within ? 0 : 1, -static_cast<int>(way.place.size), way.place.start, way.profile};
    });
    OperationResult all{.ok = true}, read{.ok = true};
    std::int64_t passes = settings_.burn_in_passes;  // of the piece that had fewest
    unsigned left = wanted.mask();
    for (const Way& way : ways) {
        if ((way.place.mask() & left) == 0) continue;
        const auto made = nvml_.create_instance(gpu.uuid, way.profile, way.place);
        if (!made) continue;  // media engines, or a maximum: another way may do
        const auto scrub = scrub_device(made->uuid, what.burn_in);
        const auto gone = nvml_.destroy_instance(gpu.uuid, made->id);
        if (!scrub) return refused(scrub.error());
        if (!gone) return refused(gone.error());
        add(all, read, gpu, *scrub);
        passes = std::min(passes, scrub->burn_in_passes);
        left &= ~unsigned{way.place.mask()};
        if (left == 0) break;
    }
    if (left != 0)
        return {.ok = false,
                .why = fmt::format(
                    "slices {:#x} of {} fit into no instance beside those in use, so that nobody can wipe them", left,
                    gpu.uuid)};
    all.method = return_path(what.device) + method_of(what, passes, read.ok);
    const std::scoped_lock lock{mutex_};
    verified_[{what.device, what.start}] = {what.size, std::move(read)};
    return all;
}

OperationResult GpuHardware::carry(const Wipe& what) {
    if (what.kind == UnitKind::host)
        return {.ok = false, .why = "this agent does not reboot its host: somebody else must, to a known image"};
    if (what.kind == UnitKind::drive) return drives_->wipe(what);
    if (what.kind == UnitKind::vf)
        if (const auto why = why_no_functions()) return refused(*why);
    if (what.kind == UnitKind::vf && functions() != nullptr) return functions()->wipe(what.device);
    if (what.kind != UnitKind::memory) return none_here("such device");
    const auto gpu = this->gpu(what.device);
    if (!gpu) return refused(gpu.error());
    {
        const std::scoped_lock lock{mutex_};
        verified_.erase({what.device, what.start});
    }
    // What the driver itself calls unfit has not been repaired.
    if (what.burn_in) {
        const auto health = nvml_.health((*gpu)->uuid);
        if (!health) return refused(health.error());
        if (const auto unfit = health->unfit())
            return {.ok = false, .why = fmt::format("{} cannot return: {}", (*gpu)->uuid, *unfit)};
    }
    const auto now = nvml_.gpus();
    if (!now) return refused(now.error());
    const auto current = std::ranges::find(*now, (*gpu)->uuid, &nvml::Gpu::uuid);
    if (current == now->end()) return {.ok = false, .why = fmt::format("{} is gone", (*gpu)->uuid)};
    const auto instances =
        current->mig == nvml::MigMode::enabled ? nvml_.instances((*gpu)->uuid) : Result<std::vector<nvml::Instance>>{};
    if (!instances) return refused(instances.error());
    const gpu::Placement wanted{what.start, what.size};
    if (current->mig != nvml::MigMode::enabled) return scrub_whole(**gpu, what);
    const bool others =
        std::ranges::any_of(*instances, [&](const nvml::Instance& one) { return !one.place.overlaps(wanted); });
    // All of it, and nobody else there: as a whole it can be reached best.
    const gpu::Board* const board = gpu::find_board_by_pci(fmt::format("0x{:08X}", (*gpu)->pci_device));
    const unsigned slices = board != nullptr ? board->memory_slices : 8;
    if (!others && wanted.start == 0 && wanted.size >= slices) return scrub_whole(**gpu, what);
    return scrub_slices(**gpu, what);
}

OperationResult GpuHardware::carry(const Verify& what) {
    if (what.kind == UnitKind::drive) return drives_->verify(what);
    if (what.kind == UnitKind::vf && functions() != nullptr) return functions()->verify(what.device);
    if (what.kind != UnitKind::memory) return {.ok = false, .why = "nothing of that kind was wiped"};
    const std::scoped_lock lock{mutex_};
    const auto found = verified_.find({what.device, what.start});
    if (found == verified_.end() || found->second.size != what.size)
        return {.ok = false, .why = "it was not wiped by this agent since it started"};
    OperationResult read = std::move(found->second.read);
    verified_.erase(found);
    if (read.ok) forget_return(what.device);
    return read;
}

}  // namespace bulkhead::agent
