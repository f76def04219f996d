#include "bulkhead/hw/container/tenants.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>

#include "bulkhead/hw/container/keeper.hpp"
#include "bulkhead/hw/container/oci.hpp"

namespace bulkhead::container {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view removing = ".removing-";
constexpr std::int64_t keeper_patience_ms = 10'000;  // to write down an outcome on a slow disk

std::optional<LeaseKey> lease_of(const std::string& name) {
    LeaseKey lease = 0;
    if (!name.starts_with("lease-")) return std::nullopt;
    const auto [stop, wrong] = std::from_chars(name.data() + 6, name.data() + name.size(), lease);
    return wrong == std::errc{} && stop == name.data() + name.size() && lease > 0 ? std::optional{lease} : std::nullopt;
}

// What the spec says of the host must be so: a node that was renumbered since would be another's device.
Result<> check_host(const TenantSpec& spec) {
    struct stat status{};
    if (!spec.work_dir.empty()) {
        if (::lstat(spec.work_dir.c_str(), &status) != 0)
            return cannot("find the work directory", spec.work_dir, "make it first");
        if (!S_ISDIR(status.st_mode) || status.st_uid != spec.ids.first)
            return fail(Code::invalid,
                        fmt::format("the work directory {} of lease {} must be a directory of user {}; its owner is {}",
                                    spec.work_dir, spec.lease, spec.ids.first, status.st_uid),
                        fmt::format("chown {} it, after looking at what is in it", spec.ids.first));
    }
    for (const DeviceNode& node : spec.devices) {
        if (::lstat(node.path.c_str(), &status) != 0) continue;  // tenants get nodes made from the number
        const char type = S_ISCHR(status.st_mode) ? 'c' : S_ISBLK(status.st_mode) ? 'b' : '?';
        if (type != node.type || gnu_dev_major(status.st_rdev) != node.major ||
            gnu_dev_minor(status.st_rdev) != node.minor)
            return fail(Code::conflict,
                        fmt::format("{} is {} {}:{} on this node; lease {} was to have {} {}:{}", node.path, type,
                                    gnu_dev_major(status.st_rdev), gnu_dev_minor(status.st_rdev), spec.lease, node.type,
                                    node.major, node.minor),
                        "read the node's devices again: the driver was loaded anew");
    }
    for (const ReadOnlyMount& mount : spec.mounts)
        if (::stat(mount.source.c_str(), &status) != 0)
            return cannot("find the mount", mount.source, "install the driver's libraries, or leave it out");
    return {};
}

}  // namespace

Result<Tenants> Tenants::open(Places places) {
    auto trees = find_hierarchies();
    if (!trees) return std::unexpected(trees.error());
    if (::geteuid() != 0)
        return fail(Code::denied, "starting tenants takes root: users, mounts and control groups are set up for each",
                    "run the agent as root; docs/decisions lists what it does with that");
    if (auto made = make_directory(places.directory, 0711); !made) return std::unexpected(made.error());
    std::error_code wrong;
    for (const auto& entry : fs::directory_iterator{places.directory, wrong})  // what a death in `remove` left
        if (entry.path().filename().string().starts_with(removing)) fs::remove_all(entry.path(), wrong);
    if (wrong) return cannot(wrong.value(), "read", places.directory);
    return Tenants{std::move(places), std::move(*trees)};
}

LeaseFiles Tenants::files(LeaseKey lease) const {
    return LeaseFiles{fmt::format("{}/lease-{}", places_.directory, lease)};
}

Result<std::optional<TenantSpec>> Tenants::spec(LeaseKey lease) const { return files(lease).spec(); }

Result<Fd> Tenants::launch(const TenantSpec& spec) {
    if (auto held = check(spec); !held) return std::unexpected(held.error());
    const LeaseFiles files = this->files(spec.lease);
    const auto before = files.spec();
    if (!before) return std::unexpected(before.error());
    if (*before && **before != spec)
        return fail(Code::conflict, fmt::format("lease {} was started with another spec", spec.lease),
                    "stop and remove it, then start it anew");
    const auto seen = look(spec.lease);
    if (!seen) return std::unexpected(seen.error());
    if (*before && seen->state != Look::State::unknown) return Fd{};
    if (seen->state != Look::State::unknown)
        return fail(Code::conflict,
                    fmt::format("the control group of lease {} holds processes nobody has a record of", spec.lease),
                    "stop the lease; then start it");
    if (auto is_so = check_host(spec); !is_so) return std::unexpected(is_so.error());

    // The order is the promise: a place to be found in, then a record to be known by, then a process.
    if (auto made = files.make(); !made) return std::unexpected(made.error());
    const auto stop = files.stop();
    if (!stop) return std::unexpected(stop.error());
    if (*stop) return fail(Code::conflict, fmt::format("lease {} was told to stop", spec.lease), "remove it first");
    const LeaseCgroup group = this->group(spec.lease);
    if (auto made = group.create(spec.limits, spec.devices); !made) return std::unexpected(made.error());
    if (const LeasedDevice device = leased_device(spec); spec.tier == Tier::container && !device.empty()) {
        if (auto made = make_directory(places_.cdi, 0755); !made) return std::unexpected(made.error());
        if (auto told = write_durably(places_.cdi + "/" + cdi_file_name(spec.lease), cdi_text(device)); !told)
            return std::unexpected(told.error());
    }
    auto lock = files.lock();
    if (!lock) return std::unexpected(lock.error());
    if (!*lock) return Fd{};  // another is starting it
    if (auto written = files.write(spec); !written) return std::unexpected(written.error());
    return start_beside({places_.program, files.directory(), places_.cgroup_parent, places_.runtime}, group,
                        std::move(**lock));
}

Result<> Tenants::begin_start(const TenantSpec& spec) {
    const auto ready = launch(spec);
    return ready ? Result<>{} : std::unexpected(ready.error());
}

Result<> Tenants::start(const TenantSpec& spec) {
    const auto ready = launch(spec);
    if (!ready) return std::unexpected(ready.error());
    if (*ready) {
        char nothing = 0;
        while (::read(**ready, &nothing, 1) < 0 && errno == EINTR) {
        }
    }
    const auto seen = look(spec.lease);
    if (!seen) return std::unexpected(seen.error());
    if (seen->state == Look::State::failed) return std::unexpected(seen->error);
    if (seen->state == Look::State::unknown)
        return fail(Code::unavailable,
                    fmt::format("the keeper of lease {} ended before it had started anything", spec.lease),
                    fmt::format("run {} by hand: it may lack a library; then start the lease again", places_.program));
    return {};
}

Result<Look> Tenants::look(LeaseKey lease) const {
    const LeaseFiles files = this->files(lease);
    // In this order: once the lock is free the outcome is the last one.
    const auto kept = files.locked();
    if (!kept) return std::unexpected(kept.error());
    const auto outcome = files.outcome();
    if (!outcome) return std::unexpected(outcome.error());
    if (*outcome && (*outcome)->state == Outcome::State::exited) return Look{Look::State::exited, (*outcome)->exit, {}};
    if (*outcome && (*outcome)->state == Outcome::State::failed)
        return Look{Look::State::failed, (*outcome)->exit, (*outcome)->error};
    if (*kept) return Look{*outcome ? Look::State::running : Look::State::starting, {}, {}};
    const auto inside = group(lease).processes(Room::tenant);
    if (!inside) return std::unexpected(inside.error());
    if (!inside->empty()) return Look{Look::State::running, {}, {}};
    return Look{*outcome ? Look::State::lost : Look::State::unknown, {}, {}};
}

Result<std::vector<LeaseKey>> Tenants::leases() const {
    std::vector<LeaseKey> known;
    std::error_code wrong;
    for (const auto& entry : fs::directory_iterator{places_.directory, wrong})
        if (const auto lease = lease_of(entry.path().filename().string());
            lease && fs::exists(entry.path() / "lease.json", wrong))
            known.push_back(*lease);
    if (wrong) return cannot(wrong.value(), "read", places_.directory);
    std::ranges::sort(known);
    return known;
}

Result<> Tenants::begin_stop(LeaseKey lease, Duration grace) {
    const LeaseFiles files = this->files(lease);
    const auto heard = group(lease).hears(Room::tenant, SIGTERM);
    if (!heard) return std::unexpected(heard.error());
    if (std::error_code wrong; fs::exists(files.directory(), wrong)) {
        const auto before = files.stop();
        if (!before) return std::unexpected(before.error());
        // A grace for somebody who cannot hear would be time in which nothing can happen. One that others were given
        // stays, though they have ended meanwhile: whoever is left may be at what they left to do.
        if (!*heard && !*before) grace = Duration{0};
        const std::int64_t kill_at_ms = boot_clock_ms() + std::max<std::int64_t>(grace.ms, 0);
        if (!*before || **before > kill_at_ms)
            if (auto written = files.write_stop(kill_at_ms); !written) return written;
    }
    return group(lease).signal(Room::tenant, SIGTERM);
}

Result<std::optional<Checkpoint>> Tenants::save(LeaseKey lease, Duration within) {
    const LeaseFiles files = this->files(lease);
    // In this order: once the lock is free the word is the last one.
    const auto going_on = files.locked_saving();
    if (!going_on) return std::unexpected(going_on.error());
    auto said = files.checkpoint();
    if (!said || *said) return said;
    if (*going_on) return std::nullopt;
    const auto spec = files.spec();
    if (!spec) return std::unexpected(spec.error());
    if (!*spec || (*spec)->checkpoint.empty()) return Checkpoint{false, "it has no checkpoint command"};
    if (files.began_saving()) return Checkpoint{false, "what was to save it was killed"};
    const auto seen = look(lease);
    if (!seen) return std::unexpected(seen.error());
    if (seen->state != Look::State::running) return Checkpoint{false, "it was not running any more"};
    auto lock = files.lock_saving();
    if (!lock) return std::unexpected(lock.error());
    if (!*lock) return std::nullopt;
    const auto ready = start_beside(
        {places_.program, "save", files.directory(), places_.cgroup_parent, places_.runtime, std::to_string(within.ms)},
        group(lease), std::move(**lock));
    if (!ready) return std::unexpected(ready.error());
    return std::nullopt;
}

Result<bool> Tenants::stopped(LeaseKey lease) {
    const LeaseFiles files = this->files(lease);
    const LeaseCgroup group = this->group(lease);
    const auto kept = files.locked();  // before the lists: a keeper on its way into its room holds it already
    const auto keeper = group.processes(Room::keeper);
    const auto tenant = group.processes(Room::tenant);
    const auto kill_at_ms = files.stop();
    if (!kept) return std::unexpected(kept.error());
    if (!keeper) return std::unexpected(keeper.error());
    if (!tenant) return std::unexpected(tenant.error());
    if (!kill_at_ms) return std::unexpected(kill_at_ms.error());
    if (!*kept && keeper->empty() && tenant->empty()) return true;
    const auto known = files.spec();
    // Processes nobody has a record of have no grace.
    const std::int64_t due_ms = *kill_at_ms ? **kill_at_ms : known && *known ? INT64_MAX : 0;
    const std::int64_t now_ms = boot_clock_ms();
    if (now_ms < due_ms) return false;
    if (!tenant->empty())
        if (auto killed = group.kill(Room::tenant); !killed) return std::unexpected(killed.error());
    // A tenant that was killed is written down by its keeper, which then ends; one that cannot is ended too.
    if (tenant->empty() && now_ms - due_ms >= keeper_patience_ms)
        if (auto killed = group.kill(Room::keeper); !killed) return std::unexpected(killed.error());
    return false;
}

Result<LogPiece> Tenants::log(LeaseKey lease, Stream stream, std::int64_t offset, std::size_t bytes_max) const {
    return read_log(files(lease).log(), stream, offset, bytes_max);
}

Result<> Tenants::remove(LeaseKey lease) {
    const auto gone = stopped(lease);
    if (!gone) return std::unexpected(gone.error());
    if (!*gone)
        return fail(Code::conflict, fmt::format("lease {} still has processes", lease),
                    "stop it, and ask until it is stopped");
    if (auto removed = group(lease).remove(); !removed) return removed;
    if (::unlink((places_.cdi + "/" + cdi_file_name(lease)).c_str()) != 0 && errno != ENOENT && errno != ENOTDIR)
        return cannot("remove", places_.cdi + "/" + cdi_file_name(lease));
    const std::string directory = files(lease).directory(),
                      away = fmt::format("{}/{}{}", places_.directory, removing, lease);
    std::error_code wrong;
    fs::remove_all(away, wrong);
    if (::rename(directory.c_str(), away.c_str()) != 0 && errno != ENOENT) return cannot("remove", directory);
    fs::remove_all(away, wrong);
    if (wrong) return cannot(wrong.value(), "remove", away);
    return {};
}

}  // namespace bulkhead::container
