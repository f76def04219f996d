#include "bulkhead/shell/device_metrics.hpp"

#include <algorithm>
#include <array>

#include "bulkhead/policy/telemetry.hpp"

namespace bulkhead::shell {

namespace {

using Type = Exposition::Type;

struct Named {
    Counter counter{};
    std::string_view name;
    Type type{};
    std::int64_t unit = 1;  // how many of ours make one of theirs
    int digits = 0;         // behind the point, where one of ours is a fraction of theirs
    std::string_view about;
};
constexpr std::int64_t bytes_in_mib = 1 << 20;
constexpr std::array dcgm_names{
    Named{Counter::gpu_percent, "DCGM_FI_DEV_GPU_UTIL", Type::gauge, 1, 0, "Percent of the time that some kernel ran."},
    Named{Counter::memory_percent, "DCGM_FI_DEV_MEM_COPY_UTIL", Type::gauge, 1, 0,
          "Percent of the time that memory was read or written."},
    Named{Counter::memory_used_bytes, "DCGM_FI_DEV_FB_USED", Type::gauge, bytes_in_mib, 0, "Memory in use, in MiB."},
    Named{Counter::memory_free_bytes, "DCGM_FI_DEV_FB_FREE", Type::gauge, bytes_in_mib, 0,
          "Memory that is free, in MiB."},
    Named{Counter::memory_reserved_bytes, "DCGM_FI_DEV_FB_RESERVED", Type::gauge, bytes_in_mib, 0,
          "Memory of the driver and its firmware, in MiB."},
    Named{Counter::power_mw, "DCGM_FI_DEV_POWER_USAGE", Type::gauge, 1, 3, "Power draw of the board, in W."},
    Named{Counter::energy_mj, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Type::counter, 1, 0,
          "Energy since the driver was loaded, in mJ."},
    Named{Counter::celsius, "DCGM_FI_DEV_GPU_TEMP", Type::gauge, 1, 0, "Temperature of the GPU, in degrees Celsius."},
    Named{Counter::memory_celsius, "DCGM_FI_DEV_MEMORY_TEMP", Type::gauge, 1, 0,
          "Temperature of its memory, in degrees Celsius."},
    Named{Counter::sm_mhz, "DCGM_FI_DEV_SM_CLOCK", Type::gauge, 1, 0, "Clock of the multiprocessors, in MHz."},
    Named{Counter::memory_mhz, "DCGM_FI_DEV_MEM_CLOCK", Type::gauge, 1, 0, "Clock of the memory, in MHz."},
    Named{Counter::pcie_tx_kbps, "DCGM_FI_DEV_PCIE_TX_THROUGHPUT", Type::gauge, 1, 0,
          "Sent over PCIe, in thousands of bytes a second, over the last 20 ms."},
    Named{Counter::pcie_rx_kbps, "DCGM_FI_DEV_PCIE_RX_THROUGHPUT", Type::gauge, 1, 0,
          "Received over PCIe, in thousands of bytes a second, over the last 20 ms."},
    Named{Counter::pcie_replays, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", Type::counter, 1, 0,
          "What had to be sent again over PCIe."},
    Named{Counter::clock_reasons, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", Type::gauge, 1, 0,
          "Why clocks are what they are, as bits: 4 power cap, 8 hardware, 32 and 64 heat, 128 power brake."},
    Named{Counter::ecc_corrected, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", Type::counter, 1, 0,
          "Memory errors that were corrected, since the last reset."},
    Named{Counter::ecc_uncorrected, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", Type::counter, 1, 0,
          "Memory errors that could not be corrected, since the last reset."},
    Named{Counter::ecc_corrected_lifetime, "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", Type::counter, 1, 0,
          "Memory errors that were corrected, in the board's life."},
    Named{Counter::ecc_uncorrected_lifetime, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", Type::counter, 1, 0,
          "Memory errors that could not be corrected, in the board's life."},
    Named{Counter::rows_remapped_corrected, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", Type::counter, 1, 0,
          "Rows of memory replaced after errors that could be corrected."},
    Named{Counter::rows_remapped_uncorrected, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", Type::counter, 1, 0,
          "Rows of memory replaced after errors that could not be corrected."},
    Named{Counter::row_remap_failed, "DCGM_FI_DEV_ROW_REMAP_FAILURE", Type::gauge, 1, 0,
          "1: a row is broken and no spare is left."},
    Named{Counter::xid_last, "DCGM_FI_DEV_XID_ERRORS", Type::gauge, 1, 0,
          "The last Xid since the agent started; 0: none."},
    Named{Counter::xid_count, "bulkhead_gpu_xids_total", Type::counter, 1, 0, "Xids since the agent started."},
};
static_assert(dcgm_names.size() == words(Counter{}).size());
static_assert(std::ranges::is_sorted(dcgm_names, {}, &Named::counter), "a name is found by its counter's number");

void tell(Exposition& out, const Measured& reading, const std::string& with) {
    const Named& named = dcgm_names.at(static_cast<std::size_t>(reading.counter));
    Exposition::Family& family = out.family(named.name, named.type, named.about);
    if (named.digits > 0)
        family.add(with, decimal(static_cast<std::int64_t>(reading.value), named.digits));
    else
        family.add(with, reading.value / static_cast<std::uint64_t>(named.unit));
    if (reading.counter == Counter::clock_reasons)  // as it was called before DCGM 3.3
        out.family("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", named.type, named.about).add(with, reading.value);
}

std::string labels_of(const std::string& node, const GpuSample& gpu, Grade grade) {
    return labels({{"gpu", std::to_string(gpu.gpu)},
                   {"UUID", gpu.uuid},
                   {"pci_bus_id", gpu.bus},
                   {"device", fmt::format("nvidia{}", gpu.minor)},
                   {"modelName", gpu.name},
                   {"Hostname", node},
                   {"grade", word(grade)}});
}

void tell_own_gpu(Exposition& out, const GpuSample& gpu, const LeasedSlice& slice, Company company,
                  const std::string& with) {
    for (const Measured& reading : gpu.readings)
        if (const auto shown = shown_to_tenant(reading, ReadOf::device, company)) tell(out, *shown, with);
    for (const InstanceSample& part : gpu.instances) {
        if (part.start != slice.start) continue;  // what is there while the lease is active is the lease's
        const std::string of_part = with_label(with, "GPU_I_PROFILE", slice.profile);
        for (const Measured& reading : part.readings)
            if (const auto shown = shown_to_tenant(reading, ReadOf::instance, company)) tell(out, *shown, of_part);
    }
}

}  // namespace

void tell_devices(Exposition& out, const std::map<std::string, Sampled>& samples) {
    std::size_t told = 0, left_out = 0;
    for (const auto& [node, sampled] : samples) {
        for (const GpuSample& gpu : sampled.telemetry->gpus) {
            if (told == gpus_told_max) {
                ++left_out;
                continue;
            }
            ++told;
            const std::string with = labels_of(node, gpu, sampled.telemetry->grade);
            for (const Measured& reading : gpu.readings) tell(out, reading, with);
            for (const InstanceSample& part : gpu.instances) {
                const std::string of_part =
                    with_label(with_label(with, "GPU_I_PROFILE", part.profile), "GPU_I_ID", std::to_string(part.id));
                for (const Measured& reading : part.readings) tell(out, reading, of_part);
            }
        }
    }
    out.value("bulkhead_telemetry_gpus_left_out", Type::gauge,
              "GPUs that are measured and not in this answer: ask for fewer nodes at a time.", left_out);
}

void tell_own_devices(Exposition& out, const std::map<std::string, Sampled>& samples,
                      const std::vector<std::shared_ptr<const GpuLease>>& leases) {
    for (const auto& lease : leases) {
        // Before it was active the device was somebody else's, or being wiped of what they left.
        if (!lease->status || lease->status->phase != LeasePhase::active || !lease->status->activeAt) continue;
        for (std::size_t i = 0; i < lease->spec.slices.size(); ++i) {
            const LeasedSlice& slice = lease->spec.slices[i];
            const auto sampled = samples.find(slice.node);
            if (sampled == samples.end() || sampled->second.taken < *lease->status->activeAt) continue;
            for (const GpuSample& gpu : sampled->second.telemetry->gpus)
                if (gpu.gpu == slice.gpu)
                    tell_own_gpu(out, gpu, slice, company_of(lease->spec, slice),
                                 labels({{"lease", lease->metadata.name},
                                         {"workload", lease->spec.workload},
                                         {"gpu", std::to_string(i)},
                                         {"modelName", gpu.name},
                                         {"grade", word(sampled->second.telemetry->grade)}}));
        }
    }
}

}  // namespace bulkhead::shell
