#!/usr/bin/env python3
"""Asks a real libnvidia-ml.so.1 everything that can be asked without changing anything, and prints the answers as JSON.

    scripts/capture-nvml.py > testdata/nvml/<model>-<driver>.json

Only getters are called. Structs are kept as bytes in hexadecimal, decoded by who reads them: so the file says what the
library wrote, not what this script understood. Serial numbers and UUIDs are replaced by zeros of the same shape.
"""
import ctypes, datetime, faulthandler, json, re, struct, sys

faulthandler.enable()
library = sys.argv[1] if len(sys.argv) > 1 else "libnvidia-ml.so.1"
nvml = ctypes.CDLL(library)
U, ULL, VP = ctypes.c_uint, ctypes.c_ulonglong, ctypes.c_void_p


def exported(path):
    """Names of the functions in .dynsym."""
    data = open(path, "rb").read()
    off, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, off + i * size) for i in range(count)]
    names = []
    for s in sections:
        if s[1] != 11:
            continue
        strings = sections[s[6]]
        for at in range(s[4], s[4] + s[5], 24):
            name, info, _, shndx = struct.unpack_from("<IBBH", data, at)
            if shndx == 0 or info & 15 != 2:
                continue
            begin = strings[4] + name
            names.append(data[begin:data.index(b"\0", begin)].decode())
    return sorted(names)


def where(name):
    for line in open("/proc/self/maps"):
        if name.split(".so")[0] in line:
            return line.split()[-1]


def hide(text):
    text = re.sub(r"(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
                  r"\1-00000000-0000-0000-0000-000000000000", text)
    return text


calls = {}


def note(key, rc, **values):
    calls[key] = {"rc": rc, **(values if rc == 0 or values.get("always") else {})}


def have(name):
    try:
        return getattr(nvml, name)
    except AttributeError:
        calls[name] = {"missing": True}


def number(name, *args, kind=U, key=None):
    f = have(name)
    if f:
        out = kind(0)
        rc = f(*args, ctypes.byref(out))
        note(key or name, rc, value=out.value)


def numbers(name, count, *args, kind=U, key=None):
    f = have(name)
    if f:
        outs = [kind(0) for _ in range(count)]
        rc = f(*args, *[ctypes.byref(o) for o in outs])
        note(key or name, rc, values=[o.value for o in outs])


def string(name, *args, size=96, key=None, secret=False):
    f = have(name)
    if f:
        out = ctypes.create_string_buffer(size)
        rc = f(*args, out, U(size))
        text = hide(out.value.decode(errors="replace"))
        note(key or name, rc, value=re.sub(r"[0-9]", "0", text) if secret else text)


def record(name, size, *args, version=None, key=None, set_at=()):
    """A struct of `size` bytes; a versioned one begins with size | version << 24. The real library refuses other sizes."""
    f = have(name)
    if f:
        out = (ctypes.c_ubyte * (size + 64))(*([0xA5] * (size + 64)))
        ctypes.memset(out, 0, size)
        if version:
            struct.pack_into("<I", out, 0, size | version << 24)
        for at, form, value in set_at:
            struct.pack_into(form, out, at, value)
        rc = f(*args, ctypes.byref(out))
        note(key or name, rc, size=size, bytes=bytes(out[:size]).hex(), beyond=bytes(out[size:]) != b"\xa5" * 64)


assert nvml.nvmlInit_v2() == 0
dev = VP()
count = U()
nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(dev)) == 0

for name in ("nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion"):
    string(name)
number("nvmlSystemGetCudaDriverVersion", kind=ctypes.c_int)
number("nvmlSystemGetCudaDriverVersion_v2", kind=ctypes.c_int)
number("nvmlDeviceGetCount_v2")
number("nvmlUnitGetCount")
nvml.nvmlErrorString.restype = ctypes.c_char_p
calls["nvmlErrorString"] = {"rc": 0, "values": {str(i): nvml.nvmlErrorString(i).decode() for i in [*range(0, 32), 999]}}

for name in """Name UUID Serial VbiosVersion InforomImageVersion BoardPartNumber GspFirmwareVersion""".split():
    string("nvmlDeviceGet" + name, dev, secret=name == "Serial")
for i in range(4):
    string("nvmlDeviceGetInforomVersion", dev, i, key=f"nvmlDeviceGetInforomVersion({i})")
for name in """Brand Index MinorNumber BoardId MultiGpuBoard PersistenceMode ComputeMode DisplayMode DisplayActive
    PerformanceState PowerState PowerUsage PowerManagementMode PowerManagementLimit PowerManagementDefaultLimit
    EnforcedPowerLimit FanSpeed NumFans CurrPcieLinkGeneration CurrPcieLinkWidth MaxPcieLinkGeneration MaxPcieLinkWidth
    GpuMaxPcieLinkGeneration PcieSpeed PcieLinkMaxSpeed PcieReplayCounter AccountingMode AccountingBufferSize
    RetiredPagesPendingStatus BridgeChipInfo Architecture BusType NumGpuCores MemoryBusWidth IrqNum
    AdaptiveClockInfoStatus MaxMigDeviceCount NumaNodeId VirtualizationMode HostVgpuMode IsMigDeviceHandle
    GpuInstanceId ComputeInstanceId InforomConfigurationChecksum VgpuCapabilities""".split():
    if name in ("BridgeChipInfo", "VgpuCapabilities"):
        continue
    full = "nvmlDeviceIsMigDeviceHandle" if name == "IsMigDeviceHandle" else "nvmlDeviceGet" + name
    number(full, dev)
for name in """TotalEnergyConsumption SupportedClocksThrottleReasons CurrentClocksThrottleReasons
    SupportedClocksEventReasons CurrentClocksEventReasons SupportedEventTypes""".split():
    number("nvmlDeviceGet" + name, dev, kind=ULL)
for name, count_ in {"MigMode": 2, "EccMode": 2, "GpuOperationMode": 2, "DriverModel_v2": 2,
                     "PowerManagementLimitConstraints": 2, "CudaComputeCapability": 2, "EncoderUtilization": 2,
                     "DecoderUtilization": 2, "JpgUtilization": 2, "OfaUtilization": 2, "GspFirmwareMode": 2,
                     "RemappedRows": 4, "AutoBoostedClocksEnabled": 2}.items():
    numbers("nvmlDeviceGet" + name, count_, dev)
number("nvmlDeviceGetDefaultEccMode", dev)
for sensor in range(2):
    number("nvmlDeviceGetTemperature", dev, sensor, key=f"nvmlDeviceGetTemperature({sensor})")
for limit in range(9):
    number("nvmlDeviceGetTemperatureThreshold", dev, limit, key=f"nvmlDeviceGetTemperatureThreshold({limit})")
for clock in range(4):
    for name in ("ClockInfo", "MaxClockInfo", "ApplicationsClock", "DefaultApplicationsClock", "MaxCustomerBoostClock"):
        number("nvmlDeviceGet" + name, dev, clock, key=f"nvmlDeviceGet{name}({clock})")
for error in range(2):
    for counter in range(2):
        number("nvmlDeviceGetTotalEccErrors", dev, error, counter, kind=ULL, key=f"nvmlDeviceGetTotalEccErrors({error},{counter})")
        for place in range(8):
            number("nvmlDeviceGetMemoryErrorCounter", dev, error, counter, place, kind=ULL,
                   key=f"nvmlDeviceGetMemoryErrorCounter({error},{counter},{place})")
for what in range(2):
    number("nvmlDeviceGetPcieThroughput", dev, what, key=f"nvmlDeviceGetPcieThroughput({what})")
for api in range(2):
    number("nvmlDeviceGetAPIRestriction", dev, api, key=f"nvmlDeviceGetAPIRestriction({api})")
for policy in range(4):
    record("nvmlDeviceGetViolationStatus", 16, dev, policy, key=f"nvmlDeviceGetViolationStatus({policy})")
for link in range(19):
    number("nvmlDeviceGetNvLinkState", dev, link, key=f"nvmlDeviceGetNvLinkState({link})")
    number("nvmlDeviceGetNvLinkVersion", dev, link, key=f"nvmlDeviceGetNvLinkVersion({link})")
    number("nvmlDeviceGetNvLinkRemoteDeviceType", dev, link, key=f"nvmlDeviceGetNvLinkRemoteDeviceType({link})")

record("nvmlDeviceGetPciInfo_v3", 68, dev)
record("nvmlDeviceGetPciInfoExt", 68, dev, version=1)
record("nvmlDeviceGetMemoryInfo", 24, dev)
record("nvmlDeviceGetMemoryInfo_v2", 40, dev, version=2)
record("nvmlDeviceGetBAR1MemoryInfo", 24, dev)
record("nvmlDeviceGetUtilizationRates", 8, dev)
record("nvmlDeviceGetAttributes_v2", 40, dev)
record("nvmlDeviceGetRowRemapperHistogram", 20, dev)
record("nvmlDeviceGetGpuFabricInfo", 32, dev)
record("nvmlDeviceGetGpuFabricInfoV", 36, dev, version=2, key="nvmlDeviceGetGpuFabricInfoV(2)")
record("nvmlDeviceGetGpuFabricInfoV", 40, dev, version=3, key="nvmlDeviceGetGpuFabricInfoV(3)")
record("nvmlDeviceGetConfComputeMemSizeInfo", 16, dev)
record("nvmlDeviceGetConfComputeProtectedMemoryUsage", 24, dev)
record("nvmlSystemGetConfComputeState", 12)
record("nvmlSystemGetConfComputeCapabilities", 8)
record("nvmlSystemGetConfComputeSettings", 20, version=1)
number("nvmlSystemGetConfComputeGpusReadyState")
record("nvmlDeviceGetSramEccErrorStatus", 120, dev, version=1)
record("nvmlDeviceGetMarginTemperature", 8, dev, version=1)
record("nvmlDeviceGetTemperatureV", 12, dev, version=1)
record("nvmlDeviceGetModuleId", 4, dev)
record("nvmlDeviceGetC2cModeInfoV", 4, dev)
record("nvmlDeviceGetPlatformInfo", 44, dev, version=2)
record("nvmlDeviceGetCapabilities", 8, dev, version=1)
record("nvmlDeviceGetFBCStats", 12, dev)
numbers("nvmlDeviceGetEncoderStats", 3, dev, key="nvmlDeviceGetEncoderStats")

for enum in range(20):
    record("nvmlDeviceGetGpuInstanceProfileInfo", 48, dev, enum, key=f"nvmlDeviceGetGpuInstanceProfileInfo({enum})")
    # version, then the fields of v1, then (v2) char name[96], then (v3) capabilities
    for version, size in ((2, 152), (3, 152)):
        record("nvmlDeviceGetGpuInstanceProfileInfoV", size, dev, enum, version=version,
               key=f"nvmlDeviceGetGpuInstanceProfileInfoV({enum},{version})")
    answer = calls[f"nvmlDeviceGetGpuInstanceProfileInfo({enum})"]
    if answer.get("rc") == 0:
        profile = struct.unpack_from("<I", bytes.fromhex(answer["bytes"]))[0]
        n = U(0)
        rc = nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2(dev, profile, None, ctypes.byref(n))
        places = (U * (2 * max(n.value, 1)))()
        rc2 = nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2(dev, profile, places, ctypes.byref(n))
        calls[f"nvmlDeviceGetGpuInstancePossiblePlacements_v2({profile})"] = {
            "rc_count": rc, "rc": rc2, "placements": [[places[2 * i], places[2 * i + 1]] for i in range(n.value)]}
        number("nvmlDeviceGetGpuInstanceRemainingCapacity", dev, profile,
               key=f"nvmlDeviceGetGpuInstanceRemainingCapacity({profile})")
        n = U(0)
        calls[f"nvmlDeviceGetGpuInstances({profile})"] = {
            "rc": nvml.nvmlDeviceGetGpuInstances(dev, profile, (VP * 8)(), ctypes.byref(n)), "count": n.value}
mig = VP()
calls["nvmlDeviceGetMigDeviceHandleByIndex(0)"] = {"rc": nvml.nvmlDeviceGetMigDeviceHandleByIndex(dev, 0, ctypes.byref(mig))}

for kind in ("Compute", "Graphics", "MPSCompute"):
    n = U(0)
    calls[f"nvmlDeviceGet{kind}RunningProcesses_v3"] = {
        "rc": getattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses_v3")(dev, ctypes.byref(n), None), "count": n.value}

n = U(64)
clocks = (U * 64)()
rc = nvml.nvmlDeviceGetSupportedMemoryClocks(dev, ctypes.byref(n), clocks)
memory = list(clocks[:n.value]) if rc == 0 else []
calls["nvmlDeviceGetSupportedMemoryClocks"] = {"rc": rc, "values": memory}
for m in memory:
    n = U(256)
    graphics = (U * 256)()
    rc = nvml.nvmlDeviceGetSupportedGraphicsClocks(dev, m, ctypes.byref(n), graphics)
    calls[f"nvmlDeviceGetSupportedGraphicsClocks({m})"] = {"rc": rc, "values": list(graphics[:n.value]) if rc == 0 else []}

affinity = (ctypes.c_ulong * 4)()
calls["nvmlDeviceGetCpuAffinity"] = {"rc": nvml.nvmlDeviceGetCpuAffinity(dev, 4, affinity), "values": list(affinity)}
for scope in range(2):
    rc = nvml.nvmlDeviceGetMemoryAffinity(dev, 4, affinity, scope)
    calls[f"nvmlDeviceGetMemoryAffinity({scope})"] = {"rc": rc, "values": list(affinity) if rc == 0 else []}

# nvmlFieldValue_t: fieldId, scopeId, timestamp, latencyUsec, valueType, nvmlReturn, value
fields = {}
for field in range(1, 300):
    one = (ctypes.c_ubyte * 40)()
    struct.pack_into("<I", one, 0, field)
    rc = nvml.nvmlDeviceGetFieldValues(dev, 1, ctypes.byref(one))
    _, _, _, _, kind, answer, value = struct.unpack("<IIqqIIQ", bytes(one))
    fields[str(field)] = {"rc": rc, "answer": answer, **({"type": kind, "value": value} if answer == 0 else {})}
calls["nvmlDeviceGetFieldValues"] = {"rc": 0, "fields": fields}

json.dump({
    "what": "answers of NVML on one GPU, MIG mode as found, nothing changed",
    "command": "scripts/capture-nvml.py",
    "date": datetime.date.today().isoformat(),
    "driver": calls["nvmlSystemGetDriverVersion"].get("value"),
    "exported": [name for name in exported(where(library)) if name.startswith("nvml")],
    "calls": calls}, sys.stdout, indent=1)
print()
