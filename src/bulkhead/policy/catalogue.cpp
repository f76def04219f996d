// The mechanisms as rows: claims from catalogue_claims.hpp, what they cost, and a fraction over each that can back one.
#include "bulkhead/policy/catalogue.hpp"

#include <algorithm>

#include "bulkhead/base/result.hpp"
#include "bulkhead/policy/catalogue_claims.hpp"

namespace bulkhead {
namespace {

using claims::Claims;

constexpr MechanismEntry entry(Mechanism mechanism, const Claims& claimed, MechanismEntry rest) {
    rest.mechanism = mechanism;
    rest.claims = claimed;
    rest.strongest_slo = claims::slo_of(claimed);
    return rest;
}

// Packing adds no wall and removes none: a fraction has the claims of what backs it, every one.
constexpr MechanismEntry fraction_over(const MechanismEntry& backing, std::string_view title, std::string_view overhead,
                                       std::string_view best_for) {
    MechanismEntry fraction = backing;
    fraction.fraction = true;
    fraction.title = title;
    fraction.overhead = overhead;
    fraction.best_for = best_for;
    return fraction;
}

constexpr auto whole_entries = std::to_array<MechanismEntry>({
    entry(Mechanism::whole, claims::whole,
          {.title = "whole GPU",
           .fault_domain = "the owner alone",
           .overhead = "none while busy; whatever the owner leaves idle is lost",
           .reconfiguration = "none",
           .licence = "none",
           .best_for = "tightly coupled training; serving that fills a GPU; distrusting tenants"}),
    entry(Mechanism::mig, claims::mig,
          {.title = "MIG instance",
           .fault_domain = "the instance; on a GPU reset every instance of the GPU",
           .overhead = "sizes are fixed and slices strand: two 3g use 6 of 7 compute slices; slowdown not yet measured",
           .reconfiguration = "instances in the way must be idle and are destroyed; turning the mode on resets the GPU "
                              "on Ampere only; instances survive no reset or reboot",
           .licence = "none",
           .best_for = "serving with a hard service level inside one trust domain"}),
    entry(Mechanism::mps, claims::mps,
          {.title = "MPS",
           .fault_domain = "every client of the GPU",
           .overhead = "beside a busy client 3.5 times the latency, 1.03 with half each (H200); 48 clients a GPU, 60 "
                       "from CUDA 13.1",
           .reconfiguration = "restart of a daemon; defaults reach only servers started later",
           .licence = "none",
           .best_for = "many small processes of one tenant"}),
    entry(Mechanism::time_slicing, claims::slicing,
          {.title = "time-slicing",
           .fault_domain = "every process on the GPU",
           .overhead = "a context switch per turn: beside a busy neighbour 46 times the latency (H200)",
           .reconfiguration = "a setting of the device plugin; nothing on the GPU changes",
           .licence = "none",
           .best_for = "notebooks and tests of one tenant"}),
    entry(Mechanism::vgpu, claims::vgpu,
          {.title = "vGPU, time-sliced",
           .fault_domain = "the VM; on a GPU error or a fault of the manager every VM of the GPU",
           .overhead = "turns of 1 to 2 ms by default; cost not yet measured",
           .reconfiguration = "a VM is off while its type changes; another scheduler needs a driver reload",
           .licence = "NVIDIA vGPU for Compute (NVIDIA AI Enterprise)",
           .best_for = "desktops and light work of one trust domain in VMs"}),
    entry(Mechanism::mig_vgpu, claims::mig_vgpu,
          {.title = "MIG-backed vGPU",
           .fault_domain = "the VM and its instance; on a GPU reset or a fault of the manager every VM of the GPU",
           .overhead = "as MIG, and the manager's; not yet measured",
           .reconfiguration = "as MIG, with the VM off; virtual functions survive no reboot",
           .licence = "NVIDIA vGPU for Compute (NVIDIA AI Enterprise)",
           .best_for = "distrusting tenants on one GPU, where both accept the disclosed co-residency"}),
    entry(Mechanism::mps_in_mig, claims::mps_in_mig,
          {.title = "MPS inside a MIG instance",
           .fault_domain = "every client of the instance; on a GPU reset every instance of the GPU",
           .overhead = "as MIG and MPS; fewer clients the smaller the instance",
           .reconfiguration = "as MIG for the instance, as MPS for the clients",
           .licence = "none",
           .best_for = "small processes of one tenant beside other tenants of its domain"}),
    entry(Mechanism::amd_partition, claims::amd,
          {.title = "AMD compute and memory partition",
           .fault_domain = "every partition of the GPU; possibly its hive",
           .overhead = "not yet measured",
           .reconfiguration = "compute mode needs an idle GPU; memory mode reloads the driver of the whole hive",
           .licence = "none",
           .best_for = "one tenant's work in equal parts"}),
});

constexpr const MechanismEntry& backing(Mechanism mechanism) {
    return whole_entries[static_cast<std::size_t>(mechanism)];
}

constexpr auto fraction_entries = std::to_array<MechanismEntry>({
    fraction_over(backing(Mechanism::mig), "fraction over MIG", "rounded up to the next instance that fits",
                  "part of a GPU with a hard service level"),
    fraction_over(backing(Mechanism::mps), "fraction over MPS", "rounded down to a whole percent of threads",
                  "packing one tenant's services"),
    fraction_over(backing(Mechanism::time_slicing), "fraction over time-slicing",
                  "a share of turns, with nothing that enforces it", "packing one tenant's notebooks"),
    fraction_over(backing(Mechanism::vgpu), "fraction over vGPU", "rounded up to the next vGPU type",
                  "packing VMs of one trust domain"),
    fraction_over(backing(Mechanism::mig_vgpu), "fraction over MIG-backed vGPU",
                  "rounded up to the next instance that fits", "part of a GPU in a VM, with a hard service level"),
    fraction_over(backing(Mechanism::mps_in_mig), "fraction over MPS inside MIG",
                  "rounded down to a whole percent of the instance's threads", "packing one tenant's services"),
    fraction_over(backing(Mechanism::amd_partition), "fraction over AMD partition", "rounded up to the next partition",
                  "packing one tenant's work"),
});

constexpr auto all = [] {
    std::array<MechanismEntry, whole_entries.size() + fraction_entries.size()> both{};
    std::ranges::copy(fraction_entries, std::ranges::copy(whole_entries, both.begin()).out);
    return both;
}();

static_assert(whole_entries.size() == words(Mechanism{}).size());
static_assert([] {  // rows lie where entry_of looks for them
    for (std::size_t i = 0; i < whole_entries.size(); ++i)
        if (whole_entries[i].mechanism != static_cast<Mechanism>(i)) return false;
    for (std::size_t i = 0; i < fraction_entries.size(); ++i)
        if (fraction_entries[i].mechanism != static_cast<Mechanism>(i + 1)) return false;
    return true;
}());
static_assert(std::ranges::all_of(all, [](const MechanismEntry& e) {  // a hard level needs an instance or a whole GPU
    const bool instance =
        e.mechanism == Mechanism::whole || e.mechanism == Mechanism::mig || e.mechanism == Mechanism::mig_vgpu;
    return (e.strongest_slo == Slo::hard) == instance;
}));

}  // namespace

std::span<const MechanismEntry> mechanisms() { return all; }

const MechanismEntry& entry_of(Mechanism mechanism, bool fraction) {
    const auto row = static_cast<std::size_t>(mechanism);
    if (!fraction) return all[row];
    invariant(can_back_a_fraction(mechanism), "a fraction is packed over a mechanism that divides the GPU");
    return all[whole_entries.size() + row - 1];
}

}  // namespace bulkhead
