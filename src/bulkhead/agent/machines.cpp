#include "bulkhead/agent/machines.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "bulkhead/agent/machine_domain.hpp"
#include "bulkhead/hw/container/durable.hpp"
#include "bulkhead/hw/vm/console.hpp"
#include "bulkhead/hw/vm/disk_nodes.hpp"
#include "bulkhead/hw/vm/presence.hpp"
#include "bulkhead/render/libvirt_domain.hpp"

namespace bulkhead::agent {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds gone_within{60};
constexpr std::int64_t huge_page_usual = std::int64_t{2} << 20;
constexpr std::string_view exit_mark = "bulkhead-exit: ";
constexpr std::string_view cut_short = ", and no further";  // of a way back: the reset was made
constexpr std::size_t console_tail_max = output_bytes_max / 2 - 64;

std::string text_of_file(const std::string& path) {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
}

// tmpfs takes O_DIRECT since Linux 6.6; QEMU with cache='none' does not start where it is refused.
bool takes_direct(const std::string& folder) {
    const std::string path = folder + "/direct-probe";
    const int handle = ::open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
    if (handle >= 0) ::close(handle);
    ::unlink(path.c_str());
    return handle >= 0;
}

}  // namespace

Machines::Machines(MachineSettings settings, vm::Hypervisor hypervisor, bool emulated)
    : settings_{std::move(settings)},
      records_{settings_.folder},
      hypervisor_{std::move(hypervisor)},
      emulated_{emulated},
      direct_{takes_direct(settings_.folder)},
      vfio_{settings_.vfio},
      watcher_{[this] { watch(); }} {}

Machines::~Machines() {
    {
        const std::scoped_lock lock{mutex_};
        stopping_ = true;
    }
    watcher_.join();
}

Result<std::unique_ptr<Machines>> Machines::open(MachineSettings settings) {
    if (!are_machine_users(settings.first_user))
        return fail(Code::invalid,
                    fmt::format("machines cannot be users from {} on: below {} are the host's accounts",
                                settings.first_user, machine_users_least),
                    "--vm-users, or 0 for libvirt's one user");
    auto hypervisor = vm::Hypervisor::open({.library = settings.library, .uri = settings.uri});
    if (!hypervisor) return std::unexpected(hypervisor.error());
    const auto kvm = hypervisor->has_kvm();
    if (!kvm) return std::unexpected(kvm.error());
    if (!*kvm && !settings.allow_emulated)
        return fail(Code::unavailable, "there is no KVM here, and machines by software alone are not allowed",
                    "load the kvm module; or --allow-emulated-vms, to try things out");
    std::error_code failed;
    fs::create_directories(settings.folder, failed);
    if (failed)
        return fail(Code::unavailable, fmt::format("{} cannot be made: {}", settings.folder, failed.message()), "");
    ::chmod(settings.folder.c_str(), 0711);
    return std::unique_ptr<Machines>{new Machines{std::move(settings), *std::move(hypervisor), !*kvm}};
}

// Durable before anything is unbound: who gets what back. One that another machine has, or may have, is never on two
// records: whoever stopped the second would reset it under the first. A lease that is refused here has nothing to give
// back.
Result<> Machines::keep_given(Key lease, const std::vector<std::string>& devices) {
    const std::scoped_lock one_at_a_time{giving_};
    const std::vector<MachineRecords::Given> own = records_.given_to(lease);
    std::vector<MachineRecords::Given> given;
    given.reserve(devices.size());
    for (const std::string& device : devices) {
        const auto holder = records_.holder_of(device);
        if (!holder) return std::unexpected(holder.error());
        if (*holder && **holder != lease)
            return fail(Code::conflict, fmt::format("{} is with {}", device, machine_name(**holder)),
                        "stop that machine first");
        const auto driver = vfio_.driver_of(device);
        if (!driver) return std::unexpected(driver.error());
        if (!*holder && *driver == "vfio-pci")
            return fail(Code::conflict,
                        fmt::format("{} is bound to vfio-pci, and nothing here says for which machine", device),
                        "end what uses it and bind it to its own driver; see the ids that vfio-pci was loaded with");
        if (!*holder && !own.empty())
            return fail(Code::conflict,
                        fmt::format("{} was begun with other devices than {}", machine_name(lease), device),
                        "stop it first");
        given.push_back({device, *driver});
    }
    if (!own.empty() || given.empty()) return {};
    for (const std::string& device : devices) records_.forget_return(device);  // of an earlier machine
    return records_.keep_given(lease, given);
}

Result<> Machines::give_devices(Key lease, const std::vector<std::string>& devices) {
    if (auto may = vfio_.may_be_given(devices); !may) return may;
    if (auto kept = keep_given(lease, devices); !kept) return kept;
    for (const std::string& device : devices)
        if (auto given = vfio_.give(device); !given) return given;
    return {};
}

std::string Machines::nodes_of(Key lease) const { return settings_.nodes + "/" + machine_name(lease); }

std::int64_t Machines::huge_page_bytes() const {
    if (settings_.huge_page_kib >= 0) return settings_.huge_page_kib << 10;
    return emulated_ ? 0 : huge_page_usual;
}

Result<> Machines::may_start() {
    if (settings_.first_user == 0) return {};
    if (!emulated_)
        if (auto may = anybody_may_open(settings_.kvm); !may) return may;
    const std::scoped_lock one_at_a_time{choosing_};
    if (!user_locks_.empty()) return {};
    auto held = hold_users(settings_.locks, {settings_.first_user, settings_.users});
    if (!held) return std::unexpected(held.error());
    user_locks_ = *std::move(held);
    return {};
}

Result<std::uint32_t> Machines::user_of(Key lease) {
    if (settings_.first_user == 0) return 0U;
    const std::scoped_lock one_at_a_time{choosing_};
    return records_.user_of(lease, settings_.first_user, settings_.users);
}

Result<> Machines::start(const StartTenant& what, const GpuNodeStatus& node, const MachineGifts& gifts) {
    const std::string name = machine_name(what.lease);
    const auto there = hypervisor_.look(name);
    if (!there) return std::unexpected(there.error());
    if (*there == vm::MachineState::running) return {};
    // From here on nobody takes it for one that ended by itself, whatever ends on the way.
    {
        const std::scoped_lock lock{mutex_};
        busy_.insert(what.lease);
        ended_.erase(what.lease);
        // What an earlier attempt came to is not this one's end.
        std::erase_if(exits_, [&](const TenantExit& exit) { return exit.lease == what.lease; });
    }
    // Paused: begun by an agent that was killed before it let it run.
    auto started = *there == vm::MachineState::paused ? wait_until_gone(what.lease, Duration{0}) : Result<>{};
    if (started) started = make_and_start(what, node, gifts);
    const std::scoped_lock lock{mutex_};
    busy_.erase(what.lease);
    return started;
}

Result<> Machines::make_and_start(const StartTenant& what, const GpuNodeStatus& node, const MachineGifts& gifts) {
    if (auto may = may_start(); !may) return may;
    const auto image = vm::find_image(settings_.images, image_of(what.program));
    if (!image) return std::unexpected(image.error());
    const auto drives = what.drives.empty() ? Result<std::vector<LentNamespace>>{} : gifts.drives();
    if (!drives) return std::unexpected(drives.error());
    const vm::MachineFolder folder = folder_of(what.lease);
    MachineParts parts{.folder = folder,
                       .image = *image,
                       .emulated = emulated_,
                       .huge_page_bytes = huge_page_bytes(),
                       .nodes = nodes_of(what.lease),
                       .drives = *drives};
    auto spec = machine_domain(what, node, parts);
    if (!spec) return std::unexpected(spec.error());
    std::vector<std::string> devices;
    if (!gifts.devices) spec->devices.clear();
    spec->direct_files = direct_;
    for (const render::PciAddress& device : spec->devices) devices.push_back(render::print(device));
    if (const auto sound = render::libvirt_domain(*spec); !sound) return std::unexpected(sound.error());

    vm::Seed seed{.words = what.program.words, .environment = {}};
    if (!drives->empty()) seed.environment.push_back("BULKHEAD_DRIVES=" + guest_drives(*drives));
    if (gifts.devices) std::ranges::move(guest_fabric(what), std::back_inserter(seed.environment));
    std::ranges::copy(what.program.environment, std::back_inserter(seed.environment));
    if (auto made = vm::make_machine(folder, *image, seed); !made) return made;
    const auto user = user_of(what.lease);
    if (!user) return std::unexpected(user.error());
    spec->user = *user;
    std::vector<vm::DiskNode> nodes;
    nodes.reserve(drives->size());
    for (const LentNamespace& one : *drives) nodes.push_back({one.name(), one.major, one.minor});
    if (auto made = vm::make_disk_nodes(parts.nodes, nodes); !made) return made;
    if (auto given = give_devices(what.lease, devices); !given) return given;
    const auto xml = render::libvirt_domain(*spec);
    if (!xml) return std::unexpected(xml.error());
    if (auto kept = container::write_durably(folder.domain(), *xml); !kept) return kept;
    if (auto begun = hypervisor_.start_paused(*xml); !begun) return begun;
    if (!drives->empty())
        if (const auto now = gifts.drives(); !now || *now != *drives) {
            (void)hypervisor_.destroy(spec->name);  // what is left of it is the business of whoever stops it
            return fail(Code::conflict,
                        fmt::format("a drive of {} is not where it was when its machine was made{}", spec->name,
                                    now ? "" : ": " + now.error().what),
                        "see dmesg: a drive was taken out or put in");
        }
    return hypervisor_.resume(spec->name);
}

Result<> Machines::wait_until_gone(Key lease, Duration grace) const {
    const std::string name = machine_name(lease);
    using std::chrono::steady_clock;
    const auto asked_until = steady_clock::now() + std::chrono::milliseconds{grace.ms};
    const auto ended = [&]() -> Result<bool> {
        const auto state = hypervisor_.look(name);
        if (!state) return std::unexpected(state.error());
        return *state != vm::MachineState::running && *state != vm::MachineState::ending;
    };
    if (auto asked = grace.ms > 0 ? hypervisor_.ask_to_end(name) : Result<>{}; asked)
        while (steady_clock::now() < asked_until) {
            const auto is_over = ended();
            if (!is_over) return std::unexpected(is_over.error());
            if (*is_over) break;
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
        }
    if (auto destroyed = hypervisor_.destroy(name); !destroyed) return destroyed;
    for (const auto until = steady_clock::now() + gone_within;;) {
        const auto state = hypervisor_.look(name);
        const auto left = vm::presence_of(name);
        if (state && *state == vm::MachineState::absent && left && !left->any()) return {};
        if (steady_clock::now() > until)
            return fail(
                Code::timeout,
                !left ? left.error().what
                      : fmt::format(
                            "{} was destroyed, and {} processes and {} control groups of it are left a minute later",
                            name, left->processes.size(), left->groups.size()),
                "see `virsh list --all` and `ps`; a process that hangs in the kernel goes with a reboot alone");
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
}

Result<std::string> Machines::take_back(Key lease) const {
    std::vector<std::string> words;
    for (const MachineRecords::Given& one : records_.given_to(lease)) {
        // In two steps: an agent that is killed while the host's driver takes it up leaves word of the reset.
        const auto path = vfio_.take_back(one.device, one.driver, [&](const std::string& method) {
            return records_.keep_return(one.device, method + std::string{cut_short});
        });
        if (!path) return std::unexpected(path.error());
        std::string way = path->value_or("");
        if (!*path) {
            const auto begun = records_.returned_by(one.device);
            if (!begun) continue;  // it never left the host
            way = *begun;
            if (way.ends_with(cut_short))
                way.replace(way.size() - cut_short.size(), cut_short.size(), fmt::format(", rebind {}", one.driver));
        }
        if (auto kept = records_.keep_return(one.device, way); !kept) return std::unexpected(kept.error());
        words.push_back(fmt::format("{}: {}", one.device, way));
    }
    return fmt::format("{}", fmt::join(words, "; "));
}

Result<std::string> Machines::stop(Key lease, Duration grace) {
    if (!has(lease)) return "no machine";
    {
        const std::scoped_lock lock{mutex_};
        busy_.insert(lease);
    }
    if (auto gone = wait_until_gone(lease, grace); !gone) return std::unexpected(gone.error());
    const auto returned = take_back(lease);
    if (!returned) return returned;
    if (auto removed = vm::remove_disk_nodes(nodes_of(lease)); !removed) return std::unexpected(removed.error());
    const auto wiped = vm::wipe_machine(folder_of(lease));
    if (!wiped) return std::unexpected(wiped.error());
    const auto pages = vm::free_huge_pages(text_of_file("/proc/mounts"), machine_name(lease));
    if (!pages) return std::unexpected(pages.error());
    {
        const std::scoped_lock nobody_looks{consoles_};
        if (auto removed = vm::remove_machine(folder_of(lease)); !removed) return std::unexpected(removed.error());
    }
    const std::scoped_lock lock{mutex_};
    busy_.erase(lease);
    ended_.erase(lease);
    return fmt::format("machine destroyed, {} bytes of its files overwritten{}{}", wiped->bytes,
                       *pages > 0 ? fmt::format(", {} bytes of huge pages freed", *pages) : "",
                       returned->empty() ? "" : "; " + *returned);
}

Result<OutputPiece> Machines::output(const OutputPlace& place) const {
    if (!has(place.lease))
        return fail(Code::not_found, fmt::format("lease {} runs no machine here", place.lease),
                    "it ended, or has none");
    if (place.errors) return OutputPiece{place.from, {}};  // a console is one stream
    const std::scoped_lock lock{consoles_};
    auto text = vm::Console{folder_of(place.lease).console()}.read(place.from, output_piece_bytes_max);
    if (!text) return std::unexpected(text.error());
    return OutputPiece{text->from, std::move(text->bytes)};
}

// How its command ended is what its init said last; a machine that went without a word was cut off. Only the end is
// read: a guest may write as much as the disk takes.
TenantExit Machines::exit_of(Key lease) const {
    TenantExit exit{.lease = lease, .status = 255, .output = {}};
    const std::scoped_lock lock{consoles_};
    if (auto text = vm::Console{folder_of(lease).console()}.tail(console_tail_max)) {
        exit.output = std::move(text->bytes);
        exit.printed.out = text->from + std::ssize(exit.output);
        exit.printed.out_kept = std::ssize(exit.output);
    }
    if (const std::size_t at = exit.output.rfind(exit_mark); at != std::string::npos) {
        int status = 255;
        const char* const from = exit.output.data() + at + exit_mark.size();
        if (std::from_chars(from, exit.output.data() + exit.output.size(), status).ec == std::errc{} && status >= 0 &&
            status <= 255)
            exit.status = status;
    }
    return exit;
}

// Before its oldest piece goes. What cannot be looked at now is looked at next time; one that is taken apart is not.
void Machines::count_console(Key lease) {
    const std::scoped_lock lock{consoles_};
    {
        const std::scoped_lock busy{mutex_};
        if (busy_.contains(lease)) return;
    }
    (void)vm::Console{folder_of(lease).console()}.keep();
}

void Machines::watch() {
    auto next = std::chrono::steady_clock::now();
    std::set<Key> wordless;
    while (true) {
        std::set<Key> skip;
        {
            const std::scoped_lock lock{mutex_};
            if (stopping_) return;
            skip = busy_;
            skip.insert(ended_.begin(), ended_.end());
        }
        if (std::chrono::steady_clock::now() < next) {
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
            continue;
        }
        next = std::chrono::steady_clock::now() + std::chrono::milliseconds{settings_.look_every.ms};
        const auto all = leases();
        if (!all) continue;
        for (const Key lease : *all) {
            std::error_code failed;
            if (skip.contains(lease) || !fs::exists(folder_of(lease).domain(), failed)) continue;  // never started
            const auto state = hypervisor_.look(machine_name(lease));
            count_console(lease);
            if (!state || *state == vm::MachineState::running || *state == vm::MachineState::paused ||
                *state == vm::MachineState::ending) {
                if (state) wordless.erase(lease);
                continue;
            }
            TenantExit exit = exit_of(lease);
            // Who writes the console may be a moment behind: one that ended without a word is looked at once more.
            const std::size_t said = exit.output.rfind(exit_mark);
            const bool is_whole = said != std::string::npos && exit.output.find('\n', said) != std::string::npos;
            if (!is_whole && wordless.insert(lease).second) continue;
            wordless.erase(lease);
            const std::scoped_lock lock{mutex_};
            if (busy_.contains(lease) || !ended_.insert(lease).second) continue;
            exits_.push_back(std::move(exit));
        }
    }
}

std::vector<TenantExit> Machines::exits() {
    const std::scoped_lock lock{mutex_};
    return std::exchange(exits_, {});
}

}  // namespace bulkhead::agent
