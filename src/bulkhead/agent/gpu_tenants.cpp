// Running: a tenant's command in its tier with the devices of its lease and no others; stopped, and seen to be gone.
// What is shared by MPS is in gpu_sharing.cpp.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "bulkhead/agent/gpu_hardware.hpp"
#include "bulkhead/agent/gpu_nccl.hpp"
#include "bulkhead/hw/container/first_process.hpp"
#include "bulkhead/hw/container/nvidia_nodes.hpp"
#include "bulkhead/hw/program/program.hpp"

namespace bulkhead::agent {

namespace {

using container::Look, container::Tenants, container::TenantSpec;

constexpr std::uint32_t ids_each = 65'536;
constexpr std::int64_t pids_max = 4'096;
constexpr std::chrono::seconds save_slack{15};  // for what saves to be started, and to write down what came of it
constexpr std::size_t output_tail_max = output_bytes_max / 2 - 64;  // of each stream, with a word of ours behind both
constexpr std::chrono::seconds smi_patience{60};
constexpr auto time_slices = std::to_array<std::string_view>({"default", "short", "medium", "long"});
constexpr std::chrono::seconds start_within{300};  // a container's root on a slow disk
constexpr Key own_start_lease = key_of(1, -1);     // the control plane counts leases from epoch 1 on (node/order.hpp)
constexpr std::string_view own_start_user = "(own-start)";  // no tenant can be called so
constexpr std::chrono::seconds own_start_within{60};
// Where hosts that keep the driver's programs and libraries apart have them, as NVIDIA's images expect.
constexpr std::string_view driver_folder = "/usr/local/nvidia";

OperationResult could_not(const Error& error, PartFault fault = PartFault::none) {
    return {.ok = false, .why = error.what, .fault = fault};
}

PartFault fault_of_program(int status) {
    return status == container::not_found_status        ? PartFault::not_found
           : status == container::not_executable_status ? PartFault::not_executable
                                                        : PartFault::none;
}

std::string slurp(const std::string& path) {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
}

// NVML tells every process of the whole GPU: who is on it, what each holds, its load. Whoever shares one goes without
// the library and its program. That hides, and does not block: the driver still answers who speaks to it directly.
std::vector<std::string> what_speaks_of_neighbours() {
    std::set<std::string> found;  // by their own names: a link can be hidden only where it leads
    const std::string apart{driver_folder};
    for (const std::string& folder :
         {std::string{"/usr/lib"}, std::string{"/usr/lib64"}, std::string{"/usr/lib/x86_64-linux-gnu"},
          std::string{"/usr/lib/aarch64-linux-gnu"}, std::string{"/usr/bin"}, apart + "/lib", apart + "/lib64",
          apart + "/bin"}) {
        std::error_code failed;
        for (const auto& entry : std::filesystem::directory_iterator{folder, failed}) {
            const std::string name = entry.path().filename().string();
            if (!name.starts_with("libnvidia-ml.so") && name != "nvidia-smi") continue;
            const auto real = std::filesystem::canonical(entry.path(), failed);
            if (!failed) found.insert(real.string());
        }
    }
    return {found.begin(), found.end()};
}

bool shares_a_gpu(const StartTenant& what) {
    return std::ranges::any_of(what.gpus,
                               [](const GpuPart& part) { return !part.profile.empty() || part.share < 1000; });
}

}  // namespace

// One range of user ids for each tenant, for the life of the node: MPS serves one user at a time, and what a tenant
// left behind in files must never belong to another.
Result<container::IdRange> GpuHardware::ids_of(const std::string& tenant) {
    const std::string path = settings_.folder + "/tenant-ids";
    std::map<std::string, std::uint32_t> known;
    std::istringstream lines{slurp(path)};
    std::uint32_t next = settings_.first_id;
    for (std::string name; lines >> name;) {
        std::uint32_t first = 0;
        if (!(lines >> first))
            return fail(Code::corrupt, path + " is damaged", "move it aside when no tenant runs on this node");
        known[name] = first;
        next = std::max(next, first + ids_each);
    }
    if (const auto found = known.find(tenant); found != known.end()) return container::IdRange{found->second, ids_each};
    if (next > 0x7FFF'FFFF - ids_each)  // as far as a tenant's ids may go
        return fail(Code::exhausted, "no user ids are left for another tenant",
                    fmt::format("while no tenant runs here, remove from {} those who never come back", path));
    known[tenant] = next;
    std::string text;
    for (const auto& [name, first] : known) text += fmt::format("{} {}\n", name, first);
    if (auto kept = container::write_durably(path, text); !kept) return std::unexpected(kept.error());
    return container::IdRange{next, ids_each};
}

namespace {

// Before anything is started for it.
Result<> check_variables(const Program& program) {
    for (const std::string& variable : program.environment)
        if (const std::size_t equals = variable.find('='); equals == std::string::npos || equals == 0)
            return fail(Code::invalid, fmt::format("\"{}\" is no variable", variable), "write NAME=value");
    return {};
}

}  // namespace

Result<GpuHardware::Devices> GpuHardware::devices_of(const StartTenant& what) const {
    std::vector<container::LeasedGpu> leased;
    Devices devices;
    std::vector<std::string>& uuids = devices.uuids;
    for (const GpuPart& part : what.gpus) {
        const auto gpu = this->gpu(part.gpu);
        if (!gpu) return std::unexpected(gpu.error());
        if (part.profile.empty()) {
            leased.push_back({.minor = (*gpu)->minor, .mig = std::nullopt});
            uuids.push_back((*gpu)->uuid);
            continue;
        }
        const auto instance = instance_at(**gpu, part.start);
        if (!instance) return std::unexpected(instance.error());
        if (instance->compute_instances.empty())
            return fail(Code::conflict,
                        fmt::format("the instance at slice {} of {} has no compute instance", part.start, (*gpu)->uuid),
                        "");
        leased.push_back({.minor = (*gpu)->minor,
                          .mig = container::LeasedGpu::Mig{instance->id, instance->compute_instances.front()}});
        uuids.push_back(instance->uuid);
    }
    auto drives = drives_->nodes(what.drives);
    if (!drives) return std::unexpected(drives.error());
    // A simulated GPU has no device nodes: there is nothing to give, and nothing to keep from others.
    if (!nvml_.is_simulated()) {
        const auto majors = container::parse_device_majors(slurp("/proc/devices"));
        if (!majors) return std::unexpected(majors.error());
        const auto minors = container::parse_mig_minors(slurp("/proc/driver/nvidia-caps/mig-minors"));
        if (!minors) return std::unexpected(minors.error());
        auto nodes = container::nvidia_nodes(leased, {.majors = *majors, .mig = *minors});
        if (!nodes) return std::unexpected(nodes.error());
        devices.nodes = *std::move(nodes);
    }
    for (container::DeviceNode& node : *drives) {
        devices.drives += (devices.drives.empty() ? "" : ",") + node.path;
        devices.nodes.push_back(std::move(node));
    }
    return devices;
}

Result<TenantSpec> GpuHardware::spec_of(const StartTenant& what, const Devices& devices, const Shared& shared) {
    TenantSpec spec{.lease = what.lease,
                    .tenant = what.tenant,
                    .tier = what.tier,
                    .command = what.program.words,
                    .checkpoint = what.program.checkpoint};
    spec.devices = devices.nodes;
    auto ids = ids_of(what.tenant);
    if (!ids) return std::unexpected(ids.error());
    spec.ids = *ids;
    std::string visible;
    for (const std::string& uuid : devices.uuids) visible += (visible.empty() ? "" : ",") + uuid;
    struct stat found{};
    const bool apart = ::stat(std::string{driver_folder}.c_str(), &found) == 0;
    spec.environment = {{"PATH", fmt::format("{}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                             apart ? fmt::format("{}/bin:", driver_folder) : "")},
                        {"HOME", "/job"},
                        {"CUDA_VISIBLE_DEVICES", visible},
                        {"NVIDIA_VISIBLE_DEVICES", visible},
                        {"BULKHEAD_LEASE", std::to_string(what.lease)},
                        {"BULKHEAD_TENANT", what.tenant}};
    if (!devices.drives.empty()) spec.environment.emplace_back("BULKHEAD_DRIVES", devices.drives);
    if (apart) spec.environment.emplace_back("LD_LIBRARY_PATH", fmt::format("{0}/lib64:{0}/lib", driver_folder));
    std::ranges::copy(shared.environment, std::back_inserter(spec.environment));
    if (!what.functions.empty()) {
        auto inventory = this->inventory();
        if (!inventory) return std::unexpected(inventory.error());
        const auto gid_index = name_functions(what.lease, *inventory);
        if (!gid_index) return std::unexpected(gid_index.error());
        auto nccl = show_nccl(settings_.folder, *inventory, what, *gid_index);
        if (!nccl) return std::unexpected(nccl.error());
        std::ranges::move(nccl->environment, std::back_inserter(spec.environment));
        std::ranges::move(nccl->mounts, std::back_inserter(spec.mounts));
    }
    for (const std::string& variable : what.program.environment) {
        const std::size_t equals = variable.find('=');
        // What the lease says about its devices is not the tenant's to change.
        const std::string name = variable.substr(0, equals);
        if (name.starts_with("CUDA_MPS_") || name == "CUDA_VISIBLE_DEVICES" || name == "NVIDIA_VISIBLE_DEVICES")
            continue;
        std::erase_if(spec.environment, [&](const auto& ours) { return ours.first == name; });
        spec.environment.emplace_back(name, variable.substr(equals + 1));
    }
    if (apart) spec.mounts.push_back({std::string{driver_folder}, std::string{driver_folder}});
    if (nvml_.is_simulated()) show_simulation(spec);
    if (shares_a_gpu(what)) spec.hidden = what_speaks_of_neighbours();
    std::ranges::copy(shared.mounts, std::back_inserter(spec.mounts));
    spec.cpus = cpus_beside(what.gpus);
    const std::int64_t cpus = ::sysconf(_SC_NPROCESSORS_ONLN), pages = ::sysconf(_SC_PHYS_PAGES);
    spec.limits = {
        .memory_bytes = what.program.memory_bytes > 0 ? what.program.memory_bytes : pages * ::sysconf(_SC_PAGESIZE),
        .cpu_thousandths = what.program.cpu_thousandths > 0 ? what.program.cpu_thousandths : cpus * 1000,
        .pids = pids_max};
    if (auto given = give_functions(what, spec); !given) return std::unexpected(given.error());
    return spec;
}

// A failure that is not the program's may be this node's. A start of its own decides, which no tenant has a hand in.
OperationResult GpuHardware::carry(const StartTenant& what) {
    OperationResult result = start_tenant(what);
    if (result.ok || result.fault != PartFault::none) return result;
    result.fault = PartFault::start;
    if (what.tier >= Tier::vm) return result;
    if (const auto why = why_nothing_starts(what.tier)) {
        result.fault = PartFault::node;
        result.why += fmt::format("; a start of this node's own fails as well: {}", *why);
    }
    return result;
}

Result<bool> GpuHardware::clear_away(Key lease, Duration grace) {
    {
        const std::scoped_lock lock{tenants_mutex_};
        if (const auto begun = tenants_.begin_stop(lease, grace); !begun) return std::unexpected(begun.error());
    }
    for (const auto until = std::chrono::steady_clock::now() + own_start_within;
         std::chrono::steady_clock::now() < until;) {
        {
            const std::scoped_lock lock{tenants_mutex_};
            const auto stopped = tenants_.stopped(lease);
            if (!stopped) return std::unexpected(stopped.error());
            if (*stopped) {
                if (const auto removed = tenants_.remove(lease); !removed) return std::unexpected(removed.error());
                return true;
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    return false;
}

std::optional<std::string> GpuHardware::why_nothing_starts(Tier tier) {
    const std::scoped_lock one{own_start_mutex_};
    const auto cleared = clear_away(own_start_lease, {});  // of an agent that was killed in the middle
    if (!cleared) return cleared.error().what;
    TenantSpec spec{.lease = own_start_lease,
                    .tenant = std::string{own_start_user},
                    .tier = tier,
                    .command = {"/bin/true"},
                    .environment = {{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}}};
    spec.limits = {.memory_bytes = std::int64_t{1} << 30, .cpu_thousandths = 1000, .pids = 64};
    {
        const std::scoped_lock lock{tenants_mutex_};
        const auto ids = ids_of(spec.tenant);
        if (!ids) return ids.error().what;
        spec.ids = *ids;
        if (const auto begun = tenants_.begin_start(spec); !begun) return begun.error().what;
    }
    std::optional<std::string> why = fmt::format("it does not end within {} s", own_start_within.count());
    for (const auto until = std::chrono::steady_clock::now() + own_start_within;
         std::chrono::steady_clock::now() < until;) {
        const auto look = [&] {
            const std::scoped_lock lock{tenants_mutex_};
            return tenants_.look(own_start_lease);
        }();
        if (!look) {
            why = look.error().what;
            break;
        }
        // Its program ran, or was looked for in a tier that stood: what a node is asked for.
        if (look->state == Look::State::exited || look->exit.code != 0) {
            why.reset();
            break;
        }
        if (look->state == Look::State::failed || look->state == Look::State::unknown ||
            look->state == Look::State::lost) {
            why = look->state == Look::State::failed ? look->error.what : "its keeper ended without a word";
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    static_cast<void>(clear_away(own_start_lease, {}));  // else the next one clears it
    return why;
}

OperationResult GpuHardware::start_tenant(const StartTenant& what) {
    if (what.tier == Tier::confidential_vm)
        return {.ok = false, .why = fmt::format("this agent has no {} tier yet", word(what.tier))};
    if (what.tier == Tier::vm)
        if (const auto whole = gets_whole_gpus(what); !whole) return could_not(whole.error());
    for (const GpuPart& part : what.gpus) {
        const auto gpu = this->gpu(part.gpu);
        if (!gpu) return could_not(gpu.error());
        if (const auto health = nvml_.health((*gpu)->uuid); !health)
            return could_not(health.error());
        else if (const auto unfit = health->unfit())
            return {.ok = false, .why = fmt::format("{}: {}", (*gpu)->uuid, *unfit)};
        // Of an MPS server that is gone, and whose agent was killed at the wrong moment.
        if (const bool by_server = what.mechanism == Mechanism::mps; part.profile.empty() && !by_server) {
            const auto exclusive = nvml_.is_exclusive((*gpu)->uuid);
            if (exclusive && *exclusive)
                if (const auto open = nvml_.set_exclusive((*gpu)->uuid, false); !open) return could_not(open.error());
        }
        // A whole GPU is handed out whole.
        if (part.profile.empty() && (*gpu)->mig) {
            const auto now = nvml_.gpus();
            if (!now) return could_not(now.error());
            const auto current = std::ranges::find(*now, (*gpu)->uuid, &nvml::Gpu::uuid);
            const bool cut = current != now->end() && current->mig == nvml::MigMode::enabled;
            if (const auto whole = cut ? set_mig((*gpu)->uuid, false) : want_mig((*gpu)->uuid, false); !whole)
                return could_not(whole.error());
        }
    }
    if (what.tier == Tier::vm) return start_machine(what);
    if (const auto turns = take_turns(what); !turns) return could_not(turns.error());
    if (what.program.words.empty()) return {.ok = true};
    if (const auto sound = check_variables(what.program); !sound) return could_not(sound.error(), PartFault::invalid);
    const auto devices = devices_of(what);
    if (!devices) return could_not(devices.error());
    const bool by_server = what.mechanism == Mechanism::mps || what.mechanism == Mechanism::mps_in_mig;
    const auto begun = by_server ? begin_shared(what, *devices) : begin_start(what, *devices, {});
    // The request breaks a rule of the tier: a path that is not plain, too little memory.
    const bool invalid = !begun && !by_server && begun.error().code == Code::invalid;
    if (!begun) return could_not(begun.error(), invalid ? PartFault::invalid : PartFault::none);
    return wait_until_it_runs(what.lease);
}

// How long a turn is where tenants take turns, as the operator of the node wants it. The driver has this knob for whole
// GPUs alone, and keeps it until the next boot: so it is turned at every start.
Result<> GpuHardware::take_turns(const StartTenant& what) const {
    if (what.mechanism != Mechanism::time_slicing || settings_.time_slice.empty()) return {};
    const auto level = std::ranges::find(time_slices, settings_.time_slice);
    if (level == time_slices.end())
        return fail(Code::invalid, fmt::format("\"{}\" is no time slice", settings_.time_slice),
                    "default, short, medium or long");
    for (const GpuPart& part : what.gpus) {
        if (!part.profile.empty()) continue;
        const auto gpu = this->gpu(part.gpu);
        if (!gpu) return std::unexpected(gpu.error());
        const auto ran = program::run({settings_.smi, "compute-policy", "-i", (*gpu)->uuid, "--set-timeslice",
                                       std::to_string(level - time_slices.begin())},
                                      {}, "", smi_patience);
        if (!ran) return std::unexpected(ran.error());
        if (ran->status != 0)
            return fail(Code::unavailable,
                        fmt::format("{} cannot set a {} time slice on {}: {}", settings_.smi, settings_.time_slice,
                                    (*gpu)->uuid, ran->output.substr(0, 300)),
                        "start the agent without --time-slice: this GPU or driver may not have it");
    }
    return {};
}

Result<> GpuHardware::begin_start(const StartTenant& what, const Devices& devices, const Shared& shared) {
    const std::scoped_lock lock{tenants_mutex_};
    const auto spec = spec_of(what, devices, shared);
    if (!spec) return std::unexpected(spec.error());
    return tenants_.begin_start(*spec);
}

// Without the lock while it takes its time: others are looked at, started and stopped meanwhile.
OperationResult GpuHardware::wait_until_it_runs(Key lease) {
    for (const auto until = std::chrono::steady_clock::now() + start_within;;) {
        {
            const std::scoped_lock lock{tenants_mutex_};
            const auto look = tenants_.look(lease);
            if (!look) return could_not(look.error());
            if (look->state == Look::State::failed) return could_not(look->error, fault_of_program(look->exit.code));
            if (look->state == Look::State::unknown)
                return {.ok = false,
                        .why =
                            "its keeper ended before it had started anything; run bulkhead-tenant by hand: it may "
                            "lack a library"};
            if (look->state != Look::State::starting) return {.ok = true};
        }
        if (std::chrono::steady_clock::now() > until)
            return {.ok = false, .why = fmt::format("it does not start within {} s", start_within.count())};
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
}

// Its own command for that, beside it; however that goes, the tenant is stopped after it.
std::optional<Saved> GpuHardware::save(const StopTenant& what) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{what.save.ms} + save_slack;
    while (std::chrono::steady_clock::now() < until) {
        {
            const std::scoped_lock lock{mutex_};
            if (stopping_) return std::nullopt;  // what saves goes on without us, and tells the next agent
        }
        {
            const std::scoped_lock lock{tenants_mutex_};
            const auto checkpoint = tenants_.save(what.lease, what.save);
            if (!checkpoint) return Saved{false, checkpoint.error().what};
            if (*checkpoint) return Saved{(*checkpoint)->saved, (*checkpoint)->words.substr(0, saved_bytes_max)};
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    return Saved{false, "its checkpoint command does not end"};
}

OperationResult GpuHardware::carry(const StopTenant& what) {
    if (records_.has(what.lease)) return stop_machine(what);
    std::optional<Saved> saved;
    if (what.save.ms > 0) {
        saved = save(what);
        if (!saved) return {.ok = false, .why = "the agent is stopping"};
    }
    // Clients of MPS are ended by their server, and have a moment more until they are killed.
    std::string server;
    {
        const std::scoped_lock lock{tenants_mutex_};
        server = pipes_of(what.lease).value_or("");
    }
    if (!server.empty() && !tenants_.hears(what.lease, SIGTERM).value_or(true))
        end_clients(what.lease, std::exchange(server, ""));
    {
        const std::scoped_lock lock{tenants_mutex_};
        const Duration grace = server.empty() ? settings_.grace : Duration{settings_.grace.ms + 2000};
        if (const auto begun = tenants_.begin_stop(what.lease, grace); !begun) return could_not(begun.error());
    }
    const auto asked_until = std::chrono::steady_clock::now() + std::chrono::milliseconds{settings_.grace.ms};
    const auto until = asked_until + std::chrono::seconds{90};
    while (true) {
        if (!server.empty() && std::chrono::steady_clock::now() >= asked_until)
            end_clients(what.lease, std::exchange(server, ""));
        const auto gone = [&] {
            const std::scoped_lock lock{tenants_mutex_};
            return tenants_.stopped(what.lease);
        }();
        if (!gone) return could_not(gone.error());
        if (*gone) break;
        if (std::chrono::steady_clock::now() > until)
            return {.ok = false, .why = "its processes do not go, a minute after SIGKILL"};
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    forget_nccl(settings_.folder, what.lease);
    if (const auto left = leave(what.lease); !left) return could_not(left.error());
    return {.ok = true, .saved = std::move(saved)};
}

Result<OutputPiece> GpuHardware::output(const OutputPlace& place) {
    if (Machines* const machines = this->machines(); machines != nullptr && machines->has(place.lease))
        return machines->output(place);
    const auto spec = tenants_.spec(place.lease);
    if (!spec) return std::unexpected(spec.error());
    if (!*spec)
        return fail(Code::not_found, fmt::format("lease {} runs no command here", place.lease),
                    "it ended, or has none");
    auto piece = tenants_.log(place.lease, place.errors ? container::Stream::err : container::Stream::out, place.from,
                              output_piece_bytes_max);
    if (!piece) return std::unexpected(piece.error());
    return OutputPiece{piece->from, std::move(piece->bytes)};
}

// The end of what it printed: of its errors when there are any, which then come last.
void GpuHardware::look_at_tenants(News& news) {
    const std::unique_lock lock{tenants_mutex_, std::try_to_lock};
    if (!lock) return;  // somebody is being started or stopped; there is a next time
    const auto leases = tenants_.leases();
    if (!leases) return;
    for (const Key lease : *leases) {
        if (ended_.contains(lease) || lease == own_start_lease) continue;
        if (std::ranges::any_of(starting_, [&](const auto& start) { return start.second == lease; })) continue;
        const auto look = tenants_.look(lease);
        if (!look) continue;
        TenantExit exit{.lease = lease, .status = 0, .output = {}};
        if (look->state == Look::State::exited) {
            exit.status = look->exit.signal != 0 ? 128 + look->exit.signal : look->exit.code;
        } else if (look->state == Look::State::lost) {
            exit.status = 255;
        } else {
            continue;
        }
        for (const container::Stream stream : {container::Stream::out, container::Stream::err}) {
            std::string text;
            for (std::int64_t from = 0;;) {
                const auto piece = tenants_.log(lease, stream, from, 1 << 20);
                if (!piece || piece->bytes.empty()) break;
                text += piece->bytes;
                if (text.size() > output_tail_max) text.erase(0, text.size() - output_tail_max);
                from = piece->next();
                (stream == container::Stream::out ? exit.printed.out : exit.printed.err) = from;
            }
            if (stream == container::Stream::out) exit.printed.out_kept = std::ssize(text);
            exit.output += text;
        }
        if (look->state == Look::State::lost) {
            constexpr std::string_view unseen = "bulkhead: it ended and nobody saw how\n";
            exit.output += unseen;
            exit.printed.err += std::ssize(unseen);
        }
        news.exits.push_back(std::move(exit));
        ended_.insert(lease);
    }
}

}  // namespace bulkhead::agent
