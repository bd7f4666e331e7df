# SPDX-License-Identifier: Apache-2.0
"""Reduces a Kineto trace to what concerns NCCL: communication events, their kernels and launches, and profiler steps.

usage: reduce_kineto.py [--device] TRACE.json[.gz] > REDUCED.json

With --device the output also has all other kernels, copies and fills of the device, as "other kernel", "other copy" and
"other fill" with only their times. The output then shows when the device was busy.
"""
import gzip
import json
import sys


def keep(event, correlations):
    name, category = event.get("name", ""), event.get("cat", "")
    if name == "record_param_comms" or name.startswith("nccl:") or name.startswith("ProfilerStep#"):
        return True
    if category == "kernel":
        return name.startswith("nccl")
    return event.get("args", {}).get("correlation") in correlations


OTHERS = {"kernel": "other kernel", "gpu_memcpy": "other copy", "gpu_memset": "other fill"}


def shortened(event):
    """Returns an event of the device that is no collective, without its name and with only its device and stream as
    arguments."""
    args = {key: event.get("args", {})[key] for key in ("device", "stream") if key in event.get("args", {})}
    return {"ph": "X", "cat": event["cat"], "name": OTHERS[event["cat"]], "pid": event["pid"], "tid": event["tid"],
            "ts": event["ts"], "dur": event["dur"], "args": args}


path = sys.argv[-1]
with_device = sys.argv[1] == "--device"
with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
    trace = json.load(file)
events = trace["traceEvents"]
correlations = {e["args"]["correlation"] for e in events if e.get("cat") == "kernel" and e["name"].startswith("nccl")}
kept = [e if keep(e, correlations) else shortened(e) for e in events
        if keep(e, correlations) or (with_device and e.get("cat") in OTHERS)]
for event in kept:
    for noise in ("External id", "Ev Idx", "Record function id", "registers per thread", "shared memory", "blocks per SM",
                  "warps per SM", "est. achieved occupancy %", "queued", "context"):
        event.get("args", {}).pop(noise, None)
top = {key: trace[key] for key in ("schemaVersion", "distributedInfo", "baseTimeNanoseconds") if key in trace}
head = ",\n ".join(json.dumps(key) + ": " + json.dumps(value) for key, value in top.items())
print("{" + head + ",\n \"traceEvents\": [\n" + ",\n".join(json.dumps(e) for e in kept) + "\n]}")
