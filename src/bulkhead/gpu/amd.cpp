#include "bulkhead/gpu/amd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "bulkhead/base/nearest.hpp"

namespace bulkhead::gpu {

namespace {

using enum ComputeMode;
using enum MemoryMode;

constexpr std::array eight_xcd_modes{spx, dpx, qpx, cpx};
constexpr std::array six_xcd_modes{spx, tpx, cpx};
constexpr std::array nps_1_4{nps1, nps4};
constexpr std::array nps_1_2{nps1, nps2};
constexpr std::array nps_1{nps1};

constexpr std::uint16_t mi300x_pci[]{0x74a1, 0x74a9}, mi300x_vf[]{0x74b5, 0x74bd};
constexpr std::uint16_t mi325x_pci[]{0x74a5}, mi325x_vf[]{0x74b9};
constexpr std::uint16_t mi350_pci[]{0x75a0, 0x75a3}, mi350_vf[]{0x75b0, 0x75b3};
constexpr std::uint16_t mi300a_pci[]{0x74a0};

// clang-format off: one row is one line, so that a row can be held against a listing.
constexpr auto unpublished = std::nullopt;
constexpr AmdTested mi300x_tested[]{
    {spx, nps1, 192, 304, "", ""},
    {cpx, nps1, 24, 38, "", "listed as compatible; not ticked in AMD's matrix of 2025-09", Standing::listed},
    {cpx, nps4, 24, 38, "6.4", "four domains of 48 GB, each shared by two partitions"},
};
constexpr AmdTested mi325x_tested[]{{spx, nps1, 256, 304, "", ""}};
constexpr AmdTested mi350_tested[]{
    {spx, nps1, 288, unpublished, "", ""},
    {dpx, nps2, 144, unpublished, "", "memory is 288 / 2, by arithmetic"},
    {cpx, nps2, 36, unpublished, "", "memory is 288 / 8, by arithmetic; from release notes on virtual functions", Standing::listed},
};
constexpr AmdTested mi300a_tested[]{
    {spx, nps1, unpublished, unpublished, "", ""},
    {tpx, nps1, unpublished, 76, "6.3", ""},
    {cpx, nps1, unpublished, 38, "6.4", ""},
};

constexpr std::array<AmdBoard, 4> all_amd_boards{{
    {"mi300x", "AMD Instinct MI300X", mi300x_pci, mi300x_vf, 8, 38, 304, 192, eight_xcd_modes, nps_1_4, mi300x_tested, "NPS4 works only with CPX; changing NPS reloads the driver on every GPU of the hive"},
    {"mi325x", "AMD Instinct MI325X", mi325x_pci, mi325x_vf, 8, 38, 304, 256, eight_xcd_modes, {}, mi325x_tested, "no source says clearly which memory modes it has"},
    {"mi350x-mi355x", "AMD Instinct MI350X / MI355X", mi350_pci, mi350_vf, 8, {}, {}, 288, eight_xcd_modes, nps_1_2, mi350_tested, "no source says how many compute units it has"},
    {"mi300a", "AMD Instinct MI300A", mi300a_pci, {}, 6, 38, 228, 128, six_xcd_modes, nps_1, mi300a_tested, "its 128 GB are shared with the CPU cores, so partitions have no memory of their own"},
}};
// clang-format on

constexpr unsigned domains(MemoryMode mode) { return 1u << static_cast<unsigned>(mode); }

// What amdgpu accepts on parts with eight XCDs; on virtual functions it also accepts CPX with NPS2.
bool driver_accepts(ComputeMode compute, MemoryMode memory) {
    switch (compute) {
        case spx:
            return memory == nps1;
        case dpx:
            return memory == nps1 || memory == nps2;
        case qpx:
        case cpx:
            return memory == nps1 || memory == nps4;
        case tpx:
            return memory == nps1;
    }
    return false;
}

}  // namespace

std::string_view print(ComputeMode mode) {
    static constexpr std::array<std::string_view, 5> names{"SPX", "DPX", "TPX", "QPX", "CPX"};
    return names.at(static_cast<std::size_t>(mode));
}

std::string_view print(MemoryMode mode) {
    static constexpr std::array<std::string_view, 4> names{"NPS1", "NPS2", "NPS4", "NPS8"};
    return names.at(static_cast<std::size_t>(mode));
}

std::string_view print(Standing standing) {
    static constexpr std::array<std::string_view, 5> names{"validated", "listed", "possible", "invalid", "unsourced"};
    return names.at(static_cast<std::size_t>(standing));
}

std::span<const AmdBoard> amd_boards() { return all_amd_boards; }

Result<const AmdBoard*> find_amd_board(std::string_view typed) {
    std::string name{typed};
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    std::vector<std::string_view> ids;
    std::vector<const AmdBoard*> begin_alike;
    for (const AmdBoard& board : all_amd_boards) {
        ids.push_back(board.id);
        if (!name.empty() && board.id.starts_with(name)) begin_alike.push_back(&board);
        if (board.id == name || (board.id == "mi350x-mi355x" && (name == "mi350x" || name == "mi355x"))) return &board;
        if (!name.starts_with("0x")) continue;
        std::uint16_t id = 0;
        const auto [end, error] = std::from_chars(name.data() + 2, name.data() + name.size(), id, 16);
        const bool whole = error == std::errc{} && end == name.data() + name.size();
        if (whole && (std::ranges::count(board.pci, id) + std::ranges::count(board.pci_virtual, id)) > 0) return &board;
    }
    if (begin_alike.size() == 1) return begin_alike.front();
    if (begin_alike.size() > 1) {
        ids.clear();
        for (const AmdBoard* board : begin_alike) ids.push_back(board->id);
        return fail(Code::not_found, fmt::format("AMD model \"{}\" could be any of {}", typed, fmt::join(ids, ", ")),
                    "write the whole name");
    }
    const std::string_view meant = nearest(typed, ids);
    return fail(Code::not_found,
                fmt::format("no AMD model is called \"{}\"; known are {}", typed, fmt::join(ids, ", ")),
                std::string{meant});
}

unsigned partitions(const AmdBoard& board, ComputeMode mode) {
    switch (mode) {
        case spx:
            return 1;
        case dpx:
            return 2;
        case tpx:
            return 3;
        case qpx:
            return 4;
        case cpx:
            return board.xcds;
    }
    return 0;
}

AmdVerdict judge(const AmdBoard& board, ComputeMode compute, MemoryMode memory) {
    AmdVerdict verdict{.standing = Standing::invalid, .partitions = partitions(board, compute)};
    for (const AmdTested& tested : board.tested) {
        if (tested.compute != compute || tested.memory != memory) continue;
        return {tested.standing,      verdict.partitions, tested.memory_gb,
                tested.compute_units, tested.min_rocm,    std::string{tested.note}};
    }
    if (std::ranges::count(board.compute_modes, compute) == 0)
        verdict.why = fmt::format("{} divides {} XCDs; it has no {}", board.id, board.xcds, print(compute));
    else if (domains(memory) > verdict.partitions)
        verdict.why = fmt::format(
            "{} makes {} memory domains and {} only {} partition{}; domains may not outnumber partitions",
            print(memory), domains(memory), print(compute), verdict.partitions, verdict.partitions == 1 ? "" : "s");
    else if (board.memory_modes.empty()) {
        verdict.standing = Standing::unsourced;
        verdict.why = "no source says which memory modes this board has; read available_memory_partition";
    } else if (std::ranges::count(board.memory_modes, memory) == 0)
        verdict.why = fmt::format("{} has no {}", board.id, print(memory));
    else if (board.id == "mi300x" && memory == nps4)  // the amdgpu check alone would let QPX through
        verdict.why = "on MI300X, NPS4 works only with CPX";
    else if (!driver_accepts(compute, memory))
        verdict.why = fmt::format("the amdgpu driver does not accept {} with {}", print(compute), print(memory));
    else {
        verdict.standing = Standing::possible;
        verdict.why = "the driver's rule allows it; no source tested it on this board";
    }
    return verdict;
}

std::string amd_resource_name(ComputeMode compute, MemoryMode memory) {
    std::string name = fmt::format("amd.com/{}_{}", print(compute), print(memory));
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return name;
}

}  // namespace bulkhead::gpu
