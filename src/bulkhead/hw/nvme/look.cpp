// What a drive says of itself, asked page by page.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bulkhead/hw/nvme/erase.hpp"

namespace bulkhead::nvme {

namespace {

constexpr std::uint8_t identify_opcode = 0x06, get_log_opcode = 0x02;
constexpr std::uint8_t sanitize_log_page = 0x81;
constexpr std::uint16_t oacs_manages_namespaces = 1U << 3;
constexpr std::uint32_t version_1_2 = 0x0001'0200;  // with it came lists of what is allocated

using IdentifyPage = std::array<std::uint8_t, identify_bytes>;

// Nothing: the drive does not have this page.
Result<std::optional<IdentifyPage>> identify(Transport& drive, std::uint32_t page, std::uint32_t nsid) {
    IdentifyPage bytes{};
    const auto answered = drive.admin({.opcode = identify_opcode, .nsid = nsid, .cdw10 = page, .data = bytes});
    if (!answered) return std::unexpected(answered.error());
    if (answered->status != 0) return std::nullopt;
    return bytes;
}

std::unexpected<Error> not_told(std::string_view what) {
    return fail(Code::corrupt, fmt::format("the drive does not answer {}", what), "see `nvme id-ctrl` and dmesg");
}

// A page lists 1024 at most, of those above a given one.
Result<std::optional<std::vector<std::uint32_t>>> list_namespaces(Transport& drive, std::uint32_t page) {
    std::vector<std::uint32_t> all;
    for (;;) {
        const auto bytes = identify(drive, page, all.empty() ? 0 : all.back());
        if (!bytes) return std::unexpected(bytes.error());
        if (!*bytes) return std::nullopt;
        const auto some = parse_namespace_list(**bytes);
        if (!some) return std::unexpected(some.error());
        if (!some->empty() && !all.empty() && some->front() <= all.back())
            return fail(Code::corrupt, "a drive lists the same namespaces again and again", "ask the drive's maker");
        all.insert(all.end(), some->begin(), some->end());
        if (some->size() < identify_bytes / 4) return all;
    }
}

}  // namespace

std::uint64_t DriveFacts::bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [id, page] : pages) sum += page.bytes();
    return sum;
}

Result<DriveFacts> look_at(Transport& drive) {
    DriveFacts facts;
    const auto page = identify(drive, cns::controller, 0);
    if (!page) return std::unexpected(page.error());
    if (!*page) return not_told("Identify Controller");
    auto controller = parse_controller(**page);
    if (!controller) return std::unexpected(controller.error());
    facts.controller = *std::move(controller);
    const Controller& said = facts.controller;
    facts.claims = {
        .fna = said.fna, .oacs = said.oacs, .sanicap = said.sanicap, .several_controllers = said.several_controllers};
    if (said.several_controllers) {
        const auto beside = identify(drive, cns::controllers, 0);
        if (!beside) return std::unexpected(beside.error());
        // A list without the controller that answers is no list to rely on.
        if (*beside)
            if (const auto ids = parse_controller_list(**beside); ids && std::ranges::find(*ids, said.id) != ids->end())
                facts.claims.other_controllers = static_cast<unsigned>(ids->size() - 1);
    }
    const auto active = list_namespaces(drive, cns::active);
    if (!active) return std::unexpected(active.error());
    if (!*active) return not_told("which namespaces are active");
    std::vector<std::uint32_t> all = **active;
    if ((said.oacs & oacs_manages_namespaces) != 0 && said.version >= version_1_2) {
        const auto allocated = list_namespaces(drive, cns::allocated);
        if (!allocated) return std::unexpected(allocated.error());
        // Where namespaces can be detached and the drive does not say which are, there may be any.
        if (!*allocated) return not_told("which namespaces are allocated");
        facts.claims.allocated_known = true;
        all.insert(all.end(), (*allocated)->begin(), (*allocated)->end());
    }
    std::ranges::sort(all);
    const auto twice = std::ranges::unique(all);
    all.erase(twice.begin(), twice.end());
    for (const std::uint32_t id : all) {
        const bool is_active = std::ranges::binary_search(**active, id);
        const auto bytes = identify(drive, is_active ? cns::name_space : cns::allocated_namespace, id);
        if (!bytes) return std::unexpected(bytes.error());
        if (!*bytes) return not_told(fmt::format("Identify Namespace {}", id));
        const auto one = parse_namespace(**bytes);
        if (!one) return std::unexpected(one.error());
        facts.pages[id] = *one;
        facts.claims.namespaces.push_back({.id = id,
                                           .active = is_active,
                                           .shared = one->shared,
                                           .write_protected = one->write_protected,
                                           .format = one->format});
    }
    return facts;
}

Result<SanitizeLog> read_sanitize_log(Transport& drive) {
    std::array<std::uint8_t, sanitize_log_bytes> bytes{};
    constexpr std::uint32_t dwords = sanitize_log_bytes / 4 - 1;
    const auto answered = drive.admin(
        {.opcode = get_log_opcode, .nsid = every_namespace, .cdw10 = sanitize_log_page | dwords << 16, .data = bytes});
    if (!answered) return std::unexpected(answered.error());
    if (answered->status != 0)
        return fail(Code::invalid, fmt::format("the drive has no Sanitize log: {}", print_status(answered->status)),
                    "it claims Sanitize (SANICAP), and whoever does must have one: update its firmware, or take the "
                    "drive out");
    return parse_sanitize_log(bytes);
}

}  // namespace bulkhead::nvme
