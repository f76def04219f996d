// The tiers, and which mechanism goes with which tier. A tier is about code and whoever runs the machine; it says
// nothing of how well the silicon is divided.
#include <algorithm>

#include "bulkhead/policy/catalogue.hpp"

namespace bulkhead {
namespace {

using enum Strength;
using enum Grade;

constexpr std::string_view kernel_docs = "Linux kernel documentation";
constexpr std::string_view mig_nodes = "NVIDIA MIG User Guide, Device Nodes and Capabilities";
constexpr std::string_view cc_notes = "NVIDIA confidential computing release notes R535 to R590";

struct Sheet {
    Claim host_kernel, gpu_driver, device_nodes, host_memory, dma, operator_access, metrics;
};
constexpr std::array<Claim, wall_count> by_wall(const Sheet& s) {
    return {s.host_kernel, s.gpu_driver, s.device_nodes, s.host_memory, s.dma, s.operator_access, s.metrics};
}

constexpr auto all_tiers = std::to_array<TierEntry>({
    {.tier = Tier::process,
     .title = "processes of one host",
     .claims = by_wall({
         .host_kernel = {none, documented, "One kernel, with all of its system calls, for everyone.", kernel_docs},
         .gpu_driver = {none, documented, "One GPU driver in that kernel for everyone.", "NVIDIA driver documentation"},
         .device_nodes = {none, documented, "File permissions alone; GPU nodes are open to all by default.",
                          "NVIDIA driver README, device files"},
         .host_memory = {soft, documented,
                         "Page tables of the shared kernel; same-user processes may trace each other.", kernel_docs},
         .dma = {soft, documented, "The shared driver programs what devices may reach.", kernel_docs},
         .operator_access = {none, documented, "Whoever administers the host reads everything.", kernel_docs},
         .metrics = {none, documented, "NVML answers every process for every GPU of the host.", "NVML API Reference"},
     }),
     .overhead = "none",
     .trusted_base = "kernel, GPU driver and firmware, every other process of the user, the operator",
     .best_for = "one tenant's own work on a node of its own"},
    {.tier = Tier::container,
     .title = "containers on one kernel",
     .claims = by_wall({
         .host_kernel = {soft, documented,
                         "Namespaces, cgroups and seccomp narrow what can be asked of the one shared kernel.",
                         kernel_docs},
         .gpu_driver = {none, documented,
                        "One GPU driver in that kernel for everyone, reached through the same device node.", mig_nodes},
         .device_nodes = {soft, documented,
                          "The device cgroup decides; instances of one GPU share its parent node, and only their "
                          "capability nodes differ.",
                          mig_nodes},
         .host_memory = {soft, documented, "Page tables and cgroups of the shared kernel.", kernel_docs},
         .dma = {soft, documented, "The shared driver programs what devices may reach.", kernel_docs},
         .operator_access = {none, documented, "Whoever administers the host reads everything.", kernel_docs},
         .metrics = {soft, assumed,
                     "NVML can be kept out of the container, but the driver still answers whoever has the GPU's node.",
                     "NVIDIA Container Toolkit documentation; not measured"},
     }),
     .overhead = "none that shows",
     .trusted_base = "kernel, container runtime, NVIDIA Container Toolkit, GPU driver and firmware, the operator",
     .best_for = "tenants of one trust domain"},
    {.tier = Tier::vm,
     .title = "virtual machines",
     .claims = by_wall({
         .host_kernel = {hard, documented, "Each tenant has a kernel of its own behind the hypervisor.",
                         "KVM documentation"},
         .gpu_driver = {soft, documented,
                        "With a whole GPU the guest brings its own driver; with vGPU all guests lean on one manager.",
                        "NVIDIA vGPU documentation"},
         .device_nodes = {hard, documented, "A guest sees only the functions handed to it.", "VFIO documentation"},
         .host_memory = {hard, documented, "Second-level page tables keep guests apart.", "KVM documentation"},
         .dma = {hard, documented, "The IOMMU confines each device, provided it has an IOMMU group of its own.",
                 "VFIO documentation"},
         .operator_access = {none, documented, "Whoever administers the host reads guest memory.", "KVM documentation"},
         .metrics = {soft, documented,
                     "A guest sees its own device; on a shared GPU the manager once let metrics of other VMs through.",
                     "NVIDIA bulletin 5670 (CVE-2025-23290)"},
     }),
     .overhead = "memory and start-up of a guest; slowdown not yet measured",
     .trusted_base = "hypervisor, host kernel, vGPU manager where used, GPU and NIC firmware, the operator",
     .best_for = "tenants that distrust each other and trust the operator"},
    {.tier = Tier::confidential_vm,
     .title = "confidential virtual machines with the GPU in confidential mode",
     .claims = by_wall({
         .host_kernel = {hard, documented, "The host kernel is outside the trusted base.",
                         "AMD SEV-SNP and Intel TDX documentation"},
         .gpu_driver = {hard, documented, "The driver runs inside the guest and is measured with it.", cc_notes},
         .device_nodes = {hard, documented, "One whole GPU, or the whole Hopper board, belongs to one guest.",
                          cc_notes},
         .host_memory = {hard, documented, "Guest memory is encrypted against the host.",
                         "AMD SEV-SNP and Intel TDX documentation"},
         .dma = {hard, documented,
                 "Devices reach shared bounce buffers only; what crosses PCIe to the GPU is AES-GCM encrypted.",
                 cc_notes},
         .operator_access = {hard, documented,
                             "The operator cannot read guest or protected GPU memory, given verified attestation; it "
                             "can still stop, delay and watch the shape of traffic.",
                             cc_notes},
         .metrics = {soft, assumed, "The host still sees power, temperature and timing.", cc_notes},
     }),
     .overhead = "bounce buffers on every transfer; not yet measured",
     .trusted_base = "CPU and GPU silicon and firmware, their vendors' keys, the guest image, whoever verifies",
     .best_for = "tenants that do not trust the operator"},
});
static_assert([] {
    for (std::size_t i = 0; i < all_tiers.size(); ++i)
        if (all_tiers[i].tier != static_cast<Tier>(i)) return false;
    return all_tiers.size() == words(Tier{}).size();
}());

constexpr PairEntry no_vm_no_vgpu{
    Fit::no, documented, "A vGPU is a device of a virtual machine; there is none for a process or a container.",
    "NVIDIA vGPU documentation"};
constexpr PairEntry no_confidential_instance{
    Fit::no, documented,
    "No release from R535 to R590 offers a confidential VM per MIG instance; the ready-state control refuses on a "
    "virtual function, and MIG inside one's own confidential VM is undocumented.",
    "NVIDIA confidential computing release notes R535 to R590; open kernel modules 595.45.04"};
constexpr PairEntry no_confidential_vgpu{
    Fit::no, documented,
    "Confidential mode ships for whole GPUs by passthrough only; the ready-state control refuses on a virtual "
    "function.",
    "NVIDIA confidential computing release notes R535 to R590; open kernel modules 595.45.04"};
constexpr PairEntry mig_inside{
    Fit::own_gpu, documented,
    "The GPU is passed through whole, so it is leased whole, and the guest cuts it; VMs share one only as MIG-backed "
    "vGPU.",
    "NVIDIA MIG User Guide, Supported Configurations"};

// One row a mechanism, one column a tier: process, container, vm, confidential-vm.
constexpr std::array<std::array<PairEntry, 4>, 8> pairs{{
    // whole
    {{{Fit::yes, documented, "The owner's processes have the GPU to themselves.", "follows from sole ownership"},
      {Fit::yes, documented, "The owner's containers have the GPU to themselves.",
       "NVIDIA Container Toolkit documentation"},
      {Fit::yes, documented, "The GPU is passed through to the owner's VM.", "VFIO documentation"},
      {Fit::yes, documented,
       "One whole GPU per confidential VM on Hopper and Blackwell, or the whole board; confidential mode is host-wide.",
       cc_notes}}},
    // mig
    {{{Fit::yes, documented, "A process opens its instance through capability nodes.", mig_nodes},
      {Fit::yes, documented, "The device cgroup opens one instance's capability nodes to a container.", mig_nodes},
      mig_inside,
      no_confidential_instance}},
    // mps
    {{{Fit::yes, documented, "Processes of one UID become clients of one server.",
       "NVIDIA Multi-Process Service documentation"},
      {Fit::yes, documented, "Containers share the server's pipe directory and its UID.",
       "NVIDIA Kubernetes device plugin, MPS"},
      {Fit::own_gpu, documented, "The guest is leased the whole GPU and runs the server for itself.",
       "NVIDIA Multi-Process Service documentation"},
      {Fit::own_gpu, assumed,
       "The guest is leased the whole GPU; no release note reviewed rules MPS in or out, and confidential mode limits "
       "contexts.",
       cc_notes}}},
    // time-slicing
    {{{Fit::yes, documented, "Any processes take turns.", "CUDA C++ Programming Guide"},
      {Fit::yes, documented, "Replicas of the device plugin take turns.",
       "NVIDIA Kubernetes device plugin, time-slicing"},
      {Fit::own_gpu, documented, "The guest is leased the whole GPU and its processes take turns.",
       "CUDA C++ Programming Guide"},
      {Fit::own_gpu, documented, "The guest is leased the whole GPU and its processes take turns.", cc_notes}}},
    // vgpu
    {{no_vm_no_vgpu,
      no_vm_no_vgpu,
      {Fit::yes, documented, "Each VM gets a vGPU of the same GPU.", "NVIDIA vGPU documentation"},
      no_confidential_vgpu}},
    // mig-vgpu
    {{no_vm_no_vgpu,
      no_vm_no_vgpu,
      {Fit::yes, documented, "Each VM gets a virtual function over an instance of its own.",
       "NVIDIA vGPU documentation; NVIDIA MIG User Guide, Virtualization"},
      no_confidential_vgpu}},
    // mps-in-mig
    {{{Fit::yes, documented, "A server for each instance.", "NVIDIA MIG User Guide, MIG with CUDA MPS"},
      {Fit::yes, documented, "By the DRA driver; the device plugin offers MPS on whole GPUs only.",
       "NVIDIA DRA driver for GPUs; NVIDIA Kubernetes device plugin, MPS"},
      mig_inside,
      no_confidential_instance}},
    // amd-partition
    {{{Fit::yes, documented, "A render node a partition.", "ROCm documentation, GPU partitioning"},
      {Fit::yes, documented, "A render node a partition, given by the AMD device plugin.",
       "ROCm Kubernetes device plugin documentation"},
      {Fit::own_gpu, assumed, "The GPU is passed through whole; partitions on virtual functions are not relied on.",
       "AMD MxGPU-Virtualization release notes"},
      {Fit::no, assumed, "No source used here lists a confidential mode for these GPUs.", "none found"}}},
}};
static_assert(pairs.size() == words(Mechanism{}).size() && pairs[0].size() == words(Tier{}).size());

}  // namespace

std::span<const TierEntry> tiers() { return all_tiers; }
const TierEntry& entry_of(Tier tier) { return all_tiers[static_cast<std::size_t>(tier)]; }
const PairEntry& pair_of(Mechanism mechanism, Tier tier) {
    return pairs[static_cast<std::size_t>(mechanism)][static_cast<std::size_t>(tier)];
}

}  // namespace bulkhead
