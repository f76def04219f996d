// What each mechanism keeps apart, claim by claim, and how claims compose. Strength is about malice and load, not about
// a good day: what a neighbour can exhaust or see is `none`, what software merely bounds is `soft`. `silicon` stands
// only where a capture in testdata/ or a probe in docs/measurements/ shows the very thing said; that an instance has
// its own SMs is the vendor's word until a probe has measured it. Read by catalogue.cpp alone.
#pragma once

#include <algorithm>

#include "bulkhead/policy/catalogue.hpp"

namespace bulkhead::claims {

using enum Strength;
using enum Grade;
using Claims = std::array<Claim, aspect_count>;

inline constexpr std::string_view guide = "NVIDIA MIG User Guide, Concepts";
inline constexpr std::string_view considerations = "NVIDIA MIG User Guide, Deployment Considerations";
inline constexpr std::string_view mps_guide = "NVIDIA Multi-Process Service documentation, R575 to R615";
inline constexpr std::string_view vgpu_guide = "NVIDIA vGPU documentation, scheduling and types";
inline constexpr std::string_view amd_guide = "ROCm documentation, GPU partitioning";
inline constexpr std::string_view interference =
    "probe interference, H200, driver 580.159.04 (docs/measurements/, 2026-11-16)";
inline constexpr std::string_view visibility =
    "probe visibility, H200, driver 580.159.04 (docs/measurements/, 2026-11-16)";
inline constexpr std::string_view owner = "follows from sole ownership";
inline constexpr std::string_view one_device = "follows from sharing one device";

// One mechanism's claims, by name, so that a missing one is seen.
struct Sheet {
    Claim sm, l2, memory_capacity, memory_bandwidth, memory_content, copy_engines, media_engines, faults,
        power_and_clocks, pcie, nvlink, observability;
};

constexpr Claims by_aspect(const Sheet& s) {
    return {s.sm,
            s.l2,
            s.memory_capacity,
            s.memory_bandwidth,
            s.memory_content,
            s.copy_engines,
            s.media_engines,
            s.faults,
            s.power_and_clocks,
            s.pcie,
            s.nvlink,
            s.observability};
}

constexpr std::size_t at(Aspect aspect) { return static_cast<std::size_t>(aspect); }

// The layer that gives way first speaks for both. Two that are equally strong are known as well as the lesser known.
constexpr Claim weakest(const Claim& inner, const Claim& outer) {
    if (outer.strength != inner.strength) return outer.strength < inner.strength ? outer : inner;
    Claim both = inner;
    both.grade = std::max(inner.grade, outer.grade);
    return both;
}

constexpr Claims composed(const Claims& inner, const Claims& outer) {
    Claims both{};
    for (std::size_t i = 0; i < both.size(); ++i) both[i] = weakest(inner[i], outer[i]);
    return both;
}

// The same claim in words that fit the place: as strong as the layers make it, and not measured there.
constexpr Claims worded(Claims claims, Aspect aspect, std::string_view says, std::string_view source) {
    claims[at(aspect)].says = says;
    claims[at(aspect)].source = source;
    claims[at(aspect)].grade = std::max(claims[at(aspect)].grade, documented);
    return claims;
}

// A service level is hard where compute, cache and memory are all partitioned; links, clocks and power never are.
constexpr Slo slo_of(const Claims& claims) {
    for (const Aspect aspect : {Aspect::sm, Aspect::l2, Aspect::memory_capacity, Aspect::memory_bandwidth})
        if (claims[at(aspect)].strength != hard) return Slo::soft;
    return Slo::hard;
}

inline constexpr Claims whole = by_aspect({
    .sm = {hard, documented, "All SMs belong to one owner.", owner},
    .l2 = {hard, documented, "The whole L2 belongs to one owner.", owner},
    .memory_capacity = {hard, documented, "All device memory belongs to one owner.", owner},
    .memory_bandwidth = {hard, documented, "All memory controllers serve one owner.", owner},
    .memory_content = {hard, documented,
                       "Nobody else has memory on the GPU; what a past owner left is for reclaim to scrub and verify.",
                       owner},
    .copy_engines = {hard, documented, "All copy engines serve one owner.", owner},
    .media_engines = {hard, documented, "All media engines serve one owner.", owner},
    .faults = {hard, documented, "A fault or reset of the GPU is its owner's alone.", owner},
    .power_and_clocks = {soft, assumed,
                         "The board's power limit and clocks are the owner's; chassis power and cooling are shared.",
                         "platform design; not measured"},
    .pcie = {soft, assumed,
             "The GPU's own link is the owner's; PCIe switches and the root port above it may be shared.",
             "platform design; not measured"},
    .nvlink = {soft, documented,
               "One NVLink partition goes to one tenant; where partitions cannot be controlled, only the whole board "
               "keeps others' traffic and timing out.",
               "NVIDIA Fabric Manager User Guide; NVBleed, arXiv 2503.17847"},
    .observability = {soft, documented,
                      "Its counters speak of its owner alone, but whoever reaches NVML on the host can read them.",
                      "NVML API Reference"},
});

inline constexpr Claims mig = by_aspect({
    .sm = {hard, documented, "Each GPU instance has its own SMs: 16, 26, 32, 60, 64 or 132 by profile on an H200.",
           "NVIDIA MIG User Guide, Concepts; counts: NVML capture, H200, driver 580.159.04"},
    .l2 = {hard, documented,
           "Each instance has its own L2 slices; a timing channel through memory barriers crosses them, so this is "
           "capacity, not secrecy.",
           "NVIDIA MIG User Guide, Concepts; Gu et al., Behind Bars, USENIX Security 2026"},
    .memory_capacity = {hard, documented,
                        "Each instance owns whole memory slices, an eighth of the GPU each (a quarter on an A30).",
                        guide},
    .memory_bandwidth = {hard, documented, "A memory slice brings its own controllers and their bandwidth.", guide},
    .memory_content = {hard, documented,
                       "An instance cannot address another's memory slices; no document promises that a slice is "
                       "wiped before its next owner.",
                       guide},
    .copy_engines = {hard, documented,
                     "An instance has the copy engines of its profile: on an H200 1 in 1g, 3 in 3g, 8 in 7g.",
                     "NVIDIA MIG User Guide, Concepts; counts: NVML capture, H200, driver 580.159.04"},
    .media_engines = {hard, documented,
                      "An instance has the media engines of its profile and no others: on an H200 a 1g has 1 decoder, "
                      "1 JPEG, no encoder, and optical flow only as +me.",
                      "NVIDIA MIG User Guide, Supported MIG Profiles; counts: NVML capture, H200, driver 580.159.04"},
    .faults = {soft, documented,
               "A context's fault stays in its instance; a GPU reset, and any error that needs one, stops every "
               "instance.",
               "NVIDIA MIG User Guide, Getting Started"},
    .power_and_clocks = {none, documented, "One power limit, one clock and one heat sink for all instances.",
                         one_device},
    .pcie = {none, documented, "All instances share the GPU's PCIe link, without shares or limits.", one_device},
    .nvlink = {none, silicon,
               "Not offered: no profile supports peer-to-peer, so an instance has no NVLink and no PCIe peer access.",
               "NVML capture, H200, driver 580.159.04 (isP2pSupported 0 in every profile)"},
    .observability = {soft, documented,
                      "Free memory is per instance; power, temperature and clocks are the device's, and kernel "
                      "launches can be timed across instances.",
                      "NVML API Reference; Gu et al., Behind Bars, USENIX Security 2026"},
});

inline constexpr Claims mps = by_aspect({
    .sm = {soft, documented,
           "The active-thread percentage is a ceiling, rounded down, and reserves nothing; static partitions "
           "(CUDA 13.1) reserve SMs in chunks, and only SMs.",
           mps_guide},
    .l2 = {none, silicon,
           "All clients share the L2: beside a client that streams memory one step in a hundred within the cache took "
           "63 times as long or longer; with half of the SMs each, twice.",
           interference},
    .memory_capacity = {soft, documented,
                        "A per-client memory limit is optional, and limits may add up to more than there is.",
                        mps_guide},
    .memory_bandwidth = {none, silicon,
                         "All clients share the memory controllers: a step that streams memory took 28 times as long "
                         "beside another, with half of the SMs each 1.9 times.",
                         interference},
    .memory_content = {soft, documented,
                       "Clients have GPU address spaces of their own since Volta, under one server, one driver and "
                       "one UID: a guard against mistakes.",
                       mps_guide},
    .copy_engines = {none, documented, "All clients share the copy engines.", one_device},
    .media_engines = {none, assumed, "No document divides the media engines between clients.", mps_guide},
    .faults = {none, documented,
               "A fatal fault of one client is reported to every client of the GPUs it used, without naming it, and "
               "new clients wait until all have left.",
               mps_guide},
    .power_and_clocks = {none, documented, "One power limit and one clock for all clients.", one_device},
    .pcie = {none, silicon,
             "All clients share the PCIe link: a copy took 13 times as long beside another's, limits on SMs or not.",
             interference},
    .nvlink = {none, documented, "All clients share the GPU's NVLinks.", one_device},
    .observability =
        {none, silicon,
         "A neighbour without rights read free memory to the byte, processes and what each holds, load and "
         "power. NVML is hidden from tenants that share; whoever asks the driver itself still reads them.",
         visibility},
});

inline constexpr std::string_view slicing_guide = "NVIDIA Kubernetes device plugin, time-slicing";
inline constexpr Claims slicing = by_aspect({
    .sm = {none, silicon,
           "Processes take turns on the whole GPU, and a second replica buys no more of it: a step of 53 us took 46 "
           "times "
           "as long beside one busy neighbour.",
           interference},
    .l2 = {none, silicon,
           "Nothing divides the cache: steps within it took 87 times as long beside a neighbour that streams memory.",
           interference},
    .memory_capacity = {none, documented, "No limit: one process can take all device memory.", slicing_guide},
    .memory_bandwidth = {none, silicon,
                         "Whoever has the turn has all of it: a step that streams memory took 32 times as long beside "
                         "another.",
                         interference},
    .memory_content = {soft, documented,
                       "Each process has its own GPU address space, kept by the shared driver; no document promises "
                       "a wipe of freed memory.",
                       "CUDA C++ Programming Guide; NVIDIA Kubernetes device plugin, time-slicing"},
    .copy_engines = {none, documented, "All processes share the copy engines.", one_device},
    .media_engines = {none, assumed, "No document divides the media engines between processes.", slicing_guide},
    .faults = {none, documented, "One fault domain: a fault or reset can stop every process.", slicing_guide},
    .power_and_clocks = {none, documented, "One power limit and one clock for all processes.", one_device},
    .pcie = {none, silicon, "All processes share the PCIe link: a copy took 13 times as long beside another's.",
             interference},
    .nvlink = {none, documented, "All processes share the GPU's NVLinks.", one_device},
    .observability =
        {none, silicon,
         "A neighbour without rights read free memory to the byte, processes and what each holds, load and "
         "power. NVML is hidden from tenants that share; whoever asks the driver itself still reads them.",
         visibility},
});

inline constexpr Claims vgpu = by_aspect({
    .sm = {soft, documented,
           "VMs take turns on all SMs: best effort has no cap, equal share counts running vGPUs, fixed share follows "
           "the type and needs equal sizes.",
           vgpu_guide},
    .l2 = {none, assumed, "No document says the cache is flushed or divided between turns.", vgpu_guide},
    .memory_capacity = {hard, documented, "The frame buffer is fixed by the vGPU type and cannot be exceeded.",
                        vgpu_guide},
    .memory_bandwidth = {none, documented, "Whoever has the turn has all of it.", vgpu_guide},
    .memory_content = {soft, documented,
                       "Each VM has its own frame buffer, kept apart by the vGPU manager, which all VMs share and "
                       "which has had guest-triggered overflows.",
                       "NVIDIA vGPU documentation; bulletin 5670 (CVE-2025-23283, 23284)"},
    .copy_engines = {none, documented, "All VMs share the copy engines.", one_device},
    .media_engines = {none, documented, "All VMs share the media engines.", one_device},
    .faults = {none, assumed,
               "A guest's crash is its own; no document promises that a GPU error or a fault of the manager stays "
               "with one VM.",
               vgpu_guide},
    .power_and_clocks = {none, documented, "One power limit and one clock for all VMs.", one_device},
    .pcie = {none, documented, "All VMs share the PCIe link.", one_device},
    .nvlink = {none, documented,
               "Peer-to-peer over NVLink is offered only to a vGPU that has the GPU's whole frame buffer.",
               "NVIDIA AI Enterprise, peer-to-peer CUDA transfers"},
    .observability = {soft, documented,
                      "The manager decides what a guest may read; it once let guests read metrics that other VMs "
                      "influence.",
                      "NVIDIA bulletin 5670 (CVE-2025-23290)"},
});

// The instance behind a virtual function. The scheduler of time-sliced vGPUs is not in play; the manager is.
inline constexpr Claims mig_vgpu = worded(
    worded(mig, Aspect::faults,
           "A guest's fault stays in its instance; a GPU reset, or the fall of the vGPU manager, stops every guest.",
           "NVIDIA MIG User Guide, Getting Started; NVIDIA vGPU documentation"),
    Aspect::observability,
    "Free memory is per instance; the manager decides what else a guest may read (CVE-2025-23290), and kernel "
    "launches can be timed across instances.",
    "NVIDIA bulletin 5670; Gu et al., Behind Bars, USENIX Security 2026");

// Between clients of one instance; the instance's wall to the rest of the GPU is MIG's.
inline constexpr Claims mps_in_mig = [] {
    Claims claims = composed(mps, mig);
    claims = worded(claims, Aspect::l2, "All clients of the instance share its L2 slices.", mps_guide);
    claims = worded(claims, Aspect::memory_bandwidth, "All clients of the instance share its memory controllers.",
                    mps_guide);
    claims = worded(claims, Aspect::pcie, "All clients of all instances share the PCIe link.", one_device);
    claims = worded(claims, Aspect::faults,
                    "A fatal fault of one client stops every client of the instance; a GPU reset stops every instance.",
                    "NVIDIA Multi-Process Service documentation; NVIDIA MIG User Guide");
    claims = worded(claims, Aspect::nvlink, "Not offered: an instance has no NVLink for its clients to share.",
                    considerations);
    return worded(claims, Aspect::observability,
                  "Clients of the instance see its free memory and each other's timing; the device's power and "
                  "temperature are visible besides.",
                  "CUDA Runtime API, cudaMemGetInfo; NVML API Reference");
}();

inline constexpr Claims amd = by_aspect({
    .sm = {hard, documented, "Each partition owns whole XCDs: 38 CUs each in CPX on an MI300X.", amd_guide},
    .l2 = {none, documented, "Each XCD has its own L2; the Infinity Cache behind them all is shared.",
           "AMD CDNA 3 architecture white paper"},
    .memory_capacity = {soft, documented,
                        "The driver divides it: NPS1 is one pool, and in NPS4 two CPX partitions share one domain.",
                        amd_guide},
    .memory_bandwidth = {none, documented,
                         "In NPS1 all partitions draw on all HBM stacks; in NPS4 two CPX partitions draw on the same.",
                         amd_guide},
    .memory_content = {soft, documented,
                       "A render node and an address space per partition, behind one shared /dev/kfd and driver.",
                       "ROCm documentation, GPU partitioning and isolation techniques"},
    .copy_engines = {none, assumed, "No source used here says how the copy engines are divided.", amd_guide},
    .media_engines = {none, assumed, "No source used here says how the media engines are divided.", amd_guide},
    .faults = {none, documented, "A reset takes every partition of the GPU, and can disturb its peers in the hive.",
               "AMD SMI documentation, GPU reset behavior"},
    .power_and_clocks = {none, assumed, "One power budget for the package.", amd_guide},
    .pcie = {none, assumed, "All partitions share the host link.", amd_guide},
    .nvlink = {none, documented, "Infinity Fabric links belong to the GPU; a memory mode applies to the whole hive.",
               amd_guide},
    .observability = {none, assumed, "No source used here says which counters a partition can read of another.",
                      amd_guide},
});

}  // namespace bulkhead::claims
