"""Walks the simulator with NVIDIA's own Python bindings, and compares the sizes of their structs with ours (one per line on stdout of
`nvml_sim_test --sizes`, when BULKHEAD_ABI_SIZES names such a file). Exits non-zero on the first answer that no client could use."""
import ctypes, os, pynvml as nv

nv.nvmlInit()
print("driver", nv.nvmlSystemGetDriverVersion(), "NVML", nv.nvmlSystemGetNVMLVersion(), "CUDA", nv.nvmlSystemGetCudaDriverVersion_v2())
assert nv.nvmlDeviceGetCount() == 3
getters = [name for name in dir(nv) if name.startswith("nvmlDeviceGet")]
told, refused, missing, other = 0, 0, 0, 0
for index in range(3):
    device = nv.nvmlDeviceGetHandleByIndex(index)
    print(index, nv.nvmlDeviceGetName(device), nv.nvmlDeviceGetUUID(device), nv.nvmlDeviceGetPciInfo(device).busId)
    for name in getters:
        call = getattr(nv, name)
        if call.__code__.co_argcount != 1 or "Handle" in name and name != "nvmlDeviceGetDeviceHandleFromMigDeviceHandle":
            continue
        try:
            call(device)
            told += 1
        except nv.NVMLError_FunctionNotFound:
            missing += 1
        except nv.NVMLError as error:
            refused += 1
            assert error.value in (nv.NVML_ERROR_NOT_SUPPORTED, nv.NVML_ERROR_INVALID_ARGUMENT, nv.NVML_ERROR_NOT_FOUND), (name, error)
        except Exception as error:  # the bindings' own mistakes: this version calls some functions with wrong arguments
            other += 1
            print("  bindings:", name, type(error).__name__, error)
print(f"getters of one argument: {told} answered, {refused} refused, {missing} not simulated, {other} broken in the bindings")
assert told > 150

device = nv.nvmlDeviceGetHandleByIndex(0)
memory = nv.nvmlDeviceGetMemoryInfo(device)
assert memory.total == 143771 << 20 and memory.used + memory.free == memory.total
assert [p.pid for p in nv.nvmlDeviceGetComputeRunningProcesses(device)] == [1]
assert nv.nvmlDeviceGetUtilizationRates(device).gpu == 40

# The whole life of an instance, through somebody else's bindings.
device = nv.nvmlDeviceGetHandleByIndex(1)
mode = nv.nvmlDeviceSetMigMode(device, nv.NVML_DEVICE_MIG_ENABLE)
assert nv.nvmlDeviceGetMigMode(device)[0] == nv.NVML_DEVICE_MIG_ENABLE
info = nv.nvmlDeviceGetGpuInstanceProfileInfo(device, nv.NVML_GPU_INSTANCE_PROFILE_3_SLICE)
assert (info.id, info.multiprocessorCount, info.memorySizeMB) == (9, 60, 71424)
instance = nv.nvmlDeviceCreateGpuInstance(device, info.id)
compute = nv.nvmlGpuInstanceCreateComputeInstance(instance, nv.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE)
mig = nv.nvmlDeviceGetMigDeviceHandleByIndex(device, 0)
print(nv.nvmlDeviceGetName(mig), nv.nvmlDeviceGetUUID(mig), nv.nvmlDeviceGetMemoryInfo(mig).total >> 20, "MiB")
try:
    nv.nvmlGpuInstanceDestroy(instance)
    raise SystemExit("an instance in use was destroyed")
except nv.NVMLError_InUse:
    pass
nv.nvmlComputeInstanceDestroy(compute)
nv.nvmlGpuInstanceDestroy(instance)

# Sizes by an independent hand: what these bindings declare.
ours = {}
if os.environ.get("BULKHEAD_ABI_SIZES"):
    ours = {name: int(size) for name, size in (line.split() for line in open(os.environ["BULKHEAD_ABI_SIZES"]))}
same = 0
for name, size in ours.items():
    theirs = getattr(nv, name, None)
    if theirs is None:
        continue
    assert ctypes.sizeof(theirs) == size, f"{name}: {ctypes.sizeof(theirs)} bytes in pynvml, {size} here"
    same += 1
print(f"{same} of {len(ours)} structs are declared by these bindings too, all of the same size")
nv.nvmlShutdown()
