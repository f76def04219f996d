// The calls of libcuda.so.1 that are simulated: one row each, the exported symbol and its type. Every call answers a
// CUresult; numbers of results, attributes and sizes are facts of CUDA's driver interface. What is not here is not
// exported.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bulkhead::cuda_sim {

enum Result : int {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    not_initialized = 3,
    device_unavailable = 46,
    no_device = 100,
    invalid_device = 101,
    invalid_image = 200,
    invalid_context = 201,
    invalid_handle = 400,
    not_found = 500,
    illegal_address = 700,
    launch_failed = 719,
    not_supported = 801,
    unknown = 999,
};

using Pointer = std::uint64_t;  // into a GPU's memory
using Handle = void*;           // of a context, module, function, stream or event

struct Location {
    int type, id;  // 1: a device, by its number
};
struct AllocationProperties {
    int type;  // 1: pinned, the only one
    int shareable_as;
    Location location;
    void* os_data;
    unsigned char flags[8];
};
static_assert(sizeof(AllocationProperties) == 32);
struct AccessDescription {
    Location location;
    int access;  // 0: none, 1: read, 3: read and write
};
static_assert(sizeof(AccessDescription) == 12);

// clang-format off: rows, not code
#define BULKHEAD_CUDA_CALLS(CALL) \
    CALL(cuInit, int(unsigned)) \
    CALL(cuDriverGetVersion, int(int*)) \
    CALL(cuGetErrorName, int(int, const char**)) \
    CALL(cuGetErrorString, int(int, const char**)) \
    CALL(cuGetProcAddress, int(const char*, void**, int, std::uint64_t)) \
    CALL(cuGetProcAddress_v2, int(const char*, void**, int, std::uint64_t, int*)) \
    CALL(cuDeviceGetCount, int(int*)) \
    CALL(cuDeviceGet, int(int*, int)) \
    CALL(cuDeviceGetName, int(char*, int, int)) \
    CALL(cuDeviceGetUuid, int(unsigned char*, int)) \
    CALL(cuDeviceGetUuid_v2, int(unsigned char*, int)) \
    CALL(cuDeviceGetAttribute, int(int*, int, int)) \
    CALL(cuDeviceTotalMem_v2, int(std::size_t*, int)) \
    CALL(cuDevicePrimaryCtxRetain, int(Handle*, int)) \
    CALL(cuDevicePrimaryCtxRelease_v2, int(int)) \
    CALL(cuCtxCreate_v2, int(Handle*, unsigned, int)) \
    CALL(cuCtxDestroy_v2, int(Handle)) \
    CALL(cuCtxSetCurrent, int(Handle)) \
    CALL(cuCtxGetCurrent, int(Handle*)) \
    CALL(cuCtxGetDevice, int(int*)) \
    CALL(cuCtxSetLimit, int(int, std::size_t)) \
    CALL(cuCtxSynchronize, int()) \
    CALL(cuMemGetInfo_v2, int(std::size_t*, std::size_t*)) \
    CALL(cuMemAlloc_v2, int(Pointer*, std::size_t)) \
    CALL(cuMemFree_v2, int(Pointer)) \
    CALL(cuMemHostAlloc, int(void**, std::size_t, unsigned)) \
    CALL(cuMemFreeHost, int(void*)) \
    CALL(cuMemcpyHtoD_v2, int(Pointer, const void*, std::size_t)) \
    CALL(cuMemcpyDtoH_v2, int(void*, Pointer, std::size_t)) \
    CALL(cuMemsetD8_v2, int(Pointer, unsigned char, std::size_t)) \
    CALL(cuMemsetD32_v2, int(Pointer, unsigned, std::size_t)) \
    CALL(cuMemCreate, int(std::uint64_t*, std::size_t, const AllocationProperties*, std::uint64_t)) \
    CALL(cuMemRelease, int(std::uint64_t)) \
    CALL(cuMemAddressReserve, int(Pointer*, std::size_t, std::size_t, Pointer, std::uint64_t)) \
    CALL(cuMemAddressFree, int(Pointer, std::size_t)) \
    CALL(cuMemMap, int(Pointer, std::size_t, std::size_t, std::uint64_t, std::uint64_t)) \
    CALL(cuMemUnmap, int(Pointer, std::size_t)) \
    CALL(cuMemSetAccess, int(Pointer, std::size_t, const AccessDescription*, std::size_t)) \
    CALL(cuModuleLoadData, int(Handle*, const void*)) \
    CALL(cuModuleLoadDataEx, int(Handle*, const void*, unsigned, int*, void**)) \
    CALL(cuModuleUnload, int(Handle)) \
    CALL(cuModuleGetFunction, int(Handle*, Handle, const char*)) \
    CALL(cuLaunchKernel, int(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**, void**)) \
    CALL(cuStreamCreate, int(Handle*, unsigned)) \
    CALL(cuStreamSynchronize, int(Handle)) \
    CALL(cuStreamDestroy_v2, int(Handle)) \
    CALL(cuEventCreate, int(Handle*, unsigned)) \
    CALL(cuEventRecord, int(Handle, Handle)) \
    CALL(cuEventSynchronize, int(Handle)) \
    CALL(cuEventElapsedTime, int(float*, Handle, Handle)) \
    CALL(cuEventDestroy_v2, int(Handle))
// clang-format on

#define BULKHEAD_EXPORT(symbol, type) \
    namespace call {                  \
    using symbol = type;              \
    }                                 \
    extern "C" __attribute__((visibility("default"))) call::symbol symbol;
BULKHEAD_CUDA_CALLS(BULKHEAD_EXPORT)
#undef BULKHEAD_EXPORT

}  // namespace bulkhead::cuda_sim
