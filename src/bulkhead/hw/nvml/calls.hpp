// The calls of libnvidia-ml.so.1 that we make or simulate: one row each, the exported symbol and its type. The list is
// a macro because three readers need the symbol as a name and as text: who looks it up, the simulator that exports it,
// and the test that compares the two.
//
//     const auto count = library.symbol<call::nvmlDeviceGetCount_v2>("nvmlDeviceGetCount_v2");
//
// A driver may lack newer rows; who looks one up must live with a null.
#pragma once

#include "bulkhead/hw/nvml/abi.hpp"

// clang-format off: rows, not code
#define BULKHEAD_NVML_CALLS(CALL) \
    /* the library and the system */ \
    CALL(nvmlInit, Return()) \
    CALL(nvmlInit_v2, Return()) \
    CALL(nvmlInitWithFlags, Return(std::uint32_t)) \
    CALL(nvmlShutdown, Return()) \
    CALL(nvmlErrorString, const char*(Return)) \
    CALL(nvmlSystemGetDriverVersion, Return(char*, std::uint32_t)) \
    CALL(nvmlSystemGetNVMLVersion, Return(char*, std::uint32_t)) \
    CALL(nvmlSystemGetCudaDriverVersion, Return(std::int32_t*)) \
    CALL(nvmlSystemGetCudaDriverVersion_v2, Return(std::int32_t*)) \
    CALL(nvmlSystemGetProcessName, Return(std::uint32_t, char*, std::uint32_t)) \
    CALL(nvmlUnitGetCount, Return(std::uint32_t*)) \
    /* finding devices */ \
    CALL(nvmlDeviceGetCount, Return(std::uint32_t*)) \
    CALL(nvmlDeviceGetCount_v2, Return(std::uint32_t*)) \
    CALL(nvmlDeviceGetHandleByIndex, Return(std::uint32_t, Device*)) \
    CALL(nvmlDeviceGetHandleByIndex_v2, Return(std::uint32_t, Device*)) \
    CALL(nvmlDeviceGetHandleBySerial, Return(const char*, Device*)) \
    CALL(nvmlDeviceGetHandleByUUID, Return(const char*, Device*)) \
    CALL(nvmlDeviceGetHandleByPciBusId, Return(const char*, Device*)) \
    CALL(nvmlDeviceGetHandleByPciBusId_v2, Return(const char*, Device*)) \
    /* what a device is */ \
    CALL(nvmlDeviceGetName, Return(Device, char*, std::uint32_t)) \
    CALL(nvmlDeviceGetBrand, Return(Device, Brand*)) \
    CALL(nvmlDeviceGetIndex, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetSerial, Return(Device, char*, std::uint32_t)) \
    CALL(nvmlDeviceGetUUID, Return(Device, char*, std::uint32_t)) \
    CALL(nvmlDeviceGetMinorNumber, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetModuleId, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetPciInfo, Return(Device, PciInfo*)) \
    CALL(nvmlDeviceGetPciInfo_v2, Return(Device, PciInfo*)) \
    CALL(nvmlDeviceGetPciInfo_v3, Return(Device, PciInfo*)) \
    CALL(nvmlDeviceGetPciInfoExt, Return(Device, PciInfoExt*)) \
    CALL(nvmlDeviceGetVbiosVersion, Return(Device, char*, std::uint32_t)) \
    CALL(nvmlDeviceGetInforomVersion, Return(Device, InforomObject, char*, std::uint32_t)) \
    CALL(nvmlDeviceGetInforomImageVersion, Return(Device, char*, std::uint32_t)) \
    CALL(nvmlDeviceGetGspFirmwareVersion, Return(Device, char*)) \
    CALL(nvmlDeviceGetGspFirmwareMode, Return(Device, std::uint32_t*, std::uint32_t*)) \
    CALL(nvmlDeviceGetBoardPartNumber, Return(Device, char*, std::uint32_t)) \
    CALL(nvmlDeviceGetBoardId, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetMultiGpuBoard, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetArchitecture, Return(Device, Architecture*)) \
    CALL(nvmlDeviceGetCudaComputeCapability, Return(Device, std::int32_t*, std::int32_t*)) \
    CALL(nvmlDeviceGetNumGpuCores, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetMemoryBusWidth, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetBusType, Return(Device, BusType*)) \
    CALL(nvmlDeviceGetVirtualizationMode, Return(Device, Virtualization*)) \
    CALL(nvmlDeviceGetDisplayMode, Return(Device, Feature*)) \
    CALL(nvmlDeviceGetDisplayActive, Return(Device, Feature*)) \
    CALL(nvmlDeviceGetPersistenceMode, Return(Device, Feature*)) \
    CALL(nvmlDeviceSetPersistenceMode, Return(Device, Feature)) \
    CALL(nvmlDeviceGetComputeMode, Return(Device, ComputeMode*)) \
    CALL(nvmlDeviceSetComputeMode, Return(Device, ComputeMode)) \
    CALL(nvmlDeviceGetDriverModel, Return(Device, std::uint32_t*, std::uint32_t*)) \
    CALL(nvmlDeviceGetDriverModel_v2, Return(Device, std::uint32_t*, std::uint32_t*)) \
    CALL(nvmlDeviceGetAccountingMode, Return(Device, Feature*)) \
    CALL(nvmlDeviceGetAccountingBufferSize, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetCpuAffinity, Return(Device, std::uint32_t, std::uint64_t*)) \
    CALL(nvmlDeviceGetMemoryAffinity, Return(Device, std::uint32_t, std::uint64_t*, AffinityScope)) \
    CALL(nvmlDeviceGetNumaNodeId, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetC2cModeInfoV, Return(Device, std::uint32_t*)) \
    /* how busy, hot and fast it is */ \
    CALL(nvmlDeviceGetMemoryInfo, Return(Device, Memory*)) \
    CALL(nvmlDeviceGetMemoryInfo_v2, Return(Device, MemoryV2*)) \
    CALL(nvmlDeviceGetBAR1MemoryInfo, Return(Device, Bar1Memory*)) \
    CALL(nvmlDeviceGetUtilizationRates, Return(Device, Utilization*)) \
    CALL(nvmlDeviceGetEncoderUtilization, Return(Device, std::uint32_t*, std::uint32_t*)) \
    CALL(nvmlDeviceGetDecoderUtilization, Return(Device, std::uint32_t*, std::uint32_t*)) \
    CALL(nvmlDeviceGetJpgUtilization, Return(Device, std::uint32_t*, std::uint32_t*)) \
    CALL(nvmlDeviceGetOfaUtilization, Return(Device, std::uint32_t*, std::uint32_t*)) \
    CALL(nvmlDeviceGetTemperature, Return(Device, TemperatureSensor, std::uint32_t*)) \
    CALL(nvmlDeviceGetTemperatureV, Return(Device, TemperatureV1*)) \
    CALL(nvmlDeviceGetTemperatureThreshold, Return(Device, TemperatureThreshold, std::uint32_t*)) \
    CALL(nvmlDeviceGetFanSpeed, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetFanSpeed_v2, Return(Device, std::uint32_t, std::uint32_t*)) \
    CALL(nvmlDeviceGetNumFans, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetPowerUsage, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetTotalEnergyConsumption, Return(Device, std::uint64_t*)) \
    CALL(nvmlDeviceGetPowerManagementMode, Return(Device, Feature*)) \
    CALL(nvmlDeviceGetPowerManagementLimit, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetPowerManagementDefaultLimit, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetPowerManagementLimitConstraints, Return(Device, std::uint32_t*, std::uint32_t*)) \
    CALL(nvmlDeviceSetPowerManagementLimit, Return(Device, std::uint32_t)) \
    CALL(nvmlDeviceGetEnforcedPowerLimit, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetPerformanceState, Return(Device, PerformanceState*)) \
    CALL(nvmlDeviceGetPowerState, Return(Device, PerformanceState*)) \
    CALL(nvmlDeviceGetClockInfo, Return(Device, ClockType, std::uint32_t*)) \
    CALL(nvmlDeviceGetMaxClockInfo, Return(Device, ClockType, std::uint32_t*)) \
    CALL(nvmlDeviceGetClock, Return(Device, ClockType, ClockId, std::uint32_t*)) \
    CALL(nvmlDeviceGetApplicationsClock, Return(Device, ClockType, std::uint32_t*)) \
    CALL(nvmlDeviceGetDefaultApplicationsClock, Return(Device, ClockType, std::uint32_t*)) \
    CALL(nvmlDeviceGetMaxCustomerBoostClock, Return(Device, ClockType, std::uint32_t*)) \
    CALL(nvmlDeviceGetSupportedMemoryClocks, Return(Device, std::uint32_t*, std::uint32_t*)) \
    CALL(nvmlDeviceGetSupportedGraphicsClocks, Return(Device, std::uint32_t, std::uint32_t*, std::uint32_t*)) \
    CALL(nvmlDeviceGetSupportedClocksEventReasons, Return(Device, std::uint64_t*)) \
    CALL(nvmlDeviceGetSupportedClocksThrottleReasons, Return(Device, std::uint64_t*)) \
    CALL(nvmlDeviceGetAutoBoostedClocksEnabled, Return(Device, Feature*, Feature*)) \
    CALL(nvmlDeviceGetCurrentClocksEventReasons, Return(Device, std::uint64_t*)) \
    CALL(nvmlDeviceGetCurrentClocksThrottleReasons, Return(Device, std::uint64_t*)) \
    /* links */ \
    CALL(nvmlDeviceGetMaxPcieLinkGeneration, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetMaxPcieLinkWidth, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetGpuMaxPcieLinkGeneration, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetPcieSpeed, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetPcieLinkMaxSpeed, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetCurrPcieLinkGeneration, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetCurrPcieLinkWidth, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetPcieThroughput, Return(Device, PcieCounter, std::uint32_t*)) \
    CALL(nvmlDeviceGetPcieReplayCounter, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetTopologyCommonAncestor, Return(Device, Device, TopologyLevel*)) \
    CALL(nvmlDeviceGetTopologyNearestGpus, Return(Device, TopologyLevel, std::uint32_t*, Device*)) \
    CALL(nvmlDeviceGetP2PStatus, Return(Device, Device, P2pCapability, P2pStatus*)) \
    CALL(nvmlDeviceOnSameBoard, Return(Device, Device, std::int32_t*)) \
    CALL(nvmlDeviceGetNvLinkState, Return(Device, std::uint32_t, Feature*)) \
    CALL(nvmlDeviceGetNvLinkVersion, Return(Device, std::uint32_t, std::uint32_t*)) \
    CALL(nvmlDeviceGetNvLinkCapability, Return(Device, std::uint32_t, NvLinkCapability, std::uint32_t*)) \
    CALL(nvmlDeviceGetNvLinkErrorCounter, Return(Device, std::uint32_t, NvLinkErrorCounter, std::uint64_t*)) \
    CALL(nvmlDeviceGetNvLinkRemoteDeviceType, Return(Device, std::uint32_t, NvLinkDevice*)) \
    CALL(nvmlDeviceGetNvLinkRemotePciInfo, Return(Device, std::uint32_t, PciInfo*)) \
    CALL(nvmlDeviceGetNvLinkRemotePciInfo_v2, Return(Device, std::uint32_t, PciInfo*)) \
    CALL(nvmlDeviceGetGpuFabricInfo, Return(Device, FabricInfo*)) \
    CALL(nvmlDeviceGetGpuFabricInfoV, Return(Device, void*)) /* FabricInfoV2 or V3, as its first word says */ \
    /* health */ \
    CALL(nvmlDeviceGetEccMode, Return(Device, Feature*, Feature*)) \
    CALL(nvmlDeviceGetDefaultEccMode, Return(Device, Feature*)) \
    CALL(nvmlDeviceGetTotalEccErrors, Return(Device, MemoryErrorType, EccCounter, std::uint64_t*)) \
    CALL(nvmlDeviceGetMemoryErrorCounter, Return(Device, MemoryErrorType, EccCounter, MemoryLocation, std::uint64_t*)) \
    CALL(nvmlDeviceClearEccErrorCounts, Return(Device, EccCounter)) \
    CALL(nvmlDeviceGetRetiredPages, Return(Device, PageRetirementCause, std::uint32_t*, std::uint64_t*)) \
    CALL(nvmlDeviceGetRetiredPages_v2, Return(Device, PageRetirementCause, std::uint32_t*, std::uint64_t*, std::uint64_t*)) \
    CALL(nvmlDeviceGetRetiredPagesPendingStatus, Return(Device, Feature*)) \
    CALL(nvmlDeviceGetRemappedRows, Return(Device, std::uint32_t*, std::uint32_t*, std::uint32_t*, std::uint32_t*)) \
    CALL(nvmlDeviceGetRowRemapperHistogram, Return(Device, RowRemapperHistogram*)) \
    CALL(nvmlDeviceGetFieldValues, Return(Device, std::int32_t, FieldValue*)) \
    CALL(nvmlDeviceGetSupportedEventTypes, Return(Device, std::uint64_t*)) \
    CALL(nvmlDeviceRegisterEvents, Return(Device, std::uint64_t, EventSet)) \
    CALL(nvmlEventSetCreate, Return(EventSet*)) \
    CALL(nvmlEventSetWait, Return(EventSet, EventData*, std::uint32_t)) \
    CALL(nvmlEventSetWait_v2, Return(EventSet, EventData*, std::uint32_t)) \
    CALL(nvmlEventSetFree, Return(EventSet)) \
    /* processes */ \
    CALL(nvmlDeviceGetComputeRunningProcesses, Return(Device, std::uint32_t*, ProcessInfoV1*)) \
    CALL(nvmlDeviceGetComputeRunningProcesses_v2, Return(Device, std::uint32_t*, ProcessInfo*)) \
    CALL(nvmlDeviceGetComputeRunningProcesses_v3, Return(Device, std::uint32_t*, ProcessInfo*)) \
    CALL(nvmlDeviceGetGraphicsRunningProcesses, Return(Device, std::uint32_t*, ProcessInfoV1*)) \
    CALL(nvmlDeviceGetGraphicsRunningProcesses_v2, Return(Device, std::uint32_t*, ProcessInfo*)) \
    CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, Return(Device, std::uint32_t*, ProcessInfo*)) \
    CALL(nvmlDeviceGetMPSComputeRunningProcesses, Return(Device, std::uint32_t*, ProcessInfoV1*)) \
    CALL(nvmlDeviceGetMPSComputeRunningProcesses_v2, Return(Device, std::uint32_t*, ProcessInfo*)) \
    CALL(nvmlDeviceGetMPSComputeRunningProcesses_v3, Return(Device, std::uint32_t*, ProcessInfo*)) \
    CALL(nvmlDeviceGetRunningProcessDetailList, Return(Device, ProcessDetailList*)) \
    CALL(nvmlDeviceGetProcessUtilization, Return(Device, ProcessUtilizationSample*, std::uint32_t*, std::uint64_t)) \
    /* confidential computing */ \
    CALL(nvmlSystemGetConfComputeCapabilities, Return(ConfComputeCaps*)) \
    CALL(nvmlSystemGetConfComputeState, Return(ConfComputeState*)) \
    CALL(nvmlSystemGetConfComputeSettings, Return(ConfComputeSettings*)) \
    CALL(nvmlSystemGetConfComputeGpusReadyState, Return(std::uint32_t*)) \
    CALL(nvmlSystemSetConfComputeGpusReadyState, Return(std::uint32_t)) \
    CALL(nvmlDeviceGetConfComputeMemSizeInfo, Return(Device, ConfComputeMemory*)) \
    CALL(nvmlDeviceGetConfComputeProtectedMemoryUsage, Return(Device, Memory*)) \
    /* partitions */ \
    CALL(nvmlDeviceGetMigMode, Return(Device, MigMode*, MigMode*)) \
    CALL(nvmlDeviceSetMigMode, Return(Device, MigMode, Return*)) \
    CALL(nvmlDeviceGetGpuInstanceProfileInfo, Return(Device, std::uint32_t, GpuInstanceProfileInfo*)) \
    CALL(nvmlDeviceGetGpuInstanceProfileInfoV, Return(Device, std::uint32_t, void*)) /* V2 or V3, as its first word says */ \
    CALL(nvmlDeviceGetGpuInstancePossiblePlacements, Return(Device, std::uint32_t, InstancePlacement*, std::uint32_t*)) \
    CALL(nvmlDeviceGetGpuInstancePossiblePlacements_v2, Return(Device, std::uint32_t, InstancePlacement*, std::uint32_t*)) \
    CALL(nvmlDeviceGetGpuInstanceRemainingCapacity, Return(Device, std::uint32_t, std::uint32_t*)) \
    CALL(nvmlDeviceCreateGpuInstance, Return(Device, std::uint32_t, GpuInstance*)) \
    CALL(nvmlDeviceCreateGpuInstanceWithPlacement, Return(Device, std::uint32_t, const InstancePlacement*, GpuInstance*)) \
    CALL(nvmlGpuInstanceDestroy, Return(GpuInstance)) \
    CALL(nvmlDeviceGetGpuInstances, Return(Device, std::uint32_t, GpuInstance*, std::uint32_t*)) \
    CALL(nvmlDeviceGetGpuInstanceById, Return(Device, std::uint32_t, GpuInstance*)) \
    CALL(nvmlGpuInstanceGetInfo, Return(GpuInstance, GpuInstanceInfo*)) \
    CALL(nvmlGpuInstanceGetComputeInstanceProfileInfo, Return(GpuInstance, std::uint32_t, std::uint32_t, ComputeInstanceProfileInfo*)) \
    CALL(nvmlGpuInstanceGetComputeInstanceProfileInfoV, Return(GpuInstance, std::uint32_t, std::uint32_t, void*)) /* V2 or V3 */ \
    CALL(nvmlGpuInstanceGetComputeInstanceRemainingCapacity, Return(GpuInstance, std::uint32_t, std::uint32_t*)) \
    CALL(nvmlGpuInstanceGetComputeInstancePossiblePlacements, Return(GpuInstance, std::uint32_t, InstancePlacement*, std::uint32_t*)) \
    CALL(nvmlGpuInstanceCreateComputeInstance, Return(GpuInstance, std::uint32_t, ComputeInstance*)) \
    CALL(nvmlGpuInstanceCreateComputeInstanceWithPlacement, Return(GpuInstance, std::uint32_t, const InstancePlacement*, ComputeInstance*)) \
    CALL(nvmlComputeInstanceDestroy, Return(ComputeInstance)) \
    CALL(nvmlGpuInstanceGetComputeInstances, Return(GpuInstance, std::uint32_t, ComputeInstance*, std::uint32_t*)) \
    CALL(nvmlGpuInstanceGetComputeInstanceById, Return(GpuInstance, std::uint32_t, ComputeInstance*)) \
    CALL(nvmlComputeInstanceGetInfo, Return(ComputeInstance, ComputeInstanceInfo*)) \
    CALL(nvmlComputeInstanceGetInfo_v2, Return(ComputeInstance, ComputeInstanceInfo*)) \
    CALL(nvmlDeviceIsMigDeviceHandle, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetGpuInstanceId, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetComputeInstanceId, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetMaxMigDeviceCount, Return(Device, std::uint32_t*)) \
    CALL(nvmlDeviceGetMigDeviceHandleByIndex, Return(Device, std::uint32_t, Device*)) \
    CALL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, Return(Device, Device*)) \
    CALL(nvmlDeviceGetAttributes, Return(Device, DeviceAttributes*)) \
    CALL(nvmlDeviceGetAttributes_v2, Return(Device, DeviceAttributes*))
// clang-format on

namespace bulkhead::nvml::call {
#define BULKHEAD_NVML_CALL_TYPE(symbol, type) using symbol = type;
BULKHEAD_NVML_CALLS(BULKHEAD_NVML_CALL_TYPE)
#undef BULKHEAD_NVML_CALL_TYPE
}  // namespace bulkhead::nvml::call
