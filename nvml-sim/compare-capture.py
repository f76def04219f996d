#!/usr/bin/env python3
"""Asks the simulator what a real library was asked (scripts/capture-nvml.py) and compares the answers, call by call.

    nvml-sim/compare-capture.py <capture.json> <answers.json>

What changes from moment to moment on hardware is compared by its shape only. A call the simulator does not export is counted, not compared.
"""
import json, sys

real, simulated = (json.load(open(path)) for path in sys.argv[1:3])
moving_calls = {"nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPcieThroughput(0)", "nvmlDeviceGetPcieThroughput(1)"}
# Time spent with clocks held back; energy; power of this instant; errors and traffic of PCIe.
moving_fields = {"78", "80", "81", "83", "191", "186", "169", *map(str, range(173, 184)), "197", "198"}
identities = {"nvmlDeviceGetUUID", "nvmlDeviceGetSerial"}  # hidden in the capture


def shape(answer):
    return {key: type(value).__name__ if key == "value" else value for key, value in answer.items()}


wrong, compared, absent = [], 0, []
for call, said in real["calls"].items():
    heard = simulated["calls"].get(call)
    if heard is None or heard.get("missing"):
        absent.append(call)
    elif call == "nvmlDeviceGetFieldValues":
        for field, value in said["fields"].items():
            compared += 1
            other = heard["fields"].get(field)
            same = shape(value) == shape(other) if field in moving_fields else value == other
            if not same:
                wrong.append(f"field {field}: {value} on hardware, {other} here")
    else:
        compared += 1
        loose = call in moving_calls or call in identities
        if (shape(said) != shape(heard)) if loose else (said != heard):
            wrong.append(f"{call}: {said} on hardware, {heard} here")

print(f"{compared} answers compared, {len(wrong)} differ, {len(absent)} of calls that are not simulated")
print("\n".join(wrong))
unknown = sorted(set(simulated["exported"]) - set(real["exported"]) - {"bulkhead_nvml_sim"})
if unknown:
    print("exported here and not by the real library:", ", ".join(unknown))
sys.exit(1 if wrong or unknown or compared < 400 else 0)
