// The values that cross the line to libnvidia-ml.so.1: return codes, handles, structs and constants of NVML's C
// interface, declared by us so that nothing of NVIDIA's is needed to build. Sizes and offsets are facts of a 64-bit
// Linux driver and are held below; the calls themselves are in calls.hpp. Only what we call or simulate is here.
//
// Names: what NVML calls nvmlGpuInstanceProfileInfo_v2_t is GpuInstanceProfileInfoV2 here, and its fields are written
// our way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace bulkhead::nvml {

enum class Return : std::uint32_t {
    success = 0,
    uninitialized = 1,
    invalid_argument = 2,
    not_supported = 3,
    no_permission = 4,
    already_initialized = 5,
    not_found = 6,
    insufficient_size = 7,
    insufficient_power = 8,
    driver_not_loaded = 9,
    timeout = 10,
    irq_issue = 11,
    library_not_found = 12,
    function_not_found = 13,
    corrupted_inforom = 14,
    gpu_is_lost = 15,
    reset_required = 16,
    operating_system = 17,
    lib_rm_version_mismatch = 18,
    in_use = 19,
    memory = 20,
    no_data = 21,
    vgpu_ecc_not_supported = 22,
    insufficient_resources = 23,
    freq_not_supported = 24,
    argument_version_mismatch = 25,
    deprecated = 26,
    not_ready = 27,
    gpu_not_found = 28,
    invalid_state = 29,
    reset_type_not_supported = 30,
    unknown = 999,
};

// Handles are pointers to what only the library knows. One type each, so that they cannot be mixed up. A MIG device is
// a Device too.
using Device = struct DeviceObject*;
using GpuInstance = struct GpuInstanceObject*;
using ComputeInstance = struct ComputeInstanceObject*;
using EventSet = struct EventSetObject*;

// Sizes of the character buffers that callers hand in.
inline constexpr std::size_t pci_bus_id_size = 32, pci_bus_id_legacy_size = 16, uuid_size = 80, uuid_v2_size = 96,
                             name_size = 64, name_v2_size = 96, serial_size = 30, vbios_version_size = 32,
                             inforom_version_size = 16, part_number_size = 80, system_version_size = 80,
                             gsp_version_size = 64;

// Since API 11 a struct says in its first word how large its caller believes it to be, and which version it is.
template <class Struct>
constexpr std::uint32_t struct_version(std::uint32_t version) {
    return static_cast<std::uint32_t>(sizeof(Struct)) | version << 24;
}

inline constexpr std::uint64_t value_not_available = ~std::uint64_t{0};  // memory of a process that may not be told
inline constexpr std::uint32_t no_instance = 0xFFFFFFFF;  // of a process on a GPU that is not partitioned

enum class Feature : std::uint32_t { disabled, enabled };
enum class MigMode : std::uint32_t { disabled, enabled };
enum class ComputeMode : std::uint32_t { normal, exclusive_thread, prohibited, exclusive_process };
enum class ClockType : std::uint32_t { graphics, sm, memory, video };
enum class ClockId : std::uint32_t { current, app_target, app_default, customer_boost_max };
enum class TemperatureSensor : std::uint32_t { gpu };
enum class TemperatureThreshold : std::uint32_t {
    shutdown,
    slowdown,
    memory_max,
    gpu_max,
    acoustic_min,
    acoustic_current,
    acoustic_max,
    gps_current
};
enum class MemoryErrorType : std::uint32_t { corrected, uncorrected };
enum class EccCounter : std::uint32_t { since_reset, lifetime };  // NVML: volatile, aggregate
enum class MemoryLocation : std::uint32_t {
    l1_cache,
    l2_cache,
    dram,
    register_file,
    texture,
    texture_shared,
    cbu,
    sram
};
enum class PageRetirementCause : std::uint32_t { single_bit_errors, double_bit_error };
enum class PerformanceState : std::uint32_t { p0 = 0, p15 = 15, unknown = 32 };
enum class TopologyLevel : std::uint32_t {
    internal = 0,
    single = 10,
    multiple = 20,
    host_bridge = 30,
    node = 40,
    system = 50
};
enum class P2pStatus : std::uint32_t {
    ok,
    chipset_not_supported,
    gpu_not_supported,
    topology_not_supported,
    disabled_by_regkey,
    not_supported,
    unknown
};
enum class P2pCapability : std::uint32_t { read, write, nvlink, atomics, pci };
enum class NvLinkDevice : std::uint32_t { gpu = 0, ibm_npu = 1, nvswitch = 2, unknown = 0xFF };
enum class NvLinkCapability : std::uint32_t { p2p, sysmem_access, p2p_atomics, sysmem_atomics, sli_bridge, valid };
enum class NvLinkErrorCounter : std::uint32_t { replay, recovery, crc_flit, crc_data, ecc_data };
inline constexpr std::uint32_t nvlink_links_max = 36;
enum class PcieCounter : std::uint32_t { tx_bytes, rx_bytes };
enum class InforomObject : std::uint32_t { oem, ecc, power, den };
enum class RestrictedApi : std::uint32_t { application_clocks, auto_boosted_clocks };
enum class Virtualization : std::uint32_t { none, passthrough, vgpu, host_vgpu, host_vsga };
enum class Brand : std::uint32_t {
    unknown,
    quadro,
    tesla,
    nvs,
    grid,
    geforce,
    titan,
    quadro_rtx = 12,
    nvidia_rtx = 13,
    nvidia = 14,
    geforce_rtx = 15
};
enum class Architecture : std::uint32_t {
    kepler = 2,
    maxwell,
    pascal,
    volta,
    turing,
    ampere,
    ada,
    hopper,
    blackwell,
    rubin = 13,
    unknown = 0xFFFFFFFF
};
enum class BusType : std::uint32_t { unknown, pci, pcie, fpci, agp };
enum class PowerSource : std::uint32_t { mains, battery, undersized };
enum class ValueType : std::uint32_t { real, u32, unsigned_long, u64, i64, i32, u16 };
enum class SamplingType : std::uint32_t {
    power,
    gpu,
    memory,
    encoder,
    decoder,
    sm_clock,
    memory_clock,
    module_power,
    jpeg,
    ofa
};
enum class AffinityScope : std::uint32_t { node, socket };

// The arguments of the profile calls (not the ids those return). NVML's list grows with the driver: one past its end is
// an invalid argument, which is how a caller finds the end. Driver 580 knows 17 of GPU instances, 0 to 16; newer
// headers add one.
inline constexpr std::uint32_t gpu_instance_profiles_580 = 17, compute_instance_profiles = 9;
inline constexpr std::uint32_t engine_profile_shared = 0;
inline constexpr std::uint32_t gpu_profile_caps_p2p = 1, gpu_profile_caps_gfx = 2, compute_profile_caps_gfx = 1;

inline constexpr std::uint32_t init_no_gpus = 1, init_no_attach = 2, init_force = 4;

// Bits of an event set.
inline constexpr std::uint64_t event_single_bit_ecc = 0x1, event_double_bit_ecc = 0x2, event_pstate = 0x4,
                               event_xid = 0x8, event_clock = 0x10, event_power_source = 0x80, event_mig_config = 0x100,
                               event_single_bit_storm = 0x200, event_dram_retirement = 0x400,
                               event_dram_retirement_failure = 0x800, event_nonfatal_poison = 0x1000,
                               event_fatal_poison = 0x2000, event_gpu_unavailable = 0x4000, event_gpu_recovery = 0x8000;

// Bits of why clocks are what they are.
inline constexpr std::uint64_t clocks_gpu_idle = 0x1, clocks_app_setting = 0x2, clocks_sw_power_cap = 0x4,
                               clocks_hw_slowdown = 0x8, clocks_sync_boost = 0x10, clocks_sw_thermal = 0x20,
                               clocks_hw_thermal = 0x40, clocks_hw_power_brake = 0x80, clocks_display = 0x100;

// Field ids of nvmlDeviceGetFieldValues.
enum class Field : std::uint32_t {
    ecc_current = 1,
    ecc_pending = 2,
    ecc_corrected_since_reset = 3,
    ecc_uncorrected_since_reset = 4,
    ecc_corrected_lifetime = 5,
    ecc_uncorrected_lifetime = 6,
    retired_single_bit = 29,
    retired_double_bit = 30,
    retired_pending = 31,
    memory_temperature = 82,
    total_energy = 83,
    nvlink_speed_mbps_common = 90,
    nvlink_link_count = 91,
    pcie_replay_counter = 94,
    remapped_correctable = 142,
    remapped_uncorrectable = 143,
    remapped_pending = 144,
    remapped_failure = 145,
    nvlink_get_speed = 164,
    nvlink_get_state = 165,
    nvlink_get_version = 166,
    c2c_link_count = 170,
    resetless_mig_supported = 184,
    power_average = 185,
    power_instant = 186,
    power_min_limit = 187,
    power_max_limit = 188,
    power_default_limit = 189,
    power_current_limit = 190,
    energy = 191,
    power_requested_limit = 192,
    shutdown_t_limit = 193,
    slowdown_t_limit = 194,
    memory_max_t_limit = 195,
    gpu_max_t_limit = 196,
    mig_mode_independent_query = 199,
    reset_status = 226,
    drain_and_reset_status = 227,
    gpu_recovery_action = 230,
};

struct PciInfo {
    std::array<char, pci_bus_id_legacy_size> bus_id_legacy;
    std::uint32_t domain, bus, device;
    std::uint32_t device_id;  // device, then vendor: 0x233510DE
    std::uint32_t subsystem_id;
    std::array<char, pci_bus_id_size> bus_id;
};
struct PciInfoExt {  // v1
    std::uint32_t version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
    std::array<char, pci_bus_id_size> bus_id;
};
struct Memory {
    std::uint64_t total, free, used;
};
struct MemoryV2 {
    std::uint32_t version;
    std::uint64_t total, reserved, free, used;
};
struct Bar1Memory {
    std::uint64_t total, free, used;
};
struct Utilization {
    std::uint32_t gpu, memory;
};
struct ProcessInfoV1 {  // of the unversioned ...RunningProcesses calls
    std::uint32_t pid;
    std::uint64_t used_memory;
};
struct ProcessInfo {  // of ..._v2 and ..._v3
    std::uint32_t pid;
    std::uint64_t used_memory;
    std::uint32_t gpu_instance, compute_instance;
};
struct ProcessDetail {
    std::uint32_t pid;
    std::uint64_t used_memory;
    std::uint32_t gpu_instance, compute_instance;
    std::uint64_t used_protected_memory;
};
struct ProcessDetailList {  // v1
    std::uint32_t version;
    std::uint32_t mode;  // 0 compute, 1 graphics, 2 MPS
    std::uint32_t count;
    ProcessDetail* entries;
};
struct ProcessUtilizationSample {
    std::uint32_t pid;
    std::uint64_t timestamp_us;
    std::uint32_t sm, memory, encoder, decoder;
};

struct GpuInstanceProfileInfo {
    std::uint32_t id, is_p2p_supported, slice_count, instance_count, multiprocessor_count, copy_engine_count,
        decoder_count, encoder_count, jpeg_count, ofa_count;
    std::uint64_t memory_mib;
};
struct GpuInstanceProfileInfoV2 {
    std::uint32_t version, id, is_p2p_supported, slice_count, instance_count, multiprocessor_count, copy_engine_count,
        decoder_count, encoder_count, jpeg_count, ofa_count;
    std::uint64_t memory_mib;
    std::array<char, name_v2_size> name;
};
struct GpuInstanceProfileInfoV3 {
    std::uint32_t version, id, slice_count, instance_count, multiprocessor_count, copy_engine_count, decoder_count,
        encoder_count, jpeg_count, ofa_count;
    std::uint64_t memory_mib;
    std::array<char, name_v2_size> name;
    std::uint32_t capabilities;
};
struct InstancePlacement {  // memory slices of a GPU instance, compute slices of a compute instance
    std::uint32_t start, size;
    friend constexpr bool operator==(const InstancePlacement&, const InstancePlacement&) = default;
};
struct GpuInstanceInfo {
    Device device;
    std::uint32_t id, profile_id;
    InstancePlacement placement;
};
struct ComputeInstanceProfileInfo {
    std::uint32_t id, slice_count, instance_count, multiprocessor_count, shared_copy_engine_count, shared_decoder_count,
        shared_encoder_count, shared_jpeg_count, shared_ofa_count;
};
struct ComputeInstanceProfileInfoV2 {
    std::uint32_t version, id, slice_count, instance_count, multiprocessor_count, shared_copy_engine_count,
        shared_decoder_count, shared_encoder_count, shared_jpeg_count, shared_ofa_count;
    std::array<char, name_v2_size> name;
};
struct ComputeInstanceProfileInfoV3 {
    std::uint32_t version, id, slice_count, instance_count, multiprocessor_count, shared_copy_engine_count,
        shared_decoder_count, shared_encoder_count, shared_jpeg_count, shared_ofa_count;
    std::array<char, name_v2_size> name;
    std::uint32_t capabilities;
};
struct ComputeInstanceInfo {
    Device device;
    GpuInstance gpu_instance;
    std::uint32_t id, profile_id;
    InstancePlacement placement;
};
struct DeviceAttributes {  // of a MIG device
    std::uint32_t multiprocessor_count, shared_copy_engine_count, shared_decoder_count, shared_encoder_count,
        shared_jpeg_count, shared_ofa_count, gpu_instance_slice_count, compute_instance_slice_count;
    std::uint64_t memory_mib;
};

union Value {
    double real;
    std::int32_t i32;
    std::uint32_t u32;
    std::uint64_t unsigned_long;
    std::uint64_t u64;
    std::int64_t i64;
    std::uint16_t u16;
};
struct FieldValue {
    std::uint32_t field, scope;
    std::int64_t timestamp_us, latency_us;
    ValueType type;
    Return result;
    Value value;
};
struct Sample {
    std::uint64_t timestamp_us;
    Value value;
};
struct EventData {
    Device device;
    std::uint64_t type;  // one of the event bits
    std::uint64_t data;  // the number of an Xid
    std::uint32_t gpu_instance, compute_instance;
};
struct RowRemapperHistogram {  // banks of memory by how many spare rows are left
    std::uint32_t max, high, partial, low, none;
};
struct RemappedRows {  // v2, of newer drivers
    std::uint32_t corrected_active, corrected_inactive, uncorrected_active, uncorrected_inactive, is_pending,
        has_failed;
};
struct EccErrorCounts {
    std::uint64_t l1_cache, l2_cache, device_memory, register_file;
};
struct TemperatureV1 {
    std::uint32_t version;
    TemperatureSensor sensor;
    std::int32_t celsius;
};
struct ViolationTime {
    std::uint64_t reference_ns, violation_ns;
};

enum class CpuConfCompute : std::uint32_t { none, amd_sev, intel_tdx, amd_sev_snp, amd_snp_vtom };
enum class ConfComputeEnvironment : std::uint32_t { unavailable, simulated, production };
struct ConfComputeCaps {
    CpuConfCompute cpu;
    std::uint32_t gpus_capable;
};
struct ConfComputeState {
    ConfComputeEnvironment environment;
    std::uint32_t feature, dev_tools;
};
struct ConfComputeSettings {  // v1
    std::uint32_t version;
    ConfComputeEnvironment environment;
    std::uint32_t feature, dev_tools, multi_gpu;  // multi_gpu: 0 none, 1 protected PCIe, 2 NVLink encryption
};
struct ConfComputeMemory {
    std::uint64_t protected_kib, unprotected_kib;
};
struct ConfComputeCertificate {
    std::uint32_t chain_size, attestation_chain_size;
    std::array<std::uint8_t, 0x1000> chain;
    std::array<std::uint8_t, 0x1400> attestation_chain;
};
struct ConfComputeReport {
    std::uint32_t is_cec_report_present, report_size, cec_report_size;
    std::array<std::uint8_t, 0x20> nonce;
    std::array<std::uint8_t, 0x2000> report;
    std::array<std::uint8_t, 0x1000> cec_report;
};

enum class FabricState : std::uint8_t { not_supported, not_started, in_progress, completed };
struct FabricInfo {
    std::array<std::uint8_t, 16> cluster_uuid;
    Return status;
    std::uint32_t clique_id;
    FabricState state;
};
struct FabricInfoV2 {
    std::uint32_t version;
    std::array<std::uint8_t, 16> cluster_uuid;
    Return status;
    std::uint32_t clique_id;
    FabricState state;
    std::uint32_t health_mask;
};
struct FabricInfoV3 {
    std::uint32_t version;
    std::array<std::uint8_t, 16> cluster_uuid;
    Return status;
    std::uint32_t clique_id;
    FabricState state;
    std::uint32_t health_mask;
    std::uint8_t health_summary;
};

// The words of versioned structs that our calls speak.
inline constexpr std::uint32_t memory_v2 = struct_version<MemoryV2>(2), pci_info_ext_v1 = struct_version<PciInfoExt>(1),
                               process_details_v1 = struct_version<ProcessDetailList>(1),
                               gpu_profile_info_v2 = struct_version<GpuInstanceProfileInfoV2>(2),
                               gpu_profile_info_v3 = struct_version<GpuInstanceProfileInfoV3>(3),
                               compute_profile_info_v2 = struct_version<ComputeInstanceProfileInfoV2>(2),
                               compute_profile_info_v3 = struct_version<ComputeInstanceProfileInfoV3>(3),
                               temperature_v1 = struct_version<TemperatureV1>(1),
                               conf_compute_settings_v1 = struct_version<ConfComputeSettings>(1),
                               fabric_info_v2 = struct_version<FabricInfoV2>(2),
                               fabric_info_v3 = struct_version<FabricInfoV3>(3);

static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, domain) == 16 && offsetof(PciInfo, bus_id) == 36);
static_assert(sizeof(PciInfoExt) == 64);
static_assert(sizeof(Memory) == 24 && sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8);
static_assert(memory_v2 == 0x02000028);
static_assert(sizeof(ProcessInfoV1) == 16 && sizeof(ProcessInfo) == 24 && offsetof(ProcessInfo, gpu_instance) == 16);
static_assert(sizeof(ProcessDetail) == 32 && sizeof(ProcessDetailList) == 24);
static_assert(sizeof(ProcessUtilizationSample) == 32);
static_assert(sizeof(GpuInstanceProfileInfo) == 48 && offsetof(GpuInstanceProfileInfo, memory_mib) == 40);
static_assert(sizeof(GpuInstanceProfileInfoV2) == 152 && offsetof(GpuInstanceProfileInfoV2, memory_mib) == 48);
static_assert(sizeof(GpuInstanceProfileInfoV3) == 152 && offsetof(GpuInstanceProfileInfoV3, memory_mib) == 40 &&
              offsetof(GpuInstanceProfileInfoV3, capabilities) == 144);
static_assert(sizeof(GpuInstanceInfo) == 24 && sizeof(ComputeInstanceInfo) == 32);
static_assert(sizeof(ComputeInstanceProfileInfo) == 36 && sizeof(ComputeInstanceProfileInfoV2) == 136 &&
              sizeof(ComputeInstanceProfileInfoV3) == 140);
static_assert(sizeof(DeviceAttributes) == 40 && offsetof(DeviceAttributes, memory_mib) == 32);
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, type) == 24 && offsetof(FieldValue, value) == 32);
static_assert(sizeof(EventData) == 32 && sizeof(Sample) == 16);
static_assert(sizeof(ConfComputeSettings) == 20 && sizeof(ConfComputeCertificate) == 8 + 0x2400 &&
              sizeof(ConfComputeReport) == 12 + 0x20 + 0x3000);
static_assert(sizeof(FabricInfo) == 28 && sizeof(FabricInfoV2) == 36 && sizeof(FabricInfoV3) == 40 &&
              offsetof(FabricInfoV3, health_mask) == 32);

}  // namespace bulkhead::nvml
