#include "bulkhead/node/model.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bulkhead/base/hash.hpp"
#include "bulkhead/gpu/geometry.hpp"
#include "bulkhead/node/model_topology.hpp"

namespace bulkhead {

namespace {

OperationResult done() { return {.ok = true}; }
OperationResult refused(std::string why) { return {.why = std::move(why)}; }

DeviceId device_of(const decltype(Operation::what)& what) {
    struct {
        DeviceId operator()(const CreateInstance& o) const { return {UnitKind::memory, o.gpu}; }
        DeviceId operator()(const DestroyInstance& o) const { return {UnitKind::memory, o.gpu}; }
        DeviceId operator()(const AttachDrive& o) const { return {UnitKind::drive, o.drive}; }
        DeviceId operator()(const DetachDrive& o) const { return {UnitKind::drive, o.drive}; }
        DeviceId operator()(const AttachFunction& o) const { return {UnitKind::vf, o.function}; }
        DeviceId operator()(const DetachFunction& o) const { return {UnitKind::vf, o.function}; }
        DeviceId operator()(const StartTenant&) const { return {UnitKind::host, 0}; }
        DeviceId operator()(const StopTenant&) const { return {UnitKind::host, 0}; }
        DeviceId operator()(const Wipe& o) const { return {o.kind, o.device}; }
        DeviceId operator()(const Verify& o) const { return {o.kind, o.device}; }
        DeviceId operator()(const ResetGpu& o) const { return {UnitKind::memory, o.gpu}; }
    } device;
    return std::visit(device, what);
}

bool spend(std::uint32_t& left) {
    if (left == 0) return false;
    --left;
    return true;
}

std::uint64_t tag_of(Key lease) { return static_cast<std::uint64_t>(lease); }

// In the form of the real thing, always the same for the same node and device.
std::string uuid(std::string_view node, std::string_view device) {
    const Hash hash = sha256({node, "/", device});
    const std::string hex = to_hex(bytes_of(hash));
    return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4), hex.substr(16, 4),
                       hex.substr(20, 12));
}
std::string gpu_uuid(std::string_view node, unsigned gpu) { return "GPU-" + uuid(node, fmt::format("gpu{}", gpu)); }
std::string drive_serial(std::string_view node, unsigned drive) { return fmt::format("SIM-{}-{}", node, drive); }

}  // namespace

NodeModel::NodeModel(NodeModelSpec spec) : spec_{std::move(spec)} {
    gpus_.resize(spec_.gpus);
    for (Gpu& gpu : gpus_) gpu.contents.assign(slices_per_gpu(), old_dirt);
    drives_.assign(spec_.drives, Drive{.contents = old_dirt});
    functions_.assign(spec_.functions, Function{.addresses = old_dirt});
}

const gpu::Board* NodeModel::board() const {
    // By its full id only: a beginning that several boards share must not change its meaning with a new board.
    for (const gpu::Board& board : gpu::boards())
        if (board.id == spec_.gpu_model) return &board;
    return nullptr;
}

std::uint8_t NodeModel::slices_per_gpu() const {
    const gpu::Board* known = board();
    return known == nullptr ? std::uint8_t{1} : static_cast<std::uint8_t>(known->memory_slices);
}

std::int64_t NodeModel::slice_bytes() const {
    const gpu::Board* known = board();
    const int mib = known != nullptr && known->memory_mib ? *known->memory_mib : 81'920;
    return (std::int64_t{mib} << 20) / slices_per_gpu();
}

std::optional<OperationResult> NodeModel::carry_out(const Operation& operation) {
    const DeviceId device = device_of(operation.what);
    const bool starts = std::holds_alternative<StartTenant>(operation.what);
    const bool stops = std::holds_alternative<StopTenant>(operation.what);
    OperationResult result;
    if (starts || stops) {
        if (spend(starts ? hang_starts_ : hang_stops_)) return std::nullopt;
        result = spend(starts ? fail_starts_ : fail_stops_)
                     ? refused(starts ? "the runtime refused it" : "processes are still there after SIGKILL")
                     : std::visit([this](const auto& what) { return carry(what); }, operation.what);
        if (starts && !result.ok) result.fault = start_fault_;
    } else {
        const auto faults = faults_.find(device);
        if (faults != faults_.end() && spend(faults->second.hang)) return std::nullopt;
        if (faults != faults_.end() && spend(faults->second.fail))
            result = refused(fmt::format("{}: input/output error", print(device)));
        else if (device.kind == UnitKind::memory && device.device < gpus_.size() && gpus_[device.device].lost)
            result = refused("GPU is lost: it has fallen off the bus");
        else
            result = std::visit([this](const auto& what) { return carry(what); }, operation.what);
    }
    result.number = operation.number;
    if (const bool wipes =
            std::holds_alternative<Wipe>(operation.what) || std::holds_alternative<Verify>(operation.what);
        wipes)
        identify(device, result);
    return result;
}

void NodeModel::identify(DeviceId device, OperationResult& result) const {
    switch (device.kind) {
        case UnitKind::memory:
            result.device_identity = gpu_uuid(spec_.node, device.device);
            result.model = spec_.gpu_model;
            break;
        case UnitKind::drive:
            result.device_identity = drive_serial(spec_.node, device.device);
            result.model = "model drive";
            break;
        case UnitKind::vf:
            result.device_identity = model_function_address(spec_, device.device);
            result.model = "model function";
            break;
        case UnitKind::host:
            result.device_identity = uuid(spec_.node, "host");
            result.model = "model host";
            break;
    }
}

Duration NodeModel::duration(const Operation& operation) const {
    struct {
        std::int64_t operator()(const CreateInstance&) const { return 300; }
        std::int64_t operator()(const DestroyInstance&) const { return 200; }
        std::int64_t operator()(const AttachDrive&) const { return 50; }
        std::int64_t operator()(const DetachDrive&) const { return 50; }
        std::int64_t operator()(const AttachFunction&) const { return 50; }
        std::int64_t operator()(const DetachFunction&) const { return 50; }
        std::int64_t operator()(const StartTenant& o) const { return o.tier < Tier::vm ? 500 : 5'000; }
        std::int64_t operator()(const StopTenant&) const { return 1'000; }
        std::int64_t operator()(const Wipe& o) const {
            switch (o.kind) {
                case UnitKind::memory:
                    return std::int64_t{100} * o.size;
                case UnitKind::drive:
                    return 2'000;
                case UnitKind::vf:
                    return 100;
                case UnitKind::host:
                    return 120'000;
            }
            return 0;
        }
        std::int64_t operator()(const ResetGpu&) const { return 10'000; }
        std::int64_t operator()(const Verify& o) const {
            switch (o.kind) {
                case UnitKind::memory:
                    return std::int64_t{50} * o.size;
                case UnitKind::drive:
                    return 500;
                case UnitKind::vf:
                    return 20;
                case UnitKind::host:
                    return 1'000;
            }
            return 0;
        }
    } as_built;
    return {std::visit(as_built, operation.what) * slowness_ / 1000};
}

// ---- GPU instances

bool NodeModel::in_use(std::uint16_t gpu, unsigned start, unsigned size) const {
    const gpu::Placement place{start, size};
    for (const auto& [lease, tenant] : tenants_)
        for (const GpuPart& part : tenant.what.gpus)
            if (part.gpu == gpu && place.overlaps({part.start, part.size})) return true;
    return false;
}

OperationResult NodeModel::carry(const CreateInstance& what) {
    if (what.gpu >= gpus_.size()) return refused(fmt::format("there is no gpu{}", what.gpu));
    const gpu::Board* known = board();
    if (known == nullptr) return refused(fmt::format("{} cannot be cut", spec_.gpu_model));
    const auto profile = std::ranges::find(known->profiles, what.profile, &gpu::Profile::name);
    if (profile == known->profiles.end())
        return refused(fmt::format("{} has no profile {}", spec_.gpu_model, what.profile));
    Gpu& gpu = gpus_[what.gpu];
    gpu::Occupancy now;
    unsigned of_this_kind = 0;
    for (const Instance& there : gpu.instances) {
        if (there.profile == what.profile && there.start == what.start) return done();
        now = now.with(*std::ranges::find(known->profiles, there.profile, &gpu::Profile::name), there.start);
        of_this_kind += there.profile == what.profile ? 1u : 0u;
    }
    if (!profile->starts.contains(what.start))
        return refused(fmt::format("{} cannot start at slice {}", what.profile, what.start));
    if (!now.free(profile->at(what.start)) || !now.admits(*profile) || of_this_kind >= profile->max_instances)
        return refused(fmt::format("insufficient resources for {} at slice {}", what.profile, what.start));
    if (!gpu.mig) {
        if (in_use(what.gpu, 0, slices_per_gpu())) return refused("in use by another client: MIG mode cannot be set");
        gpu.mig = true;
    }
    gpu.instances.push_back({what.profile, what.start, static_cast<std::uint8_t>(profile->memory_slices)});
    std::ranges::sort(gpu.instances, {}, &Instance::start);
    return done();
}

OperationResult NodeModel::carry(const DestroyInstance& what) {
    if (what.gpu >= gpus_.size()) return done();
    auto& instances = gpus_[what.gpu].instances;
    const auto there = std::ranges::find(instances, what.start, &Instance::start);
    if (there == instances.end()) return done();
    if (in_use(what.gpu, there->start, there->size)) return refused("in use: a process is still on the instance");
    instances.erase(there);
    return done();
}

// ---- drives and functions

OperationResult NodeModel::carry(const AttachDrive& what) {
    if (what.drive >= drives_.size()) return refused(fmt::format("there is no drive{}", what.drive));
    Drive& drive = drives_[what.drive];
    if (drive.attached != 0 && drive.attached != what.lease)
        return refused(fmt::format("drive{} is attached to lease {}", what.drive, drive.attached));
    drive.attached = what.lease;
    return done();
}

OperationResult NodeModel::carry(const DetachDrive& what) {
    if (what.drive >= drives_.size()) return done();
    Drive& drive = drives_[what.drive];
    if (tenants_.contains(drive.attached)) return refused(fmt::format("drive{} is in use", what.drive));
    drive.attached = 0;
    return done();
}

OperationResult NodeModel::carry(const AttachFunction& what) {
    if (what.function >= functions_.size()) return refused(fmt::format("there is no vf{}", what.function));
    Function& function = functions_[what.function];
    if (function.attached != 0 && function.attached != what.lease)
        return refused(fmt::format("vf{} is attached to lease {}", what.function, function.attached));
    function.attached = what.lease;
    if (!what.port.address.empty()) function.addresses = tag_of(what.lease);  // on the wire from here on
    return done();
}

OperationResult NodeModel::carry(const DetachFunction& what) {
    if (what.function >= functions_.size()) return done();
    Function& function = functions_[what.function];
    if (tenants_.contains(function.attached)) return refused(fmt::format("vf{} is in use", what.function));
    function.attached = 0;
    return done();
}

// ---- tenants

std::optional<std::string> NodeModel::unusable(const StartTenant& what) const {
    for (const GpuPart& part : what.gpus) {
        if (part.gpu >= gpus_.size()) return fmt::format("there is no gpu{}", part.gpu);
        const Gpu& gpu = gpus_[part.gpu];
        if (gpu.lost) return fmt::format("gpu{} is lost: it has fallen off the bus", part.gpu);
        if (part.profile.empty()) {
            // Whoever gets a whole GPU reaches all of its memory.
            if (part.start != 0 || part.size != slices_per_gpu())
                return fmt::format("gpu{} has {} slices", part.gpu, slices_per_gpu());
            if (!gpu.instances.empty()) return fmt::format("gpu{} is cut into instances", part.gpu);
            continue;
        }
        if (std::ranges::find(gpu.instances, Instance{part.profile, part.start, part.size}) == gpu.instances.end())
            return fmt::format("gpu{} has no {} at slice {}", part.gpu, part.profile, part.start);
    }
    for (const std::uint16_t drive : what.drives)
        if (drive >= drives_.size() || drives_[drive].attached != what.lease)
            return fmt::format("drive{} is not attached to it", drive);
    for (const std::uint16_t function : what.functions)
        if (function >= functions_.size() || functions_[function].attached != what.lease)
            return fmt::format("vf{} is not attached to it", function);
    return std::nullopt;
}

// It writes wherever it can, at once: the worst tenant there is.
OperationResult NodeModel::carry(const StartTenant& what) {
    if (tenants_.contains(what.lease)) return done();
    if (auto why = unusable(what)) return refused(std::move(*why));
    const std::uint64_t tag = tag_of(what.lease);
    for (const GpuPart& part : what.gpus) {
        Gpu& gpu = gpus_[part.gpu];
        if (part.profile.empty()) gpu.mig = false;
        for (unsigned slice = part.start; slice < unsigned{part.start} + part.size; ++slice) gpu.contents[slice] = tag;
    }
    for (const std::uint16_t drive : what.drives) drives_[drive].contents = tag;
    for (const std::uint16_t function : what.functions) functions_[function].addresses = tag;
    if (what.tier < Tier::vm) {
        host_contents_ = tag;
        ran_on_kernel_.insert(what.lease);
    }
    tenants_[what.lease] = {what};
    return done();
}

OperationResult NodeModel::carry(const StopTenant& what) {
    const bool ran = tenants_.erase(what.lease) != 0;
    OperationResult result = done();
    if (what.save.ms > 0)
        result.saved =
            ran ? Saved{true, fmt::format("{} lease {}", spec_.node, what.lease)} : Saved{false, "it did not run"};
    return result;
}

std::vector<Key> NodeModel::running() const {
    std::vector<Key> leases;
    leases.reserve(tenants_.size());
    for (const auto& [lease, tenant] : tenants_) leases.push_back(lease);
    return leases;
}

// ---- wiping

bool NodeModel::spend_lie(DeviceId device) {
    const auto faults = faults_.find(device);
    return faults != faults_.end() && spend(faults->second.lie);
}

OperationResult NodeModel::carry(const Wipe& what) {
    const DeviceId device{what.kind, what.device};
    OperationResult result = done();
    switch (what.kind) {
        case UnitKind::memory: {
            const unsigned end = unsigned{what.start} + what.size;
            if (what.device >= gpus_.size() || end > slices_per_gpu()) return refused("there is no such memory");
            if (in_use(what.device, what.start, what.size)) return refused("in use: a process is still on it");
            Gpu& gpu = gpus_[what.device];
            std::erase_if(gpu.instances, [&](const Instance& there) {
                return gpu::Placement{there.start, there.size}.overlaps({what.start, what.size}) &&
                       !in_use(what.device, there.start, there.size);
            });
            result.method = what.burn_in ? "model fill, burn-in" : "model fill";
            result.bytes = slice_bytes() * what.size;
            if (!spend_lie(device))
                for (unsigned slice = what.start; slice < end; ++slice) gpu.contents[slice] = 0;
            break;
        }
        case UnitKind::drive: {
            if (what.device >= drives_.size()) return refused("there is no such drive");
            Drive& drive = drives_[what.device];
            if (tenants_.contains(drive.attached)) return refused("in use");
            drive.attached = 0;
            result.method = "model erase";
            result.bytes = spec_.drive_size.bytes;
            if (!spend_lie(device)) drive.contents = 0;
            break;
        }
        case UnitKind::vf: {
            if (what.device >= functions_.size()) return refused("there is no such function");
            Function& function = functions_[what.device];
            if (tenants_.contains(function.attached)) return refused("in use");
            function.attached = 0;
            result.method = "model reset";
            if (!spend_lie(device)) function.addresses = 0;
            break;
        }
        case UnitKind::host:
            result.method = "reboot";
            if (spend_lie(device)) break;  // it says it went down, and did not
            reboot();
            break;
    }
    return result;
}

OperationResult NodeModel::carry(const Verify& what) {
    OperationResult result = done();
    result.method = "read back";
    switch (what.kind) {
        case UnitKind::memory: {
            const unsigned end = unsigned{what.start} + what.size;
            if (what.device >= gpus_.size() || end > slices_per_gpu()) return refused("there is no such memory");
            for (unsigned slice = what.start; slice < end; ++slice) {
                result.bytes += slice_bytes();
                if (gpus_[what.device].contents[slice] != 0) result.bytes_residue += slice_bytes();
            }
            break;
        }
        case UnitKind::drive: {
            if (what.device >= drives_.size()) return refused("there is no such drive");
            constexpr std::int64_t sampled = std::int64_t{64} << 20;
            result.bytes = std::min(sampled, spec_.drive_size.bytes);
            if (drives_[what.device].contents != 0) result.bytes_residue = result.bytes;
            break;
        }
        case UnitKind::vf:
            if (what.device >= functions_.size()) return refused("there is no such function");
            if (functions_[what.device].addresses != 0) result.bytes_residue = 8;
            break;
        case UnitKind::host:
            result.method = "measured boot";
            if (!image_good_) return refused("the measured image is not the known one");
            if (host_contents_ != 0) result.bytes_residue = 1;
            break;
    }
    return result;
}

OperationResult NodeModel::carry(const ResetGpu& what) {
    const auto not_made = [](std::string why) { return OperationResult{.why = std::move(why), .untouched = true}; };
    if (what.gpu >= gpus_.size()) return not_made("there is no such GPU");
    if (in_use(what.gpu, 0, slices_per_gpu())) return not_made("in use: a process is still on it");
    gpus_[what.gpu].instances.clear();
    if (!spend_lie({UnitKind::memory, what.gpu})) std::ranges::fill(gpus_[what.gpu].contents, 0);
    return done();
}

void NodeModel::reboot() {
    ++boots_;
    tenants_.clear();
    ran_on_kernel_.clear();
    host_contents_ = 0;
    for (Gpu& gpu : gpus_) {
        gpu.instances.clear();
        gpu.mig = false;
    }
    for (Drive& drive : drives_) drive.attached = 0;
    for (Function& function : functions_) function.attached = 0;
}

void NodeModel::crash_host() {
    const std::uint64_t before = host_contents_;
    reboot();
    host_contents_ = before;  // nobody measured that boot: what ran before may have left something that starts again
}

void NodeModel::set_lost(std::uint16_t gpu, bool lost) {
    if (gpu < gpus_.size()) gpus_[gpu].lost = lost;
}

void NodeModel::clear_faults() {
    faults_.clear();
    fail_starts_ = fail_stops_ = hang_starts_ = hang_stops_ = 0;
    image_good_ = true;
    slowness_ = 1000;
    for (Gpu& gpu : gpus_) gpu.lost = false;
}

// ---- what outsiders see

std::string NodeModel::boot_id() const { return uuid(spec_.node, fmt::format("boot{}", boots_)); }

std::uint64_t NodeModel::read(UnitId unit) const {
    switch (unit.kind) {
        case UnitKind::memory:
            return gpus_.at(unit.device).contents.at(unit.slice);
        case UnitKind::drive:
            return drives_.at(unit.device).contents;
        case UnitKind::vf:
            return functions_.at(unit.device).addresses;
        case UnitKind::host:
            return host_contents_;
    }
    return old_dirt;
}

std::vector<UnitId> NodeModel::units() const {
    std::vector<UnitId> all;
    for (std::uint16_t gpu = 0; gpu < spec_.gpus; ++gpu)
        for (std::uint8_t slice = 0; slice < slices_per_gpu(); ++slice) all.push_back({UnitKind::memory, gpu, slice});
    for (std::uint16_t drive = 0; drive < spec_.drives; ++drive) all.push_back({UnitKind::drive, drive, 0});
    for (std::uint16_t function = 0; function < spec_.functions; ++function) all.push_back({UnitKind::vf, function, 0});
    all.push_back({UnitKind::host, 0, 0});
    return all;
}

GpuNodeStatus NodeModel::inventory() const {
    GpuNodeStatus status;
    status.runsCommands = false;
    for (std::uint16_t gpu = 0; gpu < spec_.gpus; ++gpu) {
        const auto& instances = gpus_[gpu].instances;
        const bool joins = instances.empty() && !status.gpus.empty() && status.gpus.back().slices.empty();
        if (joins) {
            ++status.gpus.back().count;
            continue;
        }
        NodeGpus& entry = status.gpus.emplace_back(NodeGpus{.model = spec_.gpu_model});
        for (const Instance& there : instances)
            entry.slices.push_back(
                {.profile = there.profile,
                 .start = there.start,
                 .state = in_use(gpu, there.start, there.size) ? CleanState::in_use : CleanState::sanitizing});
    }
    status.topology = model_positions(spec_);
    status.cpu = spec_.cpu;
    status.memory = spec_.memory;
    status.nvlink = spec_.nvlink;
    status.confidentialMode = spec_.confidential_mode;
    for (const Capability capability : spec_.capabilities)
        status.capabilities.push_back({.name = capability, .grade = Grade::simulated});
    status.versions = spec_.versions;
    for (std::uint16_t drive = 0; drive < spec_.drives; ++drive)
        status.drives.push_back({.serial = drive_serial(spec_.node, drive), .size = spec_.drive_size});
    for (std::uint16_t function = 0; function < spec_.functions; ++function)
        status.functions.push_back(model_function(spec_, function));
    return status;
}

}  // namespace bulkhead
