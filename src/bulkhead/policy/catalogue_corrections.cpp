// Statements found in print about sharing GPUs between tenants, and what hardware or the vendors' own documents say
// instead. A statement nobody can check is not corrected here; it is left out of the catalogue.
#include "bulkhead/policy/catalogue.hpp"

namespace bulkhead {
namespace {

using enum Grade;

constexpr auto all_corrections = std::to_array<Correction>({
    // MIG geometry
    {"The MIG profiles of an H100 have 14, 28, 42 and 60 SMs.",
     "An H100 SXM5 lists 16 (1g.10gb), 26 (1g.20gb), 32 (2g), 60 (3g), 64 (4g) and 132 (7g); 14, 28, 42, 56 and 98 "
     "are the A100's.",
     documented, "public nvidia-smi mig -lgip listings, H100 and A100"},
    {"One compute slice has 14 SMs, two have 28, three have 42.",
     "On an H200 a 1g.18gb has 16 SMs, a 1g.35gb 26, a 3g.71gb 60 and a 4g.71gb 64: the shape decides, not the sum.",
     silicon, "NVML capture, H200, driver 580.159.04"},
    {"A 3g.40gb of an H100 has 40 MB of L2, a 7g.80gb 80 MB.",
     "An H100 has 50 MB of L2 in all, and an instance gets an eighth of it per memory slice.", documented,
     "NVIDIA Hopper Tuning Guide, Increased L2 Capacity; NVIDIA MIG User Guide, Concepts"},
    {"A Hopper GPU has a megabyte of L2 for each gigabyte of memory.",
     "An H200 with 141 GB of memory reports 60 MiB of L2.", silicon, "CUDA attribute capture, H200, driver 580.159.04"},
    {"Video engines are shared by all MIG instances.",
     "They are assigned by profile: on an H200 1g.18gb has 1 decoder and 1 JPEG engine, 7g.141gb 7 and 7 and the one "
     "optical-flow engine; no profile has an encoder.",
     silicon, "NVML capture, H200, driver 580.159.04"},
    {"As video engines are shared, every MIG instance can use them.",
     "A plain 1g of an A100 has no decoder, and no plain 1g of an A100 or A30 has a JPEG or optical-flow engine.",
     documented, "public nvidia-smi mig -lgip listings, A100 and A30"},
    {"A B200 is cut into two instances of 93 GB or four of 46 GB.",
     "A B200 lists 3g.90gb, 1g.45gb and 2g.45gb, and 1g.23gb; 93 and 47 are names of the GB200.", documented,
     "NVIDIA MIG User Guide, Supported MIG Profiles"},
    {"Turning MIG mode on resets the GPU.",
     "Only on Ampere. On Hopper and newer it does not, but the mode is lost on reboot and when the driver is unloaded.",
     documented, "NVIDIA MIG User Guide, Getting Started"},
    {"Since R570, MIG instances of one GPU have peer-to-peer access.",
     "An H200 with driver 580.159.04 reports no peer-to-peer support for any profile; plan without it.", silicon,
     "NVML capture, H200, driver 580.159.04 (isP2pSupported 0 in every profile)"},

    // what MIG keeps apart
    {"MIG is kernel-level isolation: every tenant has a kernel of its own.",
     "MIG divides one GPU. All instances share its driver and firmware, and without VMs one operating-system kernel.",
     documented, "NVIDIA MIG User Guide, Concepts"},
    {"MIG alone is enough between tenants that attack each other.",
     "An attacker can time a neighbour's kernel launches across instances, and a driver flaw reaches all "
     "of them; "
     "between distrusting tenants each instance needs a VM of its own, and both must know.",
     documented, "Gu et al., Behind Bars, USENIX Security 2026; NVIDIA bulletin 5821"},
    {"MIG makes noisy neighbours impossible.",
     "It divides SMs, L2 and memory. The PCIe link, the power limit, clocks and heat stay common.", documented,
     "follows from sharing one device"},
    {"An Xid error in one MIG instance never touches another.",
     "A context's fault stays in its instance; an error that needs a GPU reset stops every instance.", documented,
     "NVIDIA MIG User Guide, Getting Started"},
    {"MIG eliminates memory residue between tenants.",
     "It keeps live neighbours apart. No document found promises that memory slices are wiped before their next owner: "
     "scrub, and read back.",
     assumed, "no statement found in the NVIDIA MIG User Guide"},
    {"Setting CUDA_MEMSET_ON_ALLOC=1 makes the driver zero every allocation.",
     "No documentation or source for such a variable was found; a control nobody documents is not relied on.", assumed,
     "search of public CUDA documentation and source, November 2026"},

    // sharing without partitions
    {"Outside MIG a GPU has no memory protection between workloads.",
     "Each CUDA context has a GPU address space of its own, MPS clients too since Volta. What is missing is a limit on "
     "memory, a fault wall and a partitioned cache.",
     documented, "NVIDIA Multi-Process Service documentation, Volta MPS"},
    {"MPS contains the crash of a process.",
     "A fatal fault of one client is reported to every client of the GPUs it used, and the server takes no new ones "
     "until all have left.",
     documented, "NVIDIA Multi-Process Service documentation, error containment"},
    {"MPS serves 4 to 8 tenants on a GPU.",
     "It serves clients of one UID: 48 contexts a GPU from Volta on, 60 from CUDA 13.1, 16 before Volta, fewer on a "
     "small MIG instance.",
     documented, "NVIDIA Multi-Process Service documentation"},
    {"AMD CDNA has a Multi-Process Service.",
     "MPS is NVIDIA's. AMD's MI300 class has compute modes (SPX, DPX, QPX, CPX) and memory modes (NPS1, NPS2, NPS4).",
     documented, "ROCm documentation, GPU partitioning"},
    {"A vGPU profile reserves a number of SMs.",
     "A time-sliced vGPU reserves frame buffer and gets turns on all SMs; only a MIG-backed one has SMs of "
     "its own.",
     documented, "NVIDIA vGPU documentation, scheduling"},

    // confidential computing
    {"Each MIG instance of an H100 can be wrapped in a confidential VM.",
     "No release from R535 to R590 offers it. Confidential mode ships for one whole GPU per VM, or for the whole "
     "board.",
     documented, "NVIDIA confidential computing release notes R535 to R590; open kernel modules 595.45.04"},
    {"In confidential mode GPU memory is encrypted.",
     "On Hopper data is encrypted across PCIe and plain inside the package; GPU memory is protected by access control.",
     documented, "NVIDIA confidential computing documentation, Hopper"},
    {"In confidential mode NVLink is encrypted.",
     "In Hopper's protected-PCIe mode NVLink carries plain text and the switches are trusted; encryption comes with "
     "Blackwell from R590.",
     documented, "NVIDIA confidential computing release notes R570 to R590"},

    // fabric and drives
    {"NCCL_IB_GID_INDEX binds a tenant to its GID subnet.",
     "It picks a row of a table, unchecked, and rows move when an address changes. It selects; it isolates nobody.",
     documented, "NCCL 2.30.7 source, net_ib"},
    {"NCCL_IB_HCA=mlx5_1 uses that adapter alone.",
     "Without '=' it is a prefix and takes mlx5_10 to mlx5_19 too; write =mlx5_1:1.", documented,
     "NCCL 2.30.7 source, net_ib"},
    {"A GID subnet per tenant stops spoofing.",
     "RoCE does not authenticate a source: on one flat network a spoofed GID completed its traffic. A VLAN per tenant, "
     "or a source filter below the tenant, stopped it.",
     emulated, "soft-RoCE lab, Linux 7.2"},
    {"A tenant in its own network namespace sees only its own RDMA device.",
     "In the default shared mode every namespace lists and opens every device; the exclusive mode must be set at boot.",
     emulated, "soft-RoCE lab, Linux 7.2"},
    {"A drive that completes format --ses=2 has erased its key.",
     "A controller without cryptographic erase (FNA bit 2 clear) completed it all the same. Ask the "
     "capability, then "
     "verify by reading.",
     emulated, "NVMe lab, emulated controller, Linux 7.2"},
    {"Formatting a namespace wipes the drive.",
     "It wipes that namespace or all, as FNA bit 1 says; a detached namespace keeps its data and shows no "
     "block "
     "device.",
     emulated, "NVMe lab, emulated controller, Linux 7.2; NVM Express Base Specification"},
});

}  // namespace

std::span<const Correction> corrections() { return all_corrections; }

}  // namespace bulkhead
