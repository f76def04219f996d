// AMD Instinct partitions: a compute mode says into how many devices the GPU is divided, a memory mode into how many
// NUMA domains. Unlike MIG there is nothing to place: one pair of modes holds for the whole GPU (memory modes for the
// whole hive). A node's own `available_*_partition` files have the last word.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/base/result.hpp"
#include "bulkhead/gpu/board.hpp"

namespace bulkhead::gpu {

enum class ComputeMode : std::uint8_t { spx, dpx, tpx, qpx, cpx };
enum class MemoryMode : std::uint8_t { nps1, nps2, nps4, nps8 };
std::string_view print(ComputeMode mode);  // "CPX"
std::string_view print(MemoryMode mode);   // "NPS4"

enum class Standing : std::uint8_t {
    validated,  // named by AMD as tested
    listed,     // named as compatible by a source, but not in AMD's validated matrix for this board
    possible,   // the driver's own rule for these modes allows it; no source tested it here
    invalid,    // a rule or a source excludes it
    unsourced,  // the board's memory modes are not known
};
std::string_view print(Standing standing);

struct AmdTested {  // a combination some source vouches for
    ComputeMode compute{};
    MemoryMode memory{};
    Known memory_gb, compute_units;  // per partition
    std::string_view min_rocm, note;
    Standing standing = Standing::validated;
};

struct AmdBoard {
    std::string_view id, product;
    std::span<const std::uint16_t> pci, pci_virtual;  // device ids; the vendor is 1002
    unsigned xcds{};
    Known compute_units_per_xcd, compute_units, memory_gb;
    std::span<const ComputeMode> compute_modes;
    std::span<const MemoryMode> memory_modes;  // empty: no source says
    std::span<const AmdTested> tested;
    std::string_view caution;
};

struct AmdVerdict {
    Standing standing{};
    unsigned partitions{};
    Known memory_gb, compute_units;  // per partition; unknown stays unknown
    std::string_view min_rocm;
    std::string why;
};

std::span<const AmdBoard> amd_boards();
Result<const AmdBoard*> find_amd_board(std::string_view typed);  // "mi300x", "mi32", "0x74a1"

unsigned partitions(const AmdBoard& board, ComputeMode mode);
AmdVerdict judge(const AmdBoard& board, ComputeMode compute, MemoryMode memory);

// "amd.com/gpu" where all GPUs of a node are alike (strategy single), "amd.com/cpx_nps4" otherwise (mixed).
inline constexpr std::string_view amd_single_resource = "amd.com/gpu";
std::string amd_resource_name(ComputeMode compute, MemoryMode memory);

}  // namespace bulkhead::gpu
