#include "bulkhead/agent/machine_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "bulkhead/agent/machine_domain.hpp"
#include "bulkhead/agent/machine_users.hpp"
#include "bulkhead/hw/container/durable.hpp"

namespace bulkhead::agent {

namespace {

std::string record_text(const std::string& path) {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
}

// Names of folders that leases have, and nothing else.
std::optional<Key> lease_of_machine(std::string_view name) {
    if (!name.starts_with(machine_prefix)) return std::nullopt;
    name.remove_prefix(machine_prefix.size());
    Key lease = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), lease, 16);
    if (error != std::errc{} || end != name.data() + name.size() || lease <= 0) return std::nullopt;
    return lease;
}

}  // namespace

vm::MachineFolder MachineRecords::folder_of(Key lease) const { return {folder_ + "/" + machine_name(lease)}; }

bool MachineRecords::has(Key lease) const {
    std::error_code failed;
    const auto found = std::filesystem::status(folder_of(lease).path, failed);
    return found.type() != std::filesystem::file_type::not_found;
}

// No folder: no machine was ever started here since the boot.
Result<std::vector<Key>> MachineRecords::leases() const {
    std::vector<Key> all;
    std::error_code failed;
    for (std::filesystem::directory_iterator at{folder_, failed}, end; !failed && at != end; at.increment(failed))
        if (const auto lease = lease_of_machine(at->path().filename().string())) all.push_back(*lease);
    if (failed && failed != std::errc::no_such_file_or_directory)
        return fail(Code::unavailable, fmt::format("{} cannot be listed: {}", folder_, failed.message()), "");
    std::ranges::sort(all);
    return all;
}

Result<std::uint32_t> MachineRecords::user_of(Key lease, std::uint32_t first, std::uint32_t count) const {
    const auto recorded = [&](Key of) -> Result<std::optional<std::uint32_t>> {
        const std::string path = folder_of(of).path + "/user", text = record_text(path);
        if (text.empty()) return std::nullopt;
        std::uint32_t user = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), user);
        if (error != std::errc{} || end != text.data() + text.size() - 1 || *end != '\n')
            return fail(Code::corrupt, fmt::format("{} is no number of a user", path), "stop that machine");
        return user;
    };
    const auto own = recorded(lease);
    if (!own) return std::unexpected(own.error());
    if (*own) return **own;
    const auto all = leases();
    if (!all) return std::unexpected(all.error());
    std::set<std::uint32_t> taken;
    for (const Key other : *all) {
        const auto theirs = recorded(other);
        if (!theirs) return std::unexpected(theirs.error());
        if (*theirs) taken.insert(**theirs);
    }
    std::uint32_t user = first;
    while (user - first < count && (taken.contains(user) || is_account(user))) ++user;
    if (user - first >= count)
        return fail(Code::exhausted,
                    fmt::format("all of {} users for machines are taken, or are accounts of this host", count),
                    "stop a machine");
    if (auto kept = container::write_durably(folder_of(lease).path + "/user", fmt::format("{}\n", user)); !kept)
        return std::unexpected(kept.error());
    return user;
}

// One line a device: its address, and the driver it had.
std::vector<MachineRecords::Given> MachineRecords::given_to(Key lease) const {
    std::vector<Given> all;
    std::istringstream lines{record_text(folder_of(lease).path + "/devices")};
    for (Given one; lines >> one.device >> one.driver;)
        all.push_back({one.device, one.driver == "-" ? "" : one.driver});
    return all;
}

Result<> MachineRecords::keep_given(Key lease, const std::vector<Given>& devices) const {
    std::string lines;
    for (const Given& one : devices) lines += fmt::format("{} {}\n", one.device, one.driver.empty() ? "-" : one.driver);
    return container::write_durably(folder_of(lease).path + "/devices", lines);
}

Result<std::optional<Key>> MachineRecords::holder_of(const std::string& device) const {
    const auto all = leases();
    if (!all) return std::unexpected(all.error());
    const auto found = std::ranges::find_if(*all, [&](Key lease) {
        const auto given = given_to(lease);
        return std::ranges::find(given, device, &Given::device) != given.end();
    });
    return found == all->end() ? std::nullopt : std::optional{*found};
}

bool MachineRecords::holds(const std::string& device) const {
    const auto holder = holder_of(device);
    return !holder || holder->has_value();  // nobody knows: whoever asks is careful
}

std::optional<std::string> MachineRecords::returned_by(const std::string& device) const {
    std::string path = record_text(return_of(device));
    if (path.empty()) return std::nullopt;
    path.pop_back();
    return path;
}

Result<> MachineRecords::keep_return(const std::string& device, const std::string& path) const {
    return container::write_durably(return_of(device), path + "\n");
}

void MachineRecords::forget_return(const std::string& device) const {
    std::error_code failed;
    std::filesystem::remove(return_of(device), failed);
}

}  // namespace bulkhead::agent
