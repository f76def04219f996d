#include "bulkhead/gpu/board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <vector>

#include "bulkhead/base/nearest.hpp"
#include "bulkhead/gpu/amd.hpp"

namespace bulkhead::gpu {

namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool starts_with_any_case(std::string_view text, std::string_view beginning) {
    return text.size() >= beginning.size() &&
           std::ranges::equal(text.substr(0, beginning.size()), beginning, {}, lower, lower);
}

std::optional<std::uint32_t> hexadecimal(std::string_view digits) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
}

constexpr std::uint32_t nvidia = 0x10DE;

// "0x233010DE" and "233010DE" carry the vendor, "2330" does not, "10de:2330" is lspci's order.
std::optional<std::uint32_t> pci_id(std::string_view typed) {
    if (starts_with_any_case(typed, "10de:") && typed.size() == 9) {
        const auto device = hexadecimal(typed.substr(5));
        return device ? std::optional{*device << 16 | nvidia} : std::nullopt;
    }
    if (starts_with_any_case(typed, "0x")) typed.remove_prefix(2);
    const auto value = hexadecimal(typed);
    if (!value) return std::nullopt;
    if (typed.size() == 4) return *value << 16 | nvidia;
    return typed.size() == 8 ? value : std::nullopt;
}

}  // namespace

std::string_view nvml_name(GiEnum profile) {
    static constexpr std::array<std::string_view, 18> names{
        "NVML_GPU_INSTANCE_PROFILE_1_SLICE",        "NVML_GPU_INSTANCE_PROFILE_2_SLICE",
        "NVML_GPU_INSTANCE_PROFILE_3_SLICE",        "NVML_GPU_INSTANCE_PROFILE_4_SLICE",
        "NVML_GPU_INSTANCE_PROFILE_7_SLICE",        "NVML_GPU_INSTANCE_PROFILE_8_SLICE",
        "NVML_GPU_INSTANCE_PROFILE_6_SLICE",        "NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1",
        "NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1",   "NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2",
        "NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX",    "NVML_GPU_INSTANCE_PROFILE_2_SLICE_GFX",
        "NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX",    "NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME",
        "NVML_GPU_INSTANCE_PROFILE_2_SLICE_NO_ME",  "NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME",
        "NVML_GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME", "NVML_GPU_INSTANCE_PROFILE_3_SLICE_GFX"};
    return names.at(static_cast<std::size_t>(profile));
}

std::string_view nvml_name(CiEnum profile) {
    static constexpr std::array<std::string_view, 9> names{
        "NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE",    "NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE",
        "NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE",    "NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE",
        "NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE",    "NVML_COMPUTE_INSTANCE_PROFILE_8_SLICE",
        "NVML_COMPUTE_INSTANCE_PROFILE_6_SLICE",    "NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1",
        "NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE_NVL"};
    return names.at(static_cast<std::size_t>(profile));
}

std::string_view print(Basis basis) {
    static constexpr std::array<std::string_view, 5> names{"capture", "listing", "carried_over", "mock", "assumed"};
    return names.at(static_cast<std::size_t>(basis));
}

const Board* find_board_by_pci(std::string_view typed) {
    const auto id = pci_id(typed);
    if (!id) return nullptr;
    for (const Board& board : boards())
        for (const PciDevice& device : board.pci)
            if (device.id == *id) return &board;
    return nullptr;
}

Result<const Board*> find_board(std::string_view typed) {
    std::vector<const Board*> begin_alike;
    for (const Board& board : boards()) {
        if (!starts_with_any_case(board.id, typed)) continue;
        if (board.id.size() == typed.size()) return &board;
        begin_alike.push_back(&board);
    }
    if (const Board* board = find_board_by_pci(typed)) return board;
    if (!typed.empty() && begin_alike.size() == 1) return begin_alike.front();

    // Whoever typed it may have meant a model of either maker.
    std::vector<std::string_view> ids, alike;
    for (const Board& board : boards()) ids.push_back(board.id);
    for (const AmdBoard& board : amd_boards()) ids.push_back(board.id);
    std::ranges::copy_if(ids, std::back_inserter(alike),
                         [&](std::string_view id) { return !typed.empty() && starts_with_any_case(id, typed); });
    if (alike.size() > 1)
        return fail(Code::not_found, fmt::format("GPU model \"{}\" could be any of {}", typed, fmt::join(alike, ", ")),
                    "write the whole name");
    const std::string_view meant = nearest(typed, ids);
    return fail(Code::not_found,
                fmt::format("no GPU model is called \"{}\"; known are {}", typed, fmt::join(ids, ", ")),
                meant.empty() ? "bulkhead mig profiles" : std::string{meant});
}

int gigabytes_in_name(std::uint64_t instance_mib, std::uint64_t total_bytes) {
    constexpr std::uint64_t gib = 1ull << 30;
    const std::uint64_t eighths = ((8 * instance_mib << 20) + total_bytes - 1) / total_bytes;
    const std::uint64_t total_gib = (total_bytes + gib - 1) / gib;
    return static_cast<int>((eighths * total_gib + 4) / 8);  // half away from zero
}

}  // namespace bulkhead::gpu
