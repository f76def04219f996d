#include "bulkhead/agent/drives.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <ranges>
#include <thread>
#include <utility>

#include "bulkhead/agent/disk.hpp"
#include "bulkhead/agent/drive_rules.hpp"
#include "bulkhead/hw/nvme/in_use.hpp"

namespace bulkhead::agent {

namespace {

constexpr std::string_view by_model = "model:";
constexpr std::string_view places_file = "/drives";  // in the agent's folder; a line for each: bytes and serial number
constexpr std::chrono::seconds free_within{10};      // udev looks into every drive that has changed
constexpr std::chrono::milliseconds free_every{200};

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.back() == ' ' || text.back() == '\r' || text.back() == '\t')) text.remove_suffix(1);
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    return text;
}

Result<std::vector<nvme::Drive>> tenant_drives(const DriveSettings& settings) {
    auto found = nvme::discover(settings.tree);
    if (!found) return std::unexpected(found.error());
    std::vector<nvme::Drive> drives;
    for (nvme::Drive& drive : found->drives) {
        if (!is_tenant_drive(drive, settings.tenant)) continue;
        if (drive.is_system) {
            if (std::ranges::find(settings.tenant, drive.serial) == settings.tenant.end()) continue;
            return fail(Code::denied, fmt::format("{} is what this machine runs from", drive.serial),
                        "leave it out of --tenant-drive");
        }
        drives.push_back(std::move(drive));
    }
    return drives;
}

}  // namespace

std::string with_remedy(const Error& error) {
    return error.remedy.empty() ? error.what : fmt::format("{}; {}", error.what, error.remedy);
}

bool is_tenant_drive(const nvme::Drive& drive, std::span<const std::string> list) {
    return std::ranges::any_of(list, [&](const std::string& named) {
        if (!named.starts_with(by_model)) return named == drive.serial;
        return ::fnmatch(named.c_str() + by_model.size(), drive.model.c_str(), 0) == 0;
    });
}

Result<std::vector<std::string>> expand_drive_list(std::span<const std::string> list) {
    std::vector<std::string> all;
    for (const std::string& named : list) {
        if (!named.starts_with('@')) {
            all.push_back(named);
            continue;
        }
        std::ifstream file{named.substr(1)};
        if (!file)
            return fail(Code::not_found, fmt::format("{} cannot be read", named.substr(1)),
                        "it lists tenants' drives, one serial number or model:GLOB on a line");
        for (std::string line; std::getline(file, line);)
            if (const std::string_view word = trimmed(line); !word.empty() && word.front() != '#')
                all.emplace_back(word);
    }
    return all;
}

// None yet: no file. One that is there and cannot be read is no new node.
Result<std::vector<Drives::Place>> Drives::read_places(const std::string& path) {
    const container::Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file && errno == ENOENT) return std::vector<Place>{};
    if (!file) return disk_error("open", path);
    const auto text = read_all(*file, path);
    if (!text) return std::unexpected(text.error());
    const auto damaged = [&](std::string_view line) {
        return fail(Code::corrupt, fmt::format("{} is damaged: \"{}\"", path, line),
                    "restore it: it says which drive has which number; with another one, the control plane takes one "
                    "drive for another");
    };
    std::vector<Place> places;
    for (std::size_t at = 0; at < text->size();) {
        const std::size_t end = text->find('\n', at);
        const std::string_view line = std::string_view{*text}.substr(at, end - at);
        if (end == std::string::npos) return damaged(line);  // whole lines are written
        at = end + 1;
        Place place;
        const auto [rest, failed] = std::from_chars(line.data(), line.data() + line.size(), place.bytes);
        const auto digits = static_cast<std::size_t>(rest - line.data());
        if (failed != std::errc{} || place.bytes < 0 || digits + 1 >= line.size() || line[digits] != ' ')
            return damaged(line);
        place.serial = line.substr(digits + 1);
        if (std::ranges::find(places, place.serial, &Place::serial) != places.end()) return damaged(line);
        places.push_back(std::move(place));
    }
    return places;
}

Result<> Drives::keep_places(const std::string& folder, std::span<const Place> places) {
    const std::string path = folder + std::string{places_file};
    std::string text;
    for (const Place& place : places) text += fmt::format("{} {}\n", place.bytes, place.serial);
    if (auto written = write_whole(path, text); !written) return written;
    return sync_directory(path);
}

Result<> Drives::tell_udev(const DriveSettings& settings, std::span<const Place> places) {
    if (settings.udev.empty()) return {};
    const auto found = nvme::discover(settings.tree);
    if (!found) return std::unexpected(found.error());
    // A drive that was given back to this host keeps its number here, and is the host's again. Who is away may come
    // back.
    const auto is_the_hosts = [&](const Place& place) {
        const auto here = std::ranges::find(found->drives, place.serial, &nvme::Drive::serial);
        return here != found->drives.end() && (here->is_system || !is_tenant_drive(*here, settings.tenant));
    };
    std::vector<std::string> serials;
    serials.reserve(places.size());
    for (const Place& place : places)
        if (!is_the_hosts(place)) serials.push_back(place.serial);
    return keep_drive_rules(settings.udev, settings.folder, serials);
}

Result<std::unique_ptr<Drives>> Drives::open(DriveSettings settings) {
    auto list = expand_drive_list(settings.tenant);
    if (!list) return std::unexpected(list.error());
    settings.tenant = *std::move(list);
    const auto there = tenant_drives(settings);
    if (!there) return std::unexpected(there.error());
    const std::string path = settings.folder + std::string{places_file};
    auto read = read_places(path);
    if (!read) return std::unexpected(read.error());
    std::vector<Place> places = *std::move(read);
    bool changed = false;
    for (const nvme::Drive& drive : *there) {
        const auto bytes = static_cast<std::int64_t>(drive.bytes());
        const auto known = std::ranges::find(places, drive.serial, &Place::serial);
        if (known == places.end()) {
            places.push_back({drive.serial, bytes});
            changed = true;
        } else if (bytes != 0 && std::exchange(known->bytes, bytes) != bytes) {
            changed = true;
        }
    }
    std::vector<container::Fd> locks;
    for (const Place& place : places) {
        auto lock = take_drive_lock(settings.locks, place.serial);
        if (!lock) return std::unexpected(lock.error());
        locks.push_back(*std::move(lock));
    }
    if (changed)
        if (auto kept = keep_places(settings.folder, places); !kept) return std::unexpected(kept.error());
    if (auto told = tell_udev(settings, places); !told) return std::unexpected(told.error());
    return std::unique_ptr<Drives>{new Drives{std::move(settings), std::move(places), std::move(locks)}};
}

bool Drives::take_in_new() {
    const auto there = tenant_drives(settings_);
    if (!there) return false;
    const std::map<std::string, std::uint64_t> before = std::exchange(newcomers_, {});
    bool taken = false;
    for (const nvme::Drive& drive : *there) {
        if (std::ranges::find(settings_.tenant, drive.serial) == settings_.tenant.end()) continue;
        const std::scoped_lock lock{places_mutex_};
        if (std::ranges::find(places_, drive.serial, &Place::serial) != places_.end() || drive.state != "live")
            continue;
        newcomers_[drive.serial] = drive.bytes();
        const auto seen = before.find(drive.serial);
        if (seen == before.end() || seen->second != drive.bytes()) continue;
        auto held = take_drive_lock(settings_.locks, drive.serial);
        if (!held) continue;
        std::vector<Place> places = places_;
        places.push_back({drive.serial, static_cast<std::int64_t>(drive.bytes())});
        if (!keep_places(settings_.folder, places) || !tell_udev(settings_, places)) continue;
        places_ = std::move(places);
        locks_.push_back(*std::move(held));
        newcomers_.erase(drive.serial);
        taken = true;
    }
    return taken;
}

std::optional<std::string> Drives::serial_of(std::uint16_t number) const {
    const std::scoped_lock lock{places_mutex_};
    return number < places_.size() ? std::optional{places_[number].serial} : std::nullopt;
}

std::size_t Drives::count() const {
    const std::scoped_lock lock{places_mutex_};
    return places_.size();
}

std::vector<NodeDrive> Drives::inventory() const {
    const std::scoped_lock lock{places_mutex_};
    std::vector<NodeDrive> drives;
    drives.reserve(places_.size());
    for (const Place& place : places_)
        drives.push_back({.serial = place.serial, .size = {place.bytes}, .state = {}, .lease = {}});
    return drives;
}

std::optional<Grade> Drives::grade() const {
    const auto there = tenant_drives(settings_);
    if (!there || there->empty()) return std::nullopt;
    return std::ranges::max(*there | std::views::transform(&nvme::Drive::grade));
}

Result<nvme::Drive> Drives::find(std::uint16_t number) const {
    const std::optional<std::string> known = serial_of(number);
    if (!known)
        return fail(Code::not_found, fmt::format("there is no drive {} here; there are {}", number, count()), "");
    const std::string& serial = *known;
    auto found = nvme::discover(settings_.tree);
    if (!found) return std::unexpected(found.error());
    std::vector<nvme::Drive> here;
    for (nvme::Drive& drive : found->drives)
        if (drive.serial == serial) here.push_back(std::move(drive));
    if (here.empty()) {
        std::string elsewhere;
        for (const nvme::AbsentDriver& one : found->without)
            elsewhere += fmt::format("; the controller at {} is {}", one.address,
                                     one.driver.empty() ? "nobody's" : "bound to " + one.driver);
        return fail(Code::unavailable, fmt::format("{} is gone from this machine{}", serial, elsewhere),
                    "put it back, or take it out of the fleet");
    }
    if (here.size() > 1)
        return fail(Code::conflict,
                    fmt::format("{} controllers say that they are {}: at {} and {}", here.size(), serial,
                                here[0].address, here[1].address),
                    "leave one of them");
    if (here[0].is_system)
        return fail(Code::denied, fmt::format("{} is what this machine runs from", serial), "leave it out");
    if (!is_tenant_drive(here[0], settings_.tenant))
        return fail(Code::denied, fmt::format("{} is no longer among the drives for tenants", serial),
                    "name it with --tenant-drive");
    if (here[0].state == "dead" || here[0].state == "deleting")
        return fail(Code::unavailable, fmt::format("the kernel calls {} {}", serial, here[0].state), "see dmesg");
    return std::move(here[0]);
}

// The kernel stops nobody who erases a drive that somebody uses.
Result<> Drives::wait_until_free(const nvme::Drive& drive) const {
    for (const auto until = settings_.clock.now() + free_within;;) {
        const std::vector<std::string> users = nvme::users_of(settings_.tree, drive);
        if (users.empty()) return {};
        const bool may_pass = std::ranges::all_of(
            users, [](const std::string& user) { return user.find(" is open in process ") != std::string::npos; });
        if (settings_.clock.now() > until || settings_.clock.stopped() || !may_pass)
            return fail(Code::conflict, fmt::format("{} is in use: {}", drive.serial, fmt::join(users, "; ")),
                        "end that; it may be no drive for tenants");
        if (settings_.clock.sleep)
            settings_.clock.sleep(free_every);
        else
            std::this_thread::sleep_for(free_every);
    }
}

OperationResult Drives::attach(const AttachDrive& what) {
    const auto drive = find(what.drive);
    if (!drive) return {.ok = false, .why = with_remedy(drive.error())};
    if (drive->namespaces.empty())
        return {.ok = false,
                .why = fmt::format("{} has no namespace with a block device; make one, or take it out of the fleet",
                                   drive->serial)};
    if (const auto is_free = wait_until_free(*drive); !is_free)
        return {.ok = false, .why = with_remedy(is_free.error())};
    return {.ok = true};
}

OperationResult Drives::detach(const DetachDrive& what) {
    const auto drive = find(what.drive);
    if (!drive) return {.ok = true};  // nobody has what is not there
    if (const auto is_free = wait_until_free(*drive); !is_free)
        return {.ok = false, .why = with_remedy(is_free.error())};
    return {.ok = true};
}

Result<std::vector<container::DeviceNode>> Drives::nodes(std::span<const std::uint16_t> drives) const {
    const auto all = lent(drives);
    if (!all) return std::unexpected(all.error());
    std::vector<container::DeviceNode> nodes;
    nodes.reserve(all->size());
    // By a name that no host has: one that it has must be the same device, or the tenant is not started.
    for (const LentNamespace& one : *all)
        nodes.push_back({.path = "/dev/" + one.name(), .type = 'b', .major = one.major, .minor = one.minor});
    return nodes;
}

std::string LentNamespace::name() const { return fmt::format("drive{}n{}", drive, nsid); }

Result<std::vector<LentNamespace>> Drives::lent(std::span<const std::uint16_t> drives) const {
    std::vector<LentNamespace> all;
    for (std::size_t i = 0; i < drives.size(); ++i) {
        const auto drive = find(drives[i]);
        if (!drive) return std::unexpected(drive.error());
        for (const nvme::NamespaceBlock& one : drive->namespaces)
            all.push_back({.drive = i,
                           .serial = drive->serial,
                           .nsid = one.nsid,
                           .only = drive->namespaces.size() == 1,
                           .major = one.device.major,
                           .minor = one.device.minor});
    }
    return all;
}

std::vector<FaultReport> Drives::look() {
    std::vector<FaultReport> faults;
    for (std::size_t at = 0, all = count(); at < all; ++at) {
        const auto number = static_cast<std::uint16_t>(at);
        const auto drive = find(number);
        const std::string why = drive ? "" : with_remedy(drive.error());
        const std::scoped_lock lock{mutex_};
        if (std::exchange(told_[number], why) != why && !why.empty())
            faults.push_back({.kind = UnitKind::drive, .device = number, .why = why});
    }
    return faults;
}

}  // namespace bulkhead::agent
