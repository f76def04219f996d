// The NVIDIA boards that can be cut with MIG, and what each can be cut into. The tables serve planning, simulation and
// tests; on a live node NVML has the last word, because sizes, SM counts and even names change with the driver.
// What no source says stays unknown; nothing here is a guess that looks like a fact.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bulkhead/base/result.hpp"
#include "bulkhead/gpu/placement.hpp"
#include "bulkhead/model/describe.hpp"
#include "bulkhead/model/terms.hpp"

namespace bulkhead::gpu {

using Known = std::optional<int>;  // empty: no source says

// The argument of nvmlDeviceGetGpuInstanceProfileInfo. Not the id that nvidia-smi prints: that one is Profile::id.
enum class GiEnum : std::uint8_t {
    slice_1,
    slice_2,
    slice_3,
    slice_4,
    slice_7,
    slice_8,
    slice_6,
    slice_1_rev1,
    slice_2_rev1,
    slice_1_rev2,
    slice_1_gfx,
    slice_2_gfx,
    slice_4_gfx,
    slice_1_no_me,
    slice_2_no_me,
    slice_1_all_me,
    slice_2_all_me,
    slice_3_gfx,
};
enum class CiEnum : std::uint8_t {
    slice_1,
    slice_2,
    slice_3,
    slice_4,
    slice_7,
    slice_8,
    slice_6,
    slice_1_rev1,
    slice_7_nvl,
};
std::string_view nvml_name(GiEnum profile);  // "NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1"
std::string_view nvml_name(CiEnum profile);

// What an instance takes of the media engines, which bounds who may sit beside it.
enum class Media : std::uint8_t {
    none,      // "-me"
    some,      // its own share
    extended,  // "+me": with the one optical-flow (and on Ampere the one JPEG) engine of the GPU, so at most one
    all,       // "+me.all": every engine, so only "-me" instances fit beside it; "7g" needs no rule, it fills the GPU
};

// Engines are known together or not at all: a listing prints the whole row.
struct Engines {
    Known copy, decoders, encoders, jpeg, ofa;
};

struct Profile {
    std::string_view name;  // "3g.40gb"; the same name may be another shape on another board
    GiEnum nvml{};
    Known id;  // nvmlGpuInstanceProfileInfo_t.id, the ID column of `nvidia-smi mig -lgip`
    unsigned slices{}, memory_slices{};
    Known sms, memory_mib;
    Engines engines;
    unsigned max_instances{};
    std::optional<bool> p2p;
    Starts starts;
    Media media = Media::some;
    std::string_view attribute;   // "+me", "-me", "+gfx", "+me.all" or nothing
    std::string_view min_driver;  // "R470"; empty: as the board
    std::string_view also_named;  // what an earlier driver called the same shape

    constexpr bool plain() const { return attribute.empty(); }
    constexpr Placement at(unsigned start) const { return {start, memory_slices}; }
    // "1g" with the memory of two: more memory slices than compute slices would bring along.
    constexpr bool double_memory() const { return nvml == GiEnum::slice_1_rev2; }
};

// One way to cut the compute slices of a GPU instance.
struct ComputeProfile {
    GiEnum gpu_instance{};
    CiEnum nvml{};
    unsigned slices{}, max_instances{};
    Known sms;
    Starts starts;  // in compute slices; empty: no source says
    std::string_view basis;
};

// How we know the placements of a board.
enum class Basis : std::uint8_t {
    capture,       // read by us through NVML on the board
    listing,       // `nvidia-smi mig -lgipp` of this board, published
    carried_over,  // a listed board with the same ids and maxima; nobody listed this one
    mock,          // an NVIDIA test fixture
    assumed,       // the rule of boards with the same slice counts
};
constexpr Grade grade(Basis basis) {
    switch (basis) {
        case Basis::capture:
            return Grade::silicon;
        case Basis::listing:
            return Grade::documented;
        case Basis::carried_over:
        case Basis::mock:  // public mocks were wrong elsewhere
        case Basis::assumed:
            return Grade::assumed;
    }
    return Grade::assumed;
}
std::string_view print(Basis basis);

struct PciDevice {
    std::uint32_t id{};  // device id, then vendor id: 0x233010DE, as mig-parted writes it
    std::string_view product;
};

struct Board {
    std::string_view id;  // "h100-80gb-sxm5"
    std::string_view product, architecture, compute_capability;
    std::span<const PciDevice> pci;
    Known sms_full, sms_in_mig, memory_mib;
    unsigned slices{}, memory_slices{}, max_instances{};
    std::string_view min_driver;  // "570.133.20"; empty: no source says
    std::span<const Profile> profiles;
    std::span<const ComputeProfile> compute_profiles;  // empty: no source says
    Basis basis{};
    std::string_view basis_note;  // where the placements come from, in words
    std::string_view caution;     // what else to know before trusting the numbers; may be empty
};

std::span<const Board> boards();

// By id ("h100-80gb-sxm5", any case), by an unambiguous beginning of one ("a30"), or by PCI id ("0x233010DE", "2330",
// "10de:2330").
Result<const Board*> find_board(std::string_view typed);
const Board* find_board_by_pci(std::string_view typed);  // null when it is no PCI id, or none we know

// The number in a profile name, computed as NVIDIA's tools do from what the driver reports.
int gigabytes_in_name(std::uint64_t instance_mib, std::uint64_t total_bytes);

}  // namespace bulkhead::gpu
