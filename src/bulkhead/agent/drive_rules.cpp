#include "bulkhead/agent/drive_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bulkhead/agent/disk.hpp"

namespace bulkhead::agent {

namespace {

// What means something in a pattern of udev's matches any one character instead.
std::string as_pattern(std::string_view serial) {
    std::string pattern{serial};
    std::ranges::replace_if(
        pattern,
        [](char c) {
            const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
            return !plain && std::string_view{" ._:+-"}.find(c) == std::string_view::npos;
        },
        '?');
    return pattern;
}

}  // namespace

std::string drive_rules(std::span<const std::string> serials) {
    std::string text =
        "# Written by the Bulkhead agent at its start: drives of tenants, which are nothing to this host.\n"
        "SUBSYSTEM!=\"block\", GOTO=\"bulkhead_drives_end\"\n"
        "ACTION==\"remove\", GOTO=\"bulkhead_drives_end\"\n";
    for (const std::string& serial : serials)
        if (!serial.empty())  // a drive may pad it on the left too, which udev leaves as it is
            text += fmt::format("KERNEL==\"nvme*\", ATTRS{{serial}}==\"{0}| *{0}\", GOTO=\"bulkhead_drive\"\n",
                                as_pattern(serial));
    text +=
        "GOTO=\"bulkhead_drives_end\"\n"
        "LABEL=\"bulkhead_drive\"\n"
        "OPTIONS+=\"nowatch\"\n"
        "ENV{UDEV_DISABLE_PERSISTENT_STORAGE_RULES_FLAG}=\"1\"\n"
        "ENV{DM_UDEV_DISABLE_OTHER_RULES_FLAG}=\"1\"\n"  // bcache looks for itself unless it meets this
        "ENV{SYSTEMD_READY}=\"0\"\n"
        "ENV{UDISKS_IGNORE}=\"1\"\n"
        "LABEL=\"bulkhead_drives_end\"\n";
    return text;
}

Result<> keep_drive_rules(const std::string& udev, const std::string& folder, std::span<const std::string> serials) {
    std::error_code failed;
    if (!std::filesystem::is_directory(std::filesystem::path{udev}.parent_path(), failed)) return {};
    // The agent's own copy first: at a host whose unit links it, that is the one udev reads, and a file that comes into
    // udev's folder is what makes it read.
    const std::string places[] = {folder + std::string{drive_rules_file}, udev + std::string{drive_rules_file}};
    if (serials.empty()) {
        for (const std::string& place : places)
            if (std::filesystem::remove(place, failed); failed)
                return fail(Code::unavailable, fmt::format("{} cannot be removed: {}", place, failed.message()),
                            "it hides drives from this host that are no tenants' any more");
        return {};
    }
    std::filesystem::create_directories(udev, failed);
    if (failed)
        return fail(Code::unavailable, fmt::format("{} cannot be made: {}", udev, failed.message()),
                    "udev must be told to leave tenants' drives alone: see whether /run can be written");
    const std::string text = drive_rules(serials);
    for (const std::string& place : places)
        if (auto written = write_whole(place, text); !written) return written;
    return {};
}

}  // namespace bulkhead::agent
